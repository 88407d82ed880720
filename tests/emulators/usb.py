"""Images that talk over USB, on emulated chips, and what their hosts do to them."""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import TypeVar

import pytest

from baretorch.emulators.link import Link
from baretorch.emulators.types import DeviceHang
from baretorch.emulators.unicorn import UnicornMachine
from baretorch.emulators.usb_bus import NoisyBus, Packet
from baretorch.emulators.usb_controller import UsbController
from baretorch.emulators.usb_host import Request, Stalled, Steps, UsbHost
from baretorch.options import Console
from tests.emulators.images import REVERSE, RUN, image

T = TypeVar("T")
CHIPS = ("pico", "pico2")
DATA = bytes(range(16))


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


def is_refused(host: UsbHost, request: Request) -> Steps[bool]:
    try:
        yield from host.control(request)
    except Stalled:
        return True
    return False


class Recorder:
    """A cable that remembers what went over it: endpoint, direction and data of each packet that got through."""

    def __init__(self, bus: UsbController) -> None:
        self._bus = bus
        self.sent: list[bytes] = []
        self.__dict__ |= {
            name: getattr(bus, name) for name in ("attached", "reset", "suspend", "resume", "setup", "out")
        }

    def take(self, address: int, endpoint: int) -> Packet:
        self._last = self._bus.take(address, endpoint)
        return self._last

    def acknowledge(self, address: int, endpoint: int) -> None:
        if endpoint:
            self.sent.append(self._last.data)
        self._bus.acknowledge(address, endpoint)


class Chaos(UsbHost):
    """A host on a noisy cable that resets and suspends the device when nobody expects it."""

    def __init__(self, bus: UsbController, seed: int, lost: int, naks: int, resets: int, suspends: int) -> None:
        """Of a thousand packets, or of 100,000 steps."""
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
