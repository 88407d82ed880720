"""The structures that Python shares with hooks/unicorn.h, field by field, and their initial values."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from ctypes import POINTER, c_char, c_char_p, c_double, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from enum import IntEnum, IntFlag

from unicorn import arm_const as arm
from unicorn.unicorn_py3.unicorn import uclib

from baretorch.errors import InternalError
from baretorch.machines.code import MEET, Code
from baretorch.machines.rows import ROW_ROOM, ROWS
from baretorch.machines.unicorn.registers import WAKERS, WATCHDOGS, ChipRegister, chip_registers
from baretorch.targets.types import Chip

OUTPUT_ROOM = 1 << 20
CALL_ROOM = 1 << 12
MEETINGS = 4
IRQ_WORDS = 8
NO_IRQ = 0xFFFFFFFF
VIEWS = 2
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


class CRegister(ctypes.Structure):
    """bt_register."""

    _fields_ = [(name, c_uint32) for name in ("address", "kind", "empty", "filled")]


class CBlock(ctypes.Structure):
    """bt_block."""

    _fields_ = [("executed", c_uint64), ("taken", c_uint64), ("bytes", c_uint32), ("instructions", c_uint32)]


class CAccess(ctypes.Structure):
    """bt_access."""

    _fields_ = [("phase", c_uint32), ("pc", c_uint32), ("site", c_uint32)]


class Byte(ctypes.Structure):
    """bt_byte."""

    _fields_ = [("read", CAccess * 2), ("wrote", CAccess * 2)]


class Race(ctypes.Structure):
    """bt_race."""

    _fields_ = [
        ("found", c_uint32),
        ("address", c_uint32),
        ("phase", c_uint32),
        ("writes", c_uint32 * 2),
        ("by", CAccess * 2),
    ]


class CAlarm(ctypes.Structure):
    """bt_alarm."""

    _fields_ = [("due", c_uint64)] + [
        (name, c_uint32) for name in ("reload", "on", "wakes", "rang", "pending", "unused")
    ]


class CLine(ctypes.Structure):
    """bt_line."""

    _fields_ = [("number", c_uint32), ("filled", c_uint32)]


class CCache(ctypes.Structure):
    """bt_cache."""

    _fields_ = [
        ("lines", POINTER(CLine)),
        ("ways", c_uint32),
        ("set_mask", c_uint32),
        ("line_bits", c_uint32),
        ("on", c_uint32),
    ]


class CView(ctypes.Structure):
    """bt_view."""

    _fields_ = [
        ("caches", CCache * 2),
        ("cache_of", c_uint32 * 2),
        ("fill_bits", c_uint32),
        ("next", c_uint32),
        ("when", c_uint64),
        ("window", c_uint32),
        ("page", c_uint32),
        ("ahead", c_uint32),
    ]


class CFills(ctypes.Structure):
    """bt_fills."""

    _fields_ = [("fills", (c_uint64 * 2) * 2)]


class CEvent(ctypes.Structure):
    """bt_event."""

    _fields_ = [
        ("clock", c_uint64),
        ("address", c_uint32),
        ("bytes", c_uint16),
        ("kind", c_uint8),
        ("on", c_uint8),
    ]


class CFlash(ctypes.Structure):
    """bt_flash."""

    _fields_ = [
        ("views", CView * VIEWS),
        ("events", POINTER(CEvent)),
        ("event_count", c_uint64),
        ("event_room", c_uint32),
        ("view_count", c_uint32),
        ("origin", c_uint32),
        ("bytes", c_uint32),
    ]


class CWatchdog(ctypes.Structure):
    """bt_watchdog."""

    _fields_ = [
        ("due", c_uint64),
        ("instructions_per_count", c_double),
        ("kind", c_uint32),
        ("base", c_uint32),
        ("cause", c_uint32 * 3),
        ("select", c_uint32 * 2),
        *((name, c_uint32) for name in ("count", "on", "open", "selects", "bit", "scratch")),
    ]


class UsbAccess(IntEnum):
    """The reason for a call of the USB model by the hooks."""

    READ = 0
    WRITTEN = 1
    MEMORY_WRITTEN = 2


USB = ctypes.CFUNCTYPE(c_uint32, c_uint32, c_uint32, c_uint32, c_uint64)
CHANGE = ctypes.CFUNCTYPE(ctypes.c_int, c_uint32, c_uint32, c_uint32, c_uint64)


class ChipState(ctypes.Structure):
    """bt_chip."""

    _fields_ = [
        ("stop", c_void_p),
        ("peek", c_void_p),
        ("read_register", c_void_p),
        ("write_register", c_void_p),
        ("xpsr", ctypes.c_int),
        ("change", CHANGE),
        ("flash", POINTER(CFlash)),
        ("usb", USB),
        ("usb_memory", POINTER(c_uint8)),
        ("dma", USB),
        ("registers", POINTER(CRegister)),
        ("values", POINTER(c_uint32)),
        ("code", c_char_p),
        ("input", c_char_p),
        ("output", POINTER(c_char)),
        ("calls", POINTER(c_uint64)),
        ("deadline", c_double),
        ("ticks_per_instruction", c_double),
        ("first_tick", c_double),
        ("counting_from", c_uint64),
        ("next_change", c_uint64),
        ("call_count", c_uint64),
        ("register_count", c_uint32),
        ("input_bytes", c_uint32),
        ("input_taken", c_uint32),
        ("output_bytes", c_uint32),
        ("output_room", c_uint32),
        ("call_room", c_uint32),
        ("row_room", c_uint32),
        ("code_origin", c_uint32),
        ("code_bytes", c_uint32),
        ("ram_code_origin", c_uint32),
        ("ram_code_bytes", c_uint32),
        ("run", c_uint32),
        ("returned", c_uint32),
        ("polls", c_uint32),
        ("stopped", c_uint32),
        ("console", c_uint32),
        ("irq", c_uint32),
        ("wake", c_uint32 * 2),
        ("sticky", c_uint32 * 2),
        ("wakes", c_uint32),
        ("stuck", c_uint32),
        ("alarm", c_uint32),
        ("alarm_base", c_uint32),
        ("alarm_irq", c_uint32),
        ("idle_until", c_uint64),
        ("watchdog", CWatchdog),
        ("lines", c_uint32 * IRQ_WORDS),
        ("taken_irq", c_uint32),
        ("line", c_uint8 * 256),
        ("meets", c_uint32 * (2 * MEETINGS)),
        ("stacks", c_uint32 * 2),
        ("first_phase", c_uint32),
        ("turn", c_uint32),
        ("watching", c_uint32),
        ("closing", c_uint32),
        ("dma_base", c_uint32 * 2),
        ("race", Race),
    ]


class CoreState(ctypes.Structure):
    """bt_core."""


CoreState._fields_ = [
    ("chip", POINTER(ChipState)),
    ("other", POINTER(CoreState)),
    ("blocks", POINTER(CBlock)),
    ("touched", POINTER(c_uint32)),
    ("rows", c_void_p),
    ("visits", c_void_p),
    ("last", c_void_p),
    ("instructions", c_uint64),
    ("idle", c_uint64),
    ("met", c_uint64),
    ("handled", c_uint64),
    ("entered", c_uint64 * 3),
    ("taken", c_uint64 * 2),
    ("event_clock", c_uint64),
    ("signalled", c_uint64 * 2),
    ("next_look", c_uint64),
    ("row_count", c_uint64),
    ("visit_count", c_uint64),
    ("fills", CFills * VIEWS),
    ("signalled_phase", c_uint32 * 2),
    ("number", c_uint32),
    ("home", c_uint32 * 4),
    ("running", c_uint32),
    ("at_home", c_uint32),
    ("site", c_uint32),
    ("last_end", c_uint32),
    ("touched_count", c_uint32),
    ("phase", c_uint32),
    ("meeting", c_uint32),
    ("pc", c_uint32),
    ("event", c_uint32),
    ("asleep", c_uint32),
    ("halted", c_uint32),
    ("alarm", CAlarm),
    ("dozing", c_uint32),
    ("handling", c_uint32),
    ("masked", c_uint32),
    ("enabled", c_uint32 * IRQ_WORDS),
    ("pending", c_uint32 * IRQ_WORDS),
    ("mail", c_uint32 * 4),
    ("mail_count", c_uint32),
    ("kept", c_uint32 * 2),
]


class Range(ctypes.Structure):
    """bt_range."""

    _fields_ = [("core", POINTER(CoreState)), ("origin", c_uint64)]


class CBank(ctypes.Structure):
    """bt_bank."""

    _fields_ = [("core", POINTER(CoreState)), ("bytes", c_void_p), ("origin", c_uint64)]


def chip_state(chip: Chip, code: Code, cores: int, modelled: Sequence[ChipRegister] = ()) -> ChipState:
    """A structure keeps the arrays alive that its pointers were made from."""
    registers = (*chip_registers(chip, cores), *modelled)
    if len(code.meets) > MEETINGS:
        raise InternalError(f"the image has {len(code.meets)} functions {MEET}, the hooks know {MEETINGS}")
    waker = WAKERS[chip.uart.driver]
    meets = [address for function in code.meets for address in function]
    return ChipState(
        stop=ctypes.cast(uclib.uc_emu_stop, c_void_p).value,
        peek=ctypes.cast(uclib.uc_mem_read, c_void_p).value,
        read_register=ctypes.cast(uclib.uc_reg_read, c_void_p).value,
        write_register=ctypes.cast(uclib.uc_reg_write, c_void_p).value,
        xpsr=arm.UC_ARM_REG_XPSR,
        registers=(CRegister * len(registers))(*(CRegister(r.address, r.kind, r.empty, r.filled) for r in registers)),
        register_count=len(registers),
        input=b"",
        output=(c_char * OUTPUT_ROOM)(),
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
        alarm=TIMERS[chip.alarm.driver] if chip.alarm is not None else Timer.NO_ALARM,
        alarm_base=chip.alarm.base if chip.alarm is not None else 0,
        alarm_irq=chip.alarm.irq if chip.alarm is not None and chip.alarm.irq is not None else NO_IRQ,
        watchdog=_watchdog(chip),
        line=(c_uint8 * 256)(*range(256)),
        meets=(c_uint32 * (2 * MEETINGS))(*meets),
        stacks=code.stacks,
        turn=TURN,
    )


def _watchdog(chip: Chip) -> CWatchdog:
    if chip.watchdog is None:
        return CWatchdog(due=NEVER)
    dog = WATCHDOGS[chip.watchdog.driver]
    rate = chip.clock_hz / chip.watchdog.hz
    return CWatchdog(NEVER, rate, dog.kind, dog.base, dog.cause, dog.select)


def core_state(chip: ChipState, code: Code, number: int) -> tuple[CoreState, mmap.mmap]:
    """A core's counters, and the rows that it writes, which cost what is written to them."""
    rows = mmap.mmap(-1, ROWS.size * ROW_ROOM)
    halfwords = (len(code.addresses) + len(code.in_ram)) // 2 + 2
    state = CoreState(
        chip=ctypes.pointer(chip),
        blocks=(CBlock * halfwords)(),
        touched=(c_uint32 * halfwords)(),
        rows=ctypes.addressof(c_char.from_buffer(rows)),
        number=number,
        alarm=CAlarm(due=NEVER),
        home=code.home if number == 0 else code.core1_home,
    )
    return state, rows
