"""Runs a compiled model for the page's requests, from several threads, and restarts it after a fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import RLock
from typing import Any

import numpy as np

from baretorch.emit.names import output_labels
from baretorch.errors import CompileError
from baretorch.firmware.types import Image
from baretorch.ir.graph import Array
from baretorch.ir.io import Answer
from baretorch.machines.link import Reply
from baretorch.machines.run import Run, collect_figures
from baretorch.machines.session import Session
from baretorch.machines.types import Machine
from baretorch.measure.cycles import Time, milliseconds, time_of, time_words, unpaid_flash
from baretorch.measure.facts import number, warnings_of
from baretorch.measure.memory_map import memory_map, ram_banks
from baretorch.measure.numbers import capacity, figure, frequency, share
from baretorch.pipeline import Compiled
from baretorch.studio.controls import Control, input_control, output_control
from baretorch.studio.digits import SIDE
from baretorch.targets.parts import MemoryBank
from baretorch.targets.types import Chip

MOST_VALUES = 1 << 18  # of an output, for the page
SHUT_SECONDS = 2.0  # time limit for a run in progress when the server stops
DIGITS = 10


@dataclass(frozen=True)
class BuiltModel:
    """A compiled and built model, with `samples` of its inputs in memory order, the example first."""

    compiled: Compiled
    image: Image
    samples: tuple[tuple[Array, ...], ...]
    map_picture: str = ""  # the memories of the chip as SVG; empty for a program of this computer

    @property
    def inputs(self) -> tuple[Control, ...]:
        graph = self.compiled.graph
        values = zip(*self.samples, strict=True)
        ports = zip(graph.takes(), graph.inputs, values, strict=True)
        return tuple(input_control(port, name, seen) for port, name, seen in ports)

    @property
    def outputs(self) -> tuple[Control, ...]:
        graph = self.compiled.graph
        named = zip(graph.gives(), output_labels(graph), strict=True)
        return tuple(output_control(port, name) for port, name in named)

    @property
    def reads_digits(self) -> bool:
        """Report whether the model takes a 28×28 grey picture, returns ten numbers, and has no state."""
        graph = self.compiled.graph
        if len(graph.inputs) != 1 or len(graph.outputs) != 1 or graph.state:
            return False
        seen, output = self.inputs[0].picture, graph.gives()[0]
        grey = seen is not None and (seen.height, seen.width, seen.channels) == (SIDE, SIDE, 1)
        return grey and int(np.prod(output.shape)) == DIGITS


class LiveModel:
    """Holds a running model. `make` compiles and builds it; `connect` boots the image, or opens the port of a board."""

    def __init__(self, make: Callable[[], BuiltModel], connect: Callable[[BuiltModel], Machine]) -> None:
        self._make = make
        self._connect = connect
        self._lock = RLock()  # one request at a time: a chip does one thing
        self._made: BuiltModel | None = None
        self._session: Session | None = None
        self.answers = 0

    @property
    def made(self) -> BuiltModel:
        """Return the built model, which is compiled at the first request."""
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made

    def again(self) -> None:
        """Read and compile the model file again. If that fails, the previous model stays."""
        with self._lock:
            made = self._make()
            self._hang_up()
            self._made = made

    def reset(self) -> None:
        with self._lock:
            self._request(lambda session: session.reset())

    def run(self, inputs: tuple[Array, ...]) -> dict[str, Any]:
        """Run the model once and return its outputs and the measurements."""
        with self._lock:
            made = self.made
            answer, reply = self._request(lambda session: session.ask(*inputs))
            self.answers += 1
            assert self._session is not None
            return _result(made, self._session, answer, reply) | {"answers": self.answers}

    def describe(self) -> dict[str, Any]:
        """Describe the model, the image and the board for the page."""
        with self._lock:
            made = self.made
            machine = self._open_session().machine.name
        compiled, board = made.compiled, made.image.board
        return {
            "model": compiled.graph.name,
            "board": board.title,
            "chip": f"{board.chip.cpu.name} at {frequency(board.chip.clock_hz)}",
            "dtype": "int8" if compiled.graph.is_int8 else "float32",
            "real": machine == "serial",
            "machine": machine,
            "remembers": bool(compiled.graph.state),
            "inputs": [c.to_json() for c in made.inputs],
            "outputs": [c.to_json() for c in made.outputs],
            "memory": _memory(made.image),
            "map": made.map_picture,
            "warnings": list(warnings_of(compiled)),
        }

    def close(self) -> None:
        """End the emulation; a run in progress may finish if it is quick."""
        free = self._lock.acquire(timeout=SHUT_SECONDS)
        self._hang_up()
        if free:
            self._lock.release()

    def _request(self, ask: Callable[[Session], Any]) -> Any:
        """Run a request. After a fault, the next request restarts the emulation, or reconnects to the board."""
        session = self._open_session()
        try:
            return ask(session)
        except BaseException:
            self._hang_up()
            raise

    def _open_session(self) -> Session:
        if self._session is None:
            machine = self._connect(self.made)
            try:
                self._session = Session(machine, self.made.compiled.graph)
            except BaseException:
                machine.close()
                raise
        return self._session

    def _hang_up(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()


def read_inputs(made: BuiltModel, body: bytes) -> tuple[Array, ...]:
    """Parse the inputs that the page sends: all numbers of all inputs as little-endian doubles."""
    values = np.frombuffer(body, "<f8")
    arrays, at = [], 0
    for port in made.compiled.graph.takes():
        count = int(np.prod(port.shape))
        arrays.append(_convert(values[at : at + count], port.dtype.numpy).reshape(port.shape))
        at += count
    return tuple(arrays)


def input_bytes(made: BuiltModel) -> int:
    return 8 * sum(int(np.prod(port.shape)) for port in made.compiled.graph.takes())


def _convert(values: Array, dtype: np.dtype[Any]) -> Array:
    """Convert numbers to the model's type. Raises CompileError if that is not possible."""
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return values.astype(dtype)
    if dtype.kind == "b":
        return values.astype(bool)
    limits = np.iinfo(dtype)
    if not ((values >= limits.min) & (values <= limits.max)).all():
        raise CompileError("an input is out of range", need=f"numbers from {limits.min} to {limits.max}")
    return np.round(values).astype(dtype)


def _result(made: BuiltModel, session: Session, answer: Answer, reply: Reply) -> dict[str, Any]:
    machine, arrays = session.machine, answer if isinstance(answer, tuple) else (answer,)
    run = collect_figures(machine, reply, arrays, arrays)
    return {
        "outputs": [_values(a) for a in arrays],
        "instructions": run.instructions,
        "time": _time(made, session, run),
        "stack": run.stack_peak or None,
    }


def _time(made: BuiltModel, session: Session, run: Run) -> dict[str, str] | None:
    """Return the time of a run: measured by a real board's counter, or estimated from an emulated board's
    instructions."""
    rate = session.hello.counter_hz
    if session.machine.name == "serial" and rate and run.ticks:
        return {"value": figure(milliseconds(run.ticks, rate)), "unit": "ms", "note": "measured by the board"}
    time = time_of(made.image, run, made.compiled.partition)
    if time is None:
        return None
    chip = made.image.board.chip
    value, about = time_words(time.all, chip)
    unit, _, note = about.partition(" ")
    return {"value": value, "unit": unit, "note": f"{note}{_waiting(time, chip)}"}


def _waiting(time: Time, chip: Chip) -> str:
    """State how much of the time is waiting for flash, or why there is none."""
    if time.flash is None or not time.flash.misses:
        return unpaid_flash(time, chip)
    return f"; {share(round(time.flash.waits.expected), round(time.all.expected))} of it waiting for flash"


def _values(array: Array) -> list[float | str]:
    """Convert numbers for JSON, where NaN and infinity become text."""
    return [number(v) for v in array.reshape(-1)[:MOST_VALUES].astype(np.float64).tolist()]


def _memory(image: Image) -> list[dict[str, Any]]:
    """Return bars for the use of flash and of each bank of RAM. The stack's bar is its bound, not the reserved size."""
    chip, flash = image.board.chip, image.flash
    if image.board.hosted:  # its addresses are its own
        return []
    rows = [_bank("flash", chip.memory(chip.code), flash.total, {"code": flash.code, "weights": flash.weights})]
    pieces = {bank.memory: bank.pieces for bank in memory_map(image)}
    banks = ram_banks(image)
    for memory, used in banks:
        parts: dict[str, int] = {}
        for piece in pieces[memory]:
            parts[piece.kind] = parts.get(piece.kind, 0) + piece.size
        if "stack" in parts:
            parts["stack"] = image.ram.stack
        rows.append(_bank("RAM" if len(banks) == 1 else memory.name, memory, used, parts))
    return rows


def _bank(title: str, bank: MemoryBank, used: int, parts: dict[str, int]) -> dict[str, Any]:
    return {
        "title": title,
        "used": used,
        "size": bank.size,
        "words": f"{used:,} bytes of {capacity(bank.size)}, {share(used, bank.size)}",
        "parts": [{"kind": kind, "size": size} for kind, size in parts.items() if size],
    }
