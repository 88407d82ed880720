"""The emulated chip's USB port, with a cable to the model of a host. It connects controller and host to the hooks."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping
from typing import ClassVar

from baretorch.machines.unicorn.core import Core
from baretorch.machines.unicorn.device import ChipDevice, Stopped
from baretorch.machines.unicorn.state import CALLBACK, TURN, ChipState, UsbAccess, pointer_to
from baretorch.machines.unicorn.usb.bus import HostError
from baretorch.machines.unicorn.usb.controller import (
    DPRAM_BYTES,
    FRAME_US,
    PHY_OVERRIDE,
    PULL_UP,
    SIE_CTRL,
    Surroundings,
    UsbController,
)
from baretorch.machines.unicorn.usb.host import UsbHost
from baretorch.machines.unicorn.wiring import Wiring
from baretorch.targets.parts import Usb

TRANSACTION_US = 60.0  # for 64 bytes in both directions
IDLE = 64  # transactions in a row without effect, after which both ends are assumed to wait
USED = {PHY_OVERRIDE: 1 << 8, SIE_CTRL: PULL_UP}
PATIENCE = 2000  # the same, if the host has something to send
SOON = 1000  # instructions after which an image that watches frames learns that one has begun


class UsbPort(ChipDevice):
    """Time passes in turns: the core runs until it sleeps, or for a while, and then one transaction happens."""

    faults: ClassVar[Mapping[type[Exception], str]] = {
        HostError: "the USB host stops:",
        Stopped: "USB is used wrongly:",
    }

    def __init__(self, usb: Usb, wiring: Wiring | None, used: bool = False) -> None:
        """Connect a controller and a host. `used` means that another program has used the port before."""
        self._usb = usb
        self._wiring = wiring
        self._memory = (ctypes.c_uint8 * DPRAM_BYTES)(*[0xA5] * DPRAM_BYTES)  # nothing useful after power-up
        self._seen = -1
        self._alive, self._failing = True, list[str]()
        model = wiring.model if wiring is not None else None
        self.controller = UsbController(
            memoryview(self._memory).cast("B"),
            Surroundings(self._is_alive, self._what_fails, self._microseconds),
            model.values["USB.MAIN_CTRL"] if model is not None else 0,
            model.number("SYSINFO.CHIP_ID.REVISION") if model and "SYSINFO.CHIP_ID" in model.values else None,
        )
        if used:
            self.controller.leave(USED)
        self.host = UsbHost(self.controller)
        self._callback = CALLBACK(self._access)
        self._raised = False
        self._idle = 0
        self._stepped = 0  # the clock at the host's last turn

    def attach(self, state: ChipState, core: Core) -> None:
        """Connect the port to the hooks. `core` takes its interrupts."""
        self._core, self._state = core, state
        state.usb = pointer_to(self._callback)
        state.usb_memory = self._memory
        state.taken_irq = self._usb.irq
        if self._wiring is not None:
            self._wiring.watch = self.controller.lives
        core.on_handled = self._pend_again

    def turn(self, asleep: bool) -> bool:
        """Perform a transaction. Return False if both ends wait: the core sleeps, and the host has nothing to do."""
        watched = self.controller.watches_frames
        soon = FRAME_US - self._microseconds() % FRAME_US
        begins = asleep and watched and soon < TRANSACTION_US  # a frame, before a transaction would be over
        if asleep:
            self._core.state.idle += math.ceil((soon if begins else TRANSACTION_US) * self._core_hz() / 1e6)
        self.controller.pass_time()
        if begins or (not asleep and self._core.clock - self._stepped < TURN):  # only a frame begins
            self._drive_line()
            return True
        self._stepped = self._core.clock
        try:
            moved = self.host.step()
        except (HostError, Stopped) as error:
            self.error = error
            return True
        self._drive_line()
        self._idle = 0 if moved or not asleep else self._idle + 1
        if self._idle < (PATIENCE if self.host.busy and not self.host.suspended else IDLE):
            return True
        return self._core.sleeps_until_alarm()

    def why_silent(self) -> list[str]:
        """Return the reasons why the device is silent."""
        missing = self.controller.missing()
        if missing:
            return ["no device is on the bus", *missing]
        return [] if self.host.up else ["the device is on the bus, and was not brought up"]

    def _access(self, offset: int, value: int, why: int, clock: int) -> int:
        try:
            if why == UsbAccess.READ:
                return self.controller.read(offset)
            if why == UsbAccess.WRITTEN:
                self.controller.write(offset, value)
                self._watch_frames()
            else:
                self.controller.memory_written(offset, value, clock)
            self._drive_line()
        except Exception as error:
            self.error = error
        return int(self.error is not None)

    def _watch_frames(self) -> None:
        state, core = self._state, self._core.state
        state.turn = SOON if self.controller.watches_frames else TURN
        core.next_look = min(core.next_look, core.instructions + state.turn)

    def _drive_line(self) -> None:
        """Make an interrupt pending when its line rises, or when it was handled and the line is still up."""
        raised = self.controller.interrupts()
        if raised and not self._raised:
            self._pend()
        self._raised = raised

    def _pend_again(self) -> None:
        if self._raised:
            self._pend()

    def _pend(self) -> None:
        self._core.state.pending[self._usb.irq // 32] |= 1 << self._usb.irq % 32

    # The controller's needs are checked again when the chip has changed.

    def _look(self) -> None:
        if self._wiring is None or self._seen == self._wiring.version:
            return
        model, self._seen = self._wiring.model, self._wiring.version
        assert model.silicon.usb is not None
        self._alive = model.answers("USB")
        self._failing = [f"it needs {text}" for text in model.failing(model.silicon.usb.transmits)]

    def _is_alive(self) -> bool:
        self._look()
        return self._alive

    def _what_fails(self) -> list[str]:
        self._look()
        return self._failing

    def _core_hz(self) -> float:
        return self._wiring.hz if self._wiring is not None else 1e6

    def _microseconds(self) -> float:
        state = self._core.state
        return float(state.instructions + state.idle) * 1e6 / self._core_hz()
