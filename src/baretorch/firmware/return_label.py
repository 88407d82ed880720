"""Checks the label after the call of the run function, by which emulators detect that it has returned."""

from __future__ import annotations

from baretorch.errors import InternalError
from baretorch.firmware import avr, riscv, thumb
from baretorch.firmware.elf import ARM, AVR, RISCV, Elf
from baretorch.firmware.reach import references

LABEL = "bt_model_returned"


def check_return_label(elf: Elf, run_symbol: str) -> None:
    """Raise InternalError unless the instruction before the label is the call of the run function.

    Otherwise instructions of the caller would be counted as the model's.
    """
    label, run = elf.symbol(LABEL).value & ~1, elf.symbol(run_symbol).address
    if elf.machine == ARM:
        raw = elf.bytes_at(label - 4, 4)
        target = thumb.branch_target(raw, label - 4) if thumb.is_call(raw) else None
        if target is not None and target != run:  # where it is far away, by a detour that the linker makes
            target = next((r.target for r in references(elf) if r.source == label - 4), None)
    elif elf.machine == RISCV:
        # Either a compressed call of two bytes, one of four, or a pair of four each.
        ends = [list(riscv.instructions(elf.bytes_at(label - n, n), label - n)) for n in (2, 4, 8)]
        targets = [
            riscv.call_target(row[-2] if len(row) > 1 else None, row[-1])
            for row, n in zip(ends, (1, 1, 2), strict=True)
            if len(row) == n and row[-1].address + row[-1].size == label
        ]
        target = run if run in targets else None
    elif elf.machine == AVR:
        target = avr.call_target(next(avr.instructions(elf.bytes_at(label - 4, 4), label - 4)))
    else:
        return
    if target != run:
        raise InternalError(f"the instruction before {LABEL} is not the call of {run_symbol}")
