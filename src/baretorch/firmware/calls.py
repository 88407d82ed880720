"""Find the calls in a linked image, with the decoder of its machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from baretorch.errors import InternalError
from baretorch.firmware import avr, riscv, thumb
from baretorch.firmware.elf import ARM, AVR, RISCV, Elf
from baretorch.firmware.instructions import Instruction, split
from baretorch.firmware.reach import references
from baretorch.targets.cycles import CALLS, Work

LABEL = "bt_model_returned"  # after the call of the run function, by which emulators detect that it has returned


class InstructionDecoder(Protocol):
    """The functions of the modules thumb, riscv and avr. `before` is the instruction before `i`, if there is one."""

    def is_long(self, first: int) -> bool: ...

    def work_of(self, i: Instruction) -> Work: ...

    def jump_target(self, i: Instruction) -> int | None: ...

    def call_target(self, before: Instruction | None, i: Instruction) -> int | None: ...

    def is_indirect_call(self, before: Instruction | None, i: Instruction) -> bool: ...


DECODERS: Mapping[int, InstructionDecoder] = {ARM: thumb, RISCV: riscv, AVR: avr}


def calls_in(elf: Elf, first: int, end: int) -> Iterator[tuple[int, int | None]]:
    """Yield the return address of each call in a range of code, and the call's target if the code contains it."""
    decoder, before = DECODERS[elf.machine], None
    for i in split(elf.bytes_at(first, end - first), first, decoder.is_long):
        if decoder.work_of(i).kind in CALLS:
            yield i.end, decoder.call_target(before, i)
        before = i


def check_return_label(elf: Elf, run_symbol: str) -> None:
    """Raise InternalError unless the instruction before the label is the call of the run function.

    Otherwise instructions of the caller would be counted as the model's.
    """
    if elf.machine not in DECODERS:
        return
    label, run = elf.symbol(LABEL).value & ~1, elf.symbol(run_symbol).address
    calls = [call for size in (2, 4, 8) for call in calls_in(elf, label - size, label)]  # on RISC-V, 8 are two
    targets = {target for end, target in calls if end == label}
    if elf.machine == ARM and targets:  # where it is far away, by a detour that the linker makes
        targets |= {r.target for r in references(elf) if r.source == label - 4}
    if run not in targets:
        raise InternalError(f"the instruction before {LABEL} is not the call of {run_symbol}")
