"""The structures that Python shares with hooks/unicorn.h, and their initial values."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Sequence
from ctypes import c_uint8, c_uint32, c_uint64, c_void_p
from enum import IntEnum, IntFlag
from typing import TypeAlias

from unicorn import arm_const as arm
from unicorn.unicorn_py3.unicorn import uclib

from baretorch.errors import InternalError
from baretorch.machines import hooks
from baretorch.machines.code import MEET, Code
from baretorch.machines.counts import CALL_ROOM, COUNT_ROW, ROW_ROOM
from baretorch.machines.hooks.structs import read_header
from baretorch.machines.unicorn.drivers import UARTS, WATCHDOGS, ChipRegister, chip_registers, model_of
from baretorch.targets.types import Chip

HEADER = read_header(hooks.HERE / "unicorn.h")
STRUCTS = HEADER.structs
ChipState: TypeAlias = ctypes.Structure  # bt_chip
CoreState: TypeAlias = ctypes.Structure  # bt_core
NO_IRQ, VIEWS = HEADER.constants["NO_IRQ"], HEADER.constants["VIEWS"]
OUTPUT_ROOM = 1 << 20
TURN = 0x10000  # instructions
NEVER = 2**64 - 1


class StopReason(IntEnum):
    """The reason why a core stopped: first those of the hooks, then those that only Python knows."""

    NOT_STOPPED = 0
    WAITS_FOR_INPUT = 1
    OUTPUT_IS_FULL = 2
    TIME_IS_UP = 3
    OTHERS_TURN = 4
    RACE = 5
    CHIP_CHANGED = 6
    CONSOLE_IS_DEAD = 7
    INTERRUPTED = 8
    BUS_TURN = 9
    WATCHDOG_BITES = 10
    SLEEPS = 11
    FAULT = 12
    BREAKPOINT = 13


class Doze(IntEnum):
    """The state of a core that waits for an interrupt."""

    AWAKE = 0
    UNTIL_INPUT = 1
    FOR_EVER = 2
    UNTIL_BITTEN = 3


class Timer(IntEnum):
    """The timer that can end sleep."""

    NO_ALARM = 0
    SYSTICK = 1
    NRF_TIMER = 2


TIMERS = {"systick": Timer.SYSTICK, "nrf_timer": Timer.NRF_TIMER}


class ConsoleState(IntFlag):
    """The current abilities of the console."""

    ANSWERS = 1
    TRANSMITS = 2
    RECEIVES = 4


class ChipChange(IntEnum):
    """The reason for a call of the model by the hooks."""

    DUE = 0
    WRITTEN = 1
    READ = 2


class UsbAccess(IntEnum):
    """The reason for a call of the USB model by the hooks."""

    READ = 0
    WRITTEN = 1
    MEMORY_WRITTEN = 2


CALLBACK = ctypes.CFUNCTYPE(c_uint32, c_uint32, c_uint32, c_uint32, c_uint64)  # of `change`, `usb` and `dma`


def chip_state(chip: Chip, code: Code, cores: int, modelled: Sequence[ChipRegister] = ()) -> ChipState:
    """Return the initial state of a chip. ctypes keeps arrays alive that a structure has pointers to."""
    rows = (*chip_registers(chip, cores), *modelled)
    registers = [STRUCTS["bt_register"](r.address, r.kind, r.empty, r.filled) for r in rows]
    meetings = HEADER.constants["MEETINGS"]
    if len(code.meets) > meetings:
        raise InternalError(f"the image has {len(code.meets)} functions {MEET}, the hooks know {meetings}")
    waker = model_of(chip, chip.uart.driver, UARTS).waker
    alarm = chip.alarm
    return STRUCTS["bt_chip"](
        stop=ctypes.cast(uclib.uc_emu_stop, c_void_p),
        peek=ctypes.cast(uclib.uc_mem_read, c_void_p),
        read_register=ctypes.cast(uclib.uc_reg_read, c_void_p),
        write_register=ctypes.cast(uclib.uc_reg_write, c_void_p),
        xpsr=arm.UC_ARM_REG_XPSR,
        registers=(STRUCTS["bt_register"] * len(registers))(*registers),
        register_count=len(registers),
        output=(c_uint8 * OUTPUT_ROOM)(),
        output_room=OUTPUT_ROOM,
        calls=(c_uint64 * CALL_ROOM)(),
        call_room=CALL_ROOM,
        row_room=ROW_ROOM,
        code_origin=code.addresses.start,
        code_bytes=len(code.addresses),
        ram_code_origin=code.in_ram.start,
        ram_code_bytes=len(code.in_ram),
        run=code.run,
        returned=code.returned,
        ticks_per_instruction=chip.counter.hz / chip.clock_hz,
        next_change=NEVER,
        console=ConsoleState.ANSWERS | ConsoleState.TRANSMITS | ConsoleState.RECEIVES,
        taken_irq=NO_IRQ,
        irq=NO_IRQ if chip.uart.irq is None else chip.uart.irq,
        wake=(chip.uart.base + waker.at, waker.bits),
        sticky=(chip.uart.base + waker.clears_at, waker.clears),
        alarm=model_of(chip, alarm.driver, TIMERS) if alarm is not None else Timer.NO_ALARM,
        alarm_base=alarm.base if alarm is not None else 0,
        alarm_irq=alarm.irq if alarm is not None and alarm.irq is not None else NO_IRQ,
        watchdog=_watchdog(chip),
        line=tuple(range(256)),
        meets=tuple(address for function in code.meets for address in function),
        stacks=code.stacks,
        turn=TURN,
    )


def _watchdog(chip: Chip) -> ctypes.Structure:
    watchdog = STRUCTS["bt_watchdog"](due=NEVER)
    if chip.watchdog is not None:
        dog = model_of(chip, chip.watchdog.driver, WATCHDOGS)
        watchdog.instructions_per_count = chip.clock_hz / chip.watchdog.hz
        watchdog.kind, watchdog.base, watchdog.cause, watchdog.select = dog.kind, dog.base, dog.cause, dog.select
    return watchdog


def core_state(chip: ChipState, code: Code, number: int) -> tuple[CoreState, mmap.mmap]:
    """Return a core's counters, and the memory of its rows, which takes space only where rows are written."""
    rows = mmap.mmap(-1, COUNT_ROW.size * ROW_ROOM)
    halfwords = (len(code.addresses) + len(code.in_ram)) // 2 + 2
    state = STRUCTS["bt_core"](
        chip=ctypes.pointer(chip),
        blocks=(STRUCTS["bt_block"] * halfwords)(),
        touched=(c_uint32 * halfwords)(),
        rows=(STRUCTS["bt_row"] * ROW_ROOM).from_buffer(rows),
        number=number,
        alarm=STRUCTS["bt_alarm"](due=NEVER),
        home=code.home if number == 0 else code.core1_home,
    )
    return state, rows


def pointer_to(function: Callable[..., object]) -> c_void_p:
    """Return a pointer for the hooks. The caller keeps the function alive."""
    return ctypes.cast(function, c_void_p)  # type: ignore[arg-type]
