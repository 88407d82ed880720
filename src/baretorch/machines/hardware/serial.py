"""A real board on a serial port, as a Machine."""

from __future__ import annotations

import errno
import os
import sys
import time
from dataclasses import dataclass

import serial
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from baretorch.errors import CompileError
from baretorch.escape import plain_text
from baretorch.machines.types import DeviceFault, DeviceHang, UncountedMachine
from baretorch.targets.types import Board

POLL_SECONDS = 0.02
WRITE_SECONDS = 10.0  # for a chunk to leave: at 9,600 baud it takes 4.3
CHUNK = 4096
OURS, MAKER = (0x2E8A, 0x000A), "Baretorch"  # vendor and product, and the maker
BOOT_BAUD = 1200


@dataclass(frozen=True)
class SerialPort:
    """A serial port of this computer. `board` is the board for which its image was built, if it has an image of
    Baretorch; it is empty if that cannot be detected. `vendor` is USB's number, and `number` one that no other board
    has."""

    device: str
    title: str
    vendor: int | None = None
    board: str | None = None
    number: str | None = None

    @property
    def usb(self) -> bool:
        return self.vendor is not None

    def __str__(self) -> str:
        """Describe the port so that two boards of a kind can be distinguished."""
        return f"{self.device} ({', '.join(map(plain_text, filter(None, (self.board or self.title, self.number))))})"


def serial_ports() -> tuple[SerialPort, ...]:
    """Return the serial ports; those on USB, where boards are, come first."""
    found = [
        SerialPort(p.device, plain_text(p.description or p.device), p.vid, _board(p), p.serial_number or None)
        for p in list_ports.comports()
    ]
    return tuple(sorted(found, key=lambda port: (not port.usb, port.device)))


def _board(port: ListPortInfo) -> str | None:
    """Return the board that a USB serial port reports by the names in runtime/usb/descriptors.h. Windows does not
    report names, and all programs with the Pico SDK's serial port use the same numbers."""
    if (port.vid, port.pid) != OURS:
        return None
    if sys.platform == "win32":
        return ""
    return (port.product or None) if port.manufacturer == MAKER else None


def find_port(name: str) -> SerialPort | None:
    """Return the port of that name, which may be a link to it, or of the board with that number. Return None if this
    computer lists no such port, for example for a network address."""
    real = os.path.realpath(name)
    return next((port for port in serial_ports() if port.device in (name, real) or port.number == name), None)


def open_port(name: str, board: Board) -> SerialMachine:
    """Open the board on a port. Nothing is sent to a USB device that is certainly not an image of Baretorch."""
    port = find_port(name)
    if board.usb is not None and port is not None and port.usb and port.board is None:
        raise not_ours(port)
    return SerialMachine(port.device if port else name, board.chip.uart.baud)


def not_ours(port: SerialPort) -> CompileError:
    return CompileError(
        f"no image of Baretorch talks on port {port.device}",
        have=f"{port.title}, which was left alone",
        need="a board that runs one, on its USB cable",
        try_=["`baretorch flash` puts one there", "`--console uart` if this is an adapter at the board's UART"],
    )


def touch(port: str) -> None:
    """Restart the image on a port into its chip's boot loader. The port disappears."""
    try:
        serial.serial_for_url(port, baudrate=BOOT_BAUD).close()
    except (serial.SerialException, OSError) as error:
        if getattr(error, "errno", None) in (errno.EACCES, errno.EPERM, errno.EBUSY, errno.ENOENT):
            raise _cannot_open(port, error) from None


class SerialMachine(UncountedMachine):
    """The image that runs on a board at a serial port. Its instructions cannot be counted."""

    name = "serial"

    def __init__(self, port: str, baud: int) -> None:
        try:
            self._port = serial.serial_for_url(port, baudrate=baud, timeout=POLL_SECONDS, write_timeout=WRITE_SECONDS)
        except (serial.SerialException, ValueError, OSError) as error:
            raise _cannot_open(port, error) from None
        self._where = port

    def write(self, data: bytes) -> None:
        try:
            for at in range(0, len(data), CHUNK):  # the time limit is for one write, however long
                self._port.write(data[at : at + CHUNK])
        except serial.SerialTimeoutException:
            raise DeviceHang(f"port {self._where} takes no data") from None
        except (serial.SerialException, OSError):
            raise self._lost_port() from None

    def read(self, timeout: float) -> bytes:
        deadline = time.monotonic() + timeout
        while True:
            try:
                data = bytes(self._port.read(max(1, self._port.in_waiting)))
            except (serial.SerialException, OSError):
                raise self._lost_port() from None
            if data:
                return data
            if time.monotonic() >= deadline:
                raise DeviceHang(f"the board on {self._where} sent nothing in {timeout:g} s")

    def close(self) -> None:
        self._port.close()

    def _lost_port(self) -> DeviceFault:
        return DeviceFault(f"port {self._where} is gone", try_="plug the board in again")


def _cannot_open(port: str, error: Exception) -> CompileError:
    number = getattr(error, "errno", None)
    if number in (errno.EACCES, errno.EPERM):
        remedy = "`sudo usermod -aG dialout $USER`, then log in again" if sys.platform == "linux" else None
        return CompileError(f"no permission to use port {port}", try_=remedy)
    if number == errno.EBUSY:
        return CompileError(f"port {port} is in use", try_="close the other program, such as a serial monitor")
    if number == errno.ENOENT or (os.sep in port and not os.path.exists(port)):
        return no_port(port)
    return CompileError(f"port {port} cannot be opened", have=str(error))


def no_port(name: str) -> CompileError:
    ports = list(map(str, serial_ports()))
    return CompileError(
        f"there is no port {name}",
        have=ports or "no serial ports at all",
        try_="plug the board in with a USB cable that carries data",
    )
