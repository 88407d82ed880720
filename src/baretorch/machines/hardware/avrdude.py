"""Putting an image on an Arduino: avrdude speaks to its boot loader over its serial port."""

from __future__ import annotations

import shutil
import subprocess

from baretorch.errors import CompileError
from baretorch.escape import plain_text
from baretorch.firmware.types import Image
from baretorch.machines.hardware.serial import serial_ports

SECONDS = 120
MAKERS = (0x2341, 0x2A03)  # Arduino's numbers on USB
REMEDY = "`apt-get install avrdude`, and plug the board in"


def find_avrdude() -> str | None:
    return shutil.which("avrdude")


def flash_avrdude(image: Image, program: str, port: str | None = None) -> str:
    """Write the HEX file through the boot loader, which opening the port resets the board into."""
    board, own = image.board, image.board.avrdude
    assert own is not None  # targets/checks.py
    where = port or _only_port(board.name)
    command = [
        *(program, "-p", own.part, "-c", own.programmer, "-P", where, "-b", str(own.baud)),
        *("-D", "-U", f"flash:w:{image.hex or image.elf}:{'i' if image.hex else 'e'}"),
    ]
    try:
        run = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise CompileError(f"avrdude did not end within {SECONDS} s", at=" ".join(command)) from None
    if run.returncode:
        said = [plain_text(line) for line in (run.stderr + run.stdout).strip().splitlines()[-5:]]
        raise CompileError(
            f"avrdude could not flash board {board.name}",
            at=" ".join(command),
            have=said,
            try_=_remedy(said),
        )
    return f"{own.part} on {where}"


def _only_port(board: str) -> str:
    """The one serial port of an Arduino; CompileError if there is none or more. Others may be anything, also an Arduino
    that somebody else made, and are not opened unless they are named."""
    ports = [port for port in serial_ports() if port.usb]
    own = [port for port in ports if port.vendor in MAKERS]
    if len(own) != 1:
        raise CompileError(
            f"which serial port is board {board} on?",
            have=list(map(str, own or ports)) or "no serial port on USB",
            need="--port PORT, such as /dev/ttyACM0, /dev/ttyUSB0 or COM3",
        )
    return own[0].device


def _remedy(said: list[str]) -> str:
    text = " ".join(said).lower()
    if "permission denied" in text:
        return "on Linux your user must be in the group dialout: `sudo usermod -aG dialout $USER`, then log in again"
    if "not in sync" in text or "not responding" in text or "timeout" in text:
        return "is it this board, on this port, and does no other program (a monitor) hold the port?"
    return "`avrdude -v` with the same arguments prints more"
