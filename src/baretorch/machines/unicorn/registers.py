"""The few registers of a chip that must do something for an image to boot, talk and keep time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from baretorch.errors import CompileError
from baretorch.targets.types import Chip


class RegisterKind(IntEnum):
    """The behaviour of a register, numbered as in hooks/unicorn.h."""

    CONSTANT = 0  # reads as `filled`
    CONSOLE_STATUS = 1  # reads as `filled` if a byte has arrived, else as `empty`
    CONSOLE_DATA = 2  # reading takes an arrived byte, writing sends one
    COUNTER = 3  # counts; the bits of `filled` read inverted
    CORE_NUMBER = 4  # of the core that reads it
    MAIL_STATUS = 5  # whether words from the other core are there (1), and whether there is room for one (2)
    MAIL_SEND = 6  # a word to the other core
    MAIL_TAKE = 7  # a word from it
    KEPT = 8  # reads as written, for each core by itself; `filled` is its number in KEPT
    MODELLED = 9  # belongs to the model of the chip; `filled` is its number there
    READ_BACK = 10  # the same, and the model is told when it is read


@dataclass(frozen=True)
class ChipRegister:
    """`address` is an offset in the tables below, and absolute in what `chip_registers` gives."""

    address: int
    kind: RegisterKind
    empty: int = 0
    filled: int = 0


def _status(offset: int, empty: int, filled: int) -> ChipRegister:
    return ChipRegister(offset, RegisterKind.CONSOLE_STATUS, empty, filled)


def _data(offset: int) -> ChipRegister:
    return ChipRegister(offset, RegisterKind.CONSOLE_DATA)


# Sending is always possible and done at once.
UARTS: dict[str, tuple[ChipRegister, ...]] = {
    "pl011": (_data(0x00), _status(0x18, empty=0x90, filled=0x80)),  # FR: TXFE, RXFE
    "cmsdk": (_data(0x00), _status(0x04, empty=0, filled=2)),  # STATE: RX full
    "stm32_usart": (  # ISR: REACK, TEACK, TXE, TC, RXNE; then RDR, TDR
        _status(0x1C, empty=0x6000C0, filled=0x6000E0),
        _data(0x24),
        _data(0x28),
    ),
    "nrf_uart": (  # EVENTS_RXDRDY, EVENTS_TXDRDY, RXD, TXD
        _status(0x108, empty=0, filled=1),
        ChipRegister(0x11C, RegisterKind.CONSTANT, filled=1),
        _data(0x518),
        _data(0x51C),
    ),
}


@dataclass(frozen=True)
class Waker:
    """The bits of a console's register that must all be set for a byte to interrupt; and where the interrupt stays
    until it is cleared, those that do that. Offsets."""

    at: int
    bits: int
    clears_at: int = 0
    clears: int = 0


WAKERS: dict[str, Waker] = {
    "pl011": Waker(0x38, 0x50),  # IMSC: RTIM, without which the last few bytes wait; RXIM, without which many overrun
    "cmsdk": Waker(0x08, 0x08, clears_at=0x0C, clears=0x02),  # CTRL, INTCLEAR
    "stm32_usart": Waker(0x00, 0x20),  # CR1: RXNEIE
    "nrf_uart": Waker(0x304, 0x04),  # INTENSET: RXDRDY
}


class DogKind(IntEnum):
    """The kind of a watchdog, numbered as in hooks/unicorn.h."""

    RP = 1
    IWDG = 2
    NRF_WDT = 3


@dataclass(frozen=True)
class Dog:
    """A watchdog. `cause` is the register that tells why the chip started, the watchdog's bit in it, and the bits that
    clear it; `select` the register that says what a bite restarts, and what it must say for the cores to be."""

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

COUNTERS: dict[str, ChipRegister] = {
    "rp_timer": ChipRegister(0x28, RegisterKind.COUNTER),  # TIMERAWL
    "dwt": ChipRegister(0x04, RegisterKind.COUNTER),  # CYCCNT
    "cmsdk_timer": ChipRegister(0x04, RegisterKind.COUNTER, filled=0xFFFFFFFF),  # VALUE counts down
    "nrf_timer": ChipRegister(0x540, RegisterKind.COUNTER),  # CC[0], captured at once
}


# What images of two cores use besides.
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


def chip_registers(chip: Chip, cores: int = 1) -> tuple[ChipRegister, ...]:
    """The registers of a chip that do not simply read as zero, for an image that uses so many of its cores."""
    if chip.uart.driver not in UARTS or chip.counter.driver not in COUNTERS:
        raise CompileError(
            f"the emulator unicorn has no model of {chip.name}'s console or counter",
            have=f"uart {chip.uart.driver}, counter {chip.counter.driver}",
            need=[f"uart: {', '.join(UARTS)}", f"counter: {', '.join(COUNTERS)}"],
        )
    at_base = [(chip.uart.base, r) for r in UARTS[chip.uart.driver]]
    at_base.append((chip.counter.base, COUNTERS[chip.counter.driver]))
    at_base += [(0, r) for r in _KEPT]
    if cores > 1 and chip.cores is not None:
        at_base += [(chip.cores.base, r) for r in CORES[chip.cores.driver]]
    return tuple(ChipRegister(base + r.address, r.kind, r.empty, r.filled) for base, r in at_base)
