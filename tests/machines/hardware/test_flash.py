"""Flashing, with a folder that looks like a board's drive, and a program that looks like pyOCD."""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from baretorch.errors import CompileError
from baretorch.firmware.chunks import Chunk
from baretorch.firmware.types import FlashUse, Image, RamUse
from baretorch.firmware.uf2 import encode_uf2
from baretorch.machines.hardware import flash as module
from baretorch.machines.hardware import serial as ports
from baretorch.machines.hardware.flash import Drive, flash, flash_uf2, uf2_drives
from baretorch.machines.hardware.serial import SerialPort
from baretorch.targets.boards import board_names, load_board
from tests.cli.program import baretorch
from tests.pipes import ending

PYOCD = """\
#!{python}
import sys
with open({log!r}, "a") as log:
    log.write(" ".join(sys.argv[1:]) + "\\n")
if {says!r}:
    sys.exit({says!r})
"""


def an_image(folder: Path, board: str) -> Image:
    names = {suffix: folder / f"toy.{suffix}" for suffix in ("elf", "hex", "uf2", "map")}
    for path in names.values():
        path.write_text(path.name)
    names["uf2"].write_bytes(encode_uf2((Chunk(0x10000000, bytes(600)),), load_board(board).chip.uf2_family or 0))
    flash_use, ram_use = FlashUse(0, 0, 0, 0), RamUse(0, 0, 0, 0, 0, 0, 0)
    target = load_board(board)
    uf2 = names["uf2"] if "uf2" in target.flash_methods else None
    return Image("toy", target, "gcc", names["elf"], None, names["hex"], uf2, names["map"], flash_use, ram_use)


def a_drive(folder: Path, board_id: str) -> Path:
    folder.mkdir()
    (folder / "INFO_UF2.TXT").write_text(f"UF2 Bootloader v3.0\nModel: a board\nBoard-ID: {board_id}\n")
    return folder


@pytest.fixture
def mounted(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the list of mounted drives, which is empty at first. pyOCD is not installed, and timeouts are short."""
    folders: list[Path] = []
    monkeypatch.setattr(module, "_mounted_drives", lambda: folders)
    monkeypatch.setattr(module, "serial_ports", lambda: ())
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(flash_uf2, "__defaults__", (0.0,))
    return folders


def a_pyocd(folder: Path, monkeypatch: pytest.MonkeyPatch, says: str = "", name: str = "pyocd") -> Path:
    program, log = folder / name, folder / "log"
    program.write_text(PYOCD.format(python=sys.executable, log=str(log), says=says))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return log


PORTS = (SerialPort("/dev/ttyACM0", "Pico", 0x2E8A, "pico"), SerialPort("/dev/ttyACM1", "ST-LINK", 0x0483))


def test_a_running_board_is_asked_for_its_drive(
    tmp_path: Path, mounted: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening its port at 1,200 baud makes it appear; no button is needed."""
    touched: list[str] = []

    def touch(port: str) -> None:
        touched.append(port)
        mounted.append(a_drive(tmp_path / "drive", "RPI-RP2"))

    monkeypatch.setattr(module, "serial_ports", lambda: PORTS)
    monkeypatch.setattr(module, "touch", touch)
    image = an_image(tmp_path, "pico4ml")
    with pytest.raises(CompileError, match="did not restart"):  # a folder does not go away
        flash(image)
    assert image.uf2 and (tmp_path / "drive" / "toy.uf2").read_bytes() == image.uf2.read_bytes()
    assert touched == ["/dev/ttyACM0"]
    with pytest.raises(CompileError, match="did not restart"):
        flash(image)
    assert touched == ["/dev/ttyACM0"], "its drive is there already"


def test_boards_that_are_not_asked(tmp_path: Path, mounted: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with another chip, several at once, and one whose drive does not come."""
    touched: list[str] = []
    monkeypatch.setattr(module, "touch", touched.append)
    monkeypatch.setattr(module, "DRIVE_SECONDS", 0.0)
    monkeypatch.setattr(module, "serial_ports", lambda: PORTS)
    with pytest.raises(CompileError, match="no way found to flash board pico2"):
        flash(an_image(tmp_path, "pico2"))
    other = SerialPort("/dev/ttyACM2", "Pico", 0x2E8A, "mine", "E66118604B3A7C25")
    monkeypatch.setattr(module, "serial_ports", lambda: (*PORTS, other))
    with pytest.raises(CompileError) as several:
        flash(an_image(tmp_path, "pico"))
    assert several.value.render() == (
        "error: several boards could be flashed\n"
        "  have  /dev/ttyACM0 (pico)\n"
        "        /dev/ttyACM2 (mine, E66118604B3A7C25)\n"
        "  try   --port PORT names one of them, or --port with its number"
    )
    assert touched == []
    monkeypatch.setattr(module, "serial_ports", lambda: PORTS)
    with pytest.raises(CompileError, match="no drive appeared"):
        flash(an_image(tmp_path, "pico"))
    assert touched == ["/dev/ttyACM0"]


SEVERAL = (
    *PORTS,
    SerialPort("/dev/ttyACM2", "Pico", 0x2E8A, "pico", "E660"),
    SerialPort("COM3", "serial", 0x2E8A, "", "E661"),
)


@pytest.mark.parametrize(
    ("name", "device"),
    [("/dev/ttyACM2", "/dev/ttyACM2"), ("COM3", "COM3"), ("E660", "/dev/ttyACM2"), ("E661", "COM3")],
)
def test_one_of_several_boards_is_asked(
    name: str, device: str, tmp_path: Path, mounted: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The board is that on the named port, or with the serial number, even if only the user knows what it is. Its drive
    is the new one."""
    touched: list[str] = []

    def touch(port: str) -> None:
        touched.append(port)
        mounted.append(a_drive(tmp_path / "new", "RPI-RP2"))

    mounted.append(a_drive(tmp_path / "old", "RPI-RP2"))
    monkeypatch.setattr(ports, "serial_ports", lambda: SEVERAL)
    monkeypatch.setattr(module, "touch", touch)
    with pytest.raises(CompileError, match="did not restart"):  # a folder does not go away
        flash(an_image(tmp_path, "pico"), port=name)
    assert touched == [device]
    assert (tmp_path / "new" / "toy.uf2").exists() and not (tmp_path / "old" / "toy.uf2").exists()


def test_ports_that_are_left_alone(tmp_path: Path, mounted: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """An unnamed port that may belong to any device, one that is not ours, another chip's, and a missing port are not
    opened."""
    touched: list[str] = []
    monkeypatch.setattr(module, "touch", touched.append)
    monkeypatch.setattr(ports, "serial_ports", lambda: SEVERAL)
    monkeypatch.setattr(module, "serial_ports", lambda: SEVERAL[3:])
    with pytest.raises(CompileError, match="no way found") as error:
        flash(an_image(tmp_path, "pico"))
    assert error.value.try_[0] == "--port COM3 if your board is on it; this computer cannot detect that"
    for name, what in (
        ("/dev/ttyACM1", "no image of Baretorch talks on port /dev/ttyACM1"),
        ("/dev/ttyACM9", "there is no port /dev/ttyACM9"),
    ):
        with pytest.raises(CompileError) as error:
            flash(an_image(tmp_path, "pico"), port=name)
        assert error.value.what == what
    with pytest.raises(CompileError) as error:
        flash(an_image(tmp_path, "pico2"), port="/dev/ttyACM0")
    assert error.value.render() == ("error: port /dev/ttyACM0 is not that of board pico2\n  have  an image for pico")
    assert touched == []


def test_the_drive_of_another_board_is_not_for_riscv(tmp_path: Path, mounted: list[Path]) -> None:
    mounted.append(a_drive(tmp_path / "drive", "SAMD21G18A-Metro-v0"))
    with pytest.raises(CompileError) as error:
        flash(an_image(tmp_path, "pico2-riscv"))
    assert error.value.need == ("Board-ID RP2350",)
    assert not (tmp_path / "drive" / "toy.uf2").exists()


def test_every_family_has_its_drives() -> None:
    families = {load_board(name).chip.uf2_family for name in board_names()}
    assert families - {None} == set(module.BOARD_IDS)


@pytest.mark.parametrize(("board", "board_id"), [("pico", "RPI-RP2"), ("pico2", "RP2350"), ("pico4ml", "RPI-RP2")])
def test_the_uf2_file_is_copied(board: str, board_id: str, tmp_path: Path, mounted: list[Path]) -> None:
    mounted += [tmp_path / "not there", tmp_path, a_drive(tmp_path / "drive", board_id)]
    image = an_image(tmp_path, board)
    with pytest.raises(CompileError, match=f"board {board} did not restart"):  # a folder does not go away
        flash(image)
    assert image.uf2 and (tmp_path / "drive" / "toy.uf2").read_bytes() == image.uf2.read_bytes()


def test_it_waits_until_the_drive_goes_away(tmp_path: Path) -> None:
    drive = a_drive(tmp_path / "drive", "RPI-RP2")

    def reboot() -> None:
        time.sleep(0.3)
        (drive / "INFO_UF2.TXT").unlink()

    thread = threading.Thread(target=reboot)
    start = time.monotonic()
    thread.start()
    flash_uf2(an_image(tmp_path, "pico"), Drive(drive, "RPI-RP2"), seconds=20)
    thread.join()
    assert 0.3 <= time.monotonic() - start < 10


def test_a_board_that_reboots_before_the_file_is_closed(tmp_path: Path) -> None:
    gone = Drive(tmp_path / "gone", "RPI-RP2")
    assert flash_uf2(an_image(tmp_path, "pico"), gone, seconds=0) == f"RPI-RP2 on {gone.folder}"


def test_a_drive_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    drive = a_drive(tmp_path / "drive", "RPI-RP2")
    monkeypatch.setattr(module, "copy_to_drive", full)
    with pytest.raises(CompileError, match="cannot be written"):
        flash_uf2(an_image(tmp_path, "pico"), Drive(drive, "RPI-RP2"), seconds=0)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "file"])
def test_what_others_have_on_the_drive_stays(kind: str, tmp_path: Path) -> None:
    """A stick that calls itself a board may hold a link to a file of the user's."""
    drive = a_drive(tmp_path / "drive", "RPI-RP2")
    precious, target = tmp_path / "precious", drive / "toy.uf2"
    precious.write_text("precious")
    if kind == "link":
        target.symlink_to(precious)
    elif kind == "pipe":
        os.mkfifo(target)
    elif kind == "folder":
        target.mkdir()
    else:
        target.write_text("notes")
    before = target.lstat()
    with pytest.raises(CompileError, match=r"toy\.uf2 was not generated by Baretorch; it was not changed"):
        flash_uf2(an_image(tmp_path, "pico"), Drive(drive, "RPI-RP2"), seconds=0)
    assert precious.read_text() == "precious"
    assert (target.lstat().st_ino, target.lstat().st_size) == (before.st_ino, before.st_size)


def test_an_older_image_on_the_drive_is_replaced(tmp_path: Path) -> None:
    """Also where another name of the same file is elsewhere: that one stays."""
    drive, image = a_drive(tmp_path / "drive", "RPI-RP2"), an_image(tmp_path, "pico")
    other = tmp_path / "other.uf2"
    other.write_bytes(b"UF2\nold")
    (drive / "toy.uf2").hardlink_to(other)
    with pytest.raises(CompileError, match="did not restart"):
        flash_uf2(image, Drive(drive, "RPI-RP2"), seconds=0)
    assert image.uf2 and (drive / "toy.uf2").read_bytes() == image.uf2.read_bytes()
    assert other.read_bytes() == b"UF2\nold"


def test_a_drive_with_a_pipe_for_its_description(tmp_path: Path) -> None:
    """Nothing waits for what somebody may write to it, and a link is not followed to it either."""
    for name in ("pipe", "link"):
        (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / "pipe" / "INFO_UF2.TXT")
    (tmp_path / "link" / "INFO_UF2.TXT").symlink_to(tmp_path / "pipe" / "INFO_UF2.TXT")
    with ending(tmp_path / "pipe" / "INFO_UF2.TXT"):
        assert uf2_drives([tmp_path / "pipe", tmp_path / "link"]) == ()


def test_what_a_drive_calls_itself_is_plain_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No markup, no escape sequence, no change of the direction of writing, and no novel."""
    odd = "RPI-RP2[/x][red]\x1b]0;title\x07\x1b[2J\u202e" + "long" * 5000
    drive = a_drive(tmp_path / "drive", odd)
    (found,) = uf2_drives([drive])
    assert found.board_id.isprintable() and len(found.board_id) < 60
    image = an_image(tmp_path, "pico")
    monkeypatch.setattr(module, "copy_to_drive", lambda path, data: (drive / "INFO_UF2.TXT").unlink())
    result = baretorch("flash", str(image.uf2), "--board", "pico", "--drive", str(drive))
    assert result.code == 0, result.err
    assert "RPI-RP2[/x][red]\\x1b]0;title" in result.out.replace("\n", "")
    assert all(c.isprintable() or c == "\n" for c in result.out)


def test_the_drive_of_another_chip(tmp_path: Path, mounted: list[Path]) -> None:
    mounted.append(a_drive(tmp_path / "drive", "RP2350"))
    with pytest.raises(CompileError) as error:
        flash(an_image(tmp_path, "pico"))
    assert error.value.what == "the drive is not of board pico"
    assert error.value.need == ("Board-ID RPI-RP2",)


def test_two_boards(tmp_path: Path, mounted: list[Path]) -> None:
    mounted += [a_drive(tmp_path / name, "RPI-RP2") for name in ("one", "two")]
    with pytest.raises(CompileError, match="several boards wait to be flashed"):
        flash(an_image(tmp_path, "pico"))


def test_nothing_to_flash_with(tmp_path: Path, mounted: list[Path]) -> None:
    assert mounted == []
    with pytest.raises(CompileError) as error:
        flash(an_image(tmp_path, "pico"))
    assert error.value.render() == (
        f"error: no way found to flash board pico\n  have  the image {tmp_path}/toy.uf2\n"
        "  try   hold BOOTSEL while plugging in the board: it then shows up as a USB drive\n"
        "        `pip install pyocd`, and connect the board's debug probe"
    )


def test_pyocd(tmp_path: Path, mounted: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    log = a_pyocd(tmp_path, monkeypatch)
    assert flash(an_image(tmp_path, "nucleo-h743zi")) == "stm32h743xx through pyOCD"
    assert log.read_text().splitlines() == [
        f"load --target stm32h743xx {tmp_path / 'toy.hex'}",
        "reset --target stm32h743xx",
    ]


@pytest.mark.parametrize(
    ("says", "remedy"),
    [
        ("No available debug probes are connected", "`pyocd list` shows those that are found"),
        ("Target type stm32h743xx not recognized", "`pyocd pack install stm32h743xx`"),
        ("SWD fault", "udev rules"),
    ],
)
def test_pyocd_fails(
    says: str, remedy: str, tmp_path: Path, mounted: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    a_pyocd(tmp_path, monkeypatch, says)
    with pytest.raises(CompileError) as error:
        flash(an_image(tmp_path, "nucleo-h743zi"))
    assert error.value.have == (says,)
    assert remedy in error.value.try_[0]


@pytest.mark.parametrize(
    ("board", "part", "programmer"), [("arduino-uno", "m328p", "arduino"), ("arduino-mega", "m2560", "wiring")]
)
def test_avrdude(
    board: str, part: str, programmer: str, tmp_path: Path, mounted: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = a_pyocd(tmp_path, monkeypatch, name="avrdude")
    assert flash(an_image(tmp_path, board), port="/dev/ttyACM7") == f"{part} on /dev/ttyACM7"
    assert log.read_text().splitlines() == [
        f"-p {part} -c {programmer} -P /dev/ttyACM7 -b 115200 -D -U flash:w:{tmp_path / 'toy.hex'}:i"
    ]


def test_avrdude_takes_the_only_arduino(tmp_path: Path, mounted: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    a_pyocd(tmp_path, monkeypatch, name="avrdude")
    uno = SerialPort("/dev/ttyACM3", "Arduino Uno", 0x2341)
    monkeypatch.setattr(module, "serial_ports", lambda: (*PORTS, uno, SerialPort("/dev/ttyS0", "ttyS0")))
    assert flash(an_image(tmp_path, "arduino-uno")) == "m328p on /dev/ttyACM3"
    monkeypatch.setattr(module, "serial_ports", lambda: PORTS)
    with pytest.raises(CompileError) as error:
        flash(an_image(tmp_path, "arduino-uno"))
    assert error.value.render() == (
        "error: which serial port is board arduino-uno on?\n"
        "  have  /dev/ttyACM0 (pico)\n"
        "        /dev/ttyACM1 (ST-LINK)\n"
        "  need  --port PORT, such as /dev/ttyACM0, /dev/ttyUSB0 or COM3"
    )


@pytest.mark.parametrize(
    ("says", "remedy"),
    [
        ("stk500_getsync(): not in sync: resp=0x00", "does no other program (a monitor) hold the port?"),
        ("can't open device: Permission denied", "dialout"),
        ("verification error", "`avrdude -v`"),
    ],
)
def test_avrdude_fails(
    says: str, remedy: str, tmp_path: Path, mounted: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    a_pyocd(tmp_path, monkeypatch, says, name="avrdude")
    with pytest.raises(CompileError) as error:
        flash(an_image(tmp_path, "arduino-uno"), port="COM3")
    assert error.value.have == (says,)
    assert remedy in error.value.try_[0]


def test_avrdude_is_missing(tmp_path: Path, mounted: list[Path]) -> None:
    with pytest.raises(CompileError) as error:
        flash(an_image(tmp_path, "arduino-uno"), port="COM3")
    assert error.value.render() == (
        f"error: no way found to flash board arduino-uno\n  have  the image {tmp_path}/toy.hex\n"
        "  try   `apt-get install avrdude`, and plug the board in"
    )


def test_a_method_the_board_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(CompileError) as error:
        flash(an_image(tmp_path, "microbit"), "uf2")
    assert error.value.render() == "error: board microbit cannot be flashed by uf2\n  need  one of: pyocd"


def test_a_board_that_is_not_real(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="board mps2-an386 cannot be flashed"):
        flash(an_image(tmp_path, "mps2-an386"))


def test_mounted_drives_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = "/dev/sda1 / ext4 rw 0 0\n/dev/sdb1 /media/me/RPI-RP2 vfat rw 0 0\n/dev/sdc1 /mnt/über\\040b vfat rw 0 0\n"
    monkeypatch.setattr(Path, "read_text", lambda path, **_: mounts)
    assert module._mounted_drives() == [Path("/media/me/RPI-RP2"), Path("/mnt/über b")]


def test_other_folders_are_no_drives(tmp_path: Path) -> None:
    drive = a_drive(tmp_path / "drive", "RPI-RP2")
    assert uf2_drives([tmp_path, tmp_path / "none", drive]) == (Drive(drive, "RPI-RP2"),)


def another(data: bytes, at: int, value: int) -> bytes:
    return data[:at] + value.to_bytes(4, "little") + data[at + 4 :]


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (lambda data: b"", "not a UF2 file"),
        (lambda data: data[:700], "not a UF2 file"),
        (lambda data: another(data, 512, 0), "block 1 of the UF2 file has wrong magic numbers"),
        (lambda data: data[:-512], "the UF2 file is incomplete"),
        (lambda data: data + data[-512:], "the UF2 file is incomplete"),
        (lambda data: data + data[:512], "the UF2 file is incomplete"),
        (lambda data: another(data, 28, 0xE48BFFA8), "the UF2 file is incomplete"),
        (lambda data: another(data, 512 + 12, 0x50000000), "block 1 of the UF2 file is for address 0x50000000"),
        (lambda data: encode_uf2((Chunk(0x10000000, b"a"),), 0xE48BFF56), "the UF2 file is for another chip"),
    ],
)
def test_a_damaged_file_is_not_copied(
    damage: Callable[[bytes], bytes], what: str, tmp_path: Path, mounted: list[Path]
) -> None:
    mounted.append(a_drive(tmp_path / "drive", "RP2350"))
    image = an_image(tmp_path, "pico2")
    assert image.uf2
    image.uf2.write_bytes(damage(image.uf2.read_bytes()))
    with pytest.raises(CompileError, match=what) as error:
        flash(image)
    assert error.value.at == (str(image.uf2),)
    assert not (tmp_path / "drive" / "toy.uf2").exists()


RP2040S = [name for name in board_names() if load_board(name).chip.uf2_family == 0xE48BFF56]


@pytest.mark.parametrize(
    ("family", "of"), [(0xE48BFF56, " or ".join(RP2040S)), (0x12345678, "a chip that is not known")]
)
def test_an_image_of_another_chip(family: int, of: str, tmp_path: Path, mounted: list[Path]) -> None:
    mounted.append(a_drive(tmp_path / "drive", "RP2350"))
    image = an_image(tmp_path, "pico2")
    assert image.uf2
    image.uf2.write_bytes(encode_uf2((Chunk(0x10000000, b"a"),), family))
    with pytest.raises(CompileError) as error:
        flash(image)
    assert error.value.render() == (
        f"error: the UF2 file is for another chip than that of board pico2\n  at    {image.uf2}\n"
        f"  have  an image for {of}\n  need  one for rp2350\n"
        "  try   `baretorch flash MODEL --board pico2` builds it, too"
    )


def test_a_file_the_method_does_not_take(tmp_path: Path) -> None:
    drive = a_drive(tmp_path / "drive", "RP2350")
    with pytest.raises(CompileError) as error:
        flash(replace(an_image(tmp_path, "pico2"), uf2=None), "uf2", [drive])
    assert error.value.render() == "error: board pico2 cannot be flashed by uf2 with toy.elf\n  need  a .uf2 file"
