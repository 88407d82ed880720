"""Putting an image on a real board: as a UF2 file on its USB drive, through a debug probe with pyOCD, or through the
boot loader of an Arduino with avrdude."""

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
from baretorch.machines.hardware.avrdude import REMEDY, find_avrdude, flash_avrdude
from baretorch.machines.hardware.serial import SerialPort, find_port, no_port, not_ours, serial_ports, touch
from baretorch.targets.boards import board_names, load_board
from baretorch.targets.types import Board

INFO = "INFO_UF2.TXT"
# By UF2 family, as INFO_UF2.TXT has them.
BOARD_IDS = {0xE48BFF56: "RPI-RP2", 0xE48BFF59: "RP2350", 0xE48BFF5A: "RP2350"}
INFO_BYTES = 4096  # a boot loader's has about 60
ID_CHARACTERS = 40
REBOOT_SECONDS = 10.0
DRIVE_SECONDS = 20.0  # for a drive to be there after a board was asked for it
MOUNT_FOLDERS = ("/media/", "/run/media/", "/mnt/")
FILES = {"uf2": "a .uf2 file", "pyocd": "a .hex or .elf file", "avrdude": "a .hex or .elf file"}  # what a method takes
REMEDIES = {
    "uf2": "hold BOOTSEL while plugging in the board: it then shows up as a USB drive",
    "pyocd": "`pip install pyocd`, and connect the board's debug probe",
    "avrdude": REMEDY,
}


@dataclass(frozen=True)
class Drive:
    """A board in its boot loader: it looks like a USB drive and takes UF2 files."""

    folder: Path
    board_id: str


def flash(
    image: Image, method: str | None = None, folders: Sequence[Path] | None = None, port: str | None = None
) -> str:
    """Put the image on the board that is plugged in, by `method` or the first that works; where it went.
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
        drives = _asked_for_drive(image, folders, port) if port else uf2_drives(folders)
        drives = drives or _asked_for_drive(image, folders)
        if folders and not drives:
            where = ", ".join(map(str, folders))
            raise CompileError(f"{where} is not a board's drive", need=f"{INFO} in it", try_=REMEDIES["uf2"])
        if (drive := _drive_for(image, drives)) is not None:
            return flash_uf2(image, drive)
    if "pyocd" in methods and (program := pyocd_command()) is not None:
        return flash_pyocd(image, program)
    if "avrdude" in methods and (avrdude := find_avrdude()) is not None:
        return flash_avrdude(image, avrdude, port)
    file = image.uf2 or image.hex or image.elf
    raise CompileError(
        f"no way found to flash board {board.name}",
        have=f"the image {file}",
        try_=[*_unknown_ports(methods), *(REMEDIES[name] for name in methods)],
    )


def _unknown_ports(methods: Sequence[str]) -> list[str]:
    """Boards of ours, perhaps: they are not asked unless they are named."""
    maybe = [port.device for port in serial_ports() if port.board == ""] if "uf2" in methods else []
    return [f"--port {device} if your board is on it; this computer cannot detect that" for device in maybe]


def _has_file(image: Image, method: str) -> bool:
    """An image that a user gives is one file; it may be none that the method takes."""
    return image.uf2 is not None if method == "uf2" else image.hex is not None or image.elf != image.uf2


def uf2_drives(folders: Sequence[Path] | None = None) -> tuple[Drive, ...]:
    """The mounted drives (or those of `folders`) that take UF2 files."""
    found = []
    for folder in _mounted() if folders is None else folders:
        try:
            text = read_file(folder / INFO, INFO_BYTES, follow=False).decode("utf-8", "replace")
        except OSError:
            continue
        fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
        found.append(Drive(folder, plain_text(fields.get("Board-ID", "unknown"), ID_CHARACTERS)))
    return tuple(found)


def _asked_for_drive(image: Image, folders: Sequence[Path] | None, named: str | None = None) -> tuple[Drive, ...]:
    """The drive of a board that runs an image of ours and talks over USB: it restarts into its boot loader when its
    port is opened at 1,200 baud. It is the one on the port that is `named`, or the only one; none if there is none."""
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
    """A port that can be asked. Nothing else is opened, whatever it is."""
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
    """Boards that we do not know may have any."""
    return name not in board_names() or load_board(name).chip.name == board.chip.name


def flash_uf2(image: Image, drive: Drive, seconds: float = REBOOT_SECONDS) -> str:
    """Copy the UF2 file. A boot ROM reboots into the image when it has it all, and the drive goes away."""
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
    """CompileError if the file is damaged, or for another chip."""
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


def flash_pyocd(image: Image, program: Sequence[str]) -> str:
    """Write the HEX file (or the ELF) through a debug probe, and start it."""
    board = image.board
    target = board.pyocd_target or ""
    command = [*program, "load", "--target", target, str(image.hex or image.elf)]
    try:
        run = subprocess.run(  # with several probes it would ask, and nobody would see that
            command, capture_output=True, stdin=subprocess.DEVNULL, text=True, errors="replace", timeout=300
        )
    except subprocess.TimeoutExpired:
        raise CompileError("pyOCD did not end within 300 s", at=" ".join(command)) from None
    if run.returncode:
        said = [plain_text(line) for line in (run.stderr + run.stdout).strip().splitlines()[-5:]]
        raise CompileError(f"pyOCD could not flash board {board.name}", have=said, try_=_pyocd_remedy(said, target))
    reset = [*program, "reset", "--target", target]
    with suppress(subprocess.TimeoutExpired):  # the image is on the board; the user can reset it
        subprocess.run(reset, capture_output=True, timeout=60)
    return f"{target} through pyOCD"


def _pyocd_remedy(said: Sequence[str], target: str) -> str:
    text = " ".join(said).lower()
    if "no available debug probes" in text or "no connected" in text:
        return "connect the board's debug probe (USB); `pyocd list` shows those that are found"
    if "target" in text and ("not recognized" in text or "unknown" in text):
        return f"`pyocd pack install {target}`"
    return "`pyocd list` shows the probes; on Linux they need udev rules"


def _drive_for(image: Image, drives: Sequence[Drive]) -> Drive | None:
    """The one drive for this image's chip, None if there is no drive at all."""
    wanted = BOARD_IDS.get(image.board.chip.uf2_family or 0, "")
    fitting = [d for d in drives if d.board_id.startswith(wanted)]
    seen = [f"{d.board_id} on {d.folder}" for d in drives]
    if drives and not fitting:
        raise CompileError(f"the drive is not of board {image.board.name}", have=seen, need=f"Board-ID {wanted}")
    if len(fitting) > 1:
        raise CompileError("several boards wait to be flashed", have=seen, try_="leave only one plugged in")
    return fitting[0] if fitting else None


def _mounted() -> list[Path]:
    """Yield the folders of mounted removable drives."""
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
    return (sys.executable, "-m", "pyocd") if importlib.util.find_spec("pyocd") else None
