"""A device written in Python, and a line that may change what passes."""

from __future__ import annotations

import struct
from collections.abc import Callable

from baretorch.machines.frames import Decoder, Frame, encode_frame
from baretorch.machines.types import DeviceHang, UncountedMachine

HELLO = struct.pack("<BBBBI3I", 1, 2, 1, 0, 1000, 4, 2, 6) + b"tiny\0desk\0"


class FakeDevice(UncountedMachine):
    """Answers like the runtime. `line` may change what passes, in either direction."""

    name = "serial"

    def __init__(self, line: Callable[[bytes], bytes] = lambda data: data) -> None:
        self.line = line
        self.decoder = Decoder(limit=6)
        self.out = b"baretorch: tiny on desk, ready\n"
        self.runs = 0

    def write(self, data: bytes) -> None:
        for item in self.decoder.feed(self.line(data)):
            if isinstance(item, Frame):
                self.out += self.line(self.answer(item))

    def answer(self, frame: Frame) -> bytes:
        if frame.kind == ord("H"):
            return encode_frame(Frame(ord("h"), frame.seq, HELLO))
        self.runs += 1
        return encode_frame(Frame(ord("r"), frame.seq, struct.pack("<II", 42, 512) + frame.payload[::-1]))

    def read(self, timeout: float) -> bytes:
        if not self.out:
            raise DeviceHang("silent")
        data, self.out = self.out, b""
        return data

    def close(self) -> None:
        self.out = b""
