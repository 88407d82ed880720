"""The emulated NPU: exact on what was kept, and strict with streams that are damaged or careless."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from baretorch.machines.npu.commands import TABLES, WIDE, Command, Do, Set, decode_commands
from baretorch.machines.npu.core import NpuCore
from baretorch.machines.npu.faults import FaultKind, NpuFault
from baretorch.machines.npu.interpreter import payload_memory, run_payload, run_stream
from baretorch.machines.npu.memory import NpuAccess, NpuMemory, Touched
from baretorch.machines.npu.overlap import Queues
from baretorch.npu.accelerators import ACCELERATORS, Family
from tests.npu.cases import FILES, Case, kept, read_case

CONV, TABLE = "conv-ethos-u65-512", "table8-ethos-u65-256"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_kept_graphs_are_exact(file: Path) -> None:
    case = read_case(file)
    assert np.array_equal(case.answer(), case.right)


def test_all_accelerators_are_kept() -> None:
    assert {read_case(file).payload.accelerator for file in FILES} == set(ACCELERATORS)


def words(commands: list[Command], family: Family) -> bytes:
    numbers = {what: number for number, (what, _) in TABLES[family].items()}
    made = b""
    for c in commands:
        number = numbers[c.what]
        made += struct.pack("<HH", number, c.parameter)
        if number & WIDE:
            made += struct.pack("<I", c.carries >> 16)
    return made


def changed(case: Case, change: Callable[[list[Command]], list[Command]]) -> Case:
    """Return the same graph with other commands."""
    family = case.payload.accelerator.family
    stream = words(change(list(decode_commands(case.payload.commands, family))), family)
    return replace(case, payload=replace(case.payload, commands=stream))


def with_value(case: Case, what: Set, carries: int) -> Case:
    return changed(case, lambda all_: [replace(c, carries=carries) if c.what is what else c for c in all_])


def without(case: Case, what: Do | Set) -> Case:
    return changed(case, lambda all_: [c for c in all_ if c.what is not what])


def fault(case: Case) -> NpuFault:
    with pytest.raises(NpuFault) as caught:
        case.answer()
    assert caught.value.at is not None
    assert f"at byte {caught.value.at:#x} of the command stream" in str(caught.value)
    return caught.value


def test_commands_are_written_as_they_were_read() -> None:
    for file in FILES:
        case = read_case(file)
        assert changed(case, lambda all_: all_).payload.commands == case.payload.commands


def test_illegal_commands() -> None:
    case = kept(CONV)

    def first_word(word: int) -> NpuFault:
        commands = struct.pack("<I", word) + case.payload.commands[4:]
        return fault(replace(case, payload=replace(case.payload, commands=commands)))

    assert first_word(0x0000_0004).what == "no command has the number 0x0004"
    assert first_word(0x0010_0100 | 0x8 << 28).what == "IFM_PAD_TOP carries 0x8010, of which 0x8000 is reserved"
    assert (first_word(0x3FF).kind, first_word(0x3FF).at) == (FaultKind.PARSE, 0)
    assert fault(without(case, Do.STOP)).what == "the stream ends without STOP"


def test_registers_that_were_never_set() -> None:
    assert fault(without(kept(CONV), Set.KERNEL_STRIDE)).what == "KERNEL_STRIDE was never set"


def test_addresses() -> None:
    case = kept(CONV)
    assert fault(with_value(case, Set.IFM_BASE0, 0x7FFF0000 << 16)).kind is FaultKind.BUS
    assert fault(with_value(case, Set.WEIGHT_BASE, 8 << 16)).what.endswith("are not aligned")
    assert "region 6, which does not exist" in fault(with_value(case, Set.OFM_REGION, 6)).what
    assert "which cannot be written" in fault(with_value(case, Set.OFM_REGION, 0)).what
    wide = kept("mul16-ethos-u55-256")
    assert "which is not a multiple of 2" in fault(with_value(wide, Set.OFM_BASE0, 1 << 16)).what


def test_reading_what_was_never_written() -> None:
    case = kept(CONV)
    with pytest.raises(NpuFault, match=r"unsafe stream: the input reads byte 0x\w+, which was never written, at byte"):
        run_stream(case.payload.accelerator, case.payload.commands, payload_memory(case.payload))
    assert "a lookup table reads byte" in fault(without(kept(TABLE), Do.DMA_START)).what


def test_small_npus_forget_their_tables() -> None:
    """An operation without a table has its accumulators where tables are."""
    case = kept("slice-ethos-u55-64")

    def other_first(all_: list[Command]) -> list[Command]:
        at = next(i for i, c in enumerate(all_) if c.what in (Do.POOL, Do.ELEMENTWISE, Do.CONV))
        plain = next(c for c in all_ if c.what is Set.ACTIVATION)
        none = replace(plain, carries=0)
        return [*all_[:at], none, all_[at], plain, *all_[at:]]

    assert np.array_equal(case.answer(), case.right)
    assert "a lookup table reads byte" in fault(changed(case, other_first)).what


def test_waits_that_are_missing() -> None:
    """Here all happens in order, and the answer would be right; on the hardware it would depend on chance."""
    found = fault(without(kept(TABLE), Do.DMA_WAIT))
    assert found.kind is FaultKind.STRICT
    assert "runs during a DMA transfer, without a DMA_WAIT between them: it reads what the other writes" in found.what

    def copied_back(all_: list[Command]) -> list[Command]:
        """DMA over what the operation before reads."""
        return [*all_[:-1], *(c for c in all_ if c.what is Do.DMA_START), all_[-1]]

    assert "without a KERNEL_WAIT between them" in fault(changed(kept(TABLE), copied_back)).what


def test_damaged_weights() -> None:
    case = kept(CONV)
    damaged = replace(case.payload, weights=bytes(len(case.payload.weights)))
    found = fault(replace(case, payload=damaged))
    assert found.kind is FaultKind.DECODER


def test_the_layer_is_named() -> None:
    case = kept("chain-ethos-u85-512")
    at = [c.at for c in decode_commands(case.payload.commands, Family.U85) if c.what is Do.CONV]
    cut = struct.pack("<I", 0x3FF)
    commands = case.payload.commands[: at[0]] + cut + case.payload.commands[at[0] + 4 :]
    with pytest.raises(
        NpuFault, match=r"no command has the number 0x03ff, at byte 0x\w+ of the command stream, in conv1"
    ):
        run_payload(replace(case.payload, commands=commands), case.inputs, {0: "conv1", at[0] + 4: "conv2"})


def test_inputs_of_another_size() -> None:
    case = kept(CONV)
    with pytest.raises(NpuFault, match="an input has 3 bytes, and the stream needs"):
        run_payload(case.payload, [b"abc"])


@pytest.mark.parametrize("name", [CONV, TABLE, "chain-ethos-u85-512", "softmax-ethos-u85-128", "gather-ethos-u85-512"])
def test_flipped_bits(name: str) -> None:
    """A flipped bit of stream or constants is a Fault or another answer, which a judge sees; never another error."""
    case = kept(name)
    rng = random.Random(5)
    faults = 0
    for i in range(60):
        part = "commands" if i % 3 else "weights"
        data = bytearray(getattr(case.payload, part))
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        flipped = case.payload
        flipped = (
            replace(flipped, commands=bytes(data)) if part == "commands" else replace(flipped, weights=bytes(data))
        )
        try:
            replace(case, payload=flipped).answer()
        except NpuFault:
            faults += 1
    assert faults > 6


@pytest.mark.parametrize("name", ["add16-ethos-u55-64", "chain-ethos-u85-512", "reduce_sum-ethos-u85-128"])
def test_operations_that_run_ahead(name: str) -> None:
    """The stream lets an operation begin before what it reads was written."""
    case = kept(name)
    most = 7 if case.payload.accelerator.family is Family.U85 else 3
    found = fault(with_value(case, Set.BLOCKDEP, most))
    assert found.kind is FaultKind.STRICT
    assert "(BLOCKDEP), and its block 0 reads what block" in found.what or "in another order" in found.what


def test_one_that_waits_ends_what_was_before() -> None:
    """U85: an operation that leaves its sums to the next writes nothing. If it did not begin before the one before it
    had ended, the next may read what that wrote, however far ahead it runs; else it may not."""
    accelerator = next(a for a in ACCELERATORS if a.family is Family.U85)
    written = NpuAccess(0, np.arange(64).reshape(4, 4, 4, 1), 0, 64)
    sizes = (Set.OFM_HEIGHT_M1, Set.OFM_WIDTH_M1, Set.OFM_DEPTH_M1)
    blocks = (Set.OFM_BLK_HEIGHT_M1, Set.OFM_BLK_WIDTH_M1, Set.OFM_BLK_DEPTH_M1)

    def third(blockdep: int) -> None:
        core, queues = NpuCore(accelerator, NpuMemory({})), Queues(Family.U85)
        for name in (*sizes, *blocks):
            core.registers.set(name, 3)
        for name in (Set.OFM_PRECISION, Set.IFM_PRECISION, Set.IFM_UPSCALE):
            core.registers.set(name, 0)
        for ahead, touched in ((0, Touched(writes=[written])), (blockdep, Touched()), (7, Touched(reads=[written]))):
            core.registers.set(Set.BLOCKDEP, ahead)
            queues.kernel(core, touched, Do.ELEMENTWISE, 0)

    third(0)
    with pytest.raises(NpuFault, match="may run 7 blocks ahead"):
        third(7)
