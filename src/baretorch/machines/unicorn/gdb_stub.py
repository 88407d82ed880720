"""gdb's remote protocol for an image on Unicorn: a debugger that the machine calls whenever a core stops.

It communicates with one gdb over a socket. The emulation waits in `on_stop` until gdb lets it continue.
"""

from __future__ import annotations

import select
import socket
from contextlib import suppress
from dataclasses import dataclass

import unicorn as uc
from unicorn import arm_const as arm

from baretorch.machines.gdb import DebuggerGone, PacketBuffer, encode_packet
from baretorch.machines.types import DeviceFault
from baretorch.machines.unicorn.core import REGISTERS, Core
from baretorch.machines.unicorn.machine import UnicornMachine

PACKET = 0x1000
INTERRUPT = b"\x03"
INTERRUPTED, TRAP, SEGMENT = 2, 5, 11  # signals, as gdb numbers them


@dataclass(frozen=True)
class GdbRegister:
    """A register; gdb numbers them from 0."""

    name: str
    number: int  # Unicorn's
    bits: int = 32
    kind: str = "int"


CORE = tuple(
    GdbRegister(name, number, kind={"sp": "data_ptr", "pc": "code_ptr"}.get(name, "int"))
    for name, number in {**REGISTERS, "xpsr": arm.UC_ARM_REG_CPSR}.items()
)
FPU = (
    *(GdbRegister(f"d{i}", arm.UC_ARM_REG_D0 + i, 64, "ieee_double") for i in range(16)),
    GdbRegister("fpscr", arm.UC_ARM_REG_FPSCR),
)


class GdbStub:
    """Waits at a socket for gdb; `attach` it to a machine before that runs."""

    def __init__(self, listener: socket.socket, has_fpu: bool) -> None:
        self._listener = listener
        self._gdb: socket.socket | None = None
        self._left: socket.socket | None = None
        self._registers = (*CORE, *(FPU if has_fpu else ()))
        self._has_fpu = has_fpu
        self._received = PacketBuffer()
        self._stop_requested = False  # for a stop

    def attach(self, machine: UnicornMachine) -> None:
        machine.debugger = self
        self.on_stop(machine.core, None, first=True)

    def on_stop(self, core: Core, fault: DeviceFault | None, first: bool = False) -> None:
        """Execute gdb's commands until it lets the core continue."""
        if first:
            self._gdb = self._listener.accept()[0]
        core.stepping = False
        signal = SEGMENT if fault is not None else INTERRUPTED if self._stop_requested else TRAP
        self._stop_requested = False
        if not first:
            self._send(f"S{signal:02x}")
        while (packet := self._packet()) is not None:
            if packet == "?":
                self._send(f"S{signal:02x}")
            elif packet[:1] in ("c", "s", "C", "S"):
                core.stepping = packet[0] in "sS"
                core.pass_breakpoint()
                return
            elif packet[:1] in ("D", "k"):
                self._send("OK")
                break
            else:
                self._send(self._answer(core, packet))
        raise self._leave()

    def wants_stop(self) -> bool:
        """Report whether gdb has sent Ctrl-C."""
        while self._gdb is None or self._gdb.fileno() < 0 or select.select([self._gdb], [], [], 0)[0]:
            more = b"" if self._gdb is None or self._gdb.fileno() < 0 else self._gdb.recv(PACKET)
            if not more:
                raise self._leave()
            self._received.unread += more
        self._stop_requested = INTERRUPT in self._received.unread
        self._received.unread = self._received.unread.replace(INTERRUPT, b"")
        return self._stop_requested

    def report_end(self) -> None:
        """Report to gdb that the image has stopped for good."""
        self._send(f"X{SEGMENT:02x}")

    def close(self) -> None:
        """Close the connection, which also stops a running emulation."""
        for one in filter(None, (self._gdb, self._left)):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _leave(self) -> DebuggerGone:
        self._left, self._gdb = self._gdb, None  # still open, because gdb may send a last packet
        return DebuggerGone("the debugger is gone")

    def _answer(self, core: Core, packet: str) -> str:
        kind, rest = packet[0], packet[1:]
        if packet.startswith("qSupported"):
            return f"PacketSize={PACKET:x};qXfer:features:read+"
        if packet.startswith("qXfer:features:read:target.xml:"):
            return _part(self._description(), packet.rpartition(":")[2])
        if packet == "qAttached":
            return "1"
        if kind == "H":
            return "OK"
        if kind == "g":
            return "".join(self._read(core, r) for r in self._registers)
        if kind == "G":
            for r in self._registers:
                self._write(core, r, rest[: r.bits // 4])
                rest = rest[r.bits // 4 :]
            return "OK"
        if kind == "p" and int(rest, 16) < len(self._registers):
            return self._read(core, self._registers[int(rest, 16)])
        if kind == "P":
            number, _, value = rest.partition("=")
            self._write(core, self._registers[int(number, 16)], value)
            return "OK"
        if kind in "mM":
            return _memory(core, kind, rest)
        if packet[:3] in ("Z0,", "Z1,", "z0,", "z1,"):
            address = int(packet.split(",")[1], 16) & ~1
            (core.set_breakpoint if kind == "Z" else core.remove_breakpoint)(address)
            return "OK"
        return ""  # an unknown packet

    def _read(self, core: Core, register: GdbRegister) -> str:
        value = core.pc if register.name == "pc" else core.uc.reg_read(register.number)
        if register.name == "xpsr":
            value = value & 0xF8000000 | 1 << 24  # Thumb, as always, where M cores have it
        return int(value).to_bytes(register.bits // 8, "little").hex()

    def _write(self, core: Core, register: GdbRegister, text: str) -> None:
        value = int.from_bytes(bytes.fromhex(text), "little")
        if register.name == "pc":
            core.pc = value & ~1
        elif register.name != "xpsr":
            core.uc.reg_write(register.number, value)

    def _description(self) -> str:
        parts = [_feature("m-profile", CORE), _feature("vfp", FPU) if self._has_fpu else ""]
        head = '<?xml version="1.0"?><!DOCTYPE target SYSTEM "gdb-target.dtd">'
        return f"{head}<target><architecture>arm</architecture>{''.join(parts)}</target>"

    def _send(self, text: str) -> None:
        if self._gdb is not None:
            try:
                self._gdb.sendall(encode_packet(text))
            except OSError:
                self._gdb = None

    def _packet(self) -> str | None:
        """Return the next packet, acknowledged; None if gdb is gone."""
        while self._gdb is not None:
            if (packet := self._received.take()) is not None:
                self._gdb.sendall(b"+")
                return packet
            try:
                more = self._gdb.recv(PACKET)
            except OSError:
                return None
            if not more:
                return None
            self._received.unread += more
        return None


def _feature(name: str, registers: tuple[GdbRegister, ...]) -> str:
    rows = "".join(f'<reg name="{r.name}" bitsize="{r.bits}" type="{r.kind}"/>' for r in registers)
    return f'<feature name="org.gnu.gdb.arm.{name}">{rows}</feature>'


def _part(text: str, window: str) -> str:
    offset, length = (int(word, 16) for word in window.split(","))
    rest = text[offset:]
    return ("m" if len(rest) > length else "l") + rest[:length]


def _memory(core: Core, kind: str, rest: str) -> str:
    place, _, data = rest.partition(":")
    address, length = (int(word, 16) for word in place.split(","))
    if kind == "m":
        return core.peek(address, min(length, PACKET // 2 - 8)).hex() or "E01"
    try:
        core.uc.mem_write(address, bytes.fromhex(data))
    except uc.UcError:
        return "E01"
    return "OK"
