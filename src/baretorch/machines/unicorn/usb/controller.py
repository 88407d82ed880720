"""The USB device controller of the RP2040 and the RP2350: its registers and memory on one side, the cable on the other.

Whatever the data sheets forbid, or leave to chance, ends the emulation: buffers that are handed over in one write with
their description, or before that has settled; buffers that are changed while the controller has them; endpoints with
invalid buffer addresses; on the RP2040, data for the host that are handed over at the end of a frame (E15).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from baretorch.machines.unicorn.device import Stopped
from baretorch.machines.unicorn.usb.bus import ACK, NAK, PACKET, SILENCE, STALL, Handshake, Packet

DPRAM_BYTES = 0x1000  # bytes
CONTROLS = range(0x80, 0x100)  # buffer controls, in memory
ENDPOINTS = range(0x08, 0x80)
EP0_PLACE, FREE_PLACE = 0x100, 0x180
SETTLES = 8  # instructions, each a cycle or more: three cycles of 48 MHz are eight of 125 MHz

ADDRESS, MAIN_CTRL, SOF_RD, SIE_CTRL, SIE_STATUS = 0x00, 0x40, 0x48, 0x4C, 0x50
BUFF_STATUS, EP_ABORT, EP_ABORT_DONE, EP_STALL_ARM = 0x58, 0x60, 0x64, 0x68
MUXING, PWR, PHY_DIRECT, PHY_OVERRIDE, INTR, INTE, INTF, INTS = 0x74, 0x78, 0x7C, 0x80, 0x8C, 0x90, 0x94, 0x98

ENABLED, IS_HOST, ISOLATED = 1 << 0, 1 << 1, 1 << 2  # MAIN_CTRL
PULL_UP, EP0_INTERRUPTS = 1 << 16, 1 << 29  # SIE_CTRL
SEQUENCE_ERROR, BUS_RESET, SETUP, CONNECTED, RESUMED, SUSPENDED = (1 << bit for bit in (31, 19, 17, 16, 11, 4))
CLEARED_BY_ONE = SEQUENCE_ERROR | BUS_RESET | SETUP | RESUMED | SUSPENDED  # of SIE_STATUS
LINE_J = 1 << 2
TO_PHY, VBUS, TO_PADS, KEEP_PULL_UP = 0x9, 0xC, 0xC, 1 << 2
RAISES = {BUS_RESET: 1 << 12, SUSPENDED: 1 << 14, RESUMED: 1 << 15, SETUP: 1 << 16}  # what interrupts
BUFFERS_DONE, FRAME_BEGAN = 1 << 4, 1 << 17

FULL, DATA1, STALLS, AVAILABLE, LENGTH = 1 << 15, 1 << 13, 1 << 11, 1 << 10, 0x3FF
EP_ENABLED, EP_DOUBLE, EP_INTERRUPTS, EP_TYPE, EP_BULK, EP_PLACE = 1 << 31, 1 << 30, 1 << 29, 3 << 26, 2 << 26, 0xFFFF
FORCED_US = 800.0  # in which the RP2040's first chips must see J after a reset (E5)
FRAME_US, EARLY_US = 1000.0, 800.0


@dataclass(frozen=True)
class Surroundings:
    """The rest of the chip: whether the controller is out of reset, the reasons that keep it off the bus, and the
    time."""

    alive: Callable[[], bool]
    failing: Callable[[], list[str]]
    microseconds: Callable[[], float]


class UsbController:
    """The controller. The hooks share its `memory`, where they store what the core writes; they report writes to the
    first 256 bytes."""

    def __init__(
        self, memory: memoryview, around: Surroundings, main_ctrl: int = 0, version: int | None = None
    ) -> None:
        """Set up the controller.

        `main_ctrl` is a reset value. `version` is that of an RP2040: all have the erratum E15, and B0 and B1 (1) also
        E2 and E5.
        """
        self.memory = memory
        self.sends_early = version is not None
        self.first_chips = version is not None and version < 2
        self._around = around
        self._at_reset = {MAIN_CTRL: main_ctrl}
        self._registers: dict[int, int] = dict(self._at_reset)
        self._written: dict[int, float] = {}  # instructions: when a buffer control was last written
        self._suspended = False
        self._deaf = False
        self._forced_at = 0.0
        self._frame = 0  # number of the last one that was noted
        self._frame_began = False  # since the last read
        self.done = 0  # transactions

    # --- the core's side ---------------------------------------------------------------------------------------------

    def read(self, offset: int) -> int:
        if not self.lives():
            return 0
        self.pass_time()
        match offset:
            case 0x48:
                self._frame_began = False
                return self._frame & 0x7FF
            case 0x8C:
                return self._interrupt_status()
            case 0x98:
                return self._interrupt_status() & self[INTE] | self[INTF]
            case 0x50:
                line = LINE_J if self.is_attached() else 0
                return self[SIE_STATUS] | line | (CONNECTED if line and not self._deaf else 0)
        return self[offset]

    def write(self, offset: int, value: int) -> None:
        """Write a register. `offset` includes the alias: write, toggle, set, clear."""
        if not self.lives():
            return
        alias, at = offset >> 12, offset & 0xFFF
        old = self[at]
        if at in (BUFF_STATUS, EP_ABORT_DONE, SIE_STATUS):
            bits = CLEARED_BY_ONE if at == SIE_STATUS else 0xFFFFFFFF
            self._registers[at] = old & ~(value & bits)
        else:
            self._registers[at] = (value, old ^ value, old | value, old & ~value)[alias] & 0xFFFFFFFF
        if at == EP_ABORT and not self.first_chips:
            self._registers[EP_ABORT_DONE] = self[EP_ABORT_DONE] | self[EP_ABORT]
        if at == MUXING:
            self._force_line(old)

    @property
    def watches_frames(self) -> bool:
        return bool(self[INTE] & FRAME_BEGAN)

    def interrupts(self) -> bool:
        return self.lives() and bool(self._interrupt_status() & self[INTE] | self[INTF])

    def memory_written(self, offset: int, old: int, clock: float) -> None:
        """Handle a write to one of the first 64 words, which held `value` before."""
        if not self.lives():
            self._put(offset, 0)
            return
        new = self._word(offset)
        if offset in CONTROLS:
            self._check_control(offset, old, new, clock)
        elif offset in ENDPOINTS and new & EP_ENABLED:
            self._check_endpoint(offset, new)

    def _check_control(self, offset: int, old: int, new: int, clock: float) -> None:
        buffer = (offset - CONTROLS.start) // 4
        name = f"{'OUT' if buffer % 2 else 'IN'} of endpoint {buffer // 2}"
        if old & AVAILABLE and not self._is_ours(buffer):
            raise Stopped(
                f"the buffer {name} is changed while the controller has it",
                f"it was {old:#06x}, and is written as {new:#06x}",
                "rule: EP_ABORT first; SETUP does not take buffers back",
            )
        if new & AVAILABLE:
            if (old | AVAILABLE) != new:
                raise Stopped(
                    f"the buffer {name} is handed over together with its description",
                    f"it was {old:#06x}, and is written as {new:#06x}",
                    "rule: AVAILABLE is set in a second write",
                )
            if clock - self._written.get(offset, 0.0) < SETTLES:
                raise Stopped(f"the buffer {name} is handed over too soon", "rule: 12 cycles after all else is written")
            if not buffer % 2 and not new & FULL:
                raise Stopped(f"the buffer {name} is handed over empty", "rule: FULL is set of what is to be sent")
            if buffer > 1 and not buffer % 2 and self._is_late(buffer):
                raise Stopped(f"the buffer {name} is handed over late in a frame", f"rule: E15, before {EARLY_US:g} us")
        self._written[offset] = clock

    def _is_late(self, buffer: int) -> bool:
        """Report whether the write is too late for the controller (E15)."""
        bulk = self._word(4 * buffer) & EP_TYPE == EP_BULK
        late = self._around.microseconds() % FRAME_US >= EARLY_US
        return bulk and late and self.sends_early and self._has_frames()

    def _has_frames(self) -> bool:
        return not self._suspended and self.is_attached()

    def pass_time(self) -> None:
        """Record that a frame has begun, if so."""
        frame = int(self._around.microseconds() // FRAME_US)
        if frame != self._frame:
            self._frame = frame
            self._frame_began = self._frame_began or self._has_frames()

    def _check_endpoint(self, offset: int, value: int) -> None:
        place = value & EP_PLACE
        if place % 64 or not FREE_PLACE <= place <= DPRAM_BYTES - PACKET or value & EP_DOUBLE:
            raise Stopped(
                f"endpoint {offset // 8} is set up wrongly: {value:#010x}",
                f"rule: one buffer at a multiple of 64, from {FREE_PLACE:#x} on",
            )

    def _is_ours(self, buffer: int) -> bool:
        off = self.first_chips or not self[MAIN_CTRL] & ENABLED
        return off or bool(self[EP_ABORT_DONE] >> buffer & 1 or self[SIE_STATUS] & BUS_RESET)

    def lives(self) -> bool:
        """Report whether it is out of reset; in reset its registers have their first values."""
        if self._around.alive():
            return True
        self._registers = dict(self._at_reset)
        return False

    def leave(self, registers: Mapping[int, int]) -> None:
        """Set the registers that another program has left."""
        self._registers |= registers

    def __getitem__(self, offset: int) -> int:
        return self._registers.get(offset, 0)

    def _interrupt_status(self) -> int:
        raised = (BUFFERS_DONE if self[BUFF_STATUS] else 0) | (FRAME_BEGAN if self._frame_began else 0)
        return raised | sum(bit for status, bit in RAISES.items() if self[SIE_STATUS] & status)

    def _force_line(self, old: int) -> None:
        """Handle forcing the line to J for some time with the pull-up kept (RP2040-E5)."""
        if self[MUXING] == TO_PADS and self[PHY_OVERRIDE] & KEEP_PULL_UP:
            self._forced_at = self._around.microseconds()
        elif old == TO_PADS and self._around.microseconds() - self._forced_at >= FORCED_US:
            self._deaf = False

    # --- the cable's side --------------------------------------------------------------------------------------------

    def is_attached(self) -> bool:
        return not self.missing()

    def missing(self) -> list[str]:
        """Return the reasons why the device is not on the bus."""
        if not self._around.alive():
            return ["the controller is in reset", *self._around.failing()]
        main, muxing = self[MAIN_CTRL], self[MUXING]
        wrong = {
            "MAIN_CTRL does not enable it as a device": main & (ENABLED | IS_HOST) != ENABLED,
            "MAIN_CTRL leaves its pins isolated": main & ISOLATED,
            "USB_MUXING does not connect it to its pins": muxing != TO_PHY and not self._is_forced(),
            "USBPHY_DIRECT_OVERRIDE takes its pins": self[PHY_OVERRIDE] & ~KEEP_PULL_UP,
            "USB_PWR does not say that VBUS is there": self[PWR] & VBUS != VBUS,
            "SIE_CTRL does not pull the line up": not self[SIE_CTRL] & PULL_UP,
        }
        return [text for text, is_so in wrong.items() if is_so] + self._around.failing()

    def _is_forced(self) -> bool:
        return self[MUXING] == TO_PADS and bool(self[PHY_OVERRIDE] & KEEP_PULL_UP)

    def reset(self) -> None:
        self._suspended = False
        self._note(BUS_RESET)
        self._deaf = self.first_chips

    def suspend(self) -> None:
        self._suspended = True
        self._note(SUSPENDED)

    def resume(self) -> None:
        self._suspended = False
        self._note(RESUMED)

    def setup(self, address: int, data: bytes) -> Packet:
        if not self._hears(address):
            return SILENCE
        self.memory[:8] = data
        self._note(SETUP)
        self._registers[EP_STALL_ARM] = self[EP_STALL_ARM] & ~3
        return ACK

    def out(self, address: int, endpoint: int, toggle: int, data: bytes) -> Packet:
        buffer = 2 * endpoint + 1
        place = self._place(buffer) if self._hears(address) else None
        if place is None:
            return SILENCE
        control = self._control(buffer)
        if self._stalls(buffer, control):
            return STALL
        if not control & AVAILABLE or control & FULL:
            return NAK
        if bool(control & DATA1) != bool(toggle):
            self._note(SEQUENCE_ERROR)
            return ACK  # the packet arrived before, and its ACK was lost
        if len(data) > control & LENGTH:
            return SILENCE
        self.memory[place : place + len(data)] = data
        self._finish(buffer, control & DATA1 | FULL | len(data))
        return ACK

    def take(self, address: int, endpoint: int) -> Packet:
        buffer = 2 * endpoint
        place = self._place(buffer) if self._hears(address) else None
        if place is None:
            return SILENCE
        control = self._control(buffer)
        if self._stalls(buffer, control):
            return STALL
        if not control & AVAILABLE:
            return NAK
        return Packet(Handshake.DATA, bool(control & DATA1), bytes(self.memory[place : place + (control & LENGTH)]))

    def acknowledge(self, address: int, endpoint: int) -> None:
        buffer = 2 * endpoint
        control = self._control(buffer)
        if self._hears(address) and control & AVAILABLE:
            self._finish(buffer, control & ~(AVAILABLE | FULL))

    def _hears(self, address: int) -> bool:
        there = self.is_attached() and not self._suspended and not self._deaf
        return there and address == self[ADDRESS] & 0x7F

    def _note(self, bit: int) -> None:
        self._registers[SIE_STATUS] = self[SIE_STATUS] | bit

    def _place(self, buffer: int) -> int | None:
        if buffer < 2:
            return EP0_PLACE
        endpoint = self._word(4 * buffer)
        return endpoint & EP_PLACE if endpoint & EP_ENABLED else None

    def _stalls(self, buffer: int, control: int) -> bool:
        return bool(control & STALLS and (buffer > 1 or self[EP_STALL_ARM] >> buffer & 1))

    def _finish(self, buffer: int, control: int) -> None:
        self._put(CONTROLS.start + 4 * buffer, control)
        interrupts = self[SIE_CTRL] & EP0_INTERRUPTS if buffer < 2 else self._word(4 * buffer) & EP_INTERRUPTS
        if interrupts:
            self._registers[BUFF_STATUS] = self[BUFF_STATUS] | 1 << buffer
        self.done += 1

    def _control(self, buffer: int) -> int:
        return self._word(CONTROLS.start + 4 * buffer)

    def _word(self, offset: int) -> int:
        return int.from_bytes(self.memory[offset : offset + 4], "little")

    def _put(self, offset: int, value: int) -> None:
        self.memory[offset : offset + 4] = value.to_bytes(4, "little")
