"""Find the boards that hold a model, and the cheapest change that makes it fit the others. Every change is tried.

A model is planned for the board itself, so bands and banks are chosen as in a build. Code is measured by building.
Boards that compile the same C for the same CPU share one build, and only their start-up code may differ, so the
measurement for one is an estimate for the others. If the model only just fits, the board has its own build.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import floor, sqrt
from typing import Any

from baretorch.errors import CompileError
from baretorch.files.write import scratch
from baretorch.firmware.elf import read_elf
from baretorch.firmware.sizes import needed_bytes
from baretorch.frontends import Source
from baretorch.measure.cycles import Time, cycles_json
from baretorch.measure.run import measure_model
from baretorch.measure.sizes import MemoryUse, build_for_sizes, compile_for_sizes
from baretorch.ops.delegate import Delegate
from baretorch.options import Input, Io, Optimize, Options, UseNpu
from baretorch.pipeline import Compiled, LoweredModel, compile_lowered, with_io
from baretorch.plan import make_plan
from baretorch.plan.memory.banks import ARENA
from baretorch.plan.types import Bands
from baretorch.targets.parts import MemoryBank
from baretorch.targets.types import Board

_CLOSE = {"flash": 2048, "ram": 64}  # with fewer bytes left, an estimate is not precise enough


@dataclass(frozen=True)
class Trial:
    """A model with some options on a board. `uses` lists flash, the main bank of RAM, and other used banks. If it could
    not be `planned`, the sizes are those of whole tensors in one bank. `measured`: it was built for this very board."""

    options: Options
    board: Board
    uses: tuple[MemoryUse, ...]
    planned: bool
    measured: bool
    weights: int
    arena: int
    bands: Bands | None

    @property
    def flash(self) -> MemoryUse:
        return self.uses[0]

    @property
    def ram(self) -> MemoryUse:
        return self.uses[1]

    @property
    def fits(self) -> bool:
        return self.planned and all(use.room >= 0 for use in self.uses)

    @property
    def short_of_ram(self) -> bool:
        return any(use.room < 0 for use in self.uses[1:])

    @property
    def hopeless(self) -> bool:
        """Return whether the weights alone are too large, so that only smaller weights help."""
        return self.weights > self.flash.memory.size

    @property
    def missing(self) -> int:
        """Return the bytes that are missing in all memories that are too small."""
        return sum(max(0, -use.room) for use in self.uses)

    def to_json(self) -> dict[str, Any]:
        bands = self.bands
        return {
            "measured": self.measured,
            "flash": self.flash.to_json() | {"weights": self.weights},
            "ram": self.ram.to_json() | {"arena": self.arena},
            "banks": [use.to_json() for use in self.uses[2:]],
            "bands": bands.to_json() if bands else None,
        }


@dataclass(frozen=True)
class Finding:
    """The result for one board. `change` makes a model fit that does not fit as it is; None if no change was found.
    `error` is the reason if nothing is known."""

    board: Board
    as_is: Trial | None = None
    change: Trial | None = None
    advice: str = ""
    error: CompileError | None = None
    time: Time | None = None  # of an inference, if that was requested and can be measured

    def to_json(self, given: Options) -> dict[str, Any]:
        data: dict[str, Any] = {"board": self.board.name, "cpu": self.board.chip.cpu.name}
        if self.as_is is None:
            return data | {"fits": None} | (self.error.to_json() if self.error else {})
        change = None
        if self.change:
            change = {"options": list(self.change.options.words(given))} | self.change.to_json()
        time = cycles_json(self.time, self.board.chip) if self.time else None
        found = {"change": change, "advice": self.advice, "time": time}
        return data | {"fits": self.as_is.fits} | self.as_is.to_json() | found


@dataclass(frozen=True)
class _Change:
    """An option, and the trials without it that it may help."""

    helps: Callable[[Trial], bool]
    apply: Callable[[Trial], Options]


def _largest_bank(trial: Trial) -> MemoryBank:
    return max((m for m in trial.board.chip.memories if m.kind == "ram"), key=lambda m: m.size)


# From the cheapest to the most expensive. Combinations are tried in the order of binary numbers, so that an option
# comes after all combinations of cheaper ones.
_CHANGES: tuple[_Change, ...] = (
    _Change(lambda t: t.short_of_ram and t.options.io is not Io.INT8, lambda t: replace(t.options, io=Io.INT8)),
    _Change(lambda t: True, lambda t: replace(t.options, int8=True)),
    _Change(
        lambda t: t.flash.room < 0 and t.options.optimize is Optimize.SPEED,
        lambda t: replace(t.options, optimize=Optimize.SIZE),
    ),
    _Change(  # the plan fits but not together with the runtime: bands make the plan smaller
        lambda t: t.planned and t.short_of_ram,
        lambda t: replace(t.options, ram=t.arena + min(use.room for use in t.uses[1:])),
    ),
    _Change(
        lambda t: t.short_of_ram and _largest_bank(t).size > t.ram.memory.size,
        lambda t: replace(t.options, place={ARENA: _largest_bank(t).name}),
    ),
)
_IO, _INT8 = 1, 2


@dataclass(frozen=True)
class _Built:
    """The memory of an image that was built for a board: its flash, and its main bank of RAM without the stack."""

    board: str
    flash: int
    data: int
    weights: int


@dataclass
class Fitter:
    """Tries a model on boards. `lower` returns the float or the int8 model, without conversions of inputs and
    outputs. Results are kept and reused for the next boards."""

    lower: Callable[[bool], LoweredModel]
    given: Options
    progress: Callable[[str], None] = lambda what: None
    notes: list[str] = field(default_factory=list)  # about int8, if it was tried
    warnings: list[str] = field(default_factory=list)  # of reading and quantizing the model
    _models: dict[bool, LoweredModel | CompileError] = field(default_factory=dict)
    _built: dict[tuple[str, str, str], _Built] = field(default_factory=dict)

    def find(self, board: Board) -> Finding:
        """Determine whether the model fits the board, and if not, find the changes that make it fit."""
        try:
            as_is = self._try(board, self.given)
        except CompileError as error:
            return Finding(board, error=error)
        if as_is.fits:
            return Finding(board, as_is)
        tried = {0: as_is}
        for number in range(1, 1 << len(_CHANGES)):
            trial = self._combine(board, number, tried)
            if trial is not None and trial.fits:
                return Finding(board, as_is, trial)
            if trial is not None:
                tried[number] = trial
        smaller = self._smaller(min(tried.values(), key=lambda t: t.missing))
        return Finding(board, as_is, advice="; or ".join([*self._rows(list(tried.values())), smaller]))

    def add_time(self, found: Finding) -> Finding:
        """Add the time of an inference, if the model fits, with or without a change, and the board has an emulator."""
        trial = found.as_is if found.as_is is not None and found.as_is.fits else found.change
        if trial is None or not found.board.emulators:
            return found
        try:
            return replace(found, time=self._time(trial))
        except CompileError as error:
            self.notes.append(f"{found.board.name} was not timed: {error.what}")
            return found

    def model(self, int8: bool) -> LoweredModel:
        """Return the model as it is or in int8. CompileError if it cannot be read or quantized."""
        if int8 not in self._models:
            self._models[int8] = self._lower_once(int8)
        found = self._models[int8]
        if isinstance(found, CompileError):
            raise found
        return found

    def is_int8(self) -> bool:
        """Return whether the model is int8 with the given options."""
        return any(graph.is_int8 for graph in self.model(self.given.int8).graphs.values())

    def _combine(self, board: Board, number: int, tried: Mapping[int, Trial]) -> Trial | None:
        """Try a combination of changes. Return None if its most expensive change does not help in addition to the
        others. int8 can be combined with all changes; --io needs int8."""
        int8 = number & _INT8
        if (self.is_int8() and int8) or (number & _IO and not (self.is_int8() or int8)):
            return None
        last = 1 << ((number & ~_INT8 or number).bit_length() - 1)
        before = tried.get(number & ~last)
        change = _CHANGES[last.bit_length() - 1]
        if before is None or not change.helps(before) or (before.hopeless and last != _INT8):
            return None
        try:
            return self._try(board, change.apply(before))
        except CompileError:  # a model that cannot be quantized
            return None

    def _try(self, board: Board, options: Options) -> Trial:
        """Try the model with these options on the board's CPU, without its NPU. If no plan fits, plan whole tensors."""
        if board.chip.npu is not None:
            options = replace(options, npu=UseNpu.OFF)
        model = self.model(options.int8)
        if any(isinstance(node.op, Delegate) for graph in model.graphs.values() for node in graph.nodes):
            raise CompileError(
                "the model contains commands for an NPU; `fit` supports only models for CPUs",
                try_="`baretorch build` for the board that has it",
            )
        self.progress(f"plan for {board.name}")
        model = model.with_io(options.io)
        compiled, planned = compile_for_sizes(model, board, options)
        _, _, code = compiled.c.files["model.c"].partition("*/")  # without the command, which names the board
        key = (board.chip.cpu.name, options.optimize, code)
        if key not in self._built:
            self._built[key] = self._build(compiled)
        trial = _trial(options, board, compiled, planned, self._built[key])
        if not trial.measured and any(abs(use.room) < _CLOSE[use.memory.kind] for use in trial.uses):
            trial = _trial(options, board, compiled, planned, self._build(compiled))
        return trial

    def _lower_once(self, int8: bool) -> LoweredModel | CompileError:
        try:
            model = self.lower(int8)
        except CompileError as error:
            self.notes.append(f"int8 was not tried: {error.what}")
            return error
        self.warnings.extend(model.warnings)
        return model

    def _build(self, compiled: Compiled) -> _Built:
        board, chip = compiled.board.name, compiled.board.chip
        self.progress(f"build for {board}")
        with scratch() as folder:
            image = build_for_sizes(compiled, folder)
            elf = read_elf(image.elf.read_bytes())
        flash, data = (needed_bytes(image.board, elf, bank) for bank in (chip.code, chip.data))
        return _Built(board, flash, data - chip.stack_bytes, image.flash.weights)

    def _time(self, trial: Trial) -> Time | None:
        model = self.model(trial.options.int8).with_io(trial.options.io)
        compiled = compile_lowered(model, trial.board, trial.options)
        self.progress(f"run on {trial.board.name}")
        with scratch() as folder:
            found = measure_model(compiled, folder)
            found.facts.need_match()
            return found.time

    def _rows(self, tried: Sequence[Trial]) -> Iterator[str]:
        """Suggest `--input rows`, which helps in the user's own program: our images hold the whole input."""
        for trial in tried:
            if trial.planned or trial.flash.room < 0:
                continue
            graph = self.model(trial.options.int8).graph
            rows = replace(trial.options, input=Input.ROWS)
            try:
                plan = make_plan(with_io(graph, trial.options.io), trial.board, rows)
            except CompileError:  # still too large, or the input is no image
                continue
            words = " ".join([*trial.options.words(self.given), "--input", "rows"])
            yield (
                f"`baretorch compile` with {words} writes C that needs {plan.arena:,} bytes in a program of your own, "
                "which supplies the image row by row"
            )
            return

    def _smaller(self, trial: Trial) -> str:
        """Describe what must become smaller if no option helps."""
        words = []
        if trial.flash.room < 0:
            words.append(
                f"weights and code must shrink by {-trial.flash.room:,} of {trial.flash.need:,} bytes (fewer channels "
                "or layers)"
            )
        if trial.short_of_ram:
            most = trial.arena + min(use.room for use in trial.uses[1:])
            words.append(
                f"activations must shrink from {trial.arena:,} to {max(most, 0):,} bytes"
                + _side(self.model(trial.options.int8).source, max(most, 0) / trial.arena)
            )
        options = " ".join(trial.options.words(self.given))
        return f"{f'with {options}, ' if options else ''}{'; '.join(words)}"


def _trial(options: Options, board: Board, compiled: Compiled, planned: bool, built: _Built) -> Trial:
    chip = board.chip
    uses = [
        MemoryUse(chip.memory(chip.code), built.flash),
        MemoryUse(chip.memory(chip.data), built.data + chip.stack_bytes),
    ]
    banks: dict[str, int] = {}
    for plan in compiled.plans.values():
        for bank in plan.layout.banks:
            banks[bank.name] = max(banks.get(bank.name, 0), bank.size)
    uses += [MemoryUse(chip.memory(name), size) for name, size in banks.items() if name != chip.data]
    in_bands = next((p.bands for p in compiled.plans.values() if p.bands), None)
    measured = built.board == board.name
    return Trial(options, board, tuple(uses), planned, measured, built.weights, sum(banks.values()), in_bands)


def _side(source: Source, part: float) -> str:
    """Describe the input image that has this part of the area, because activations are proportional to the area; empty
    if the model has no single image."""
    inputs = [port for graph in source.graphs.values() for port in graph.takes()]
    if len(inputs) != 1 or len(inputs[0].shape) != 4:
        return ""
    _, _, height, width = inputs[0].shape
    side = sqrt(part)
    return f" (an input of about {floor(height * side)} x {floor(width * side)} instead of {height} x {width})"
