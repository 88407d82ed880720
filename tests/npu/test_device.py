"""The NPU as a driver sees it: registers that start it, say how it went, and are not to be used otherwise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from baretorch.emulators.npu import device as npu
from baretorch.emulators.npu.device import Bank, Device, Misuse
from baretorch.emulators.npu.faults import Fault
from baretorch.emulators.npu.memory import Region
from baretorch.emulators.thumb import Transfer, transfer
from baretorch.npu.payload import SCRATCH, WEIGHTS
from tests.npu.cases import Case, kept

ORIGIN, FLASH, STREAM = 0x31000000, 0x10000000, 0x8000


class Board:
    """A chip's memories with a graph in them, and its NPU."""

    def __init__(self, case: Case, stuck: bool = False) -> None:
        payload = case.payload
        self.case = case
        self.ram, self.flash = np.full(1 << 17, 0x5A, np.uint8), np.zeros(1 << 16, np.uint8)
        self.flash[: len(payload.weights)] = np.frombuffer(payload.weights, np.uint8)
        self.flash[STREAM : STREAM + len(payload.commands)] = np.frombuffer(payload.commands, np.uint8)
        banks = (Bank(ORIGIN, Region(self.ram)), Bank(FLASH, Region(self.flash, constant=True)))
        self.npu = Device(payload.accelerator, banks, stuck)

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
        self.npu.write(npu.CMD, npu.RUN)
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
    board.npu.write(npu.CMD, npu.CLEAR_IRQ)
    assert not board.npu.irq
    board.ram[:] = 0
    assert board.run() & npu.END, "and again"
    assert board.answer() == board.case.right.tobytes()


def test_who_does_not_wait_reads_what_was_there() -> None:
    board = Board(kept("conv-ethos-u65-512"))
    board.set_up()
    board.npu.write(npu.CMD, npu.RUN)
    assert board.answer() != board.case.right.tobytes()
    assert board.npu.busy
    board.npu.work()  # as when the core sleeps
    assert board.npu.irq
    assert board.answer() == board.case.right.tobytes()


def test_it_says_what_it_is() -> None:
    board = Board(kept("conv-ethos-u65-512"))
    assert board.npu.read(npu.CONFIG) == board.case.payload.accelerator.config
    assert board.npu.read(npu.ID) >> 16 == board.case.payload.accelerator.arch


def test_errors_are_in_status() -> None:
    case = kept("conv-ethos-u65-512")
    broken = replace(case.payload, commands=b"\xff\x03\0\0" + case.payload.commands[4:])
    board = Board(replace(case, payload=broken))
    assert board.run() & 0xFFFF == npu.PARSE_ERROR | npu.IRQ
    assert board.npu.read(npu.QREAD) == 0
    with pytest.raises(Misuse, match="was not reset"):
        board.npu.write(npu.CMD, npu.RUN)

    board = Board(case)
    board.set_up()
    board.npu.write(npu.BASEP[2 * SCRATCH], 0x60000000)  # where nothing is
    board.npu.write(npu.CMD, npu.RUN)
    board.npu.read(npu.STATUS)
    assert board.npu.read(npu.STATUS) & 0xFFFF == npu.BUS_ERROR | npu.IRQ

    board = Board(case)
    board.flash[0:512] = 0
    assert board.run() & 0xFFFF == npu.DECODER_FAULT | npu.IRQ

    board = Board(case)
    board.set_up()
    board.npu.write(npu.QSIZE, 1 << 20)
    board.npu.write(npu.CMD, npu.RUN)
    board.npu.read(npu.STATUS)
    assert board.npu.read(npu.STATUS) & npu.BUS_ERROR


def test_streams_that_depend_on_chance_end_the_emulation() -> None:
    case = kept("table8-ethos-u65-256")
    wait = case.payload.commands.index(b"\x11\0\0\0")
    without = case.payload.commands[:wait] + case.payload.commands[wait + 4 :]
    board = Board(replace(case, payload=replace(case.payload, commands=without)))
    with pytest.raises(Fault, match="no DMA_WAIT is between them"):
        board.run()


def test_one_that_is_stuck_never_ends() -> None:
    board = Board(kept("conv-ethos-u65-512"), stuck=True)
    board.set_up()
    board.npu.write(npu.CMD, npu.RUN)
    for _ in range(100):
        assert board.npu.read(npu.STATUS) == npu.RUNNING


def test_misuse() -> None:
    board = Board(kept("conv-ethos-u65-512"))
    with pytest.raises(Misuse, match="no register at 0x2fc to be read"):
        board.npu.read(0x2FC)
    with pytest.raises(Misuse, match="no register at 0x028 to be written"):
        board.npu.write(npu.CONFIG, 1)
    with pytest.raises(Misuse, match="waited for its reset"):
        board.npu.write(npu.CMD, npu.RUN)
    board.set_up()
    board.npu.write(npu.CMD, npu.RUN)
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
    assert transfer(bytes.fromhex(code.ljust(8, "0")), lambda n: REGISTERS.get(n, 0)) == moved


@pytest.mark.parametrize("register", [npu.QBASE, npu.BASEP[0], npu.BASEP[4]])
def test_addresses_are_aligned(register: int) -> None:
    """The hardware leaves their lowest bits out, and would compute with something else."""
    board = Board(kept("conv-ethos-u65-512"))
    board.set_up()
    with pytest.raises(Misuse, match="is not a multiple of 16"):
        board.npu.write(register, ORIGIN + 4)
