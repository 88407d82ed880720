"""The settings that consoles and counters need before they work, for each driver's hardware."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from baretorch.errors import CompileError
from baretorch.targets.silicon import ChipBlock, Condition, Rule, conditions, registers
from baretorch.targets.types import Chip

Number: TypeAlias = Callable[[str], int]  # what a field says


@dataclass(frozen=True)
class UartSettings:
    """Registers as in silicon files, at offsets; when it sends and listens; what must not change while one of its
    parts is on; and its rate from that of its clock."""

    registers: Mapping[str, Mapping[str, Any]]
    transmits: tuple[Condition, ...]
    receives: tuple[Condition, ...]
    on: tuple[Condition, ...]
    fixed: tuple[str, ...]
    baud: Callable[[float, Number], float]


@dataclass(frozen=True)
class CounterSettings:
    """Registers at offsets, and of the core at addresses; what it needs to be there; when it counts; what must not
    change then; and how fast."""

    registers: Mapping[str, Mapping[str, Any]]
    core: Mapping[str, Mapping[str, Any]]
    needs: tuple[Condition, ...]
    counts: tuple[Condition, ...]
    fixed: tuple[str, ...]
    rate: Callable[[float, Number], float]


UARTS: Mapping[str, UartSettings] = {
    "pl011": UartSettings(  # Arm DDI 0183
        {
            "IBRD": {"at": 0x24, "INT": "15:0"},
            "FBRD": {"at": 0x28, "FRAC": "5:0"},
            "LCR_H": {"at": 0x2C, "WLEN": "6:5", "FEN": 4, "STP2": 3, "PEN": 1},
            "CR": {"at": 0x30, "reset": 0x300, "RXE": 9, "TXE": 8, "UARTEN": 0},
        },
        conditions(["UART.CR.UARTEN = 1", "UART.CR.TXE = 1", "UART.LCR_H.WLEN = 3", "UART.LCR_H.PEN = 0"]),
        conditions(["UART.CR.UARTEN = 1", "UART.CR.RXE = 1", "UART.LCR_H.WLEN = 3", "UART.LCR_H.FEN = 1"]),
        conditions(["UART.CR.UARTEN = 1"]),
        ("UART.IBRD", "UART.FBRD", "UART.LCR_H"),
        lambda hz, number: 4 * hz / max(1, 64 * number("UART.IBRD.INT") + number("UART.FBRD.FRAC")),
    ),
    "stm32_usart": UartSettings(  # RM0433 48.7, with 16 samples a bit
        {"CR1": {"at": 0x00, "TE": 3, "RE": 2, "UE": 0}, "BRR": {"at": 0x0C, "DIV": "15:0"}},
        conditions(["UART.CR1.UE = 1", "UART.CR1.TE = 1"]),
        conditions(["UART.CR1.UE = 1", "UART.CR1.RE = 1"]),
        conditions(["UART.CR1.UE = 1"]),
        ("UART.BRR",),
        lambda hz, number: hz / max(1, number("UART.BRR.DIV")),
    ),
    "nrf_uart": UartSettings(  # nRF51 Series Reference Manual 29
        {
            "TASKS_STARTRX": {"at": 0x000},
            "TASKS_STARTTX": {"at": 0x008},
            "ENABLE": {"at": 0x500, "ENABLE": "2:0"},
            "BAUDRATE": {"at": 0x524, "reset": 0x04000000},
        },
        conditions(["UART.ENABLE.ENABLE = 4", "UART.TASKS_STARTTX = 1"]),
        conditions(["UART.ENABLE.ENABLE = 4", "UART.TASKS_STARTRX = 1"]),
        conditions(["UART.TASKS_STARTTX = 1", "UART.TASKS_STARTRX = 1"]),
        ("UART.BAUDRATE", "UART.ENABLE"),
        lambda hz, number: hz * number("UART.BAUDRATE") / 2**32,
    ),
}

COUNTERS: Mapping[str, CounterSettings] = {
    "rp_timer": CounterSettings({}, {}, (), (), (), lambda hz, number: hz),
    "dwt": CounterSettings(  # Armv7-M manual C1.8
        {"CTRL": {"at": 0x000, "CYCCNTENA": 0}},
        {"DEMCR": {"at": 0xE000EDFC, "TRCENA": 24}},
        conditions(["CORE.DEMCR.TRCENA = 1"]),
        conditions(["COUNTER.CTRL.CYCCNTENA = 1"]),
        (),
        lambda hz, number: hz,
    ),
    "nrf_timer": CounterSettings(  # nRF51 Series Reference Manual 18
        {
            "TASKS_START": {"at": 0x000},
            "BITMODE": {"at": 0x508},
            "PRESCALER": {"at": 0x510, "reset": 4, "PRESCALER": "3:0"},
        },
        {},
        (),
        conditions(["COUNTER.TASKS_START = 1"]),
        ("COUNTER.BITMODE", "COUNTER.PRESCALER"),
        lambda hz, number: hz / 2 ** number("COUNTER.PRESCALER.PRESCALER") if number("COUNTER.BITMODE") == 3 else 0,
    ),
}


def device_blocks(chip: Chip) -> tuple[ChipBlock, ...]:
    """The settings of the chip's console and counter, as blocks beside those that its silicon file describes."""
    assert chip.silicon is not None
    if chip.uart.driver not in UARTS or chip.counter.driver not in COUNTERS:
        raise CompileError(
            f"the silicon file of {chip.name} goes with other drivers",
            have=f"uart {chip.uart.driver}, counter {chip.counter.driver}",
            need=[f"uart: {', '.join(UARTS)}", f"counter: {', '.join(COUNTERS)}"],
            try_="leave `silicon` out of the chip's TOML: clocks are not emulated then",
        )
    uart, counter = UARTS[chip.uart.driver], COUNTERS[chip.counter.driver]
    rows = (
        ("UART", chip.uart.base, uart.registers, chip.silicon.uart.needs),
        ("COUNTER", chip.counter.base, counter.registers, chip.silicon.counter.needs + counter.needs),
        ("CORE", 0, counter.core, ()),
    )
    return tuple(
        ChipBlock(name, registers(name, base, settings), needed, atomic=False, source="machines/unicorn/peripherals.py")
        for name, base, settings, needed in rows
    )


def device_rules(chip: Chip) -> tuple[Rule, ...]:
    uart, counter = UARTS[chip.uart.driver], COUNTERS[chip.counter.driver]
    source = "the manual that machines/unicorn/peripherals.py names"
    return (
        *(Rule("the console's settings change while it is on", source, (on,), fixed=uart.fixed) for on in uart.on),
        Rule("the counter's settings change while it counts", source, counter.counts, fixed=counter.fixed),
    )
