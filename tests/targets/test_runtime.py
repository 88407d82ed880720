"""Real images of a tiny model on every board that can be emulated: start-up, the frame protocol, fault reports."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from baretorch.firmware.build import build
from baretorch.firmware.types import Image
from baretorch.machines import open_machine
from baretorch.machines.frames import Decoder, Frame, encode_frame
from baretorch.machines.types import Machine
from baretorch.targets.boards import board_names, load_board

DOUBLER = Path(__file__).with_name("doubler.c")
EMULATED = [name for name in board_names() if load_board(name).emulators]
QEMU = [name for name in EMULATED if "qemu" in load_board(name).emulators]
UNDEFINED, JUMP_NOWHERE, READ_NOWHERE, OVERFLOW = 1001, 1002, 1003, 1004
LIMIT = 1024


@cache
def doubler(board: str, toolchain: str) -> Image:
    folder = Path(mkdtemp(prefix="baretorch-test-"))
    return build("doubler", load_board(board), folder, [DOUBLER], folder, "doubler_run", toolchain)


class Talk:
    """A conversation with a machine: frames and the text around them."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.text = b""
        self._decoder = Decoder(LIMIT)
        self._frames: list[Frame] = []

    def say(self, data: bytes) -> None:
        self.machine.write(data)

    def frame(self) -> Frame:
        while not self._frames:
            self._hear()
        return self._frames.pop(0)

    def text_until(self, end: bytes) -> str:
        while end not in self.text:
            self._hear()
        text, _, self.text = self.text.partition(end)
        return (text + end).decode()

    def _hear(self) -> None:
        for item in self._decoder.feed(self.machine.read(timeout=20.0)):
            if isinstance(item, Frame):
                self._frames.append(item)
            else:
                self.text += item


@contextmanager
def talk(board: str, toolchain: str = "gcc", emulator: str | None = None) -> Iterator[Talk]:
    machine = open_machine(doubler(board, toolchain), "doubler_run", emulator)
    try:
        yield Talk(machine)
    finally:
        machine.close()


def ask(kind: str, seq: int, payload: bytes = b"") -> bytes:
    return encode_frame(Frame(ord(kind), seq, payload))


def floats(*values: float) -> bytes:
    return struct.pack("<4f", *values)


@pytest.mark.parametrize(
    ("board", "toolchain"),
    [(name, "gcc") for name in EMULATED]
    + [(name, "zig") for name in ("pico", "mps2-an385-v6m", "mps2-an505", "mps3-an547", "virt-rv32")],
)
def test_starts_and_answers(board: str, toolchain: str) -> None:
    chip = load_board(board).chip
    with talk(board, toolchain) as device:
        assert device.text_until(b"\n") == f"baretorch: doubler on {board}, ready\n"
        device.say(ask("H", 7))
        hello = struct.pack("<4B3I", 1, 1, 1, 0, chip.counter.hz, 16, 16) + b"doubler\0" + board.encode() + b"\0"
        assert device.frame() == Frame(ord("h"), 7, hello)
        for seq in (0, 255):
            device.say(ask("R", seq, floats(1, -2, 3.5, seq)))
            result = device.frame()
            _, stack, *outputs = struct.unpack("<II4f", result.payload)
            assert (chr(result.kind), result.seq, outputs) == ("r", seq, [2, -4, 7, 2 * seq])
            assert stack < chip.stack_bytes
            assert (stack > 0) == (not load_board(board).hosted)


@pytest.mark.parametrize("board", ["host", "mps2-an386", "pico"])
def test_stays_in_step(board: str) -> None:
    """Whatever arrives is answered in words, and the next good frame is understood."""
    with talk(board) as device:
        broken = bytearray(ask("R", 1, floats(1, 2, 3, 4)))
        broken[12] ^= 0x10
        device.say(bytes(broken))
        assert device.frame() == Frame(ord("e"), 1, b"\x01bytes were lost or changed: the CRC differs\0")
        device.say(ask("Q", 2, b"??"))
        assert device.frame() == Frame(ord("e"), 2, b"\x02unknown frame type\0")
        device.say(ask("R", 3, b"short"))
        assert device.frame() == Frame(ord("e"), 3, b"\x03the payload's length is not that of the inputs\0")
        device.say(ask("H", 4, b"long"))
        assert device.frame().payload[0] == 3
        device.say(ask("R", 5, floats(1, 2, 3, 4))[:14] + bytes(32))
        assert device.frame() == Frame(ord("e"), 5, b"\x01bytes were lost or changed: the CRC differs\0")
        device.say(b"\0garbage BBT"[:-1] + ask("H", 6))
        assert (device.frame().kind, device.text_until(b"\n")[:9]) == (ord("h"), "baretorch")


@pytest.mark.parametrize("board", QEMU)
def test_counter_counts(board: str) -> None:
    """The counter runs: a call of some dozen instructions takes time, and not much of it."""
    with talk(board, emulator="qemu") as device:
        device.say(ask("R", 0, floats(0, 0, 0, 0)))
        (ticks,) = struct.unpack_from("<I", device.frame().payload)
    assert 0 < ticks / load_board(board).chip.counter.hz < 1e-3


def fault(board: str, how: int, toolchain: str = "gcc") -> list[str]:
    """The report of that fault, without its registers' values."""
    with talk(board, toolchain, emulator="qemu") as device:
        device.say(ask("R", 0, floats(how, 0, 0, 0)))
        device.text_until(b"FAULT: ")
        rows = device.text_until(b"END OF FAULT\n").splitlines()
        assert " sp 0x" in "".join(rows)
        return [row for row in rows if not row.startswith(("pc ", "r0 ", "a0 ", "cfsr ", "mcause ", "called from"))]


V6M = "HardFault (Armv6-M does not record the cause)"
FAULTS = [
    ("microbit", UNDEFINED, [V6M]),
    ("mps2-an385-v6m", JUMP_NOWHERE, [V6M]),
    *(
        (name, UNDEFINED, ["undefined instruction"])
        for name in ("mps2-an385", "mps2-an386", "mps2-an505", "mps3-an547")
    ),
    ("mps2-an385", JUMP_NOWHERE, ["execution of memory that holds no code"]),
    ("mps2-an500", READ_NOWHERE, ["access to an address where nothing answers", "address 0xf0000000"]),
    ("mps2-an505", READ_NOWHERE, ["access to an address where nothing answers", "address 0xf0000000"]),
    ("mps3-an547", JUMP_NOWHERE, ["execution of memory that holds no code"]),
    ("virt-rv32", UNDEFINED, ["undefined instruction", "address 0x00000000"]),
    ("virt-rv32", READ_NOWHERE, ["read from an address where nothing answers", "address 0xf0000000"]),
    ("mps2-an385-v6m", OVERFLOW, [V6M, "the stack has overflowed its limit 0x203fe000"]),
    ("mps2-an386", OVERFLOW, ["undefined instruction", "the stack has overflowed its limit 0x203fe000"]),
    ("mps2-an505", OVERFLOW, ["stack overflow"]),
    ("mps3-an547", OVERFLOW, ["stack overflow"]),
    (
        "virt-rv32",
        OVERFLOW,
        ["undefined instruction", "address 0x00000000", "the stack has overflowed its limit 0x83ffe000"],
    ),
]


@pytest.mark.parametrize(("board", "how", "report"), FAULTS)
def test_fault_report(board: str, how: int, report: list[str]) -> None:
    assert fault(board, how) == [*report, "END OF FAULT"]


@pytest.mark.parametrize("board", ["mps2-an385-v6m", "mps2-an505", "virt-rv32"])
def test_fault_report_from_clang(board: str) -> None:
    first = V6M if board == "mps2-an385-v6m" else "undefined instruction"
    assert fault(board, UNDEFINED, "zig")[0] == first
