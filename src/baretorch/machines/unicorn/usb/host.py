"""A strict USB host: it brings up a serial port as Linux does, and then carries its bytes.

It follows chapters 8 and 9 of USB 2.0, and raises HostError where the device does not. `step` is one transaction. A
generator performs several, and yields after each one, so that the emulated device can run in between; it yields False
if the device had nothing to send.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from baretorch.errors import InternalError
from baretorch.machines.unicorn.usb.bus import PACKET, Bus, Handshake, HostError, Packet

T = TypeVar("T")
Steps: TypeAlias = Generator[bool, None, T]

ERRORS = 3  # transactions in a row without a response, after which hosts give up
NAKS = 20_000  # in a row, of a control transfer: hosts wait five seconds
RECOVERY = 30  # steps
OPEN, CLOSED = 3, 0  # DTR and RTS
DEVICE, CONFIGURATION, STRING, ENDPOINT, QUALIFIER = 1, 2, 3, 5, 6  # kinds of descriptors
BULK = 2  # a kind of endpoint
BAUD = 115_200


@dataclass(frozen=True)
class SetupPacket:
    """A setup packet. Bit 7 of `type` is the direction of its data, 1 to the host."""

    type: int
    request: int
    value: int
    index: int
    length: int

    def encode(self) -> bytes:
        words = (self.value, self.index, self.length)
        return bytes([self.type, self.request]) + b"".join(word.to_bytes(2, "little") for word in words)

    def __str__(self) -> str:
        return f"request {self.encode().hex(' ')}"


def get_descriptor(kind: int, number: int, length: int, language: int = 0) -> SetupPacket:
    return SetupPacket(0x80, 6, kind << 8 | number, language, length)


def set_address(address: int) -> SetupPacket:
    return SetupPacket(0x00, 5, address, 0, 0)


def set_configuration(value: int) -> SetupPacket:
    return SetupPacket(0x00, 9, value, 0, 0)


SET_LINE_CODING = SetupPacket(0x21, 0x20, 0, 0, 7)


def set_lines(lines: int) -> SetupPacket:
    return SetupPacket(0x21, 0x22, lines, 0, 0)


def line_coding(baud: int) -> bytes:
    return baud.to_bytes(4, "little") + bytes([0, 0, 8])


def read_string(data: bytes) -> str:
    """Return the text of a string descriptor."""
    if not 2 <= len(data) == data[0] or data[1] != STRING or len(data) % 2:
        raise HostError("descriptors: a string's length is wrong")
    return data[2:].decode("utf-16-le")


@dataclass(frozen=True)
class Descriptors:
    """The facts that a driver for serial ports needs; endpoints by their addresses."""

    configuration: int
    data_in: int
    data_out: int


def read_descriptors(configuration: bytes) -> Descriptors:
    """Read a configuration descriptor with all that follows it."""
    bulk, at = list[int](), 0
    while at + 4 <= len(configuration):
        size, kind, address, transfers = configuration[at : at + 4]
        if kind == ENDPOINT and transfers == BULK:
            bulk.append(address)
        at += max(size, 2)
    directions = [address & 0x80 for address in bulk]
    if sorted(directions) != [0, 0x80]:
        raise HostError("descriptors: a serial port has one bulk endpoint in each direction")
    return Descriptors(configuration[5], max(bulk), min(bulk))


class Stalled(HostError):
    """The device refused a request, or its endpoint is halted."""


class UsbHost:
    """A computer's USB host with its driver for serial ports, and the one device on `bus`."""

    def __init__(
        self,
        bus: Bus,
        script: Callable[[UsbHost], Steps[None]] | None = None,
        errors: int = ERRORS,
        attempts: int = 1,
    ) -> None:
        """Connect the host to a bus.

        `script` brings up the device; the default does it as Linux does. Computers make several `attempts`: if the last
        ACK of SET_ADDRESS is lost, a device cannot know its address.
        """
        self.bus = bus
        self.address = 0
        self.received = b""
        self.descriptors: Descriptors | None = None
        self.up = False
        self.suspended = False
        self.retries = 0  # transactions that were repeated
        self._errors = errors
        self._attempts = attempts
        self._failed = 0
        self._script = script or like_linux
        self._unsent = b""
        self._toggles: dict[int, int] = {}  # by endpoint address
        self._silent: dict[int, int] = {}
        self._turn = 0
        self._coming: Steps[None] | None = None  # up
        self._to_do: list[Steps[None]] = []

    # --- what a program does -----------------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        self._unsent += data

    def take(self) -> bytes:
        data, self.received = self.received, b""
        return data

    def step(self) -> bool:
        """Do one transaction, or none. Return whether the device acted on it."""
        if self.suspended:
            return False
        if not self.bus.is_attached():
            self.up, self._coming = False, None
            return False
        if not self.up:
            return self._come_up()
        if self._to_do:
            moved = next(self._to_do[0], None)
            if moved is None:
                self._to_do.pop(0)
            return moved is not False
        return self.data_step()

    def _come_up(self) -> bool:
        self._coming = self._coming or self._script(self)
        try:
            moved = next(self._coming, None)
        except HostError:
            self._coming, self._failed = None, self._failed + 1
            if self._failed >= self._attempts:
                raise
            return True
        if moved is None:
            self.up, self._failed = True, 0
        return moved is not False

    def do(self, steps: Steps[None]) -> None:
        """Let `steps` run once the device is up, before data."""
        self._to_do.append(steps)

    @property
    def busy(self) -> bool:
        """Report whether the host has something to do other than to wait for data."""
        return bool(self._to_do or self._unsent) or not self.up

    def reset(self) -> None:
        """Reset the bus. The device is brought up again, and the program's data continue where they were."""
        self.bus.reset()
        self.address, self.up, self._coming = 0, False, None
        self._to_do.clear()
        self._toggles.clear()
        self._silent.clear()

    def suspend(self) -> None:
        self.suspended = True
        self.bus.suspend()

    def resume(self) -> None:
        self.suspended = False
        self.bus.resume()

    # --- data --------------------------------------------------------------------------------------------------------

    def data_step(self) -> bool:
        """Send and receive in turns, as long as there are data to send."""
        assert self.descriptors is not None
        self._turn ^= 1
        if self._unsent and self._turn:
            packet = self._unsent[:PACKET]
            if not self.send_packet(self.descriptors.data_out, packet):
                return False
            self._unsent = self._unsent[len(packet) :]
            return True
        data = self.take_packet(self.descriptors.data_in)
        self.received += data or b""
        return data is not None

    def send_packet(self, endpoint: int, data: bytes) -> bool:
        """Send data; return whether the device took it."""
        answer = self._heard(endpoint, self.bus.out(self.address, endpoint, self._toggles.get(endpoint, 0), data))
        if answer.kind is Handshake.ACK:
            self._toggles[endpoint] = self._toggles.get(endpoint, 0) ^ 1
            return True
        return False

    def take_packet(self, endpoint: int) -> bytes | None:
        """Return what the device sent; None if it has nothing, or repeated the last packet."""
        answer = self._heard(endpoint, self.bus.take(self.address, endpoint & 0x7F))
        if answer.kind is not Handshake.DATA:
            return None
        if len(answer.data) > PACKET:
            raise HostError(f"a packet of {len(answer.data)} bytes from endpoint {endpoint:#x}")
        self.bus.acknowledge(self.address, endpoint & 0x7F)
        if answer.toggle != self._toggles.get(endpoint, 0):
            self.retries += 1
            return None  # the host's ACK was lost: the packet is repeated
        self._toggles[endpoint] = answer.toggle ^ 1
        return answer.data

    def _heard(self, endpoint: int, answer: Packet) -> Packet:
        if answer.kind is Handshake.STALL:
            raise Stalled(f"endpoint {endpoint:#x} is halted")
        self._silent[endpoint] = self._silent.get(endpoint, 0) + 1 if answer.kind is Handshake.SILENCE else 0
        self.retries += answer.kind is Handshake.SILENCE
        if self._silent[endpoint] >= self._errors:
            raise HostError(f"endpoint {endpoint:#x} does not respond")
        return answer

    # --- control transfers -------------------------------------------------------------------------------------------

    def control(self, request: SetupPacket, data: bytes = b"", packets: int | None = None) -> Steps[bytes]:
        """Perform a control transfer, and return the device's data. The transfer ends after `packets` packets, if that
        is given."""
        yield from self.setup(request)
        if request.type & 0x80 and request.length:
            received = yield from self._data_in(request, packets)
            yield from self._transaction(request, lambda: self.bus.out(self.address, 0, 1, b""), Handshake.ACK)
            return received
        if data:
            if len(data) > PACKET:
                raise InternalError("no request that this host knows takes more than a packet")
            yield from self._transaction(request, lambda: self.bus.out(self.address, 0, 1, data), Handshake.ACK)
        status = yield from self._take_control(request, 1)
        if status:
            raise HostError(f"{request}: a status of {len(status)} bytes")
        return b""

    def setup(self, request: SetupPacket) -> Steps[None]:
        """Perform only the setup stage; the other stages are optional."""
        packet = request.encode()
        yield from self._transaction(request, lambda: self.bus.setup(self.address, packet), Handshake.ACK, naks=0)

    def _data_in(self, request: SetupPacket, packets: int | None) -> Steps[bytes]:
        received, toggle = b"", 1
        while packets is None or packets > 0:
            piece = yield from self._take_control(request, toggle)
            received += piece
            toggle ^= 1
            packets = None if packets is None else packets - 1
            if len(received) > request.length:
                raise HostError(f"{request}: {len(received)} bytes arrived, and {request.length} were requested")
            if len(piece) < PACKET or len(received) == request.length:
                break
        return received

    def _take_control(self, request: SetupPacket, toggle: int) -> Steps[bytes]:
        while True:
            answer = yield from self._transaction(request, lambda: self.bus.take(self.address, 0), Handshake.DATA)
            self.bus.acknowledge(self.address, 0)
            if answer.toggle == toggle:
                return answer.data
            self.retries += 1  # the host's ACK was lost: the packet is repeated

    def _transaction(
        self, request: SetupPacket, ask: Callable[[], Packet], want: Handshake, naks: int = NAKS
    ) -> Steps[Packet]:
        silent = waited = 0
        while True:
            answer = ask()
            yield answer.kind is not Handshake.NAK
            if answer.kind is want:
                return answer
            if answer.kind is Handshake.STALL:
                raise Stalled(f"{request}: STALL")
            if answer.kind is Handshake.SILENCE:
                silent, self.retries = silent + 1, self.retries + 1
            elif answer.kind is Handshake.NAK:
                silent, waited = 0, waited + 1
            else:
                raise HostError(f"{request}: {answer.kind.value} instead of {want.value}")
            if silent >= self._errors or waited > naks:
                raise HostError(f"{request}: {answer.kind.value}, {max(silent, waited)} times")

    def expect_stall(self, request: SetupPacket) -> Steps[None]:
        """Send a request that the device does not know. The device must refuse it immediately."""
        try:
            yield from self.control(request)
        except Stalled:
            return
        raise HostError(f"{request} is answered, and should be refused")


# --- how an operating system does it ----------------------------------------------------------------------------------


def like_linux(host: UsbHost) -> Steps[None]:
    """Bring up the device as usbcore does, and then as cdc-acm does for a program that opens the port."""
    yield from reset(host)
    first = yield from host.control(get_descriptor(DEVICE, 0, 64))
    yield from reset(host)
    yield from give_address(host, 7)
    device = yield from host.control(get_descriptor(DEVICE, 0, 18))
    if first != device:
        raise HostError("the device descriptor is another at address 0")
    for _ in range(3):
        yield from host.expect_stall(get_descriptor(QUALIFIER, 0, 10))
    head = yield from host.control(get_descriptor(CONFIGURATION, 0, 9))
    whole = yield from host.control(get_descriptor(CONFIGURATION, 0, int.from_bytes(head[2:4], "little")))
    yield from read_strings(host, device)
    yield from configure(host, read_descriptors(whole))
    yield from host.control(SET_LINE_CODING, line_coding(9600))
    yield from host.control(set_lines(OPEN))
    yield from host.control(SET_LINE_CODING, line_coding(BAUD))


def reset(host: UsbHost) -> Steps[None]:
    """Reset the bus, and let the device recover."""
    host.bus.reset()
    host.address = 0
    yield from _pause()


def give_address(host: UsbHost, address: int) -> Steps[None]:
    """Set the address of the device, and let it take it on."""
    yield from host.control(set_address(address))
    host.address = address
    yield from _pause()


def _pause() -> Steps[None]:
    """Wait for less than the 10 ms that a device has to recover from a reset, and the 2 ms to accept its address."""
    for _ in range(RECOVERY):
        yield True


def read_strings(host: UsbHost, device: bytes) -> Steps[None]:
    """Read the strings that a device descriptor names."""
    languages = yield from host.control(get_descriptor(STRING, 0, 255))
    language = int.from_bytes(languages[2:4], "little")
    for number in (number for number in (device[15], device[14], device[16]) if number):
        text = yield from host.control(get_descriptor(STRING, number, 255, language))
        read_string(text)


def configure(host: UsbHost, descriptors: Descriptors) -> Steps[None]:
    """Select the configuration, whose endpoints then carry data."""
    yield from host.control(set_configuration(descriptors.configuration))
    host.descriptors = descriptors
