"""The hardware that drivers use, as far as images need it: consoles, counters, watchdogs, and what two cores share.

A driver of a chip's TOML is a row here: the registers that do more than read as zero and, for chips with a silicon
file, the settings that the driver must make.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias, TypeVar

from baretorch.errors import CompileError
from baretorch.targets.silicon import ChipBlock, Condition, Rule, parse_conditions, parse_registers
from baretorch.targets.types import Chip

T = TypeVar("T")
Number: TypeAlias = Callable[[str], int]  # returns the value of a field


class RegisterKind(IntEnum):
    """The behaviour of a register, numbered as in hooks/unicorn.h."""

    CONSTANT = 0  # reads as `filled`
    CONSOLE_STATUS = 1  # reads as `filled` if a byte has arrived, else as `empty`
    CONSOLE_DATA = 2  # reading takes an arrived byte, writing sends one
    COUNTER = 3  # counts; the bits of `filled` read inverted
    CORE_NUMBER = 4  # of the core that reads it
    MAIL_STATUS = 5  # whether words from the other core have arrived (1), and whether there is room for one (2)
    MAIL_SEND = 6  # a word to the other core
    MAIL_TAKE = 7  # a word from it
    KEPT = 8  # reads as written, for each core by itself; `filled` is its number in KEPT
    MODELLED = 9  # belongs to the model of the chip; `filled` is its number there
    READ_BACK = 10  # the same, and reading it calls the model


@dataclass(frozen=True)
class ChipRegister:
    """A register. `address` is an offset in the tables below, and absolute in the result of `chip_registers`."""

    address: int
    kind: RegisterKind
    empty: int = 0
    filled: int = 0


@dataclass(frozen=True)
class Waker:
    """The bits of a console's register that must all be set for a byte to interrupt. If the interrupt stays until it is
    cleared: the register and the bits that clear it. Addresses are offsets."""

    at: int
    bits: int
    clears_at: int = 0
    clears: int = 0


@dataclass(frozen=True)
class UartSettings:
    """The settings of a console: its registers as in silicon files, at offsets; when it sends and listens; the fields
    that must not change while one of its parts is on; and its baud rate, from the rate of its clock."""

    registers: Mapping[str, Mapping[str, Any]]
    transmits: tuple[Condition, ...]
    receives: tuple[Condition, ...]
    on: tuple[Condition, ...]
    fixed: tuple[str, ...]
    baud: Callable[[float, Number], float]


@dataclass(frozen=True)
class UartModel:
    """A console. Sending is always possible and immediate."""

    registers: tuple[ChipRegister, ...]
    waker: Waker
    settings: UartSettings | None = None


@dataclass(frozen=True)
class CounterSettings:
    """The settings of a counter: its registers at offsets, and those of the core at addresses; what it needs to
    respond; when it counts; the fields that must not change then; and its rate, from the rate of its clock."""

    registers: Mapping[str, Mapping[str, Any]]
    core: Mapping[str, Mapping[str, Any]]
    needs: tuple[Condition, ...]
    counts: tuple[Condition, ...]
    fixed: tuple[str, ...]
    rate: Callable[[float, Number], float]


@dataclass(frozen=True)
class CounterModel:
    """A free-running counter."""

    register: ChipRegister
    settings: CounterSettings | None = None


def _status(offset: int, empty: int, filled: int) -> ChipRegister:
    return ChipRegister(offset, RegisterKind.CONSOLE_STATUS, empty, filled)


def _data(offset: int) -> ChipRegister:
    return ChipRegister(offset, RegisterKind.CONSOLE_DATA)


def _counter(offset: int, inverted: int = 0) -> ChipRegister:
    return ChipRegister(offset, RegisterKind.COUNTER, filled=inverted)


UARTS: dict[str, UartModel] = {
    "pl011": UartModel(  # Arm DDI 0183
        (_data(0x00), _status(0x18, empty=0x90, filled=0x80)),  # FR: TXFE, RXFE
        Waker(0x38, 0x50),  # IMSC: RTIM, without which the last few bytes wait; RXIM, without which many overrun
        UartSettings(
            registers={
                "IBRD": {"at": 0x24, "INT": "15:0"},
                "FBRD": {"at": 0x28, "FRAC": "5:0"},
                "LCR_H": {"at": 0x2C, "WLEN": "6:5", "FEN": 4, "STP2": 3, "PEN": 1},
                "CR": {"at": 0x30, "reset": 0x300, "RXE": 9, "TXE": 8, "UARTEN": 0},
            },
            transmits=parse_conditions(
                ["UART.CR.UARTEN = 1", "UART.CR.TXE = 1", "UART.LCR_H.WLEN = 3", "UART.LCR_H.PEN = 0"]
            ),
            receives=parse_conditions(
                ["UART.CR.UARTEN = 1", "UART.CR.RXE = 1", "UART.LCR_H.WLEN = 3", "UART.LCR_H.FEN = 1"]
            ),
            on=parse_conditions(["UART.CR.UARTEN = 1"]),
            fixed=("UART.IBRD", "UART.FBRD", "UART.LCR_H"),
            baud=lambda hz, number: 4 * hz / max(1, 64 * number("UART.IBRD.INT") + number("UART.FBRD.FRAC")),
        ),
    ),
    "cmsdk": UartModel(
        (_data(0x00), _status(0x04, empty=0, filled=2)),  # STATE: RX full
        Waker(0x08, 0x08, clears_at=0x0C, clears=0x02),  # CTRL, INTCLEAR
    ),
    "stm32_usart": UartModel(  # RM0433 48.7, with 16 samples a bit
        (  # ISR: REACK, TEACK, TXE, TC, RXNE; then RDR, TDR
            _status(0x1C, empty=0x6000C0, filled=0x6000E0),
            _data(0x24),
            _data(0x28),
        ),
        Waker(0x00, 0x20),  # CR1: RXNEIE
        UartSettings(
            registers={"CR1": {"at": 0x00, "TE": 3, "RE": 2, "UE": 0}, "BRR": {"at": 0x0C, "DIV": "15:0"}},
            transmits=parse_conditions(["UART.CR1.UE = 1", "UART.CR1.TE = 1"]),
            receives=parse_conditions(["UART.CR1.UE = 1", "UART.CR1.RE = 1"]),
            on=parse_conditions(["UART.CR1.UE = 1"]),
            fixed=("UART.BRR",),
            baud=lambda hz, number: hz / max(1, number("UART.BRR.DIV")),
        ),
    ),
    "nrf_uart": UartModel(  # nRF51 Series Reference Manual 29
        (  # EVENTS_RXDRDY, EVENTS_TXDRDY, RXD, TXD
            _status(0x108, empty=0, filled=1),
            ChipRegister(0x11C, RegisterKind.CONSTANT, filled=1),
            _data(0x518),
            _data(0x51C),
        ),
        Waker(0x304, 0x04),  # INTENSET: RXDRDY
        UartSettings(
            registers={
                "TASKS_STARTRX": {"at": 0x000},
                "TASKS_STARTTX": {"at": 0x008},
                "ENABLE": {"at": 0x500, "ENABLE": "2:0"},
                "BAUDRATE": {"at": 0x524, "reset": 0x04000000},
            },
            transmits=parse_conditions(["UART.ENABLE.ENABLE = 4", "UART.TASKS_STARTTX = 1"]),
            receives=parse_conditions(["UART.ENABLE.ENABLE = 4", "UART.TASKS_STARTRX = 1"]),
            on=parse_conditions(["UART.TASKS_STARTTX = 1", "UART.TASKS_STARTRX = 1"]),
            fixed=("UART.BAUDRATE", "UART.ENABLE"),
            baud=lambda hz, number: hz * number("UART.BAUDRATE") / 2**32,
        ),
    ),
}

COUNTERS: dict[str, CounterModel] = {
    "rp_timer": CounterModel(_counter(0x28), CounterSettings({}, {}, (), (), (), lambda hz, number: hz)),  # TIMERAWL
    "dwt": CounterModel(  # Armv7-M manual C1.8
        _counter(0x04),  # CYCCNT
        CounterSettings(
            registers={"CTRL": {"at": 0x000, "CYCCNTENA": 0}},
            core={"DEMCR": {"at": 0xE000EDFC, "TRCENA": 24}},
            needs=parse_conditions(["CORE.DEMCR.TRCENA = 1"]),
            counts=parse_conditions(["COUNTER.CTRL.CYCCNTENA = 1"]),
            fixed=(),
            rate=lambda hz, number: hz,
        ),
    ),
    "cmsdk_timer": CounterModel(_counter(0x04, inverted=0xFFFFFFFF)),  # VALUE counts down
    "nrf_timer": CounterModel(  # nRF51 Series Reference Manual 18
        _counter(0x540),  # CC[0], captured at once
        CounterSettings(
            registers={
                "TASKS_START": {"at": 0x000},
                "BITMODE": {"at": 0x508},
                "PRESCALER": {"at": 0x510, "reset": 4, "PRESCALER": "3:0"},
            },
            core={},
            needs=(),
            counts=parse_conditions(["COUNTER.TASKS_START = 1"]),
            fixed=("COUNTER.BITMODE", "COUNTER.PRESCALER"),
            rate=lambda hz, number: (
                hz / 2 ** number("COUNTER.PRESCALER.PRESCALER") if number("COUNTER.BITMODE") == 3 else 0
            ),
        ),
    ),
}


class DogKind(IntEnum):
    """The kind of a watchdog, numbered as in hooks/unicorn.h."""

    RP = 1
    IWDG = 2
    NRF_WDT = 3


@dataclass(frozen=True)
class Dog:
    """A watchdog. `cause` is the register with the reason of the last start, the watchdog's bit in it, and the bits
    that clear it. `select` is the register that selects what a bite restarts, and its bits for the cores."""

    kind: DogKind
    base: int
    cause: tuple[int, int, int]
    select: tuple[int, int] = (0, 0)


WATCHDOGS: dict[str, Dog] = {
    "rp2040": Dog(DogKind.RP, 0x40058000, (0x40058008, 1, 0), (0x40010008, 0x1FFFC)),  # REASON, PSM WDSEL
    "rp2350": Dog(DogKind.RP, 0x400D8000, (0x400D8008, 1, 0), (0x40018008, 0x1FFFFF3)),
    "stm32wb55": Dog(DogKind.IWDG, 0x40003000, (0x58000094, 1 << 29, 1 << 23)),  # RCC_CSR
    "stm32h743": Dog(DogKind.IWDG, 0x58004800, (0x580244D0, 1 << 26, 1 << 16)),  # RCC_RSR
    "nrf51822": Dog(DogKind.NRF_WDT, 0x40010000, (0x40000400, 1 << 1, 1 << 1)),  # POWER.RESETREAS
}

# More registers of images with two cores.
CORES: dict[str, tuple[ChipRegister, ...]] = {
    "rp_sio": (  # CPUID, FIFO_ST, FIFO_WR, FIFO_RD
        ChipRegister(0x00, RegisterKind.CORE_NUMBER),
        ChipRegister(0x50, RegisterKind.MAIL_STATUS),
        ChipRegister(0x54, RegisterKind.MAIL_SEND),
        ChipRegister(0x58, RegisterKind.MAIL_TAKE),
    ),
}

KEPT = {"VTOR": 0, "CPACR": 1}
_KEPT = (
    ChipRegister(0xE000ED08, RegisterKind.KEPT, filled=KEPT["VTOR"]),
    ChipRegister(0xE000ED88, RegisterKind.KEPT, filled=KEPT["CPACR"]),
)


def model_of(chip: Chip, driver: str, models: Mapping[str, T]) -> T:
    """Return the model of a driver. Raise CompileError if there is none."""
    if driver not in models:
        raise CompileError(
            f"the emulator unicorn has no model of {chip.name}'s driver {driver}",
            need=f"one of: {', '.join(models)}",
        )
    return models[driver]


def chip_registers(chip: Chip, cores: int = 1) -> tuple[ChipRegister, ...]:
    """Return the registers of a chip that do more than read as zero, for an image that uses `cores` of its cores."""
    at_base = [(chip.uart.base, r) for r in model_of(chip, chip.uart.driver, UARTS).registers]
    at_base.append((chip.counter.base, model_of(chip, chip.counter.driver, COUNTERS).register))
    at_base += [(0, r) for r in _KEPT]
    if cores > 1 and chip.cores is not None:
        at_base += [(chip.cores.base, r) for r in model_of(chip, chip.cores.driver, CORES)]
    return tuple(ChipRegister(base + r.address, r.kind, r.empty, r.filled) for base, r in at_base)


def device_settings(chip: Chip) -> tuple[UartSettings, CounterSettings]:
    """Return the settings of the chip's console and counter. Raise CompileError if no model enforces them."""
    uart, counter = UARTS.get(chip.uart.driver), COUNTERS.get(chip.counter.driver)
    if uart is None or uart.settings is None or counter is None or counter.settings is None:
        raise CompileError(
            f"the silicon file of {chip.name} goes with other drivers",
            have=f"uart {chip.uart.driver}, counter {chip.counter.driver}",
            need=[
                f"uart: {', '.join(name for name, model in UARTS.items() if model.settings)}",
                f"counter: {', '.join(name for name, model in COUNTERS.items() if model.settings)}",
            ],
            try_="leave `silicon` out of the chip's TOML: clocks are not emulated then",
        )
    return uart.settings, counter.settings


def device_blocks(chip: Chip) -> tuple[ChipBlock, ...]:
    """Return the settings of the chip's console and counter as blocks, like those of its silicon file."""
    assert chip.silicon is not None
    uart, counter = device_settings(chip)
    rows = (
        ("UART", chip.uart.base, uart.registers, chip.silicon.uart.needs),
        ("COUNTER", chip.counter.base, counter.registers, chip.silicon.counter.needs + counter.needs),
        ("CORE", 0, counter.core, ()),
    )
    return tuple(
        ChipBlock(
            name, parse_registers(name, base, settings), needed, atomic=False, source="machines/unicorn/drivers.py"
        )
        for name, base, settings, needed in rows
    )


def device_rules(chip: Chip) -> tuple[Rule, ...]:
    """Return the rules of the chip's console and counter."""
    uart, counter = device_settings(chip)
    source = "the manual that machines/unicorn/drivers.py names"
    return (
        *(Rule("the console's settings change while it is on", source, (on,), fixed=uart.fixed) for on in uart.on),
        Rule("the counter's settings change while it counts", source, counter.counts, fixed=counter.fixed),
    )
