"""Connect the model of a chip to the hooks: the values of its registers, its clock, and the state of its console."""

from __future__ import annotations

import ctypes
import math
import mmap
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from baretorch.machines.types import DeviceHang
from baretorch.machines.unicorn.device import ChipDevice, Stopped
from baretorch.machines.unicorn.drivers import (
    ChipRegister,
    RegisterKind,
    device_blocks,
    device_rules,
    device_settings,
)
from baretorch.machines.unicorn.flash_chip import FlashChip, FlashKind
from baretorch.machines.unicorn.flash_path import FlashSimulation
from baretorch.machines.unicorn.flash_port import FLASH_PORTS, FlashPort
from baretorch.machines.unicorn.silicon import ChipModel
from baretorch.machines.unicorn.state import CALLBACK, NEVER, ChipChange, ChipState, ConsoleState, pointer_to
from baretorch.targets.silicon import Silicon
from baretorch.targets.types import Chip

NOTHING = b"\xff"  # the value of lines that no chip drives
TOLERANCE = 0.025  # of the baud rate; both ends together lose a byte at 5 %


class Wiring(ChipDevice):
    """The hooks call `_change` when a register of the model is written or read back, or when its next change is due.
    Then everything that they need until the next call is written to their structure."""

    faults: ClassVar[Mapping[type[Exception], str]] = {Stopped: "the chip stopped:"}

    def __init__(
        self,
        chip: Chip,
        silicon: Silicon,
        left: Mapping[str, int] | None = None,
        flash: FlashKind | None = None,
        path: FlashSimulation | None = None,
    ) -> None:
        self.flash_chip = FlashChip(flash or FlashKind())
        port = FLASH_PORTS[silicon.flash.controller] if silicon.flash else None
        left = {**(port.left_by_boot_rom(self.flash_chip) if port else {}), **(left or {})}
        self.model = ChipModel(silicon, device_blocks(chip), device_rules(chip), left, path.watched if path else ())
        self._uart, self._counter = device_settings(chip)
        self._path = path
        self.fresh: list[str] = []  # memories that have become writable since the last check
        self.turned = False  # whether flash has become readable or unreadable since the last check
        self._port: FlashPort | None = port(self.model.number, self.flash_chip) if port else None
        self._window: mmap.mmap | None = None
        self._hidden: bytes | None = None  # the contents of flash while it cannot be read
        self._unreadable = ""
        self._code_in_flash: Callable[[], bool] = lambda: False
        self._chip = chip
        self._waiting = {m.name for m in chip.memories} & set(silicon.memories)
        names = sorted({name for name, _ in self.model.places().values()})
        self._slots = {name: slot for slot, name in enumerate(names)}
        self._values = (ctypes.c_uint32 * len(names))()
        self._anchor = 0, 0.0  # a clock in instructions, and the time it was then
        self.hz = self.model.hz(silicon.cpu)
        self.version = 0  # increases when something changes
        self.watch: Callable[[], object] = lambda: None  # called then
        self._callback = CALLBACK(self._change)

    def registers(self) -> tuple[ChipRegister, ...]:
        found = []
        for at, (name, _) in self.model.places().items():
            live = self._port is not None and name in self._port.live
            kind = RegisterKind.READ_BACK if live or self.model.must_be_read_back(name) else RegisterKind.MODELLED
            found.append(ChipRegister(at, kind, filled=self._slots[name]))
        return tuple(found)

    def attach(self, state: ChipState) -> None:
        self._state = state
        state.values = self._values
        state.change = pointer_to(self._callback)
        self._publish(0)

    def watch_flash(self, window: mmap.mmap, code_in_flash: Callable[[], bool]) -> None:
        """Show flash in `window`. `code_in_flash` reports whether the running code is in it."""
        self._window, self._code_in_flash = window, code_in_flash

    def read_past_cache(self) -> None:
        """Handle a read of flash past the cache."""
        if self._port is not None:
            self._port.read_past_cache(self.model.now, self.model.hz(self.model.silicon.cpu))
            self._show_flash()

    def why_unreadable(self) -> list[str]:
        return [f"flash cannot be read: {self._unreadable}"] if self._unreadable else []

    def is_waiting(self, bank: str) -> bool:
        return bank in self._waiting

    def context(self) -> Sequence[str]:
        return (f"after {self.model.last_write}",)

    def dead_console(self, where: list[str]) -> DeviceHang:
        needs = self.model.silicon.uart.needs
        have = [f"it needs {text}" for text in self.model.failing(needs)]
        return DeviceHang("the image waits for a console that does not respond", have=[*have, *where])

    def why_not_writable(self, address: int) -> list[str]:
        for bank in self._chip.memories:
            if bank.name in self._waiting and bank.holds(address):
                failing = self.model.failing(self.model.silicon.memories[bank.name])
                return [f"{bank.name} cannot be written yet: it needs {text}" for text in failing]
        return []

    def _change(self, address: int, value: int, why: int, clock: int) -> int:
        try:
            model = self.model
            model.now = max(model.now, self._time(clock))
            port, hz = self._port, model.hz(model.silicon.cpu)
            name, _ = model.places().get(address, ("", 0))
            if why == ChipChange.READ and port is not None and name in port.live:
                self._values[self._slots[name]] = port.read(name, model.now)
                return 0
            if why == ChipChange.READ:
                model.read_back(address)
            elif why == ChipChange.WRITTEN:
                matters = model.write(address, value)
                if port is not None and name.startswith(f"{port.block}."):
                    self._need_code_in_ram(name)
                    port.write(name, value, model.now, hz)
                    self._show_flash()
                if not matters:
                    self._values[self._slots[name]] = model.read(name)
                    return int(self.turned)
            model.settle()
            self._publish(clock)
        except Exception as error:
            self.error = error
        return int(self.error is not None or bool(self.fresh) or self.turned)

    def _need_code_in_ram(self, name: str) -> None:
        if self._code_in_flash():
            rule = f"rule: {name} is written by code in RAM, since flash cannot be read meanwhile"
            raise Stopped("code in flash changes how flash is read", rule)

    def _show_flash(self) -> None:
        """Show the contents of flash, or garbage while it cannot be read."""
        if self._port is None or self._window is None:
            return
        self._unreadable = self._port.unreadable(self.model.now, self.model.hz(self.model.silicon.cpu))
        if self._unreadable and self._hidden is None:
            self._hidden = self._window[:]
            self._window[:] = NOTHING * len(self._hidden)
            self.turned = True
        elif not self._unreadable and self._hidden is not None:
            self._window[:], self._hidden = self._hidden, None
            self.turned = True

    def _time(self, clock: int) -> float:
        began, then = self._anchor
        return then + (clock - began) * 1e6 / self.hz

    def _publish(self, clock: int) -> None:
        model, state = self.model, self._state
        self.version += 1
        self.watch()
        for name, slot in self._slots.items():
            self._values[slot] = model.read(name)
        hz = model.hz(model.silicon.cpu)
        if hz != self.hz:
            self._anchor, self.hz = (clock, model.now), hz
        self._show_flash()
        due = model.next_change()
        state.next_change = NEVER if due == math.inf else clock + math.ceil((due - model.now) * hz / 1e6)
        self._set_counter(clock, hz)
        self._set_console()
        if self._path is not None:
            self._path.publish(model.number, model.holds)
        self.fresh += [bank for bank in self._waiting if model.holds(model.silicon.memories[bank])]
        self._waiting -= set(self.fresh)

    def _set_counter(self, clock: int, hz: float) -> None:
        model, state, settings = self.model, self._state, self._counter
        counts = model.answers("COUNTER") and model.holds(settings.counts)
        rate = settings.rate(model.hz(model.silicon.counter.clock), model.number) / hz if counts else 0.0
        if rate != state.ticks_per_instruction:
            state.first_tick += (clock - state.counting_from) * state.ticks_per_instruction
            state.counting_from, state.ticks_per_instruction = clock, rate

    def _set_console(self) -> None:
        model, state, settings = self.model, self._state, self._uart
        uart, hz = model.silicon.uart, model.hz(model.silicon.uart.clock)
        console = ConsoleState.ANSWERS if model.answers("UART") else ConsoleState(0)
        if console and hz:
            console |= (
                ConsoleState.TRANSMITS if model.holds((*uart.transmits, *settings.transmits)) else ConsoleState(0)
            )
            console |= ConsoleState.RECEIVES if model.holds((*uart.receives, *settings.receives)) else ConsoleState(0)
        state.console = console
        state.line[:] = line(settings.baud(hz, model.number) / self._chip.uart.baud)


def line(ratio: float) -> list[int]:
    """Return the received byte for each sent one if one end is `ratio` times as fast as the other. A receiver samples
    the middle of a bit, and beyond the tolerance the edge of the last one, which is then as likely wrong as right."""
    if abs(ratio - 1) <= TOLERANCE:
        return list(range(256))
    return [_sample(byte, ratio) ^ 0x80 for byte in range(256)]


def _sample(byte: int, ratio: float) -> int:
    frame = byte << 1 | ~0x1FF  # a start bit, the byte, and silence, which is high
    return sum((frame >> min(int((bit + 1.5) * ratio), 15) & 1) << bit for bit in range(8))
