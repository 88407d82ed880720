"""What it costs to read flash: the controllers between cores and flash, and their chips' [flash_path] in TOML.

Prices are in cycles of the core, as expected, at best and at worst. A fill that begins where the last one ended may be
cheaper: then no address is sent, or it is under way already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from baretorch.errors import CompileError
from baretorch.targets.silicon import Condition, conditions
from baretorch.targets.toml import Table, unknown
from baretorch.targets.types import Chip, FlashCache, FlashPath

Number: TypeAlias = Callable[[str], int]  # what a field of a register says
ALWAYS = 0xFFFFFFFF
_SERVES = ("code", "data")


class Waits(NamedTuple):
    """Cycles."""

    expected: float
    best: float
    worst: float


@dataclass(frozen=True)
class Price:
    """Of a fill: `first`, or if it goes on where the last one ended, and no more than `window` instructions later.
    One that begins a `page` of so many bytes never goes on; 0: there are no pages. If code is read `ahead`, what goes
    on is code behind what was fetched last, and no data."""

    first: Waits
    next_code: Waits
    next_data: Waits
    window: int = 0
    page: int = 0
    ahead: bool = False


@dataclass(frozen=True)
class Controller:
    """The registers that it is set up by, and the price of a fill of so many bytes by what they say."""

    fields: tuple[str, ...]
    price: Callable[[Number, int], Price]
    source: str


def _same(first: Waits) -> Price:
    return Price(first, first, first)


def _ssi(number: Number, fill: int) -> Price:
    """RP2040: each word is a transfer of its own."""
    width = (1, 2, 4, 1)[number("SSI.CTRLR0.SPI_FRF")]
    kind = number("SSI.SPI_CTRLR0.TRANS_TYPE")
    command = (0, 4, 8, 16)[number("SSI.SPI_CTRLR0.INST_L")] / (width if kind == 2 else 1)
    address = 4 * number("SSI.SPI_CTRLR0.ADDR_L") / (width if kind else 1)
    dummy = number("SSI.SPI_CTRLR0.WAIT_CYCLES") if width > 1 else 0
    clocks = command + address + dummy + (number("SSI.CTRLR0.DFS_32") + 1) / width
    words = fill // 4
    cycles = clocks * number("SSI.BAUDR.SCKDV")
    return _same(Waits((cycles + 8) * words, cycles * words, (cycles + 12) * words))


def _qmi(number: Number, fill: int) -> Price:
    """RP2350: the chip stays selected for a while, and goes on without an address."""
    width = {
        part: (1, 2, 4, 1)[number(f"QMI.M0_RFMT.{part}_WIDTH")]
        for part in ("PREFIX", "ADDR", "SUFFIX", "DUMMY", "DATA")
    }
    divider = number("QMI.M0_TIMING.CLKDIV") or 256
    bits = {
        "PREFIX": 8 * number("QMI.M0_RFMT.PREFIX_LEN"),
        "ADDR": 24,
        "SUFFIX": 4 * number("QMI.M0_RFMT.SUFFIX_LEN"),
        "DUMMY": 4 * number("QMI.M0_RFMT.DUMMY_LEN"),
    }
    data = 8 * fill / width["DATA"] / (2 if number("QMI.M0_RFMT.DTR") else 1)
    head = sum(count / width[part] for part, count in bits.items())
    first, more = divider * (head + data), divider * data
    late, apart = number("QMI.M0_TIMING.RXDELAY"), number("QMI.M0_TIMING.MIN_DESELECT")
    going_on = Waits(more + 2, more, more + 4)
    return Price(
        Waits(first + 2 + late, first, first + 4 + late + apart),
        going_on,
        going_on,
        window=48 * number("QMI.M0_TIMING.COOLDOWN"),  # of 64 cycles each, with some 4 cycles for 3 instructions
        page=(0, 256, 1024, 4096)[number("QMI.M0_TIMING.PAGEBREAK")],
    )


def _stm32wb(number: Number, fill: int) -> Price:
    """Flash gives 8 bytes at a time, and reads the next code ahead while the core works on the last."""
    states = number("FLASH.ACR.LATENCY")
    reads = fill // 8
    first = Waits(states, states, reads * (states + 1) - 1)
    ahead = Waits(min(states, 1), 0, first.worst) if number("FLASH.ACR.PRFTEN") else first
    return Price(first, ahead, first, ahead=True)


def _stm32h7(number: Number, fill: int) -> Price:
    """Flash gives a line at a time, which goes over AXI to the core."""
    states = number("FLASH.ACR.LATENCY")
    return _same(Waits(states + 8, states + 3, states + 14))


CONTROLLERS: Mapping[str, Controller] = {
    "rp_ssi": Controller(
        (
            *("SSI.CTRLR0.SPI_FRF", "SSI.CTRLR0.DFS_32", "SSI.BAUDR.SCKDV"),
            *(f"SSI.SPI_CTRLR0.{field}" for field in ("TRANS_TYPE", "INST_L", "ADDR_L", "WAIT_CYCLES")),
        ),
        _ssi,
        "RP2040 datasheet 4.10, clock by clock; 8 cycles more are assumed for each word, up to 12",
    ),
    "rp_qmi": Controller(
        (
            *(f"QMI.M0_TIMING.{field}" for field in ("CLKDIV", "RXDELAY", "MIN_DESELECT", "PAGEBREAK", "COOLDOWN")),
            *(f"QMI.M0_RFMT.{part}_WIDTH" for part in ("PREFIX", "ADDR", "SUFFIX", "DUMMY", "DATA")),
            *(f"QMI.M0_RFMT.{field}" for field in ("PREFIX_LEN", "SUFFIX_LEN", "DUMMY_LEN", "DTR")),
        ),
        _qmi,
        "RP2350 datasheet 12.14, clock by clock; few cycles more are assumed for each transfer",
    ),
    "stm32wb": Controller(
        ("FLASH.ACR.LATENCY", "FLASH.ACR.PRFTEN"),
        _stm32wb,
        "RM0434, FLASH_ACR; what reading ahead hides is assumed",
    ),
    "stm32h7": Controller(
        ("FLASH.ACR.LATENCY",),
        _stm32h7,
        "RM0433, FLASH_ACR; 8 cycles from flash to core are assumed, 3 to 14",
    ),
}
FIXED = "fixed"  # the price is what the TOML says


def price_of(path: FlashPath, fill: int, number: Number) -> Price:
    """Of a fill of so many bytes, as registers are now."""
    if path.controller != FIXED:
        return CONTROLLERS[path.controller].price(number, fill)
    share = fill / path.fills[0]
    first, more = (Waits(*(cycles * share,) * 3) for cycles in (path.fill_cycles, path.next_cycles))
    return Price(first, more, more, window=ALWAYS)


def read_flash_path(table: Table, chip: Chip) -> FlashPath:
    known = _fields(chip)
    controller = table.word("controller", (FIXED, *CONTROLLERS))
    path = FlashPath(
        controller=controller,
        caches=tuple(_cache(row, chip, known) for row in table.tables("cache")),
        fills=_fills(table),
        fill_cycles=table.number("fill_cycles"),
        next_cycles=table.number("next_cycles"),
    )
    table.end()
    if controller != FIXED:
        for field in CONTROLLERS[controller].fields:
            if field not in known:
                raise CompileError(
                    f"controller {controller!r} is set up by {field}, and the chip has no such register",
                    at=table.where,
                    have=f"silicon = {chip.silicon.name!r}" if chip.silicon else "no silicon in the chip's TOML",
                    try_=f'the silicon file that has it, or controller = "{FIXED}"',
                )
    for what in _SERVES:
        if sum(what in cache.serves for cache in path.caches) > 1:
            raise CompileError(f"two caches serve {what}", at=table.where, need="one at most")
    for cache in path.caches:
        for fill in path.fills:
            if cache.line % fill:
                raise CompileError(
                    f"a fill of {fill} bytes is no part of a line of {cache.line}", at=table.where, need="a divisor"
                )
    return path


def _fields(chip: Chip) -> frozenset[str]:
    blocks = chip.silicon.blocks if chip.silicon else ()
    return frozenset(f"{r.name}.{field}" for block in blocks for r in block.registers for field in r.fields)


def _fills(table: Table) -> tuple[int, ...]:
    fills = table.take("fills", list)
    if not 1 <= len(fills) <= 2 or any(not isinstance(n, int) or n not in (4, 8, 16, 32, 64) for n in fills):
        raise CompileError(
            "fills are bytes that a miss reads",
            at=table.where,
            have=f"fills = {fills!r}"[:200],
            need="one or two of 4, 8, 16, 32, 64",
        )
    return tuple(fills)


def _cache(table: Table, chip: Chip, known: frozenset[str]) -> FlashCache:
    ram = tuple(memory.name for memory in chip.memories if memory.kind == "ram")
    cache = FlashCache(
        name=table.take("name", str),
        serves=table.words("serves", _SERVES),
        size=table.rate("size"),
        ways=table.rate("ways"),
        line=table.rate("line"),
        beside=table.words("beside", ram) if "beside" in table.rows else (),
        when=_when(table, known),
    )
    table.end()
    if any(n & (n - 1) for n in (cache.line, cache.sets or 3)) or cache.sets * cache.ways * cache.line != cache.size:
        raise CompileError(
            f"no cache of {cache.size} bytes has {cache.ways} ways and lines of {cache.line} bytes",
            at=table.where,
            need="line and size / (ways * line) are powers of two",
        )
    if not 8 <= cache.line <= 64 or cache.ways > 64 or cache.size > 1 << 20:
        raise CompileError(
            "such a cache is not simulated",
            at=table.where,
            have=f"{cache.size} bytes, {cache.ways} ways, lines of {cache.line}",
            need="at most 1 MiB and 64 ways, lines of 8 to 64 bytes",
        )
    return cache


def _when(table: Table, known: frozenset[str]) -> tuple[Condition, ...]:
    texts = table.maybe("when", list) or []
    try:
        found = conditions(texts)
    except (TypeError, ValueError):
        raise CompileError(
            "when is no list of conditions",
            at=table.where,
            have=f"when = {texts!r}"[:200],
            need='such as ["FLASH.ACR.ICEN = 1"]',
        ) from None
    for condition in found:
        if condition.name not in known:
            unknown("register field", condition.name, sorted(known), at=table.where)
    return found
