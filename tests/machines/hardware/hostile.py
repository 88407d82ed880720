"""A board at the other end of a pseudo-terminal that does all it can to harm who talks with it."""

from __future__ import annotations

import os
import select
import struct
import threading
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from baretorch.machines.frames import Decoder, Frame, encode_frame

ESCAPES = b"\x1b]0;PWNED\x07\x1b[2J\x1b[31mEVIL\x1b[0m\x9b31m\xe2\x80\xae[/x][red]"


def hello(
    model: bytes = b"sine",
    board: bytes = b"pico",
    inputs: tuple[int, ...] = (4,),
    outputs: tuple[int, ...] = (4,),
    version: int = 1,
    flags: int = 0,
    hz: int = 1_000_000,
) -> bytes:
    head = struct.pack("<BBBBI", version, len(inputs), len(outputs), flags, hz)
    return head + struct.pack(f"<{len(inputs) + len(outputs)}I", *inputs, *outputs) + model + b"\0" + board + b"\0"


def reply(value: float = 0.5, ticks: int = 5) -> bytes:
    return struct.pack("<IIf", ticks, ticks, value)


def answers(*said: bytes, run: bytes = b"", before: bytes = b"") -> Callable[[Frame], bytes]:
    """A device that gives this hello, and this reply to a run."""
    (greeting,) = said or (hello(),)

    def answer(frame: Frame) -> bytes:
        payload = {"H": greeting, "R": run or reply(), "Z": b""}[chr(frame.kind)]
        return before + encode_frame(Frame(frame.kind | 0x20, frame.seq, payload))

    return answer


def errors(text: bytes) -> Callable[[Frame], bytes]:
    """A device that refuses every run."""

    def answer(frame: Frame) -> bytes:
        if chr(frame.kind) == "H":
            return encode_frame(Frame(ord("h"), frame.seq, hello()))
        return encode_frame(Frame(ord("e"), frame.seq, text))

    return answer


def header(length: int) -> Callable[[Frame], bytes]:
    """A device that begins a frame of this length, and no more."""
    return lambda frame: b"BT" + struct.pack("<BBI", frame.kind | 0x20, frame.seq, length)


def damaged(frame: Frame) -> bytes:
    whole = encode_frame(Frame(frame.kind | 0x20, frame.seq, hello()))
    return whole[:-1] + bytes([whole[-1] ^ 1])


def restarts(frame: Frame) -> bytes:
    if chr(frame.kind) == "H":
        return encode_frame(Frame(ord("h"), frame.seq, hello(flags=255)))
    return b"the watchdog restarted the chip" + ESCAPES


FAULT = b"FAULT: x\r\n"
NOTHING: Callable[[Frame], bytes] = lambda frame: b""  # noqa: E731

# What is sent without end, if anything, after the first request or from the beginning; and the answer to a request.
ENDLESS: dict[str, bytes] = {
    "text": b"temperature 21.5 C\r\n",
    "noise": bytes(range(256)) * 16,
    "magic": b"BT" * 2048,
    "frames": encode_frame(Frame(ord("h"), 250, hello())),
    "begun_frames": (b"BTh\0" + struct.pack("<I", 0xFF00)) * 64,
    "fault": FAULT + b"pc 0x12345678\r\n" * 100,
}
CASES: dict[str, Callable[[Frame], bytes]] = {
    "good": answers(),
    "nan": answers(run=reply(float("nan"), 0xFFFFFFFF)),
    "text_between": answers(before=ESCAPES + b"\r\n"),
    "zero_hz": answers(hello(hz=0)),
    "hello_escapes": answers(hello(ESCAPES, ESCAPES)),
    "hello_escapes_in_utf8": answers(hello("\x1b]0;P\x07\x9b31m\u202e[/x][red]".encode(), b"\x1b[31m")),
    "hello_long_name": answers(hello(b"M" * 60_000)),
    "hello_too_long": answers(hello(b"M" * 200_000)),
    "hello_no_utf8": answers(hello(b"\xff\xfe")),
    "hello_empty": answers(b""),
    "hello_version": answers(hello(version=9)),
    "hello_short": answers(hello()[:6]),
    "hello_many": answers(struct.pack("<BBBBI", 1, 255, 255, 0, 1) + b"\xff" * 100),
    "hello_many_whole": answers(hello(inputs=(0xFFFFFFFF,) * 255, outputs=(0xFFFFFFFF,) * 255)),
    "hello_huge_outputs": answers(hello(outputs=(0xFFFFFFF0,))),
    "hello_other_outputs": answers(hello(outputs=(8,)), run=bytes(16)),
    "hello_more_outputs": answers(hello(outputs=(4, 4)), run=bytes(16)),
    "short_reply": answers(run=b"12345"),
    "long_reply": answers(run=bytes(60_000)),
    "wrong_crc": damaged,
    "huge_frame": header(0xFFFFFFFF),
    "unfinished_frame": header(0xFFFF),
    "error_escapes": errors(b"\x04" + ESCAPES + b"\0"),
    "error_long": errors(b"\x01" + ESCAPES + b"[/x]" * 3000),
    "restarts": restarts,
    "silent": NOTHING,
    "fault_escapes": lambda frame: b"FAULT: " + ESCAPES + b"\r\npc 0xZZ\r\npc 0xffffffff\r\nEND OF FAULT\r\n",
    "fault_long": lambda frame: FAULT + b"A" * 50 + b"\n" + b"y" * 5000 + b"\r\nEND OF FAULT\r\n",
    "fault_lines": lambda frame: FAULT + b"\n" * 1900 + b"END OF FAULT\r\n",
    "fault_behind_text": lambda frame: b"z" * 1990 + FAULT + b"END OF FAULT\r\n" + b"z" * 5000,
}


@contextmanager
def attached(answer: Callable[[Frame], bytes], endless: bytes = b"", reads: bool = True) -> Iterator[str]:
    """The name of a port with the device on it. What is `endless` it sends over and over."""
    near, far = os.openpty()
    tty.setraw(near)
    tty.setraw(far)
    os.set_blocking(near, False)
    over, decoder = threading.Event(), Decoder(limit=64)

    def serve() -> None:
        waiting = b""
        while not over.is_set():
            waiting = waiting or endless
            readable, writable, _ = select.select([near] if reads else [], [near] if waiting else [], [], 0.05)
            try:
                if readable:
                    frames = decoder.feed(os.read(near, 65536))
                    waiting += b"".join(answer(frame) for frame in frames if isinstance(frame, Frame))
                if writable:
                    waiting = waiting[os.write(near, waiting[:4096]) :]
            except BlockingIOError:
                continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield os.ttyname(far)
    finally:
        over.set()
        thread.join()
        os.close(near)
        os.close(far)
