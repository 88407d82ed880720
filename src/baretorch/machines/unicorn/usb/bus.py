"""Transactions over a USB cable, between a model of a host and an emulated device.

`Bus` is the cable as a host sees it: the emulator of the device is at its other end.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

PACKET = 64  # bytes at most, at full speed, of control and bulk endpoints


class HostError(Exception):
    """The device broke a rule of USB."""


class Handshake(Enum):
    """The result of a transaction. A host treats SILENCE as a lost or damaged packet."""

    ACK = "ACK"
    NAK = "NAK"
    STALL = "STALL"
    DATA = "data"
    SILENCE = "no answer"


@dataclass(frozen=True)
class Packet:
    """The response of a device. Data are DATA0 or DATA1 by `toggle`."""

    kind: Handshake
    toggle: int = 0
    data: bytes = b""


ACK, NAK, STALL, SILENCE = (Packet(kind) for kind in (Handshake.ACK, Handshake.NAK, Handshake.STALL, Handshake.SILENCE))


class Bus(Protocol):
    """A device at full speed. Between two calls the device has time to act."""

    def is_attached(self) -> bool:
        """Report whether a device pulls its line up."""

    def reset(self) -> None:
        """Drive both lines low for long enough. The reset is over when this returns."""

    def suspend(self) -> None:
        """Stop sending frames."""

    def resume(self) -> None: ...

    def setup(self, address: int, data: bytes) -> Packet:
        """Send SETUP to endpoint 0."""

    def out(self, address: int, endpoint: int, toggle: int, data: bytes) -> Packet: ...

    def take(self, address: int, endpoint: int) -> Packet:
        """Send IN. The device keeps its data until `acknowledge`."""

    def acknowledge(self, address: int, endpoint: int) -> None: ...
