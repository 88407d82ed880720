"""The link against a device written in Python, with a line that loses, damages and invents bytes."""

import random

import pytest

from baretorch.errors import CompileError
from baretorch.machines.frames import Frame, encode_frame
from baretorch.machines.link import Link, Reply
from baretorch.machines.types import DeviceFault, DeviceHang
from tests.machines.fake import HELLO, FakeDevice


def test_hello_and_run() -> None:
    heard: list[str] = []
    link = Link(FakeDevice(), heard.append)
    hello = link.hello("tiny")
    assert (hello.model, hello.board, hello.counter_hz) == ("tiny", "desk", 1000)
    assert (hello.inputs, hello.outputs) == ((4, 2), (6,))
    assert link.run([b"abcd", b"ef"]) == Reply((b"fedcba",), ticks=42, stack_peak=512)
    assert "".join(heard) == "baretorch: tiny on desk, ready\n"


def test_another_model_on_the_board() -> None:
    with pytest.raises(CompileError) as error:
        Link(FakeDevice()).hello("kws")
    assert error.value.render() == (
        "error: another model runs on the board\n"
        "  have  tiny on desk\n"
        "  need  kws\n"
        "  try   `baretorch flash` puts this model on the board"
    )


def test_inputs_of_the_wrong_size() -> None:
    with pytest.raises(CompileError) as error:
        Link(FakeDevice()).run([b"abcd"])
    assert error.value.have == ("inputs of 4 bytes",)
    assert error.value.need == ("inputs of 4, 2 bytes",)


@pytest.mark.parametrize("seed", range(30))
def test_a_bad_line_is_survived(seed: int) -> None:
    """One transfer in thirteen loses a byte, gets a wrong one, or brings noise."""
    rng = random.Random(seed)

    def line(data: bytes) -> bytes:
        wire, at = bytearray(data), rng.randrange(len(data)) if data else 0
        damage = rng.randrange(40)
        if damage == 0 and wire:
            del wire[at]
        elif damage == 1 and wire:
            wire[at] ^= 0x10
        elif damage == 2:
            wire[at:at] = b"BTr?"
        return bytes(wire)

    link = Link(FakeDevice(line))
    for i in range(10):
        data = bytes([i] * 6)
        assert link.run([data[:4], data[4:]]).outputs == (data,)


def test_silence_is_a_hang_reported_with_the_received_text() -> None:
    device = FakeDevice()
    device.answer = lambda frame: b""  # type: ignore[method-assign]
    with pytest.raises(DeviceHang) as error:
        Link(device).run([b"abcd", b"ef"], timeout=0.1)
    assert error.value.have == ("heard: baretorch: tiny on desk, ready",)


def test_a_hang_in_the_model() -> None:
    device = FakeDevice()
    link = Link(device)
    link.hello()
    device.answer = lambda frame: b""  # type: ignore[method-assign]
    with pytest.raises(DeviceHang, match="no response from the device within 3 s"):
        link.run([b"abcd", b"ef"], timeout=3)


def test_refusals_end_the_attempts() -> None:
    device = FakeDevice()
    link = Link(device)
    link.hello()
    device.answer = lambda frame: encode_frame(Frame(ord("e"), frame.seq, b"\1bad CRC\0"))  # type: ignore[method-assign]
    with pytest.raises(CompileError, match="4 frames in a row were damaged") as error:
        link.run([b"abcd", b"ef"])
    assert error.value.have[0] == "bad CRC"


def test_a_fault_message_is_raised_whole() -> None:
    device = FakeDevice()
    link = Link(device)
    link.hello()
    device.answer = lambda frame: b"FAULT: hard fault\npc 0x00001234\nEND OF FAULT\n"  # type: ignore[method-assign]
    with pytest.raises(DeviceFault) as error:
        link.run([b"abcd", b"ef"])
    assert error.value.render() == "error: the device stopped: FAULT: hard fault\n  have  pc 0x00001234"


def test_a_late_answer_to_an_earlier_question_is_ignored() -> None:
    device = FakeDevice()
    link = Link(device)
    link.hello()
    device.out = encode_frame(Frame(ord("r"), 77, bytes(14)))
    assert link.run([b"abcd", b"ef"]).outputs == (b"fedcba",)


@pytest.mark.parametrize("payload", [b"\1", b"\1\1\1\0\0\0\0\0", HELLO[:-1], HELLO + b"x"])
def test_a_hello_that_makes_no_sense(payload: bytes) -> None:
    device = FakeDevice()
    device.answer = lambda frame: encode_frame(Frame(ord("h"), frame.seq, payload))  # type: ignore[method-assign]
    with pytest.raises(DeviceFault, match="makes no sense"):
        Link(device).hello()


@pytest.mark.parametrize("payload", [b"", b"\2"])
def test_another_protocol_version(payload: bytes) -> None:
    device = FakeDevice()
    device.answer = lambda frame: encode_frame(Frame(ord("h"), frame.seq, payload))  # type: ignore[method-assign]
    with pytest.raises(CompileError, match="another version of the protocol"):
        Link(device).hello()
