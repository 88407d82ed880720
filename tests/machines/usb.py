"""Images that talk over USB, on emulated chips, and what their hosts do to them."""

from __future__ import annotations

import random
from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar

import pytest

from baretorch.machines.link import Link
from baretorch.machines.types import DeviceHang
from baretorch.machines.unicorn.machine import UnicornMachine
from baretorch.machines.unicorn.usb.bus import NAK, SILENCE, Bus, HostError, Packet
from baretorch.machines.unicorn.usb.controller import AVAILABLE, UsbController
from baretorch.machines.unicorn.usb.host import (
    BAUD,
    CLOSED,
    CONFIGURATION,
    DEVICE,
    OPEN,
    QUALIFIER,
    SET_LINE_CODING,
    STRING,
    SetupPacket,
    Stalled,
    Steps,
    UsbHost,
    configure,
    get_descriptor,
    give_address,
    line_coding,
    read_descriptors,
    read_strings,
    reset,
    set_lines,
)
from baretorch.options import Console
from tests.machines.descriptors import check_descriptors
from tests.machines.images import REVERSE, RUN, image

T = TypeVar("T")
CHIPS = ("pico", "pico2")
DATA = bytes(range(16))
GET_LINE_CODING = SetupPacket(0xA1, 0x21, 0, 0, 7)


def over_usb(board: str, body: str = REVERSE, inputs: int = 16, outputs: int = 16, cores: int = 1) -> UnicornMachine:
    made = image(board, body, inputs, outputs, cores=cores, console=Console.USB)
    return UnicornMachine(made, RUN)


def answers(machine: UnicornMachine) -> bool:
    """The model answers a frame as it should."""
    return Link(machine).run([DATA]).outputs == (DATA[::-1],)


def port(machine: UnicornMachine) -> tuple[UsbController, UsbHost]:
    assert machine.usb is not None
    return machine.usb.controller, machine.usb.host


def drive(machine: UnicornMachine, steps: Steps[T]) -> T:
    """Let the host do this while the image runs; what comes of it. What the image sends meanwhile is kept."""
    _, host = port(machine)
    done: list[T] = []

    def noted() -> Generator[bool, None, None]:
        done.append((yield from steps))

    host.do(noted())
    kept = b""
    while not done:
        try:
            kept += machine.read(20)
        except DeviceHang:
            break
    host.received = kept + host.received
    assert done, "the image sleeps, and the host cannot go on"
    return done[0]


def up(machine: UnicornMachine) -> UsbHost:
    """The host, once it has brought the device up."""

    def nothing() -> Steps[None]:
        yield True

    drive(machine, nothing())
    return port(machine)[1]


def is_armed(controller: UsbController, endpoint: int) -> bool:
    """Report whether the controller has the buffer of an endpoint's address."""
    return bool(controller._control(2 * (endpoint & 0x0F) + (not endpoint & 0x80)) & AVAILABLE)


def is_refused(host: UsbHost, request: SetupPacket) -> Steps[bool]:
    try:
        yield from host.control(request)
    except Stalled:
        return True
    return False


def clear_halt(endpoint: int) -> SetupPacket:
    return SetupPacket(0x02, 1, 0, endpoint, 0)


def set_halt(endpoint: int) -> SetupPacket:
    return SetupPacket(0x02, 3, 0, endpoint, 0)


def cleared(host: UsbHost, endpoint: int) -> None:
    """Let the host begin with DATA0 at an endpoint that was cleared."""
    host._toggles[endpoint] = 0


def like_windows(host: UsbHost) -> Steps[None]:
    """usbhub, which reads one packet of the first answer, and usbser."""
    yield from reset(host)
    first = yield from host.control(get_descriptor(DEVICE, 0, 64), packets=1)
    yield from reset(host)
    yield from give_address(host, 3)
    device = yield from host.control(get_descriptor(DEVICE, 0, 18))
    if first != device[: len(first)]:
        raise HostError("the device descriptor is another at address 0")
    whole = yield from host.control(get_descriptor(CONFIGURATION, 0, 255))
    yield from host.expect_stall(get_descriptor(STRING, 0xEE, 18))
    yield from host.expect_stall(get_descriptor(QUALIFIER, 0, 10))
    yield from read_strings(host, device)
    yield from host.control(get_descriptor(DEVICE, 0, 18))
    head = yield from host.control(get_descriptor(CONFIGURATION, 0, 9))
    again = yield from host.control(get_descriptor(CONFIGURATION, 0, int.from_bytes(head[2:4], "little")))
    if whole != again:
        raise HostError("the configuration descriptor is another when more is asked for")
    check_descriptors(device, whole)
    yield from configure(host, read_descriptors(whole))
    coding = yield from host.control(GET_LINE_CODING)
    yield from host.control(SET_LINE_CODING, coding)
    yield from host.control(set_lines(CLOSED))
    yield from host.control(SET_LINE_CODING, line_coding(BAUD))
    yield from host.control(set_lines(OPEN))


@dataclass
class NoisyBus:
    """A bus that loses `lost` of a thousand packets in either direction, and makes the device send NAK more often."""

    bus: Bus
    random: random.Random
    lost: int = 0
    naks: int = 0
    faults: int = 0  # so far

    def is_attached(self) -> bool:
        return self.bus.is_attached()

    def reset(self) -> None:
        self.bus.reset()

    def suspend(self) -> None:
        self.bus.suspend()

    def resume(self) -> None:
        self.bus.resume()

    def setup(self, address: int, data: bytes) -> Packet:
        if self._loses():
            return SILENCE
        answer = self.bus.setup(address, data)
        return SILENCE if self._loses() else answer

    def out(self, address: int, endpoint: int, toggle: int, data: bytes) -> Packet:
        if self._happens(self.naks):
            return NAK
        if self._loses():
            return SILENCE
        answer = self.bus.out(address, endpoint, toggle, data)
        return SILENCE if self._loses() else answer

    def take(self, address: int, endpoint: int) -> Packet:
        if self._happens(self.naks):
            return NAK
        if self._loses():
            return SILENCE
        answer = self.bus.take(address, endpoint)
        return SILENCE if self._loses() else answer

    def acknowledge(self, address: int, endpoint: int) -> None:
        if not self._loses():
            self.bus.acknowledge(address, endpoint)

    def _loses(self) -> bool:
        return self._happens(self.lost)

    def _happens(self, of_thousand: int) -> bool:
        happens = self.random.randrange(1000) < of_thousand
        self.faults += happens
        return happens


class Recorder:
    """A cable that remembers what went over it: endpoint, direction and data of each packet that got through."""

    def __init__(self, bus: UsbController) -> None:
        self._bus = bus
        self.sent: list[bytes] = []
        self.__dict__ |= {
            name: getattr(bus, name) for name in ("is_attached", "reset", "suspend", "resume", "setup", "out")
        }

    def take(self, address: int, endpoint: int) -> Packet:
        self._last = self._bus.take(address, endpoint)
        return self._last

    def acknowledge(self, address: int, endpoint: int) -> None:
        if endpoint:
            self.sent.append(self._last.data)
        self._bus.acknowledge(address, endpoint)


class Chaos(UsbHost):
    """A host on a noisy cable that resets and suspends the device at random times."""

    def __init__(self, bus: UsbController, seed: int, lost: int, naks: int, resets: int, suspends: int) -> None:
        """Set rates per thousand packets, or per 100,000 steps."""
        self._random = random.Random(seed)
        self.noise = NoisyBus(bus, self._random, lost, naks)
        super().__init__(self.noise, errors=12, attempts=4)
        self._resets, self._suspends = resets, suspends
        self._sleeps = 0
        self.resets = self.suspends = 0

    def step(self) -> bool:
        if self.suspended:
            self._sleeps -= 1
            if self._sleeps <= 0:
                self.resume()
            return True
        chance = self._random.randrange(100_000)
        if chance < self._resets:
            self.resets += 1
            self.reset()
        elif chance < self._resets + self._suspends and self.up:
            self.suspends += 1
            self._sleeps = self._random.randrange(1, 50)
            self.suspend()
        return super().step()


def in_chaos(machine: UnicornMachine, chaos: Chaos) -> UnicornMachine:
    assert machine.usb is not None
    machine.usb.host = chaos
    return machine


each_chip = pytest.mark.parametrize("board", CHIPS)
