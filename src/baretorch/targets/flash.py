"""Model the cost of reading flash: the path from the cores to it, and the controllers on that path.

Prices are in cycles of the core, as expected, at best and at worst. A fill that begins where the last one ended may be
cheaper: then no address is sent, or it is under way already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, NamedTuple, TypeAlias

from baretorch.targets.silicon import Condition, parse_conditions
from baretorch.targets.toml import Key

Number: TypeAlias = Callable[[str], int]  # the value of a register's field
ALWAYS = 0xFFFFFFFF
SERVES = ("code", "data")


class Waits(NamedTuple):
    """Wait states in cycles."""

    expected: float
    best: float
    worst: float


@dataclass(frozen=True)
class Price:
    """The prices of fills: `first`, or `next_code` and `next_data` if a fill continues where the last one ended at most
    `window` instructions later. A fill at the begin of a `page` of this many bytes never continues; 0: there are no
    pages. If code is read `ahead`, only code after the last fetched code continues, and no data."""

    first: Waits
    next_code: Waits
    next_data: Waits
    window: int = 0
    page: int = 0
    ahead: bool = False


@dataclass(frozen=True)
class Controller:
    """A flash controller: the register fields that set it up, and a function that computes the price of a fill from
    them and its number of bytes."""

    fields: tuple[str, ...]
    price: Callable[[Number, int], Price]
    source: str


def _same(first: Waits) -> Price:
    return Price(first, first, first)


def _ssi(number: Number, fill: int) -> Price:
    """Price the RP2040's controller, in which each word is a transfer of its own."""
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
    """Price the RP2350's controller: the chip stays selected for a while, and continues without an address."""
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
        window=48 * number("QMI.M0_TIMING.COOLDOWN"),  # of 64 cycles each, at about 4 cycles for 3 instructions
        page=(0, 256, 1024, 4096)[number("QMI.M0_TIMING.PAGEBREAK")],
    )


def _stm32wb(number: Number, fill: int) -> Price:
    """Price a flash that delivers 8 bytes at a time, and reads the next code ahead while the core executes the last."""
    states = number("FLASH.ACR.LATENCY")
    reads = fill // 8
    first = Waits(states, states, reads * (states + 1) - 1)
    ahead = Waits(min(states, 1), 0, first.worst) if number("FLASH.ACR.PRFTEN") else first
    return Price(first, ahead, first, ahead=True)


def _stm32h7(number: Number, fill: int) -> Price:
    """Price a flash that delivers a line at a time over AXI."""
    states = number("FLASH.ACR.LATENCY")
    return _same(Waits(states + 8, states + 3, states + 14))


CONTROLLERS: Mapping[str, Controller] = {
    "rp_ssi": Controller(
        (
            *("SSI.CTRLR0.SPI_FRF", "SSI.CTRLR0.DFS_32", "SSI.BAUDR.SCKDV"),
            *(f"SSI.SPI_CTRLR0.{field}" for field in ("TRANS_TYPE", "INST_L", "ADDR_L", "WAIT_CYCLES")),
        ),
        _ssi,
        "RP2040 datasheet 4.10, clock by clock; 8 more cycles are assumed for each word, up to 12",
    ),
    "rp_qmi": Controller(
        (
            *(f"QMI.M0_TIMING.{field}" for field in ("CLKDIV", "RXDELAY", "MIN_DESELECT", "PAGEBREAK", "COOLDOWN")),
            *(f"QMI.M0_RFMT.{part}_WIDTH" for part in ("PREFIX", "ADDR", "SUFFIX", "DUMMY", "DATA")),
            *(f"QMI.M0_RFMT.{field}" for field in ("PREFIX_LEN", "SUFFIX_LEN", "DUMMY_LEN", "DTR")),
        ),
        _qmi,
        "RP2350 datasheet 12.14, clock by clock; a few more cycles are assumed for each transfer",
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
FIXED_PRICE = "fixed"  # the price is in the TOML


@dataclass(frozen=True)
class FlashCache:
    """A cache for reads from flash; a hit has no wait states. The least recently used way is replaced. Data of the RAM
    banks in `beside` uses its lines too."""

    name: Annotated[str, Key("its name for people")]
    serves: Annotated[tuple[str, ...], Key("what it serves", choices=SERVES)]
    size: Annotated[int, Key("bytes", least=1, most=1 << 20)]
    ways: Annotated[int, Key("places that a line can have in it", least=1, most=64)]
    line: Annotated[int, Key("bytes of a line; a power of two", least=8, most=64)]
    beside: Annotated[tuple[str, ...], Key("banks of RAM whose data goes through the cache as well", bank="ram")] = ()
    when: Annotated[
        tuple[Condition, ...],
        Key(
            "conditions on registers, as in silicon files, under which the cache is on; leave it out if it always is",
            raw=list,
            into=parse_conditions,
            need='conditions such as "FLASH.ACR.ICEN = 1"',
        ),
    ] = ()

    @property
    def sets(self) -> int:
        return self.size // (self.ways * self.line)


@dataclass(frozen=True)
class FlashPath:
    """The path from the cores to the bank that holds the image, if that is slower than RAM.

    A miss reads `fills[0]` bytes; a second number is possible too where no source gives one. `fill_cycles` and
    `next_cycles` are for plans, which are made without a run.
    """

    controller: Annotated[
        str,
        Key(
            "what reads flash: the price follows from its registers, which the `silicon` file must have; `fixed` if it "
            "follows from the next keys alone",
            choices=(FIXED_PRICE, *CONTROLLERS),
        ),
    ]
    fills: Annotated[
        tuple[int, ...], Key("bytes that a miss reads; a second number if it may be that", choices=(4, 8, 16, 32, 64))
    ]
    fill_cycles: Annotated[int, Key("cycles that a core waits for a miss when it reads data, once `init` has run")]
    next_cycles: Annotated[int, Key("the same for the bytes after those that were read last")]
    caches: Annotated[tuple[FlashCache, ...], Key("caches", name="cache")] = ()

    @property
    def cycles_per_byte(self) -> float:
        """Return what a core waits for each byte that it reads once, in order."""
        return self.next_cycles / self.fills[0]

    def cache_of(self, what: str) -> FlashCache | None:
        """Return the cache that serves "code" or "data"; None if there is none."""
        return next((cache for cache in self.caches if what in cache.serves), None)


def price_of(path: FlashPath, fill: int, number: Number) -> Price:
    """Return the price of a fill of this many bytes, with the current registers."""
    if path.controller != FIXED_PRICE:
        return CONTROLLERS[path.controller].price(number, fill)
    share = fill / path.fills[0]
    first, more = (Waits(*(cycles * share,) * 3) for cycles in (path.fill_cycles, path.next_cycles))
    return Price(first, more, more, window=ALWAYS)
