"""Emulate a chip from its description, on Unicorn's Cortex-M. It boots and runs the same image that is flashed.

Memories and registers have the chip's addresses. The console and the counter work, and so do clocks, resets and
supplies if a silicon file describes them. Other registers read as zero. Only USB has interrupts, and no exceptions are
emulated: what would be a fault on the chip ends the emulation with a DeviceFault. LDM, LDRD and VLDR at unaligned
addresses on Armv7-M and later are not detected; QEMU detects them.

Images that use two cores run on two engines over the same memory, one at a time and always in the same order: a core
runs until it waits, or for a fixed number of instructions if the other could run too.
"""

from __future__ import annotations

import ctypes
import mmap
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

import unicorn as uc

from baretorch.firmware.boot import BOOT2, FLASH, check_rp2040, check_rp2350
from baretorch.firmware.chunks import load_chunks
from baretorch.firmware.types import Image
from baretorch.firmware.uf2 import decode_uf2, flash_contents
from baretorch.machines.code import read_code
from baretorch.machines.counts import CALL_ROOM, last_calls
from baretorch.machines.types import (
    Access,
    Block,
    Cores,
    CoresRace,
    DeviceFault,
    DeviceHang,
    FlashReads,
    UncountedMachine,
)
from baretorch.machines.unicorn.boot_rom import WANTED
from baretorch.machines.unicorn.core import PAGE, Core, SharedMemory
from baretorch.machines.unicorn.dma import DmaEngine
from baretorch.machines.unicorn.exceptions import clear_it_state
from baretorch.machines.unicorn.flash_chip import FlashKind
from baretorch.machines.unicorn.flash_path import FlashSimulation
from baretorch.machines.unicorn.npu import NpuPort
from baretorch.machines.unicorn.state import STRUCTS, StopReason, chip_state
from baretorch.machines.unicorn.usb.port import UsbPort
from baretorch.machines.unicorn.wiring import Wiring
from baretorch.targets.flash import Waits
from baretorch.targets.types import Chip

BOOT2_ADDRESS = 0x20041F00  # where the RP2040's boot ROM copies the second stage to
IDLE_SECONDS = 2  # that pass without input: longer than an image waits for the rest of a frame
LISTEN_SECONDS = 0.1  # between two queries whether a debugger wants to stop
UNSET = b"\xa5"  # RAM holds nothing useful after power-up


class Debugger(Protocol):
    """A debugger that is called whenever a core stops, and returns when the core continues."""

    def on_stop(self, core: Core, fault: DeviceFault | None) -> None:
        """Handle a breakpoint, a step, or the end of the image."""

    def wants_stop(self) -> bool:
        """Report whether the core is to stop."""


class UnicornMachine(UncountedMachine):
    """An image on an emulated chip. It runs only while `read` waits for it."""

    name = "unicorn"

    def __init__(
        self,
        image: Image,
        run_symbol: str,
        left: Mapping[str, int] | None = None,
        flash: FlashKind | None = None,
        timed: bool = False,
        recorded: int = 0,
    ) -> None:
        """Boot the image.

        `left` are values of registers, by name, that another program has left; otherwise the chip starts from power-up.
        `flash` replaces the usual kind of flash chip. `timed` simulates the path to flash, of which the first
        `recorded` accesses are kept.
        """
        chip = image.board.chip
        path = chip.flash_path if timed else None
        self._image = image
        self._flash = flash
        self._code = read_code(image, run_symbol)
        self.path = FlashSimulation(chip, path, recorded) if path is not None else None
        self.debugger: Debugger | None = None
        self._start(left)

    def _start(self, left: Mapping[str, int] | None) -> None:
        """Start the chip from power-up, or restart it as a whole."""
        image, chip = self._image, self._image.board.chip
        self._wiring = Wiring(chip, chip.silicon, left, self._flash, self.path) if chip.silicon is not None else None
        modelled = self._wiring.registers() if self._wiring is not None else ()
        self._state = chip_state(chip, self._code, image.cores, modelled)
        if self._wiring is not None:
            self._wiring.attach(self._state)
        self._input = b""
        self._fault: DeviceFault | None = None
        self._memories = _memories(chip, self._wiring, watched=image.cores > 1)
        usb = image.board.usb
        self._cores = [Core(chip, self._state, self._code, self._memories, n, usb) for n in range(image.cores)]
        self.usb = UsbPort(usb, self._wiring, bool(left)) if usb is not None else None
        if self.usb is not None:
            self.usb.attach(self._state, self._cores[0])
        self.npu = NpuPort(chip.npu, chip, self._memories, self._state) if chip.npu is not None else None
        if self.npu is not None:
            for core in self._cores:
                self.npu.attach(core)
        self._dma = self._engine(chip, bool(left))
        self._watches: list[tuple[Core, int]] = []
        if self._wiring is not None:
            for core in self._cores:
                core.explain = self._wiring.why_not_writable
            self._watch_flash(chip)
        if self.path is not None:
            self._time_flash(self.path)
        self._turn = self._cores[0]
        self._boot(image)
        for one, other in zip(self._cores[:1], self._cores[1:], strict=False):
            one.pair(other)
            other.pair(one)

    def write(self, data: bytes) -> None:
        if self.usb is not None:
            self.usb.host.send(data)
            return
        state = self._state
        self._input = self._input[state.input_taken :] + data
        state.input, state.input_bytes, state.input_taken = _array(self._input), len(self._input), 0

    def read(self, timeout: float) -> bytes:
        deadline = _now() + timeout
        while self._fault is None:
            why = self._run(deadline)
            if sent := self._take_output():
                self._end_watch()
                return sent
            if why is StopReason.TIME_IS_UP:
                raise DeviceHang(f"the image sent nothing in {timeout:g} s", have=self._where())
            if why is StopReason.WAITS_FOR_INPUT:
                if self.usb is not None and (silent := self.usb.why_silent()):
                    raise DeviceHang("the image does not respond over USB", have=[*silent, *self._where()])
                asleep = any(core.state.dozing for core in self._cores)
                raise DeviceHang("the image waits for input", have="asleep" if asleep else "awake")
            if why is StopReason.SLEEPS:
                raise self._deadlock()
            if why is StopReason.WATCHDOG_BITES:
                scratch = self._state.watchdog.scratch
                self._start(None)
                self._state.watchdog.bit, self._state.watchdog.scratch = 1, scratch
                if self.usb is not None:  # a serial port over USB goes with its device
                    raise DeviceFault("the device left the bus: its watchdog restarted it")
            if why is StopReason.CONSOLE_IS_DEAD and self._wiring is not None:
                raise self._wiring.dead_console(self._where())
        raise self._fault

    def instructions(self) -> tuple[int, ...]:
        return last_calls(self._state.calls[:CALL_ROOM], self._state.call_count)

    @property
    def core(self) -> Core:
        """Return the core that runs, or will run next."""
        return self._turn

    def cores(self) -> Cores | None:
        calls = self.instructions()
        if len(self._cores) == 1 or not calls:
            return None
        taken = [core.state.taken for core in self._cores]
        return Cores(
            instructions=tuple(instructions for instructions, _ in taken),
            critical_path=calls[-1],
            waiting=tuple(max(0, calls[-1] - (instructions - met)) for instructions, met in taken),
        )

    def blocks(self) -> tuple[Block, ...]:
        return tuple(block for core in self._cores for block in core.blocks())

    def flash_reads(self) -> tuple[FlashReads, ...] | None:
        reads = self.path.reads() if self.path is not None else None
        if reads is None or self._dma is None:
            return reads
        return (*reads, *self._dma.reads)

    def close(self) -> None:
        """Free the chip's memories. The counts remain."""
        self._fault = DeviceFault("the emulation was closed")
        for core in self._cores:
            core.__dict__.pop("uc", None)

    def _engine(self, chip: Chip, left: bool) -> DmaEngine | None:
        path, wiring = chip.flash_path, self._wiring
        if chip.dma is None or path is None:
            return None

        def is_alive() -> bool:
            return wiring is None or bool(wiring.model.number("RESETS.RESET_DONE.DMA"))

        def word() -> Waits:
            """Return the cycles that a word takes."""
            if self.path is None or not self.path.prices:
                return Waits(*(4 * path.cycles_per_byte,) * 3)
            return Waits(*(4 * cycles / path.fills[0] for cycles in self.path.prices[0].next_data))

        engine = DmaEngine(chip.dma, self._memories, is_alive, word, left)
        engine.attach(self._state, self._cores[0])
        return engine

    def _time_flash(self, flash: FlashSimulation) -> None:
        self._state.flash = ctypes.pointer(flash.state)
        for core in self._cores:
            flash.add(core.state)
            core.time_flash()
        if self._wiring is None:  # caches are always on then, and the price is fixed
            flash.publish(lambda field: 0, lambda conditions: True)

    def _run(self, deadline: float) -> StopReason:
        """Let the image run until the hooks stop it, it faults, or no core can run."""
        state = self._state
        state.deadline, state.polls = deadline, 0
        if self.debugger is not None:
            state.deadline = min(deadline, _now() + LISTEN_SECONDS)
            if self.debugger.wants_stop():
                self.debugger.on_stop(self._turn, None)
        state.idle_until = max(core.clock for core in self._cores) + IDLE_SECONDS * self._image.board.chip.clock_hz
        while True:
            state.stopped = 0
            why = self._turn.run()
            if why is StopReason.CHIP_CHANGED and not self._handle_change():
                continue
            if why is StopReason.INTERRUPTED:
                continue
            if self.debugger is not None and self._call_debugger(self.debugger, why, deadline):
                continue
            if self.usb is not None and why in (StopReason.BUS_TURN, StopReason.WAITS_FOR_INPUT):
                goes_on = self.usb.turn(asleep=why is StopReason.WAITS_FOR_INPUT)
                self._fault = self.usb.fault(self._where())
                if self._fault is not None:
                    return StopReason.FAULT
                if goes_on and not self.usb.host.received:
                    continue
            if why is StopReason.FAULT:
                self._fault = self._turn.fault
                if self._fault is not None and self._wiring is not None:
                    self._fault.have = (*self._wiring.why_unreadable(), *self._fault.have)
            elif why is StopReason.RACE:
                self._fault = self._race()
            elif why in (StopReason.OTHERS_TURN, StopReason.SLEEPS):
                others = [core for core in self._cores if core is not self._turn]
                ready = [core for core in (*others, self._turn) if core.can_run]
                if ready:
                    self._turn = ready[0]
                    continue
            return why

    def _call_debugger(self, debugger: Debugger, why: StopReason, deadline: float) -> bool:
        """Call the debugger if it has a reason to look; return whether the core continues."""
        if why is StopReason.TIME_IS_UP and _now() < deadline:
            self._state.deadline = min(deadline, _now() + LISTEN_SECONDS)
            if debugger.wants_stop():
                debugger.on_stop(self._turn, None)
            return True
        if why is StopReason.BREAKPOINT:
            debugger.on_stop(self._turn, None)
        if why is StopReason.FAULT:
            debugger.on_stop(self._turn, self._turn.fault)
        return why is StopReason.BREAKPOINT

    def _handle_change(self) -> bool:
        """Handle a change of the chip; return whether it ends the emulation."""
        for device in (self.usb, self.npu, self._dma, self._wiring):
            if device is not None and device.error is not None:
                self._fault = self._fault or device.fault(self._where())
        if self._wiring is None or self._fault is not None:
            return self._fault is not None
        for memory in self._memories:
            if memory.name in self._wiring.fresh:
                for core in self._cores:
                    core.make_writable(memory)
        self._wiring.fresh.clear()
        if self._wiring.turned:  # the contents of flash differ from the translated code
            self._wiring.turned = False
            for core in self._cores:
                core.uc.ctl_flush_tb()
        return False

    def _watch_flash(self, chip: Chip) -> None:
        assert chip.silicon is not None and self._wiring is not None
        window = chip.silicon.flash
        if window is None:
            return
        memory = next(m for m in self._memories if m.name == window.memory)
        flash = range(memory.origin, memory.origin + len(memory.bytes))
        self._wiring.watch_flash(memory.bytes, lambda: self._turn.state.last_end - 1 in flash)
        last = window.uncached + len(memory.bytes) - 1
        for core in self._cores:
            hook = core.uc.hook_add(uc.UC_HOOK_MEM_READ, self._read_past_cache, begin=window.uncached, end=last)
            self._watches.append((core, hook))

    def _end_watch(self) -> None:
        """Remove the hooks on flash, because only start-up code sets it up, and a hook makes every load slow."""
        for core, hook in self._watches:
            core.uc.hook_del(hook)
            core.uc.ctl_flush_tb()
        self._watches.clear()

    def _read_past_cache(self, engine: uc.Uc, *_: object) -> None:
        assert self._wiring is not None
        clear_it_state(engine)
        self._wiring.read_past_cache()

    def _take_output(self) -> bytes:
        if self.usb is not None:
            return self.usb.host.take()
        sent = ctypes.string_at(self._state.output, self._state.output_bytes)
        self._state.output_bytes = 0
        return sent

    def _boot(self, image: Image) -> None:
        """Load the image and do what the chip does at reset."""
        chip, core = image.board.chip, self._cores[0]
        chunks = load_chunks(self._code.elf)
        vectors = chip.memory(chip.code).origin
        if image.uf2 is not None and chip.uf2_family is not None:
            chunks = flash_contents(decode_uf2(image.uf2.read_bytes()), chip.uf2_family)
        for chunk in chunks:
            core.uc.mem_write(chunk.address, chunk.data)
        code = self._code.addresses
        self._state.code = ctypes.cast(_array(core.peek(code.start, len(code))), ctypes.POINTER(ctypes.c_uint16))
        if chip.boot == "boot2":
            check_rp2040(chunks)
            core.uc.mem_write(BOOT2_ADDRESS, core.peek(FLASH, BOOT2))
            core.begin(BOOT2_ADDRESS, BOOT2_ADDRESS, 0)
            return
        if chip.boot == "image_def":
            check_rp2350(chunks)
        sp, pc = (int.from_bytes(core.peek(vectors + at, 4), "little") for at in (0, 4))
        core.begin(pc & ~1, sp, 0xFFFFFFFF)

    def _where(self) -> list[str]:
        if len(self._cores) == 1:
            return self._turn.where()
        return [f"core {core.number} {line}" for core in self._cores for line in core.place()]

    def _deadlock(self) -> DeviceHang:
        last = self._cores[-1]
        if last.in_rom and not self._cores[0].state.halted:
            text = "core 1 was never started"
            got = ", ".join(f"{word:#x}" for word in last.heard[-12:])
            return DeviceHang(text, have=[text, f"words that it got: {got or 'none'}", *self._where()], need=WANTED)
        text = "the cores wait for each other for ever"
        if self._cores[0].state.halted:
            text = "the image sleeps forever: no interrupt that could wake it is enabled"
        return DeviceHang(text, have=[text, *self._where()])

    def _race(self) -> CoresRace:
        race = self._state.race
        accesses = [
            Access(n, bool(race.writes[n]), by.pc, self._code.function_at(by.pc), by.site)
            for n, by in enumerate(race.by)
        ]
        return CoresRace(race.phase, race.address, (accesses[0], accesses[1]))


def _memories(chip: Chip, wiring: Wiring | None, watched: bool) -> list[SharedMemory]:
    memories = []
    flash = chip.silicon.flash if chip.silicon is not None else None
    for bank in chip.memories:
        memory = SharedMemory(
            name=bank.name,
            origin=bank.origin,
            bytes=mmap.mmap(-1, -(-bank.size // PAGE) * PAGE),
            access=uc.UC_PROT_READ | uc.UC_PROT_EXEC,
            touched=None,
        )
        memories.append(memory)
        if bank.kind == "flash":
            if flash is not None and bank.name == flash.memory:
                memories.append(replace(memory, origin=flash.uncached))
            continue
        if watched:
            memory.touched = mmap.mmap(-1, ctypes.sizeof(STRUCTS["bt_byte"]) * (bank.size + PAGE))
        if wiring is None or not wiring.is_waiting(bank.name):
            memory.access |= uc.UC_PROT_WRITE
        memory.bytes[:] = UNSET * len(memory.bytes)
    return memories


def _array(data: bytes) -> ctypes.Array[ctypes.c_uint8]:
    return (ctypes.c_uint8 * len(data)).from_buffer_copy(data)


def _now() -> float:
    """Return the time of the clock that hooks/unicorn.c reads."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)
