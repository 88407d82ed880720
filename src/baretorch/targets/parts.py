"""Define the parts of a chip, each with the keys of its table in the chip's TOML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from baretorch.npu.accelerators import ACCELERATORS_BY_NAME
from baretorch.targets.toml import Key, keys_of

_REGISTERS = Key("address of its registers", register=True)
_IRQ = Key("number of its interrupt", most=255)
_RATE = Key("counts per second", least=1)
_FALLBACK = Key("the same rate if the crystal or the PLL does not start", least=1)
_TICKS = "at least 1000: an alarm is set in milliseconds"
_SIZE = 1 << 10  # of a unit's numbers
_CYCLES = 1 << 20
_VELA = r"[A-Za-z]\w{0,99}"
_VELA_NEED = "letters, digits and _; `vela --list-configs Arm/vela.ini` lists them"

Registers: TypeAlias = Annotated[int, _REGISTERS]
UnitRegisters: TypeAlias = Annotated[int, Key(_REGISTERS.about, register=True, least=1)]


def _driver(folder: str) -> Key:
    return Key(f"a file of `runtime/{folder}/`", folder=folder)


def _count(about: str, most: int = _SIZE) -> Key:
    return Key(about, least=1, most=most)


@dataclass(frozen=True)
class MemoryBank:
    """A bank of the chip's memory map."""

    name: Annotated[
        str, Key("capitals, digits and `_`", pattern="[A-Z][A-Z0-9_]{0,31}", need="capital letters, digits and _")
    ]
    kind: Annotated[
        str,
        Key(
            "`flash` for what holds the image, even where that is a RAM that a debugger loads", choices=("flash", "ram")
        ),
    ]
    origin: Annotated[
        int, Key("address; an AVR's RAM and registers begin at `0x800000`, as in its ELF files", example="0x20000000")
    ]
    size: Annotated[int, Key("bytes", least=1)]
    slow: Annotated[
        str,
        Key(
            "why it answers later than the RAM of `data`, in words; leave it out if it does not. `--weights ram` needs "
            "it"
        ),
    ] = ""

    def holds(self, address: int) -> bool:
        return self.origin <= address < self.origin + self.size


@dataclass(frozen=True)
class Uart:
    """The UART of the console. Board host has none, and its rates are 0."""

    driver: Annotated[str, _driver("uart")]
    base: Registers
    clock_hz: Annotated[int, Key("the clock that its baud divider divides")]
    baud: Annotated[int, Key("the line's rate; `baretorch monitor` uses the same")]
    fallback_hz: Annotated[int | None, _FALLBACK] = None
    irq: Annotated[
        int | None,
        Key(
            "number of its interrupt when a byte has come, so that the core sleeps until then; without it the core "
            "stays awake",
            most=255,
        ),
    ] = None


@dataclass(frozen=True)
class Usb:
    """A USB device controller, which can be the console."""

    driver: Annotated[str, _driver("usb")]
    base: Annotated[int, Key("address of its memory, which its registers follow", register=True)]
    irq: Annotated[int, _IRQ]


@dataclass(frozen=True)
class Counter:
    """A free-running counter for timing on the device."""

    driver: Annotated[str, _driver("counter")]
    base: Annotated[int, Key("address of its registers")]
    hz: Annotated[int, _RATE]
    fallback_hz: Annotated[int | None, _FALLBACK] = None
    irq: Annotated[
        int | None, Key("number of its interrupt, if it extends the register's range: an AVR's", most=255)
    ] = None


@dataclass(frozen=True)
class Interrupts:
    """The interrupt controller."""

    driver: Annotated[str, _driver("interrupts")]
    base: Annotated[int, Key("address of its registers: `0xe000e100` for the NVIC of every Cortex-M", register=True)]


@dataclass(frozen=True)
class Alarm:
    """A timer that can end sleep. It is set in milliseconds."""

    driver: Annotated[str, _driver("alarm")]
    base: Annotated[int, Key("address of its registers: `0xe000e010` for the SysTick of every Cortex-M", register=True)]
    hz: Annotated[int, Key("counts per second: SysTick counts as fast as the core", least=1000, need=_TICKS)]
    irq: Annotated[int | None, Key("number of its interrupt, if it is not one of the core's own", most=255)] = None
    fallback_hz: Annotated[int | None, Key(_FALLBACK.about, least=1000, need=_TICKS)] = None


@dataclass(frozen=True)
class Watchdog:
    """A timer that restarts the chip if it is not fed. It counts down from at most `most`."""

    driver: Annotated[str, _driver("watchdog")]
    hz: Annotated[int, _RATE]
    most: Annotated[int, Key("the largest count", least=1)]

    @property
    def longest_ms(self) -> int:
        return self.most * 1000 // self.hz

    def count(self, ms: int) -> int:
        """Return the count for at least that many milliseconds."""
        return -(-ms * self.hz // 1000)


@dataclass(frozen=True)
class CoreGroup:
    """Several identical cores. The driver starts core 1."""

    count: Annotated[
        int, Key("number of cores", least=2, most=2, need="2, or no [cores] for a chip of which one core is used")
    ]
    driver: Annotated[str, Key("how core 1 is started: a file of `runtime/cores/`", folder="cores")]
    base: Annotated[
        int, Key("address of its registers; the first reads as the number of the core that reads it", register=True)
    ]


@dataclass(frozen=True)
class Npu:
    """An Arm Ethos-U next to the core."""

    driver: Annotated[str, _driver("npu")]
    accelerator: Annotated[
        str,
        Key("Vela's name for it", choices=tuple(ACCELERATORS_BY_NAME), example='"ethos-u55-256"'),
    ]
    base: Registers
    system_config: Annotated[
        str,
        Key("Vela's name for the memories: `vela --list-configs Arm/vela.ini`", pattern=_VELA, need=_VELA_NEED),
    ]
    memory_mode: Annotated[str, Key("Vela's name for how it uses them", pattern=_VELA, need=_VELA_NEED)]
    ram: Annotated[str, Key("the bank of RAM that it reaches; the arena is there", bank="ram")]
    constants: Annotated[
        str,
        Key(
            "where it reads its commands and weights: the bank of `code`, or a bank of RAM that they are copied to at "
            "start",
            bank="ram or code",
        ),
    ]
    irq: Annotated[
        int | None,
        Key(
            "number of its interrupt, so that the core sleeps while it works; without it the core polls",
            most=255,
        ),
    ] = None


@dataclass(frozen=True)
class Dma:
    """An engine that copies rows of bytes while cores work. Each of its channels has one copy at a time."""

    base: UnitRegisters
    bytes_per_cycle: Annotated[int, _count("how fast it copies")]
    start_cycles: Annotated[int, Key("cycles before the first byte", most=_CYCLES)]
    channels: Annotated[int, _count("how many copies can be requested at a time", 16)]


@dataclass(frozen=True)
class Gemm:
    """A unit that multiplies int8 matrices in the scratchpad, for convolutions with bias, requantization, clamp and max
    pool: each cycle a tile of `rows` windows by `columns` channels takes `depth` products more per number."""

    base: UnitRegisters
    rows: Annotated[int, _count("windows of the tile that a cycle computes")]
    columns: Annotated[int, _count("output channels of that tile")]
    depth: Annotated[int, _count("products per number of that tile in a cycle")]
    start_cycles: Annotated[int, Key("cycles before the first product", most=_CYCLES)]
    kernel: Annotated[int, _count("the largest kernel that it takes")]
    stride: Annotated[int, _count("the largest stride")]
    pool: Annotated[int, _count("the largest max pool")]
    channels: Annotated[int, _count("the number of input channels is a multiple of this")]


@dataclass(frozen=True)
class EventUnit:
    """The event unit, at which cores of a cluster wait for each other. A read of the first word at `base` returns to
    all of them in the cycle after the last has started it, or `barrier_cycles` later."""

    base: UnitRegisters
    barrier_cycles: Annotated[
        int, Key("cycles from the last core's arrival to the release of all, beyond one", most=_CYCLES)
    ]


@dataclass(frozen=True)
class Cluster:
    """Cores around a scratchpad, as the emulator `cluster` simulates them. The limits are those of its cluster.h."""

    cores: Annotated[int, _count("number of cores", 8)]
    scratchpad: Annotated[str, Key("the bank of RAM that they share, which answers at once", bank="ram")]
    banks: Annotated[
        int, _count("of the scratchpad: consecutive words are in consecutive banks, each of which serves one core", 64)
    ]
    slow_cycles: Annotated[int, Key("cycles that an access to another memory takes longer", most=_CYCLES)]
    register_cycles: Annotated[int, Key("the same for registers", most=_CYCLES)]
    events: Annotated[EventUnit, Key("the event unit")]
    stack_bytes: Annotated[
        int, _count("reserved for the stack of each core but the first, whose stack is the chip's", 1 << 20)
    ]
    dma: Annotated[Dma | None, Key("the DMA engine")] = None
    gemm: Annotated[Gemm | None, Key("the unit for matrix products")] = None

    @property
    def units(self) -> dict[str, Any]:
        """The units of the cluster by the names of their tables. Each has registers at `base`."""
        found = {key.name: getattr(self, key.field) for key in keys_of(Cluster) if key.section is not None}
        return {name: unit for name, unit in found.items() if unit is not None}


@dataclass(frozen=True)
class FlashDma:
    """An engine that copies from flash while cores compute. Flash is read by its controller's stream."""

    driver: Annotated[str, _driver("dma")]
    base: Registers
    stream: Annotated[int, Key("address of the registers by which flash is streamed", register=True)]
    fifo: Annotated[int, Key("address where the stream's words arrive")]
    dreq: Annotated[int, Key("number of the request that signals a word", most=63)]
