"""The path to flash: what chips' TOML says of it, what registers make of its price, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from baretorch.errors import CompileError
from baretorch.targets.boards import board_names, load_board
from baretorch.targets.flash import ALWAYS, CONTROLLERS, FlashPath, Number, Waits, price_of
from tests.targets.test_own_boards import BOARD, CHIP

PATH = """
[flash_path]
controller = "fixed"
fills = [8]
fill_cycles = 20
next_cycles = 10

[[flash_path.cache]]
name = "cache"
serves = ["code", "data"]
size = 1024
ways = 2
line = 16
"""


def _load(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chip: str = CHIP) -> FlashPath | None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(BOARD)
    Path("chippy.toml").write_text(chip + path)
    return load_board("mine.toml").chip.flash_path


def test_own_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _load(PATH, tmp_path, monkeypatch)
    assert path is not None
    assert path.cycles_per_byte == 1.25
    assert path.cache_of("code") == path.cache_of("data") == path.caches[0]
    assert path.caches[0].sets == 32
    price = price_of(path, 8, lambda name: 0)
    assert (price.first, price.next_data, price.window) == (Waits(20, 20, 20), Waits(10, 10, 10), ALWAYS)


def test_chips_with_flash_that_costs_time() -> None:
    """Boards of FPGAs and of no silicon have none, and the nRF51's flash needs no wait states at 16 MHz. A cluster's L2
    is as slow as one."""
    found = {load_board(name).chip.name for name in board_names() if load_board(name).chip.flash_path is not None}
    assert found == {"cluster4-soc", "cluster8", "rp2040", "rp2350", "stm32wb55", "stm32h743"}


def _registers(board: str, values: dict[str, int]) -> Number:
    """Fields by name, of registers with these values."""
    silicon = load_board(board).chip.silicon
    assert silicon is not None
    registers = {r.name: r for block in silicon.blocks for r in block.registers}

    def number(name: str) -> int:
        register, _, field = name.rpartition(".")
        bits = registers[register].fields[field]
        return (values.get(register, registers[register].reset) & bits.mask) >> bits.shift

    return number


SSI_SERIAL = {"SSI.CTRLR0": 0x001F0300, "SSI.BAUDR": 4, "SSI.SPI_CTRLR0": 0x03000218}
SSI_QUAD = {"SSI.CTRLR0": 0x005F0300, "SSI.BAUDR": 2, "SSI.SPI_CTRLR0": 0xA0002022}
QMI_SDK = {"QMI.M0_TIMING": 0x40000202, "QMI.M0_RFMT": 0x000482A8}


@pytest.mark.parametrize(
    ("board", "values", "fill", "first", "following"),
    [
        ("pico", SSI_SERIAL, 4, 64 * 4, 64 * 4),  # 8 clocks for the command, 24 for the address, 32 for the data
        ("pico", SSI_QUAD, 4, 20 * 2, 20 * 2),
        ("pico", SSI_QUAD, 8, 40 * 2, 40 * 2),  # another address for each word
        ("pico2", {}, 8, 36 * 3, 16 * 3),  # as its boot ROM leaves it
        ("pico2", QMI_SDK, 8, 28 * 2, 16 * 2),
        ("nucleo-wb55rg", {"FLASH.ACR": 0x703}, 8, 3, 3),
        ("nucleo-h743zi", {"FLASH.ACR": 0x11}, 32, 4, 4),
    ],
)
def test_price_of_registers(board: str, values: dict[str, int], fill: int, first: int, following: int) -> None:
    """At best, for data: what facts of the bus alone make it."""
    path = load_board(board).chip.flash_path
    assert path is not None
    price = price_of(path, fill, _registers(board, values))
    assert (price.first.best, price.next_data.best) == (first, following)
    for waits in (price.first, price.next_code, price.next_data):
        assert waits.best <= waits.expected <= waits.worst


def test_the_wb55_reads_ahead() -> None:
    path = load_board("nucleo-wb55rg").chip.flash_path
    assert path is not None
    ahead, plain = (price_of(path, 8, _registers("nucleo-wb55rg", {"FLASH.ACR": acr})) for acr in (0x703, 0x603))
    assert ahead.next_code == Waits(1, 0, 3)
    assert plain.next_code == plain.first == Waits(3, 3, 3)


def test_controllers_name_what_they_look_at() -> None:
    for controller in CONTROLLERS.values():
        asked: set[str] = set()
        controller.price(lambda name, asked=asked: asked.add(name) or 1, 8)  # type: ignore[misc, func-returns-value]
        assert asked == set(controller.fields)


ERRORS = {
    "controller": (
        '"fixed"',
        '"fix"',
        "error: unknown controller 'fix'\n  at    chippy.toml [flash_path]\n"
        "  need  one of: fixed, rp_ssi, rp_qmi, stm32wb, stm32h7\n  try   did you mean 'fixed'?",
    ),
    "registers": (
        '"fixed"',
        '"stm32h7"',
        "error: controller 'stm32h7' is set up by FLASH.ACR.LATENCY, and the chip has no such register\n"
        "  at    chippy.toml [flash_path]\n  have  no silicon in the chip's TOML\n"
        '  try   the silicon file that has it, or controller = "fixed"',
    ),
    "fills": (
        "[8]",
        "[7]",
        "error: unknown fill '7'\n  at    chippy.toml [flash_path]\n  need  one of: 4, 8, 16, 32, 64",
    ),
    "fill and line": (
        "[8]",
        "[32]",
        "error: lines of 16 bytes are not whole fills of 32\n  at    chippy.toml [flash_path] [[cache]] number 1",
    ),
    "shape": (
        "size = 1024",
        "size = 1000",
        "error: a cache of 1000 bytes cannot have 2 ways and lines of 16 bytes\n"
        "  at    chippy.toml [flash_path] [[cache]] number 1\n"
        "  need  line and size / (ways * line) are powers of two",
    ),
    "too large": (
        "size = 1024",
        "size = 0x40000000",
        "error: size = 1073741824 is out of range\n"
        "  at    chippy.toml [flash_path] [[cache]] number 1\n"
        "  need  1 to 1048576",
    ),
    "two": (
        "line = 16",
        'line = 16\n[[flash_path.cache]]\nname = "x"\nserves = ["data"]\nsize = 64\nways = 1\nline = 16',
        "error: two caches serve data\n  at    chippy.toml [flash_path]\n  need  one at most",
    ),
    "condition": (
        "line = 16",
        'line = 16\nwhen = ["on!"]',
        "error: invalid when\n"
        "  at    chippy.toml [flash_path] [[cache]] number 1\n"
        "  have  'on!' is not a condition\n"
        '  need  conditions such as "FLASH.ACR.ICEN = 1"',
    ),
    "beside": (
        "line = 16",
        'line = 16\nbeside = ["SRAN"]',
        "error: beside = 'SRAN' does not name a ram memory\n"
        "  at    chippy.toml [flash_path.cache]\n"
        "  need  one of: SRAM",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_path_error(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after, text = ERRORS[case]
    assert before in PATH
    with pytest.raises(CompileError) as error:
        _load(PATH.replace(before, after), tmp_path, monkeypatch)
    assert error.value.render() == text


def test_unknown_field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CompileError, match=r"unknown register field 'FLASH.ACR.ICEN'"):
        _load(PATH + 'when = ["FLASH.ACR.ICEN = 1"]\n', tmp_path, monkeypatch)
