"""The host's side of the conversation with a running image, emulated or real."""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from baretorch.errors import CompileError
from baretorch.escape import LONGEST, plain_text
from baretorch.machines.frames import (
    ERROR_REPLY,
    FRAME_BYTES,
    HELLO,
    HELLO_REPLY,
    RESET,
    RESET_REPLY,
    RUN,
    RUN_REPLY,
    WRONG_INPUT,
    Decoder,
    Frame,
    encode_frame,
)
from baretorch.machines.types import DeviceFault, DeviceHang, Machine

PROTOCOL_VERSION = 1
ATTEMPTS = 4  # of a frame that was lost or damaged
PROBES = 3  # hellos to a device that did not respond
HELLO_SECONDS = 1.0  # a waiting board responds to a hello immediately
START_SECONDS = 30.0  # an emulator may have to start first, on a busy computer
FAULT_SECONDS = 1.0  # for the rest of a fault message to arrive
FAULT_BEGINS, FAULT_ENDS = "FAULT:", "END OF FAULT"
HEARD_CHARACTERS = 2000  # of the device's text, for error messages
FAULT_LINES = 60  # of a fault message
UNKNOWN_BYTES = 1 << 24  # of all outputs, where the caller does not know their sizes

_HELLO = struct.Struct("<BBBBI")
RESTARTED = 1  # of its flags
RESTART_TEXT = "the watchdog restarted the chip"
_RUN_REPLY = struct.Struct("<II")


@dataclass(frozen=True)
class Hello:
    """The image's description of itself: byte sizes of the model's inputs and outputs, names, counter rate, and whether
    its watchdog has restarted it."""

    model: str
    board: str
    counter_hz: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    restarted: bool = False


@dataclass(frozen=True)
class Reply:
    """The result of one run: outputs, counter ticks of the call, and the deepest stack so far in bytes."""

    outputs: tuple[bytes, ...]
    ticks: int
    stack_peak: int


class _Damaged(Exception):
    """The device, or we, got a damaged frame."""


class Link:
    """Sends requests to a machine, and repeats them if a frame was damaged or lost.

    A run whose reply was lost runs twice: a model with state has then seen its input twice. `outputs` are the byte
    sizes that the model's outputs must have: sizes that a device reports are not trusted, and nothing larger is
    received.
    """

    def __init__(
        self,
        machine: Machine,
        on_text: Callable[[str], None] | None = None,
        outputs: Sequence[int] | None = None,
    ) -> None:
        self.machine = machine
        self._on_text = on_text
        self._outputs = None if outputs is None else tuple(outputs)
        self._decoder = Decoder(limit=0xFFFF)  # enough for a hello; it grows when the outputs' sizes are known
        self._seq = 0
        self._heard = ""
        self._restarted = False
        self._hello: Hello | None = None

    def hello(self, model: str | None = None, seconds: float | None = None) -> Hello:
        """Return the image's description; CompileError if the image has another model than `model`. `seconds` replaces
        the usual time limit."""
        if self._hello is None:
            seconds = seconds or self._patience
            frame = self._ask(HELLO, HELLO_REPLY, b"", seconds)
            self._hello = _parse_hello(frame.payload)
        if model is not None and model != self._hello.model:
            raise CompileError(
                "another model runs on the board",
                have=f"{self._hello.model} on {self._hello.board}",
                need=model,
                try_="`baretorch flash` puts this model on the board",
            )
        self._check_outputs(self._hello)
        self._decoder.limit = max(self._decoder.limit, _RUN_REPLY.size + sum(self._hello.outputs))
        return self._hello

    def _check_outputs(self, hello: Hello) -> None:
        if self._outputs is not None and hello.outputs != self._outputs:
            raise CompileError(
                f"another version of {hello.model} runs on the board",
                have=plain_text(f"outputs of {_bytes(hello.outputs)}"),
                need=plain_text(f"outputs of {_bytes(self._outputs)}"),
                try_="`baretorch flash` puts this version on the board",
            )
        if self._outputs is None and sum(hello.outputs) > UNKNOWN_BYTES:
            raise DeviceFault(
                "the device announces outputs that do not fit on it",
                have=f"{sum(hello.outputs):,} bytes",
                need=f"at most {UNKNOWN_BYTES:,} bytes",
            )

    def run(self, inputs: Sequence[bytes], timeout: float = 60.0) -> Reply:
        """Call the model once. `timeout` limits the time until its reply, in seconds."""
        hello = self.hello()
        sizes = tuple(len(data) for data in inputs)
        if sizes != hello.inputs:
            raise CompileError(
                f"{hello.model}: the inputs do not fit the image",
                have=plain_text(f"inputs of {_bytes(sizes)}"),
                need=plain_text(f"inputs of {_bytes(hello.inputs)}"),
            )
        payload = self._ask(RUN, RUN_REPLY, b"".join(inputs), timeout).payload
        if len(payload) != _RUN_REPLY.size + sum(hello.outputs):
            raise DeviceFault(
                f"{hello.model}: the response has the wrong length",
                have=f"{len(payload)} bytes",
                need=plain_text(f"{_RUN_REPLY.size} bytes and outputs of {_bytes(hello.outputs)}"),
            )
        ticks, stack_peak = _RUN_REPLY.unpack_from(payload)
        return Reply(_split(payload[_RUN_REPLY.size :], hello.outputs), ticks, stack_peak)

    def reset(self, seconds: float | None = None) -> None:
        """Reset the model's state."""
        self.hello()
        self._ask(RESET, RESET_REPLY, b"", seconds or self._patience)

    @property
    def _patience(self) -> float:
        return HELLO_SECONDS if self.machine.name == "serial" else START_SECONDS

    def _ask(self, kind: int, reply: int, payload: bytes, timeout: float) -> Frame:
        """Send a request until there is a reply."""
        where: tuple[str, ...] = ()
        for attempt in range(ATTEMPTS):
            try:
                return self._exchange(kind, reply, payload, timeout)
            except _Damaged as error:
                if attempt == ATTEMPTS - 1:
                    raise CompileError(
                        f"the line to the device is too noisy: {ATTEMPTS} frames in a row were damaged",
                        have=[str(error), *self._heard_lines()],
                        try_="a shorter cable, a common ground, or a lower baud rate in the board's TOML",
                    ) from None
            except DeviceHang as hang:
                where = hang.have
                if self.machine.name != "serial" or not self._listens(len(payload)):
                    break  # an emulator's line loses nothing: silence is a hang
        raise DeviceHang(
            f"no response from the device within {timeout:g} s",
            have=[*where, *self._heard_lines()],
            try_="check port, baud rate and wiring (TX to RX), or reset the board"
            if self.machine.name == "serial"
            else None,
        )

    def _listens(self, unread: int) -> bool:
        """Report whether the device waits for requests. It may wait for the rest of a frame that lost bytes: as many
        zeros as that frame can lack complete it, and a device that waits for a frame's start skips them."""
        self.machine.write(bytes(unread + FRAME_BYTES))
        for _ in range(PROBES):
            try:
                self._exchange(HELLO, HELLO_REPLY, b"", HELLO_SECONDS)
            except _Damaged:
                return True
            except DeviceHang:
                continue
            return True
        return False

    def _exchange(self, kind: int, reply: int, payload: bytes, timeout: float) -> Frame:
        self._seq = (self._seq + 1) % 256
        self.machine.write(encode_frame(Frame(kind, self._seq, payload)))
        deadline = time.monotonic() + timeout
        self._restarted = False
        while True:
            frames = self._receive(deadline)
            if self._restarted and kind == RUN:
                raise DeviceFault(
                    "the device did not respond, and its watchdog restarted it",
                    have=self._heard_lines(),
                    need="a run that is over in time",
                    try_="a larger --watchdog if the model is just slow",
                )
            for frame in frames:
                if frame.kind == ERROR_REPLY:
                    text = plain_text(frame.payload[1:].split(b"\0")[0])
                    if frame.payload[:1] == bytes([WRONG_INPUT]) and frame.seq == self._seq:
                        raise _wrong_input(text)
                    raise _Damaged(text)
                if (frame.kind, frame.seq) == (reply, self._seq):
                    return frame
            if time.monotonic() >= deadline:  # also of a device that never stops sending
                raise DeviceHang("the device sends data, but not a valid response")

    def _receive(self, deadline: float) -> list[Frame]:
        """Return the frames that arrived. Text goes to `on_text`, and a fault message is raised."""
        try:
            items = self._decoder.feed(self.machine.read(max(0.0, deadline - time.monotonic())))
        except DeviceHang:
            items = self._decoder.give_up()
            if not any(isinstance(item, Frame) for item in items):
                self._hear(items)
                raise
        self._hear(items)
        return [item for item in items if isinstance(item, Frame)]

    def _hear(self, items: list[Frame | bytes]) -> None:
        for item in items:
            if isinstance(item, bytes):
                before = self._heard
                whole = before + self._hear_text(item)
                if FAULT_BEGINS in whole:
                    raise self._fault(whole[whole.index(FAULT_BEGINS) :])

    def _hear_text(self, data: bytes) -> str:
        text = "".join(c if c.isprintable() or c in "\n\t" else "." for c in data.decode("ascii", "replace"))
        self._restarted |= RESTART_TEXT in self._heard[-len(RESTART_TEXT) :] + text
        self._heard = (self._heard + text)[-HEARD_CHARACTERS:]
        if self._on_text is not None:
            self._on_text(text)
        return text

    def _fault(self, message: str) -> DeviceFault:
        """Read the rest of a fault message, but not forever."""
        deadline = time.monotonic() + FAULT_SECONDS
        while FAULT_ENDS not in message and len(message) < HEARD_CHARACTERS and time.monotonic() < deadline:
            try:
                message += self._hear_text(self.machine.read(max(0.0, deadline - time.monotonic())))
            except (DeviceHang, DeviceFault):
                break
        first, *rest = message[:HEARD_CHARACTERS].split(FAULT_ENDS)[0].strip().splitlines()
        rest = rest[:FAULT_LINES]
        fault = DeviceFault(f"the device stopped: {first}", have=rest)
        rows = [line for line in rest if line.startswith(("pc ", "called from "))]
        fault.addresses = tuple(int(word, 16) for row in rows for word in re.findall("0x([0-9a-f]{8})", row))
        return fault

    def _heard_lines(self) -> list[str]:
        lines = self._heard.strip().splitlines()[-10:]
        return [f"heard: {plain_text(line)}" for line in lines] or ["heard nothing"]


def _wrong_input(name: str) -> CompileError:
    return CompileError(
        f"input {name} has NaN or infinite values",
        need="finite numbers, as the image was built with --check-inputs",
        try_="check the source of the numbers: a sensor that failed, a division by 0, memory never written",
    )


def _parse_hello(payload: bytes) -> Hello:
    version = payload[0] if payload else None
    if version != PROTOCOL_VERSION:
        raise CompileError(
            "the image on the board speaks another version of the protocol",
            have=f"version {version}",
            need=f"version {PROTOCOL_VERSION}",
            try_="`baretorch flash` puts a new image on the board",
        )
    try:
        _, inputs, outputs, flags, counter_hz = _HELLO.unpack_from(payload)
        sizes = struct.unpack_from(f"<{inputs + outputs}I", payload, _HELLO.size)
        model, board, rest = payload[_HELLO.size + 4 * len(sizes) :].split(b"\0")
        if rest:
            raise ValueError
        names = plain_text(model.decode(), LONGEST), plain_text(board.decode(), LONGEST)
        return Hello(*names, counter_hz, sizes[:inputs], sizes[inputs:], bool(flags & RESTARTED))
    except (struct.error, ValueError):
        raise DeviceFault("the device's hello makes no sense", have=plain_text(payload.hex(" "))) from None


def _split(data: bytes, sizes: Sequence[int]) -> tuple[bytes, ...]:
    parts, at = [], 0
    for size in sizes:
        parts.append(data[at : at + size])
        at += size
    return tuple(parts)


def _bytes(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes)) + " bytes" if sizes else "no bytes"
