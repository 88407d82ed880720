"""Boards and chips that users describe: every mistake in a TOML has an error text."""

from __future__ import annotations

from pathlib import Path

import pytest

from baretorch.errors import CompileError
from baretorch.targets.boards import board_names, load_board
from baretorch.targets.cpus import CPUS
from baretorch.targets.parts import CoreGroup
from baretorch.targets.toml import BOARDS, keys_of
from baretorch.targets.types import Board

BOARD = """\
title = "Mine"
chip = "chippy"
emulators = ["qemu"]
qemu_machine = "mps2-an385"
flash_methods = []
notes = "none"
"""

CHIP = """\
cpu = "cortex-m3"
clock_hz = 25_000_000
init = "none"
boot = "vectors"
code = "FLASH"
data = "SRAM"
stack_bytes = 1024
peripherals = [[0x40000000, 0x1000]]

[[memory]]
name = "FLASH"
kind = "flash"
origin = 0x0
size = 0x1000

[[memory]]
name = "SRAM"
kind = "ram"
origin = 0x20000000
size = 0x1000

[uart]
driver = "cmsdk"
base = 0x40000000
clock_hz = 25_000_000
baud = 115200

[counter]
driver = "dwt"
base = 0xe0001000
hz = 25_000_000
"""


def _load_own(folder: Path, monkeypatch: pytest.MonkeyPatch, board: str = BOARD, chip: str = CHIP) -> str:
    """The name of the user's board, or the error, as printed, that loading it gives."""
    monkeypatch.chdir(folder)
    Path("mine.toml").write_text(board)
    Path("chippy.toml").write_text(chip)
    try:
        return load_board("mine.toml").name
    except CompileError as error:
        return error.render()


def test_own_board_and_chip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _load_own(tmp_path, monkeypatch) == "mine"
    board = load_board("mine.toml")
    assert (board.chip.name, board.chip.cpu.name) == ("chippy", "cortex-m3")


def test_own_board_with_our_chip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _load_own(tmp_path, monkeypatch, board=BOARD.replace("chippy", "mps2-an386")) == "mine"
    assert load_board("mine.toml").chip == load_board("mps2-an386").chip


def test_unknown_board() -> None:
    with pytest.raises(CompileError) as caught:
        load_board("pcio")
    assert caught.value.render() == (
        f"error: unknown board 'pcio'\n  need  one of: {', '.join(board_names())}\n  try   did you mean 'pico'?"
    )


@pytest.mark.parametrize(("name", "near"), [("Pico2W", "pico2w"), ("PICO", "pico"), ("Arduino-UNO", "arduino-uno")])
def test_a_board_in_capitals_is_suggested_as_it_is_written(name: str, near: str) -> None:
    with pytest.raises(CompileError) as caught:
        load_board(name)
    assert caught.value.try_ == (f"did you mean {near!r}?",)


def test_no_such_file() -> None:
    with pytest.raises(CompileError) as caught:
        load_board("nowhere.toml")
    assert caught.value.render() == (
        "error: no file nowhere.toml\n  try   `baretorch boards` lists the boards that need no file"
    )


BOARD_ERRORS = {
    "chip": (
        'chip = "chippy"',
        'chip = "rp2041"',
        "error: unknown chip 'rp2041'\n"
        "  at    mine.toml\n"
        f"  need  one of: {', '.join(sorted(path.stem for path in (BOARDS / 'chips').glob('*.toml')))}\n"
        "  try   did you mean 'rp2040'?",
    ),
    "pin": (
        'notes = "none"',
        'notes = "none"\n[pins.lamp]\nred = 256',
        "error: invalid pins\n"
        "  at    mine.toml\n"
        "  have  'lamp': 'red' = 256\n"
        "  need  per part a table of pins: names of small letters, digits and _, numbers 0 to 255",
    ),
    "pin's name": (
        'notes = "none"',
        'notes = "none"\n[pins.lamp]\n"red\\u0022" = 2',
        "error: invalid pins\n"
        "  at    mine.toml\n"
        "  have  'lamp': 'red\"' = 2\n"
        "  need  per part a table of pins: names of small letters, digits and _, numbers 0 to 255",
    ),
    "pins of nothing": (
        'notes = "none"',
        'notes = "none"\n[pins]\nred = 2',
        "error: invalid pins\n"
        "  at    mine.toml\n"
        "  have  red = 2\n"
        "  need  per part a table of pins: names of small letters, digits and _, numbers 0 to 255",
    ),
    "OpenOCD's script": (
        'notes = "none"',
        'notes = "none"\n[openocd]\ninterface = "interface/../../x.cfg"\ntarget = "target/rp2040.cfg"',
        "error: invalid interface 'interface/../../x.cfg'\n"
        "  at    mine.toml [openocd]\n"
        '  need  a file of OpenOCD\'s, such as "interface/cmsis-dap.cfg"',
    ),
    "an SDK's word": (
        'notes = "none"',
        'notes = "none"\n[sdk.zephyr]\nboard = "x; rm"',
        "error: invalid sdk\n"
        "  at    mine.toml\n"
        "  have  zephyr: board = 'x; rm'\n"
        "  need  per SDK a table of texts: letters, digits and _ . / : -",
    ),
    "syntax": (
        'notes = "none"',
        "notes = none",
        "error: mine.toml is not TOML\n  have  Invalid value (at line 6, column 9)",
    ),
    "missing": (
        'notes = "none"\n',
        "",
        "error: notes is missing\n  at    mine.toml\n  need  notes = a string",
    ),
    "key": (
        "notes =",
        "note =",
        "error: notes is missing\n  at    mine.toml\n  need  notes = a string\n  try   is 'note' meant to be 'notes'?",
    ),
    "extra key": (
        "notes =",
        'title_ = "x"\nnotes =',
        "error: unknown key 'title_'\n"
        "  at    mine.toml\n"
        f"  need  one of: {', '.join(sorted(key.name for key in keys_of(Board)))}\n"
        "  try   did you mean 'title'?",
    ),
    "emulator": (
        '["qemu"]',
        '["qem"]',
        "error: unknown emulator 'qem'\n"
        "  at    mine.toml\n"
        "  need  one of: unicorn, qemu, fvp, rp2040js, simavr, cluster, native\n"
        "  try   did you mean 'qemu'?",
    ),
    "rp2040js": (
        '["qemu"]',
        '["rp2040js"]',
        "error: emulator rp2040js does not support the chip 'chippy'\n"
        "  at    mine.toml\n"
        '  need  an RP2040: boot = "boot2" in its TOML',
    ),
    "chip elsewhere": (
        '"chippy"',
        '"../../chippy"',
        "error: invalid chip name '../../chippy'\n"
        "  at    mine.toml\n"
        "  need  at most 100 letters, digits, spaces and _ . + -, the first a letter or digit",
    ),
    "qemu's options": (
        '"mps2-an385"',
        '"mps2-an385,dumpdtb=x"',
        "error: invalid qemu_machine 'mps2-an385,dumpdtb=x'\n"
        "  at    mine.toml\n"
        "  need  letters, digits and _ . -, the first a letter or digit",
    ),
    "pyOCD's options": (
        "notes =",
        'pyocd_target = "--script=x"\nnotes =',
        "error: invalid pyocd_target '--script=x'\n"
        "  at    mine.toml\n"
        "  need  letters, digits and _ . -, the first a letter or digit",
    ),
    "qemu machine": (
        'qemu_machine = "mps2-an385"\n',
        "",
        'error: emulator qemu needs qemu_machine\n  at    mine.toml\n  need  such as qemu_machine = "mps2-an385"',
    ),
    "native": (
        '["qemu"]',
        '["native"]',
        "error: emulator native does not support the chip 'chippy'\n"
        "  at    mine.toml\n"
        '  need  boot = "host" in its TOML',
    ),
    "uf2": (
        "flash_methods = []",
        'flash_methods = ["uf2"]',
        "error: flash method uf2 does not support the chip 'chippy'\n"
        "  at    mine.toml\n"
        "  need  uf2_family in the chip's TOML",
    ),
    "pyocd": (
        "flash_methods = []",
        'flash_methods = ["pyocd"]',
        'error: flash method pyocd needs pyocd_target\n  at    mine.toml\n  need  such as pyocd_target = "rp2040"',
    ),
}


@pytest.mark.parametrize("name", ["[bold]", "a\nb", "-x", "n" * 101])
def test_boards_are_called_by_plain_names(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(f"{name}.toml").write_text(BOARD)
    with pytest.raises(CompileError, match="invalid board name"):
        load_board(f"{name}.toml")


@pytest.mark.parametrize("case", BOARD_ERRORS)
def test_board_error(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after, text = BOARD_ERRORS[case]
    assert before in BOARD
    assert _load_own(tmp_path, monkeypatch, board=BOARD.replace(before, after)) == text


CORES = """
[cores]
count = 2
driver = "rp_sio"
base = 0x40000000
"""


def test_own_chip_with_two_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _load_own(tmp_path, monkeypatch, chip=CHIP + CORES) == "mine"
    assert load_board("mine.toml").chip.cores == CoreGroup(2, "rp_sio", 0x40000000)


CORES_ERRORS = {
    "count": (
        "count = 2",
        "count = 4",
        "error: count = 4 is out of range\n"
        "  at    chippy.toml [cores]\n"
        "  need  2, or no [cores] for a chip of which one core is used",
    ),
    "driver": (
        '"rp_sio"',
        '"rp_soi"',
        "error: unknown driver 'rp_soi'\n"
        "  at    chippy.toml [cores]\n"
        "  need  one of: rp_sio\n"
        "  try   did you mean 'rp_sio'?",
    ),
    "base": (
        "base = 0x40000000",
        "base = 0xd0000000",
        "error: cores register 0xd0000000 is outside peripherals\n"
        "  at    chippy.toml\n"
        "  need  a range such as [0xd0000000, 0x1000]",
    ),
    "missing": (
        "count = 2\n",
        "",
        "error: count is missing\n  at    chippy.toml [cores]\n  need  count = a whole number",
    ),
    "key": (
        "count = 2",
        "count = 2\nstack = 2",
        "error: unknown key 'stack'\n  at    chippy.toml [cores]\n  need  one of: base, count, driver",
    ),
}


@pytest.mark.parametrize("case", CORES_ERRORS)
def test_cores_error(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after, text = CORES_ERRORS[case]
    assert before in CORES
    assert _load_own(tmp_path, monkeypatch, chip=CHIP + CORES.replace(before, after)) == text


def test_cores_are_arm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chip = CHIP.replace("vectors", "riscv").replace("cortex-m3", "rv32")
    assert _load_own(tmp_path, monkeypatch, chip=chip + CORES) == (
        'error: [cores] is for Arm only\n  at    chippy.toml\n  have  boot = "riscv"\n  try   remove [cores]'
    )


CHIP_ERRORS = {
    "cpu": (
        "cortex-m3",
        "cortex-m44",
        "error: unknown cpu 'cortex-m44'\n"
        "  at    chippy.toml\n"
        f"  need  one of: {', '.join(cpu.name for cpu in CPUS if cpu.name != 'computer')}\n"
        "  try   did you mean 'cortex-m4f'?",
    ),
    "unicorn": (
        "cortex-m3",
        "cortex-m55",
        "error: emulator unicorn does not support the chip 'chippy'\n"
        "  at    mine.toml\n"
        "  need  a CPU that Unicorn emulates: cortex-m0, cortex-m0plus, cortex-m3, cortex-m4f, cortex-m7, cortex-m33",
    ),
    "type": (
        "stack_bytes = 1024",
        'stack_bytes = "1K"',
        "error: stack_bytes must be a whole number\n  at    chippy.toml\n  have  stack_bytes = '1K'",
    ),
    "bool": (
        "stack_bytes = 1024",
        "stack_bytes = true",
        "error: stack_bytes must be a whole number\n  at    chippy.toml\n  have  stack_bytes = True",
    ),
    "negative": (
        "stack_bytes = 1024",
        "stack_bytes = -8",
        "error: stack_bytes = -8 is out of range\n  at    chippy.toml\n  need  at least 0, within 32 bits",
    ),
    "stack": (
        "stack_bytes = 1024",
        "stack_bytes = 4096",
        "error: a stack of 4096 bytes is not possible\n"
        "  at    chippy.toml\n"
        "  need  a multiple of 8 below the 4096 bytes of SRAM",
    ),
    "bank": (
        'code = "FLASH"',
        'code = "SRAM"',
        "error: code = 'SRAM' does not name a flash memory\n  at    chippy.toml\n  need  one of: FLASH",
    ),
    "overlap": (
        "origin = 0x20000000",
        "origin = 0x800",
        "error: memories FLASH and SRAM overlap\n"
        "  at    chippy.toml\n"
        "  have  FLASH 0x00000000 .. 0x00000fff\n"
        "        SRAM 0x00000800 .. 0x000017ff",
    ),
    "beyond": (
        "origin = 0x20000000",
        "origin = 0xfffff800",
        "error: memory SRAM does not fit the 32-bit address space\n"
        "  at    chippy.toml [[memory]] number 2\n"
        "  have  origin 0xfffff800, size 0x1000",
    ),
    "memory name": (
        'name = "SRAM"',
        'name = "my ram"',
        "error: invalid name 'my ram'\n  at    chippy.toml [[memory]] number 2\n  need  capital letters, digits and _",
    ),
    "memory named as the linker's": (
        'name = "SRAM"',
        'name = "ORIGIN"',
        "error: invalid name 'ORIGIN'\n"
        "  at    chippy.toml [[memory]] number 2\n"
        "  need  a word that linker scripts do not use",
    ),
    "same name": (
        'name = "SRAM"',
        'name = "FLASH"',
        "error: two memories have the name FLASH\n  at    chippy.toml",
    ),
    "kind": (
        'kind = "ram"',
        'kind = "rom"',
        "error: unknown kind 'rom'\n"
        "  at    chippy.toml [[memory]] number 2\n"
        "  need  one of: flash, ram\n"
        "  try   did you mean 'ram'?",
    ),
    "driver": (
        '"cmsdk"',
        '"cmsdx"',
        "error: unknown driver 'cmsdx'\n"
        "  at    chippy.toml [uart]\n"
        "  need  one of: avr_usart, cmsdk, host, nrf_uart, ns16550, pl011, stm32_usart\n"
        "  try   did you mean 'cmsdk'?",
    ),
    "baud": ("baud = 115200", "baud = 0", "error: baud must not be 0\n  at    chippy.toml [uart]"),
    "irq": (
        "baud = 115200",
        "baud = 115200\nirq = 256",
        "error: irq = 256 is out of range\n  at    chippy.toml [uart]\n  need  0 to 255",
    ),
    "irq of nobody": (
        "baud = 115200",
        "baud = 115200\nirq = 0",
        "error: [uart] has an irq, and there is no interrupt controller\n"
        "  at    chippy.toml\n"
        "  need  [interrupts] with driver and base, or no irq",
    ),
    "alarm of nobody": (
        "[counter]",
        '[alarm]\ndriver = "systick"\nbase = 0x40000010\nhz = 1000\n\n[counter]',
        "error: [alarm] has no effect: nothing sleeps\n  at    chippy.toml\n  need  [uart] with an irq, or no [alarm]",
    ),
    "slow alarm": (
        "[counter]",
        '[alarm]\ndriver = "systick"\nbase = 0x40000010\nhz = 999\n\n[counter]',
        "error: hz = 999 is out of range\n"
        "  at    chippy.toml [alarm]\n"
        "  need  at least 1000: an alarm is set in milliseconds",
    ),
    "slow alarm without a crystal": (
        "[counter]",
        '[alarm]\ndriver = "systick"\nbase = 0x40000010\nhz = 1000\nfallback_hz = 10\n\n[counter]',
        "error: fallback_hz = 10 is out of range\n"
        "  at    chippy.toml [alarm]\n"
        "  need  at least 1000: an alarm is set in milliseconds",
    ),
    "odd register": (
        "[counter]",
        '[interrupts]\ndriver = "nvic"\nbase = 0x40000500\n\n'
        '[usb]\ndriver = "rp"\nbase = 0x40000101\nirq = 5\n\n[counter]',
        "error: usb register 0x40000101 is not the address of a word\n  at    chippy.toml\n  need  a multiple of 4",
    ),
    "unmapped interrupts": (
        "[counter]",
        '[interrupts]\ndriver = "nvic"\nbase = 0xe000e100\n\n[counter]',
        "error: interrupts register 0xe000e100 is outside peripherals\n"
        "  at    chippy.toml\n"
        "  need  a range such as [0xe000e000, 0x1000]",
    ),
    "clock": (
        "clock_hz = 25_000_000",
        "clock_hz = 0",
        "error: clock_hz = 0 is out of range\n  at    chippy.toml\n  need  at least 1, within 32 bits",
    ),
    "range": (
        "[[0x40000000, 0x1000]]",
        "[[0x40000000]]",
        "error: invalid peripherals\n  at    chippy.toml\n  have  [1073741824]\n  need  [origin, size] within 32 bits",
    ),
    "peripherals on memory": (
        "[[0x40000000, 0x1000]]",
        "[[0x40000000, 0x1000], [0x20000800, 0x1000]]",
        "error: peripherals [0x20000800, 0x1000] overlap memory SRAM\n"
        "  at    chippy.toml\n"
        "  have  SRAM 0x20000000 .. 0x20000fff",
    ),
    "unmapped register": (
        "base = 0x40000000",
        "base = 0x40004000",
        "error: uart register 0x40004000 is outside peripherals\n"
        "  at    chippy.toml\n"
        "  need  a range such as [0x40004000, 0x1000]",
    ),
    "not a table": (
        "[uart]",
        "[uart_]",
        "error: uart is missing\n  at    chippy.toml\n  need  uart = a table\n  try   is 'uart_' meant to be 'uart'?",
    ),
}


@pytest.mark.parametrize("case", CHIP_ERRORS)
def test_chip_error(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after, text = CHIP_ERRORS[case]
    assert before in CHIP
    board = BOARD.replace('["qemu"]', '["qemu", "unicorn"]')
    assert _load_own(tmp_path, monkeypatch, board, CHIP.replace(before, after, 1)) == text
