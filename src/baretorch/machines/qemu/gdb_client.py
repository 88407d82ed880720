"""The client of QEMU's gdb stub: a few of gdb's packets, over an inherited socket."""

from __future__ import annotations

import select
import socket
import time

from baretorch.machines.gdb import PacketBuffer, encode_packet
from baretorch.machines.types import DeviceFault

CHUNK = 0x700  # bytes that fit into one as hexadecimal digits
PATIENCE = 30.0  # seconds
INTERRUPT = b"\x03"
PC = 15


class GdbClient:
    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._received = PacketBuffer()

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def greet(self) -> None:
        """Query the registers, because QEMU sends their values only after that."""
        self.ask("qSupported:xmlRegisters=arm")
        self.ask("qXfer:features:read:target.xml:0,fff")

    def ask(self, text: str) -> str:
        self.send(text)
        return self.take()

    def demand(self, text: str) -> None:
        answer = self.ask(text)
        if answer != "OK":
            raise DeviceFault(f"QEMU's gdb stub does not do {text[:40]!r}", have=answer or "nothing")

    def send(self, text: str) -> None:
        self._socket.sendall(encode_packet(text))

    def take(self) -> str:
        """Return the next packet."""
        deadline = time.monotonic() + PATIENCE
        while (packet := self.poll(max(0.0, deadline - time.monotonic()))) is None:
            if time.monotonic() >= deadline:
                raise DeviceFault("QEMU's gdb stub went silent")
        return packet

    def poll(self, patience: float = 0.0) -> str | None:
        """Return the next packet, if it arrives soon."""
        if (packet := self._packet()) is not None:
            return packet
        if select.select([self._socket], [], [], patience)[0]:
            more = self._socket.recv(1 << 16)
            if not more:
                raise DeviceFault("QEMU's gdb stub is gone")
            self._received.unread += more
        return self._packet()

    def _packet(self) -> str | None:
        packet = self._received.take()
        if packet is not None:
            self._socket.sendall(b"+")
        return packet

    def interrupt(self) -> None:
        """Stop the core, and wait until it has stopped."""
        self._socket.sendall(INTERRUPT)
        self.take()

    def register(self, number: int) -> int:
        return int.from_bytes(bytes.fromhex(self.ask(f"p{number:x}")), "little")

    def set_register(self, number: int, value: int) -> None:
        self.demand(f"P{number:x}={value.to_bytes(4, 'little').hex()}")

    def read(self, address: int, size: int) -> bytes:
        made = b""
        while len(made) < size:
            count = min(CHUNK, size - len(made))
            answer = self.ask(f"m{address + len(made):x},{count:x}")
            part = b"" if answer.startswith("E") else bytes.fromhex(answer)
            if len(part) != count:
                raise DeviceFault(f"QEMU does not show the memory at {address + len(made):#010x}")
            made += part
        return made

    def write(self, address: int, data: bytes) -> None:
        for at in range(0, len(data), CHUNK):
            part = data[at : at + CHUNK]
            self.demand(f"M{address + at:x},{len(part):x}:{part.hex()}")
