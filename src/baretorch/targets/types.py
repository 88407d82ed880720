"""Define targets: a chip and a board around it, with the keys of their TOML files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from baretorch.errors import CompileError
from baretorch.options import Console
from baretorch.targets.cpus import CPUS, Cpu, find_cpu
from baretorch.targets.flash import FlashPath
from baretorch.targets.parts import (
    Alarm,
    Cluster,
    CoreGroup,
    Counter,
    FlashDma,
    Interrupts,
    MemoryBank,
    Npu,
    Uart,
    Usb,
    Watchdog,
)
from baretorch.targets.silicon import Silicon, load_silicon, silicon_names
from baretorch.targets.toml import ADDRESSES, NAME, Key

_SDK_WORD = r"\w[\w./:-]{0,99}"
BOOTS = ("vectors", "boot2", "image_def", "image_def_riscv", "riscv", "avr", "host")


def _parse_ranges(entries: list[object]) -> tuple[tuple[int, int], ...]:
    """Parse [origin, size] of register space."""
    found = []
    for entry in entries:
        match entry:
            case [int(origin), int(size)] if origin >= 0 and size > 0 and origin + size <= ADDRESSES:
                found.append((origin, size))
            case _:
                raise ValueError(repr(entry))
    return tuple(found)


@dataclass(frozen=True)
class Chip:
    """A chip. An optional part is None if the chip lacks it, or if its TOML does not describe it."""

    name: str
    cpu: Annotated[
        Cpu,
        Key(
            "decides compiler flags and kernels",
            raw=str,
            choices=tuple(cpu.name for cpu in CPUS if cpu.name != "computer"),
            into=find_cpu,
        ),
    ]
    memories: Annotated[tuple[MemoryBank, ...], Key("the memory map", name="memory")]
    code: Annotated[str, Key("the bank that holds the image", bank="flash")]
    data: Annotated[str, Key("the bank that holds variables, arena and stack", bank="ram")]
    uart: Annotated[Uart, Key("the console")]
    counter: Annotated[Counter, Key("the counter")]
    clock_hz: Annotated[int, Key("the CPU clock that `init` sets", least=1)]
    init: Annotated[
        str,
        Key(
            "clocks, pins and resets: a file of `runtime/chip/`; `none` if reset leaves all as it should be",
            folder="chip",
        ),
    ]
    boot: Annotated[
        str,
        Key(
            "the start of the image: `vectors` (a plain Cortex-M), `boot2` (RP2040), `image_def` (RP2350), "
            "`image_def_riscv` (its RISC-V cores), `riscv`, `avr`, `host`",
            choices=BOOTS,
        ),
    ]
    stack_bytes: Annotated[int, Key("reserved for the stack at the end of `data`; a multiple of 8")]
    peripherals: Annotated[
        tuple[tuple[int, int], ...],
        Key(
            "`[origin, size]` of each range of registers, which an emulator must map; it must not overlap a memory",
            raw=list,
            into=_parse_ranges,
            need="[origin, size] within 32 bits",
        ),
    ]
    uf2_family: Annotated[int | None, Key("the boot ROM's UF2 family; leave it out if it takes none")] = None
    silicon: Annotated[
        Silicon | None,
        Key(
            "how clocks, resets and supplies behave, for Unicorn: a file of `boards/silicon/`; without it registers "
            "read as zero, and an `init` that waits for hardware gives up",
            raw=str,
            choices=silicon_names(),
            into=load_silicon,
        ),
    ] = None
    cores: Annotated[CoreGroup | None, Key("identical cores")] = None
    flash_path: Annotated[FlashPath | None, Key("how cores read `code`")] = None
    interrupts: Annotated[Interrupts | None, Key("the interrupt controller")] = None
    watchdog: Annotated[Watchdog | None, Key("the watchdog")] = None
    alarm: Annotated[Alarm | None, Key("a timer that ends sleep")] = None
    usb: Annotated[Usb | None, Key("the USB controller")] = None
    npu: Annotated[Npu | None, Key("the NPU")] = None
    cluster: Annotated[Cluster | None, Key("cores around a scratchpad")] = None
    dma: Annotated[FlashDma | None, Key("copies from flash")] = None

    def __repr__(self) -> str:
        return f"Chip({self.name})"

    @property
    def starts_clocks(self) -> bool:
        """Report whether its start-up code has to wait for clocks."""
        return self.init != "none"

    @property
    def is_team(self) -> bool:
        """Report whether all cores compute one model: core 0, and the others as helpers that wait at a barrier."""
        return self.cluster is not None

    @property
    def has_scratchpad(self) -> bool:
        """Report whether weights and activations are brought to a scratchpad to be used."""
        return self.cluster is not None

    @property
    def is_simulated(self) -> bool:
        """Report whether its emulator simulates every cycle."""
        return self.cluster is not None

    @property
    def arena_bank(self) -> str:
        """The bank of the arena, unless the user or an NPU wants another."""
        return self.cluster.scratchpad if self.cluster is not None else self.data

    @property
    def core_count(self) -> int:
        if self.cluster is not None:
            return self.cluster.cores
        return 1 if self.cores is None else self.cores.count

    @property
    def cpus(self) -> str:
        """Describe the cores for people."""
        return self.cpu.name if self.core_count == 1 else f"{self.core_count} × {self.cpu.name}"

    def stacks(self, cores: int) -> int:
        """Return the bytes reserved for the stacks of that many cores."""
        return self.stack_bytes + (cores - 1) * (self.cluster.stack_bytes if self.cluster else self.stack_bytes)

    def memory(self, name: str) -> MemoryBank:
        return next(m for m in self.memories if m.name == name)


@dataclass(frozen=True)
class Emulator:
    """An emulator, which runs the chips that it `fits`; `need` describes them in errors. The module of machines/ with
    the emulator's name runs it."""

    fits: Callable[[Chip], bool] = lambda chip: True
    need: str = ""


EMULATORS: Mapping[str, Emulator] = {
    "unicorn": Emulator(
        lambda chip: chip.cpu.unicorn is not None,
        f"a CPU that Unicorn emulates: {', '.join(cpu.name for cpu in CPUS if cpu.unicorn)}",
    ),
    "qemu": Emulator(),
    "fvp": Emulator(),
    "rp2040js": Emulator(lambda chip: chip.boot == "boot2", 'an RP2040: boot = "boot2" in its TOML'),
    "simavr": Emulator(lambda chip: chip.cpu.flash_apart, "an AVR"),
    "cluster": Emulator(lambda chip: chip.is_simulated, "[cluster] in its TOML: cores, scratchpad, and the units"),
    "native": Emulator(lambda chip: chip.boot == "host", 'boot = "host" in its TOML'),
}


@dataclass(frozen=True)
class Avrdude:
    """The settings with which avrdude talks to a board's boot loader."""

    part: Annotated[str, Key("avrdude's name for the chip (`-p`)", pattern=NAME, example='"m328p"')]
    programmer: Annotated[str, Key("its name for the boot loader's protocol (`-c`)", pattern=NAME, example='"arduino"')]
    baud: Annotated[int, Key("the boot loader's rate (`-b`)", least=1)]


@dataclass(frozen=True)
class Fvp:
    """A Fixed Virtual Platform of Arm: the program, and the names of its parts and parameters."""

    program: Annotated[
        str,
        Key(
            "the program, which is searched for on `PATH`",
            pattern=r"FVP_[\w.-]{0,99}",
            need='the name of a program of Arm\'s, such as "FVP_Corstone_SSE-320"',
            example='"FVP_Corstone_SSE-320"',
        ),
    ]
    terminal: Annotated[
        str, Key("the part that shows the console's UART", pattern=NAME, example='"mps4_board.telnetterminal0"')
    ]
    npu: Annotated[
        str | None, Key("the NPU, if there is one: its `num_macs` is set to the accelerator's", pattern=NAME)
    ] = None
    vectors: Annotated[tuple[str, ...], Key("parameters that say where the core starts", pattern=NAME)] = ()
    on: Annotated[
        tuple[str, ...], Key("parameters that are set to 1, such as those that open no window", pattern=NAME)
    ] = ()


def _parse_pins(parts: Mapping[str, Any]) -> tuple[tuple[str, str, int], ...]:
    """Parse a table of pins per part."""
    found = []
    for part, pins in parts.items():
        if not isinstance(pins, dict):
            raise ValueError(f"{part} = {pins!r}")
        for what, number in pins.items():
            words = all(re.fullmatch("[a-z][a-z0-9_]{0,31}", word) for word in (part, what))
            if not words or type(number) is not int or not 0 <= number < 256:
                raise ValueError(f"{part!r}: {what!r} = {number!r}")
            found.append((part, what, number))
    return tuple(found)


@dataclass(frozen=True)
class OpenOcd:
    """OpenOCD's settings for a board. The files are among its own scripts."""

    interface: Annotated[
        str,
        Key(
            "OpenOCD's file for the probe",
            pattern=r"interface/[\w-]+\.cfg",
            need='a file of OpenOCD\'s, such as "interface/cmsis-dap.cfg"',
        ),
    ]
    target: Annotated[
        str,
        Key(
            "OpenOCD's file for the chip",
            pattern=r"target/[\w-]+\.cfg",
            need='a file of OpenOCD\'s, such as "target/rp2040.cfg"',
        ),
    ]


def _parse_sdk(sdks: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Check a table of words per SDK: they become part of its files."""
    for sdk, words in sdks.items():
        if not isinstance(words, dict):
            raise ValueError(f"{sdk} = {words!r}")
        for key, word in words.items():
            if not isinstance(word, str) or not re.fullmatch(_SDK_WORD, word, flags=re.ASCII):
                raise ValueError(f"{sdk}: {key} = {word!r}")
    return {sdk: dict(words) for sdk, words in sdks.items()}


def _parse_texts(rows: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Check a table of texts, and return its rows."""
    for key, text in rows.items():
        if not isinstance(text, str):
            raise ValueError(f"{key} = {text!r}")
    return tuple(rows.items())


@dataclass(frozen=True)
class Page:
    """The text of a board's page in the docs: Markdown in which `{board}` is the board's name."""

    wiring: Annotated[str, Key("what to connect")]
    flashing: Annotated[str, Key("how an image gets onto the board")]
    console: Annotated[str, Key("where it talks")]
    first: Annotated[tuple[str, ...], Key("what to try first")]
    verified: Annotated[
        tuple[tuple[str, str], ...], Key("what was verified, and how: a text per part", raw=dict, into=_parse_texts)
    ]


@dataclass(frozen=True)
class Board:
    """A board. `emulators` are in order of preference. `console` is that of images unless the user selects another."""

    name: str
    title: Annotated[str, Key("its name for people")]
    chip: Annotated[Chip, Key("a chip that Baretorch knows, or a file of this name next to this one", raw=str)]
    emulators: Annotated[
        tuple[str, ...],
        Key("what can run its images, the preferred one first; may be empty", choices=tuple(EMULATORS)),
    ]
    flash_methods: Annotated[
        tuple[str, ...],
        Key("how an image gets onto it; may be empty", choices=("uf2", "pyocd", "avrdude")),
    ]
    notes: Annotated[str, Key("one line for people: where the UART is, how to flash")]
    qemu_machine: Annotated[
        str | None,
        Key("QEMU's name for it (`qemu-system-arm -M help`)", pattern=NAME, goes_with="qemu", example='"mps2-an385"'),
    ] = None
    simavr_mcu: Annotated[
        str | None,
        Key(
            "simavr's name for the chip (`simavr --list-cores`)",
            pattern=NAME,
            goes_with="simavr",
            example='"atmega328p"',
        ),
    ] = None
    pyocd_target: Annotated[
        str | None,
        Key("pyOCD's name for the chip (`pyocd list --targets`)", pattern=NAME, goes_with="pyocd", example='"rp2040"'),
    ] = None
    fvp: Annotated[Fvp | None, Key("Arm's Fixed Virtual Platform", goes_with="fvp")] = None
    avrdude: Annotated[Avrdude | None, Key("the boot loader", goes_with="avrdude")] = None
    console: Console = Console.UART
    pins: Annotated[
        tuple[tuple[str, str, int], ...],
        Key(
            "pins of the board's parts, for [applications](your-own-application.md): `sda = 4` below `[pins.camera]` "
            "is `BT_PIN_CAMERA_SDA` in C",
            raw=dict,
            into=_parse_pins,
            need="per part a table of pins: names of small letters, digits and _, numbers 0 to 255",
        ),
    ] = ()
    openocd: Annotated[OpenOcd | None, Key("OpenOCD's settings")] = None
    sdk: Annotated[
        Mapping[str, Mapping[str, str]],
        Key(
            'what [SDKs](use-an-sdk.md) call the board: `board = "rpi_pico"` below `[sdk.zephyr]`',
            raw=dict,
            into=_parse_sdk,
            need="per SDK a table of texts: letters, digits and _ . / : -",
        ),
    ] = field(default_factory=dict, hash=False)
    page: Annotated[Page | None, Key("the board's page in the docs")] = None

    def __repr__(self) -> str:
        return f"Board({self.name})"

    @property
    def hosted(self) -> bool:
        """Report whether its images are programs of this computer."""
        return self.chip.boot == "host"

    @property
    def usb(self) -> Usb | None:
        """The USB controller that images talk over; None if they use another console."""
        return self.chip.usb if self.console is Console.USB else None

    def with_console(self, console: Console | None) -> Board:
        """Return the board with another console; CompileError if its chip has none such."""
        if console is Console.USB and self.chip.usb is None:
            raise CompileError(
                f"--console usb: {self.name} has no USB that images can talk over",
                need="a chip whose TOML describes [usb], as those of pico and pico2w do",
                try_="leave it out: the console is the UART",
            )
        return self if console is None else replace(self, console=console)
