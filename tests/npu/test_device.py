"""The NPU as a driver sees it: registers that start it, say how it went, and are not to be used otherwise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from baretorch.firmware.thumb import Transfer, decode_transfer
from baretorch.machines.npu import device as npu
from baretorch.machines.npu.device import Misuse, NpuBank, NpuDevice
from baretorch.machines.npu.faults import NpuFault
from baretorch.machines.npu.memory import NpuRegion
from baretorch.npu.payload import SCRATCH, WEIGHTS
from tests.npu.cases import Case, kept
from tests.npu.odd import OddNpu, make_odd

ORIGIN, FLASH, STREAM = 0x31000000, 0x10000000, 0x8000
USUAL = OddNpu()


class Board:
    """A chip's memories with a graph in them, and its NPU."""

    def __init__(self, case: Case, variant: OddNpu = USUAL) -> None:
        payload = case.payload
        self.case = case
        self.ram, self.flash = np.full(1 << 17, 0x5A, np.uint8), np.zeros(1 << 16, np.uint8)
        self.flash[: len(payload.weights)] = np.frombuffer(payload.weights, np.uint8)
        self.flash[STREAM : STREAM + len(payload.commands)] = np.frombuffer(payload.commands, np.uint8)
        banks = (NpuBank(ORIGIN, NpuRegion(self.ram)), NpuBank(FLASH, NpuRegion(self.flash, constant=True)))
        self.npu = NpuDevice(payload.accelerator, banks)
        make_odd(self.npu, variant)

    def set_up(self) -> None:
        for slot, data in zip(self.case.payload.inputs, self.case.inputs, strict=True):
            self.ram[slot.offset : slot.offset + slot.size] = np.frombuffer(data, np.uint8)
        write = self.npu.write
        write(npu.RESET, 0)
        while self.npu.read(npu.STATUS) & npu.RESETTING:
            pass
        write(npu.QBASE, FLASH + STREAM)
        write(npu.QSIZE, len(self.case.payload.commands))
        for region, base in ((WEIGHTS, FLASH), (SCRATCH, ORIGIN), (2, ORIGIN)):
            write(npu.BASEP[2 * region], base)

    def run(self) -> int:
        """STATUS at the end."""
        self.set_up()
        self.npu.write(npu.CMD, npu.GATING | npu.RUN)
        assert self.npu.read(npu.STATUS) & npu.RUNNING
        assert not self.npu.irq
        return self.npu.read(npu.STATUS)

    def answer(self) -> bytes:
        (slot,) = self.case.payload.outputs
        return self.ram[slot.offset : slot.offset + slot.size].tobytes()


@pytest.mark.parametrize("name", ["conv-ethos-u65-512", "table8-ethos-u65-256", "chain-ethos-u85-512"])
def test_a_run(name: str) -> None:
    board = Board(kept(name))
    status = board.run()
    assert status & 0xFFFF == npu.END | npu.IRQ
    assert board.npu.read(npu.QREAD) == len(board.case.payload.commands)
    assert board.answer() == board.case.right.tobytes()
    assert board.npu.irq
    board.npu.write(npu.CMD, npu.GATING | npu.CLEAR_IRQ)
    assert not board.npu.irq
    board.ram[:] = 0
    assert board.run() & npu.END, "and again"
    assert board.answer() == board.case.right.tobytes()


def test_who_does_not_wait_reads_what_was_there() -> None:
    board = Board(kept("conv-ethos-u65-512"))
    board.set_up()
    board.npu.write(npu.CMD, npu.GATING | npu.RUN)
    assert board.answer() != board.case.right.tobytes()
    assert board.npu.busy
    board.npu.work()  # as when the core sleeps
    assert board.npu.irq
    assert board.answer() == board.case.right.tobytes()


def test_it_identifies_itself() -> None:
    board = Board(kept("conv-ethos-u65-512"))
    assert board.npu.read(npu.CONFIG) == board.case.payload.accelerator.config
    assert board.npu.read(npu.ID) >> 16 == board.case.payload.accelerator.arch
    other = Board(kept("conv-ethos-u65-512"), OddNpu(config=npu.CUSTOM_DMA, id=7))
    assert other.npu.read(npu.CONFIG) == 0x1800_6009 and other.npu.read(npu.ID) == 7


def test_errors_are_in_status() -> None:
    case = kept("conv-ethos-u65-512")
    broken = replace(case.payload, commands=b"\xff\x03\0\0" + case.payload.commands[4:])
    board = Board(replace(case, payload=broken))
    assert board.run() & 0xFFFF == npu.PARSE_ERROR | npu.IRQ
    assert board.npu.read(npu.QREAD) == 0
    with pytest.raises(Misuse, match="was not reset"):
        board.npu.write(npu.CMD, npu.GATING | npu.RUN)

    board = Board(case)
    board.set_up()
    board.npu.write(npu.BASEP[2 * SCRATCH], 0x60000000)  # where nothing is
    board.npu.write(npu.CMD, npu.GATING | npu.RUN)
    board.npu.read(npu.STATUS)
    assert board.npu.read(npu.STATUS) & 0xFFFF == npu.BUS_ERROR | npu.IRQ

    board = Board(case)
    board.flash[0:512] = 0
    assert board.run() & 0xFFFF == npu.DECODER_FAULT | npu.IRQ

    board = Board(case)
    board.set_up()
    board.npu.write(npu.QSIZE, 1 << 20)
    board.npu.write(npu.CMD, npu.GATING | npu.RUN)
    board.npu.read(npu.STATUS)
    assert board.npu.read(npu.STATUS) & npu.BUS_ERROR


def test_streams_that_depend_on_chance_end_the_emulation() -> None:
    case = kept("table8-ethos-u65-256")
    wait = case.payload.commands.index(b"\x11\0\0\0")
    without = case.payload.commands[:wait] + case.payload.commands[wait + 4 :]
    board = Board(replace(case, payload=replace(case.payload, commands=without)))
    with pytest.raises(NpuFault, match="without a DMA_WAIT between them"):
        board.run()


def test_one_that_is_stuck_never_ends() -> None:
    board = Board(kept("conv-ethos-u65-512"), OddNpu(stuck=True))
    board.set_up()
    board.npu.write(npu.CMD, npu.GATING | npu.RUN)
    for _ in range(100):
        assert board.npu.read(npu.STATUS) == npu.RUNNING


def test_misuse() -> None:
    board = Board(kept("conv-ethos-u65-512"))
    with pytest.raises(Misuse, match="no register at 0x2fc to be read"):
        board.npu.read(0x2FC)
    with pytest.raises(Misuse, match="no register at 0x028 to be written"):
        board.npu.write(npu.CONFIG, 1)
    with pytest.raises(Misuse, match="was not reset since power-up"):
        board.npu.write(npu.CMD, npu.GATING | npu.RUN)
    board.npu.write(npu.RESET, 1)
    with pytest.raises(Misuse, match="at 0x008 is written before the NPU's reset has ended"):
        board.npu.write(npu.CMD, npu.GATING | npu.RUN)
    board.set_up()
    board.npu.write(npu.CMD, npu.GATING | npu.RUN)
    with pytest.raises(Misuse, match="written while the NPU runs"):
        board.npu.write(npu.QSIZE, 4)


REGISTERS = {0: 0x100, 1: 0x58102000, 2: 8, 14: 0x58102000}


@pytest.mark.parametrize(
    ("code", "moved"),
    [
        ("4868", Transfer(True, 0, 0x58102004, 4, 2)),  # ldr r0, [r1, #4]
        ("8860", Transfer(False, 0, 0x58102008, 4, 2)),  # str r0, [r1, #8]
        ("8850", Transfer(False, 0, 0x58102008, 4, 2)),  # str r0, [r1, r2]
        ("cef81010", Transfer(False, 1, 0x58102010, 4, 4)),  # str.w r1, [lr, #16]
        ("def80440", Transfer(True, 4, 0x58102004, 4, 4)),  # ldr.w r4, [lr, #4]
        ("41f8043f", Transfer(False, 3, 0x58102004, 4, 4, (1, 0x58102004))),  # str r3, [r1, #4]!
        ("51f8043b", Transfer(True, 3, 0x58102000, 4, 4, (1, 0x58102004))),  # ldr r3, [r1], #4
        ("51f82230", Transfer(True, 3, 0x58102020, 4, 4)),  # ldr.w r3, [r1, r2, lsl #2]
        ("0870", Transfer(False, 0, 0x58102000, 1, 2)),  # strb r0, [r1]
        ("00bf", None),  # nop
        ("d1e90023", None),  # ldrd r2, r3, [r1]
    ],
)
def test_loads_and_stores(code: str, moved: Transfer | None) -> None:
    assert decode_transfer(bytes.fromhex(code.ljust(8, "0")), lambda n: REGISTERS.get(n, 0)) == moved


@pytest.mark.parametrize("register", [npu.QBASE, npu.BASEP[0], npu.BASEP[4]])
def test_addresses_are_aligned(register: int) -> None:
    """The hardware leaves their lowest bits out, and would compute with something else."""
    board = Board(kept("conv-ethos-u65-512"))
    board.set_up()
    with pytest.raises(Misuse, match="is not a multiple of 16"):
        board.npu.write(register, ORIGIN + 4)


def test_a_reset_takes_its_time() -> None:
    """Until it has ended, only STATUS can be read. Then PROT has the levels that were demanded."""
    board = Board(kept("conv-ethos-u65-512"))
    board.npu.write(npu.RESET, npu.PRIVILEGED | npu.NON_SECURE)
    assert [board.npu.read(register) for register in (npu.CONFIG, npu.PROT, npu.CMD)] == [0, 0, 0]
    assert board.npu.read(npu.STATUS) == npu.RESETTING
    assert board.npu.read(npu.STATUS) == 0
    assert board.npu.read(npu.PROT) == npu.PRIVILEGED | npu.NON_SECURE
    assert board.npu.read(npu.CMD) == npu.GATING


def test_gating_is_changed_by_writes_for_it_alone() -> None:
    board = Board(kept("conv-ethos-u65-512"))
    board.set_up()
    for value in (npu.RUN, npu.CLEAR_IRQ, npu.RUN | npu.POWER_GATING):
        with pytest.raises(Misuse, match="changes clock and power gating from 0xc"):
            board.npu.write(npu.CMD, value)
    board.npu.write(npu.CMD, npu.POWER_GATING)
    assert board.npu.read(npu.CMD) == npu.POWER_GATING
    board.npu.write(npu.CMD, npu.POWER_GATING | npu.RUN)
    assert board.npu.busy and board.npu.read(npu.CMD) == npu.POWER_GATING


def test_the_end_is_forgotten_with_the_next_stream() -> None:
    board = Board(kept("conv-ethos-u65-512"))
    assert board.run() & npu.END
    board.npu.write(npu.CMD, npu.GATING | npu.CLEAR_IRQ)
    with pytest.raises(Misuse, match="neither QBASE nor QSIZE was written"):
        board.npu.write(npu.CMD, npu.GATING | npu.RUN)
    board.npu.write(npu.QSIZE, len(board.case.payload.commands))
    assert not board.npu.read(npu.STATUS) & npu.END


def test_the_history_is_cleared_bit_by_bit() -> None:
    board = Board(kept("conv-ethos-u65-512"))
    history = board.run() & npu.HISTORY
    assert history
    board.npu.write(npu.CMD, npu.GATING | npu.CLEAR_IRQ)
    assert board.npu.read(npu.STATUS) & npu.HISTORY == history
    board.npu.write(npu.CMD, npu.GATING | history & 0xFF_0000)
    assert board.npu.read(npu.STATUS) & npu.HISTORY == history & 0xFF00_0000


@pytest.mark.parametrize(
    ("name", "register", "value"),
    [
        ("depthwise-ethos-u55-128", npu.QBASE_HIGH, 1),
        ("conv-ethos-u65-512", npu.QBASE_HIGH, 0x100),
        ("depthwise-ethos-u55-128", npu.BASEP[1], 1),
        ("depthwise-ethos-u55-128", npu.LIMITS[0], 32 << 16),
        ("depthwise-ethos-u55-128", npu.LIMITS[3], 16 << 24),
        ("chain-ethos-u85-512", npu.LIMITS[0], 8),
        ("chain-ethos-u85-512", npu.AXI_EXT, 4 << 16),
        ("conv-ethos-u65-512", npu.QCONFIG, 4),
        ("conv-ethos-u65-512", npu.REGIONCFG, 1 << 16),
        ("conv-ethos-u65-512", npu.CMD, npu.GATING | 1 << 4),
        ("conv-ethos-u65-512", npu.RESET, 4),
    ],
)
def test_reserved_bits(name: str, register: int, value: int) -> None:
    board = Board(kept(name))
    board.set_up()
    with pytest.raises(Misuse, match="bits that are read-only, reserved or not modelled"):
        board.npu.write(register, value)


@pytest.mark.parametrize("register", [npu.ID, npu.STATUS, npu.QREAD, npu.PROT, npu.CONFIG, npu.AXI_SRAM])
def test_registers_that_cannot_be_written(register: int) -> None:
    """The last one only the U85 has."""
    with pytest.raises(Misuse, match="to be written"):
        Board(kept("conv-ethos-u65-512")).npu.write(register, 0)


def test_faults_of_the_u85() -> None:
    """It reports a branch to where no command is, but not a damaged weight."""
    case = kept("chain-ethos-u85-512")
    nowhere = replace(case.payload, commands=b"\x00\x41\x00\x00\xf0\xff\xff\xff" + case.payload.commands[8:])
    board = Board(replace(case, payload=nowhere))
    assert board.run() & 0xFFFF == npu.BRANCH_FAULT | npu.IRQ
    with pytest.raises(Misuse, match="was not reset"):
        board.npu.write(npu.CMD, npu.GATING | npu.RUN)
    board = Board(case)
    board.flash[: len(case.payload.weights)] = 0
    with pytest.raises(NpuFault, match="weight decoder fault"):
        board.run()


def test_a_memory_error_is_in_status() -> None:
    board = Board(kept("conv-ethos-u65-512"), OddNpu(ecc=True))
    assert board.run() & 0xFFFF == npu.ECC_FAULT | npu.IRQ


def test_power_is_cut_when_it_is_idle() -> None:
    """Not after a reset until CMD is written, not while it runs, not before its interrupt is cleared."""
    board = Board(kept("conv-ethos-u65-512"), OddNpu(cuts_power=True))
    status = board.run()
    assert status & npu.END and board.npu.read(npu.STATUS) == status and board.npu.read(npu.QSIZE)
    board.npu.write(npu.CMD, npu.GATING | npu.CLEAR_IRQ)
    assert board.npu.read(npu.STATUS) == 0 and board.npu.read(npu.QSIZE) == 0
    with pytest.raises(Misuse, match="was not reset since power-up"):
        board.npu.write(npu.CMD, npu.GATING | npu.RUN)
    board.set_up()
    board.npu.write(npu.CMD, npu.CLOCK_GATING)
    assert board.npu.read(npu.QSIZE), "without power gating it keeps its registers"
