"""Whatever arrives, an image does not wedge: the next hello is answered, the next run is right, and then it sleeps."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import pytest

from baretorch.machines import open_machine
from baretorch.machines.frames import ERROR_REPLY, HELLO, RESET, Decoder, Frame, encode_frame
from baretorch.machines.frames import RUN as RUN_FRAME
from baretorch.machines.link import Link
from baretorch.machines.types import DeviceHang, Machine
from tests.machines.images import RUN, image

DATA = bytes(range(50, 66))
LATE = 5  # BT_ERROR_TIME of runtime/frame.h
BOARDS = [("pico", "unicorn"), ("nucleo-wb55rg", "unicorn"), ("microbit", "unicorn"), ("mps2-an386", "qemu")]
MORE = [("pico2", "unicorn"), ("nucleo-h743zi", "unicorn"), ("mps3-an547", "qemu"), ("virt-rv32", "qemu")]


def garbage(rng: random.Random) -> bytes:
    """Noise, frames that are damaged, cut off, too long, of no kind, and pieces of all that in a row."""
    whole = encode_frame(Frame(rng.choice([HELLO, RUN_FRAME, RESET, rng.randrange(256)]), rng.randrange(256), DATA))
    cut = whole[: rng.randrange(len(whole))]
    wrong = bytearray(whole)
    wrong[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
    endless = b"BT" + bytes([rng.choice([HELLO, RUN_FRAME])]) + rng.randbytes(1) + rng.choice([b"\xff", b"\x7f"]) * 4
    noise = rng.randbytes(rng.randrange(64))
    nearly = rng.choice([b"B", b"BT", b"BTBTBT", b"BBBB", b"BTR", b"BTH\0\0"])
    pieces = [whole, cut, bytes(wrong), endless, noise, nearly]
    return b"".join(rng.choice(pieces) for _ in range(rng.randrange(1, 4)))


def drain(machine: Machine) -> Iterator[Frame | bytes]:
    """Read until no more bytes arrive for longer than a device waits for the rest of a frame."""
    decoder = Decoder(limit=1024)
    try:
        while True:
            yield from decoder.feed(machine.read(timeout=1.5))
    except DeviceHang as hang:
        if machine.name == "unicorn":
            assert (hang.what, hang.have) == ("the image waits for input", ("asleep",))
    yield from decoder.give_up()


def is_well(machine: Machine) -> None:
    link = Link(machine)
    assert link.hello().model == "toy"
    assert link.run([DATA]).outputs == (DATA[::-1],)


def throw(board: str, emulator: str, seed: int, times: int) -> None:
    rng = random.Random(seed)
    machine = open_machine(image(board), RUN, emulator)
    try:
        is_well(machine)
        for _ in range(times):
            machine.write(garbage(rng))
            if emulator == "unicorn":  # there time passes at once
                list(drain(machine))
            else:  # as a host does that lost its place
                machine.write(bytes(len(DATA) + 4))
                _quiet(machine)
            is_well(machine)
    finally:
        machine.close()


def _quiet(machine: Machine) -> None:
    try:
        while True:
            machine.read(timeout=0.05)
    except DeviceHang:
        pass


@pytest.mark.parametrize(("board", "emulator"), BOARDS)
def test_garbage(board: str, emulator: str) -> None:
    throw(board, emulator, seed=1, times=40 if emulator == "unicorn" else 8)


@pytest.mark.slow
@pytest.mark.parametrize(("board", "emulator"), BOARDS + MORE)
def test_much_garbage(board: str, emulator: str) -> None:
    throw(board, emulator, seed=2, times=1500 if emulator == "unicorn" else 300)


@pytest.mark.parametrize(("board", "emulator"), [("pico", "unicorn"), ("mps2-an386", "qemu")])
def test_a_flood(board: str, emulator: str) -> None:
    rng = random.Random(3)
    machine = open_machine(image(board), RUN, emulator)
    is_well(machine)
    machine.write(b"".join(garbage(rng) for _ in range(2000)))
    answers = [item for item in drain(machine) if isinstance(item, Frame)]
    assert sum(a.kind == ERROR_REPLY for a in answers) > 500
    is_well(machine)
    machine.close()


@pytest.mark.parametrize(
    ("board", "emulator"),
    [("pico", "unicorn"), ("nucleo-h743zi", "unicorn"), ("microbit", "unicorn"), ("mps2-an386", "qemu"),
     ("microbit", "qemu"), ("virt-rv32", "qemu")],
)  # fmt: skip
def test_a_frame_that_stops_is_given_up(board: str, emulator: str) -> None:
    """A frame that stops in its header, in the inputs or before its last byte is dropped after a second; the model does
    not run."""
    machine = open_machine(image(board), RUN, emulator)
    is_well(machine)
    whole = encode_frame(Frame(RUN_FRAME, 77, DATA))
    for sent in (3, 12, len(whole) - 1) if emulator == "unicorn" else (12,):
        machine.write(whole[:sent])
        before = time.monotonic()
        (answer,) = (item for item in drain(machine) if isinstance(item, Frame))
        assert (answer.kind, answer.payload[0]) == (ERROR_REPLY, LATE)
        assert sent == 3 or answer.seq == 77
        assert emulator == "unicorn" or time.monotonic() - before > 0.8
        is_well(machine)
    machine.close()
