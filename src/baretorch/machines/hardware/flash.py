"""Flash an image on a real board: as a UF2 file on its USB drive, through a debug probe with pyOCD, or through the boot
loader of an Arduino with avrdude."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from baretorch.errors import CompileError, InternalError
from baretorch.escape import plain_text
from baretorch.files.read import read_file
from baretorch.files.write import copy_to_drive
from baretorch.firmware.types import Image
from baretorch.firmware.uf2 import check_uf2, decode_uf2
from baretorch.machines.hardware.serial import SerialPort, find_port, no_port, not_ours, serial_ports, touch
from baretorch.targets.boards import board_names, load_board
from baretorch.targets.types import Board

INFO = "INFO_UF2.TXT"
# Board-ID in INFO_UF2.TXT, by UF2 family.
BOARD_IDS = {0xE48BFF56: "RPI-RP2", 0xE48BFF59: "RP2350", 0xE48BFF5A: "RP2350"}
INFO_BYTES = 4096  # at most; a boot loader's file has about 60
ID_CHARACTERS = 40
REBOOT_SECONDS = 10.0
DRIVE_SECONDS = 20.0  # for a drive to appear after a board was restarted
MOUNT_FOLDERS = ("/media/", "/run/media/", "/mnt/")
FILES = {
    "uf2": "a .uf2 file",
    "pyocd": "a .hex or .elf file",
    "avrdude": "a .hex or .elf file",
}  # the files that a method accepts
ARDUINO = (0x2341, 0x2A03)  # Arduino's vendor numbers on USB
REMEDIES = {
    "uf2": "hold BOOTSEL while plugging in the board: it then shows up as a USB drive",
    "pyocd": "`pip install pyocd`, and connect the board's debug probe",
    "avrdude": "`apt-get install avrdude`, and plug the board in",
}


@dataclass(frozen=True)
class Drive:
    """A board in its boot loader: it looks like a USB drive and takes UF2 files."""

    folder: Path
    board_id: str


def flash(
    image: Image, method: str | None = None, folders: Sequence[Path] | None = None, port: str | None = None
) -> str:
    """Flash the image on the board that is plugged in, by `method` or the first that works, and return the place.
    `folders` are where its drive may be mounted, if not in the usual places; `port` is its serial port."""
    board = image.board
    if not board.flash_methods:
        raise CompileError(f"board {board.name} cannot be flashed", have=board.title)
    if method is not None and method not in board.flash_methods:
        raise CompileError(
            f"board {board.name} cannot be flashed by {method}", need=f"one of: {', '.join(board.flash_methods)}"
        )
    allowed = board.flash_methods if method is None else (method,)
    methods = [name for name in allowed if _has_file(image, name)]
    if not methods:
        raise CompileError(
            f"board {board.name} cannot be flashed by {' or '.join(allowed)} with {image.elf.name}",
            need=[FILES[name] for name in allowed],
        )
    if "uf2" in methods:
        drives = _restart_into_drive(image, folders, port) if port else uf2_drives(folders)
        drives = drives or _restart_into_drive(image, folders)
        if folders and not drives:
            where = ", ".join(map(str, folders))
            raise CompileError(f"{where} is not a board's drive", need=f"{INFO} in it", try_=REMEDIES["uf2"])
        if (drive := _drive_for(image, drives)) is not None:
            return flash_uf2(image, drive)
    if "pyocd" in methods and (program := pyocd_command()) is not None:
        return flash_pyocd(image, program)
    if "avrdude" in methods and (avrdude := shutil.which("avrdude")) is not None:
        return flash_avrdude(image, avrdude, port)
    file = image.uf2 or image.hex or image.elf
    raise CompileError(
        f"no way found to flash board {board.name}",
        have=f"the image {file}",
        try_=[*_unknown_ports(methods), *(REMEDIES[name] for name in methods)],
    )


def _unknown_ports(methods: Sequence[str]) -> list[str]:
    """Suggest ports that may have a board with an image of Baretorch. They are not opened unless they are named."""
    maybe = [port.device for port in serial_ports() if port.board == ""] if "uf2" in methods else []
    return [f"--port {device} if your board is on it; this computer cannot detect that" for device in maybe]


def _has_file(image: Image, method: str) -> bool:
    """Report whether the image has a file for the method. An image that a user gives is one file."""
    return image.uf2 is not None if method == "uf2" else image.hex is not None or image.elf != image.uf2


def uf2_drives(folders: Sequence[Path] | None = None) -> tuple[Drive, ...]:
    """Return the mounted drives, or those of `folders`, that take UF2 files."""
    found = []
    for folder in _mounted_drives() if folders is None else folders:
        try:
            text = read_file(folder / INFO, INFO_BYTES, follow=False).decode("utf-8", "replace")
        except OSError:
            continue
        fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
        found.append(Drive(folder, plain_text(fields.get("Board-ID", "unknown"), ID_CHARACTERS)))
    return tuple(found)


def _restart_into_drive(image: Image, folders: Sequence[Path] | None, named: str | None = None) -> tuple[Drive, ...]:
    """Restart a board with an image of Baretorch into its boot loader, and return its drive; nothing if there is no
    board. The board is on the port `named`, or is the only one. It restarts when its port is opened at 1,200 baud."""
    before = uf2_drives(folders)
    port = _named_port(named, image.board) if named else _only_board(image.board)
    if port is None:
        return ()
    touch(port.device)
    deadline = time.monotonic() + DRIVE_SECONDS
    while not (drives := tuple(drive for drive in uf2_drives(folders) if drive not in before)):
        if time.monotonic() >= deadline:
            raise CompileError(
                f"the board on {port.device} was restarted into its boot loader, and no drive appeared",
                have=f"nothing within {DRIVE_SECONDS:g} s",
                try_=["mount the drive, and name the place: --drive DIR", REMEDIES["uf2"]],
            )
        time.sleep(0.2)
    return drives


def _named_port(name: str, board: Board) -> SerialPort:
    """Return the port of that name if it has an image of Baretorch for the chip. No other port is opened."""
    port = find_port(name)
    if port is None:
        raise no_port(name)
    if port.board is None:
        raise not_ours(port)
    if not _same_chip(port.board, board):
        raise CompileError(f"port {name} is not that of board {board.name}", have=f"an image for {port.board}")
    return port


def _only_board(board: Board) -> SerialPort | None:
    ports = [port for port in serial_ports() if port.board and _same_chip(port.board, board)]
    if len(ports) > 1:
        remedy = "--port PORT names one of them, or --port with its number"
        raise CompileError("several boards could be flashed", have=list(map(str, ports)), try_=remedy)
    return ports[0] if ports else None


def _same_chip(name: str, board: Board) -> bool:
    """Report whether two boards have the same chip. Boards that are not known here may have any chip."""
    return name not in board_names() or load_board(name).chip.name == board.chip.name


def flash_uf2(image: Image, drive: Drive, seconds: float = REBOOT_SECONDS) -> str:
    """Copy the UF2 file. When it is complete, the boot ROM reboots into the image, and the drive disappears."""
    if image.uf2 is None:
        raise InternalError(f"the image of {image.board.name} has no UF2 file")
    try:
        data = read_file(image.uf2)
    except OSError as error:
        raise CompileError(f"cannot read {image.uf2}", have=str(error)) from None
    _check(data, image.board, image.uf2)
    target = drive.folder / image.uf2.name
    try:
        copy_to_drive(target, data)
    except OSError as error:
        if (drive.folder / INFO).exists():
            raise CompileError(f"the UF2 file cannot be written to {drive.folder}", have=str(error)) from None
        return f"{drive.board_id} on {drive.folder}"  # it rebooted before we had closed the file
    deadline = time.monotonic() + seconds
    while (drive.folder / INFO).exists():
        if time.monotonic() >= deadline:
            raise CompileError(
                f"board {image.board.name} did not restart",
                have=f"{target} is written, and the drive still there after {seconds:g} s",
                try_="unplug the board, hold BOOTSEL while plugging it in, and flash again",
            )
        time.sleep(0.05)
    return f"{drive.board_id} on {drive.folder}"


def _check(data: bytes, board: Board, file: Path) -> None:
    """Raise CompileError if the file is damaged, or for another chip."""
    try:
        families = {block.family for block in decode_uf2(data)}
        if board.chip.uf2_family not in families:
            others = [name for name in board_names() if load_board(name).chip.uf2_family in families - {None}]
            raise CompileError(
                f"the UF2 file is for another chip than that of board {board.name}",
                have=f"an image for {' or '.join(others)}" if others else "an image for a chip that is not known",
                need=f"one for {board.chip.name}",
                try_=f"`baretorch flash MODEL --board {board.name}` builds it, too",
            )
        check_uf2(data, board.chip)
    except CompileError as error:
        error.at = (str(file),)
        raise


def _run_tool(tool: str, command: Sequence[str], seconds: int) -> list[str] | None:
    """Run a programmer's tool. Return the last lines of its output if it fails. It cannot ask questions, such as which
    of several probes to use, because its output is not shown."""
    try:
        run = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, text=True, errors="replace", timeout=seconds
        )
    except subprocess.TimeoutExpired:
        raise CompileError(f"{tool} did not end within {seconds} s", at=" ".join(command)) from None
    if run.returncode == 0:
        return None
    return [plain_text(line) for line in (run.stderr + run.stdout).strip().splitlines()[-5:]]


def flash_pyocd(image: Image, program: Sequence[str]) -> str:
    """Write the HEX file (or the ELF) through a debug probe, and start it."""
    board = image.board
    target = board.pyocd_target or ""
    command = [*program, "load", "--target", target, str(image.hex or image.elf)]
    if (output := _run_tool("pyOCD", command, 300)) is not None:
        raise CompileError(f"pyOCD could not flash board {board.name}", have=output, try_=_pyocd_remedy(output, target))
    reset = [*program, "reset", "--target", target]
    with suppress(subprocess.TimeoutExpired):  # the image is on the board; the user can reset it
        subprocess.run(reset, capture_output=True, timeout=60)
    return f"{target} through pyOCD"


def _pyocd_remedy(output: Sequence[str], target: str) -> str:
    text = " ".join(output).lower()
    if "no available debug probes" in text or "no connected" in text:
        return "connect the board's debug probe (USB); `pyocd list` shows those that are found"
    if "target" in text and ("not recognized" in text or "unknown" in text):
        return f"`pyocd pack install {target}`"
    return "`pyocd list` shows the probes; on Linux they need udev rules"


def _drive_for(image: Image, drives: Sequence[Drive]) -> Drive | None:
    """Return the drive for this image's chip; None if there is no drive at all."""
    board_id = BOARD_IDS.get(image.board.chip.uf2_family or 0, "")
    fitting = [d for d in drives if d.board_id.startswith(board_id)]
    seen = [f"{d.board_id} on {d.folder}" for d in drives]
    if drives and not fitting:
        raise CompileError(f"the drive is not of board {image.board.name}", have=seen, need=f"Board-ID {board_id}")
    if len(fitting) > 1:
        raise CompileError("several boards wait to be flashed", have=seen, try_="leave only one plugged in")
    return fitting[0] if fitting else None


def _mounted_drives() -> list[Path]:
    """Return the folders of mounted removable drives."""
    if sys.platform == "darwin":
        return sorted(Path("/Volumes").iterdir())
    if sys.platform == "win32":
        return [Path(f"{letter}:/") for letter in "DEFGHIJKLMNOPQRSTUVWXYZ"]
    try:
        mounts = Path("/proc/mounts").read_text(errors="replace")
    except OSError:
        return []
    folders = [re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), line.split()[1]) for line in mounts.splitlines()]
    return [Path(folder) for folder in folders if folder.startswith(MOUNT_FOLDERS)]


def pyocd_command() -> tuple[str, ...] | None:
    if found := shutil.which("pyocd"):
        return (found,)
    return (sys.executable, "-P", "-m", "pyocd") if importlib.util.find_spec("pyocd") else None


def flash_avrdude(image: Image, program: str, port: str | None = None) -> str:
    """Write the HEX file through the boot loader, which opening the port resets the board into."""
    board, own = image.board, image.board.avrdude
    assert own is not None  # targets/checks.py
    where = port or _only_port(board.name)
    command = [
        *(program, "-p", own.part, "-c", own.programmer, "-P", where, "-b", str(own.baud)),
        *("-D", "-U", f"flash:w:{image.hex or image.elf}:{'i' if image.hex else 'e'}"),
    ]
    if (output := _run_tool("avrdude", command, 120)) is not None:
        what = f"avrdude could not flash board {board.name}"
        raise CompileError(what, at=" ".join(command), have=output, try_=_avrdude_remedy(output))
    return f"{own.part} on {where}"


def _only_port(board: str) -> str:
    """Return the one serial port of an Arduino. Raise CompileError if there is none or more. Other ports may be
    anything, also boards of other makers, and are not opened unless they are named."""
    ports = [port for port in serial_ports() if port.usb]
    own = [port for port in ports if port.vendor in ARDUINO]
    if len(own) != 1:
        raise CompileError(
            f"which serial port is board {board} on?",
            have=list(map(str, own or ports)) or "no serial port on USB",
            need="--port PORT, such as /dev/ttyACM0, /dev/ttyUSB0 or COM3",
        )
    return own[0].device


def _avrdude_remedy(output: Sequence[str]) -> str:
    text = " ".join(output).lower()
    if "permission denied" in text:
        return "on Linux your user must be in the group dialout: `sudo usermod -aG dialout $USER`, then log in again"
    if "not in sync" in text or "not responding" in text or "timeout" in text:
        return "is it this board, on this port, and does no other program (a monitor) hold the port?"
    return "`avrdude -v` with the same arguments prints more"
