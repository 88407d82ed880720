"""Which kernel a layer takes, and into how many tiles a cluster cuts it, where that was measured.

`baretorch tune-kernels` tries the kernels that fit a layer, and on several cores where to cut it, and writes what was
best into a file of choices. The one beside the kernels is used by default, `--kernels` names another.

Tiles depend on what lies in the scratchpad beside them: they hold for a chip and a model, that is all its layers and
what computes each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

from baretorch.errors import CompileError
from baretorch.inputs import read_text
from baretorch.ir import Graph
from baretorch.ops import OPS
from baretorch.ops.kernel import Call
from baretorch.plan.schedule import Step
from baretorch.targets.toml import short

BESIDE = Path(__file__).parent.parent / "kernels" / "choices.json"
FORMAT = 1
LARGEST = 4 << 20  # bytes of a file of choices
SAID = frozenset({"axis", "bits", "groups"})  # numbers of an operator that tell of its work; others are its scales


@dataclass(frozen=True)
class Way:
    """A kernel, and on several cores which of the planner's cuts of its output; None leaves that to the planner."""

    kernel: str
    cut: int | None = None

    def __str__(self) -> str:
        return self.kernel if self.cut is None else f"{self.kernel} cut {self.cut}"

    @staticmethod
    def of(text: str) -> Way:
        kernel, cut, number = text.partition(" cut ")
        return Way(kernel, _digits(number) if cut else None)


@dataclass(frozen=True)
class Cost:
    """What a layer took, or on several cores the whole run. `cycles` are exact on emulators that count them, else
    estimated."""

    cycles: int
    instructions: int


@dataclass(frozen=True)
class Choice:
    """What was tried for layers of some shape on a CPU with so many cores, and what is taken."""

    cpu: str
    cores: int
    layer: str
    take: Way
    tried: Mapping[Way, Cost]

    @property
    def key(self) -> tuple[str, int, str]:
        return self.cpu, self.cores, self.layer

    def holds(self, first: str) -> bool:
        """Where the planner takes `first` by itself. A narrow or sparse layer has the same words as others, and kernels
        of its own, which nobody tried for them."""
        return not self.tried or any(way.kernel == first for way in self.tried)

    def to_json(self) -> dict[str, Any]:
        tried = {str(way): {"cycles": c.cycles, "instructions": c.instructions} for way, c in self.tried.items()}
        return {"cpu": self.cpu, "cores": self.cores, "layer": self.layer, "take": str(self.take), "tried": tried}


IN_ROWS, IN_CHANNELS = "rows", "channels"
MOST = 64  # tiles of a layer


FURTHEST = 63  # words


@dataclass(frozen=True)
class Shape:
    """Into how many tiles a layer is cut, and along which axis of its output; and how many words that begins further on
    in the banks of the scratchpad than it would."""

    axis: str
    count: int
    bank: int = 0

    def __str__(self) -> str:
        tiles = f"{self.axis} {self.count}" if self.count else "as planned"
        return f"{tiles} bank {self.bank}" if self.bank else tiles

    @staticmethod
    def of(text: str) -> Shape:
        tiles, further, words = text.partition(" bank ")
        bank = _digits(words) if further else 0
        if further and not 1 <= bank <= FURTHEST:
            raise ValueError(f"bank 1 to {FURTHEST} is possible, not {bank}")
        axis, _, count = tiles.partition(" ")
        if tiles == str(PLANNED):
            return Shape("", 0, bank)
        if axis not in (IN_ROWS, IN_CHANNELS):
            raise ValueError(f"'{PLANNED}', '{IN_ROWS} N' or '{IN_CHANNELS} N' is possible, not {short(repr(tiles))}")
        if not 1 <= _digits(count) <= MOST:
            raise ValueError(f"{axis} 1 to {MOST} is possible, not {count}")
        return Shape(axis, int(count), bank)


PLANNED = Shape("", 0)  # the planner has its way
ANY = "any"  # model, for trials: what a file says of others does not count


@dataclass(frozen=True)
class Tiling:
    """Which tiles were tried for layers of some shape in a model on a chip, and what is taken."""

    chip: str
    cores: int
    model: str
    layer: str
    take: Shape
    tried: Mapping[Shape, Cost]

    @property
    def key(self) -> tuple[str, int, str, str]:
        return self.chip, self.cores, self.model, self.layer

    def to_json(self) -> dict[str, Any]:
        tried = {str(way): {"cycles": c.cycles, "instructions": c.instructions} for way, c in self.tried.items()}
        own = {"chip": self.chip, "cores": self.cores, "model": self.model, "layer": self.layer}
        return {**own, "take": str(self.take), "tried": tried}


Row: TypeAlias = Choice | Tiling


@dataclass(frozen=True)
class Choices:
    """By CPU, cores and layer; and by chip, cores, model and layer."""

    known: Mapping[tuple[str, int, str], Choice] = field(default_factory=dict)
    tilings: Mapping[tuple[str, int, str, str], Tiling] = field(default_factory=dict)

    @staticmethod
    def from_rows(rows: Iterable[Row]) -> Choices:
        """The last of those with the same key."""
        every = {row.key: row for row in rows}.values()
        known = {row.key: row for row in every if isinstance(row, Choice)}
        return Choices(known, {row.key: row for row in every if isinstance(row, Tiling)})

    def of(self, call: Call[Any], cpu: str, cores: int) -> Choice | None:
        return self.known.get((cpu, cores, layer_of(call))) if self.known else None

    def shapes(self, graph: Graph, steps: Sequence[Step], chip: str, cores: int) -> dict[str, Shape]:
        """The tiles of the layers of a model for which some were found to be better than the planner's."""
        here = [row for row in self.tilings.values() if (row.chip, row.cores) == (chip, cores)]
        rows = [row for row in here if row.model == ANY]
        if here and not rows:
            model = model_of(graph, steps)
            rows = [row for row in here if row.model == model]
        return {row.layer: row.take for row in rows if row.take != PLANNED}

    def say_something(self, graph: Graph, steps: Sequence[Step], cpu: str, chip: str, cores: int) -> bool:
        """Whether a layer is computed by what a row takes, or tiles were tried for this very model."""
        kernels = ((self.of(step.call, cpu, cores), step.kernel.symbol) for step in steps)
        if any(choice is not None and choice.take.kernel == symbol for choice, symbol in kernels):
            return True
        models = {row.model for row in self.tilings.values() if (row.chip, row.cores) == (chip, cores)}
        return bool(models) and not models.isdisjoint((ANY, model_of(graph, steps)))


NO_CHOICES = Choices()


def model_of(graph: Graph, steps: Sequence[Step]) -> str:
    """A name for all layers of a graph, in their order, and what computes each."""
    kernels: dict[str, set[str]] = {}
    for step in steps:
        kernels.setdefault(step.nodes[0].outputs[0], set()).add(step.kernel.unit or step.kernel.symbol)
    calls = (Call(node.op, graph.of(node.inputs), graph.of(node.outputs)) for node in graph.nodes)
    words = (f"{layer_of(call)} {sorted(kernels.get(call.outputs[0].name, ()))}" for call in calls)
    return sha256("\n".join(words).encode()).hexdigest()[:16]


def layer_of(call: Call[Any]) -> str:
    """A layer's operator, shape and attributes in words, without what its quantization chose."""
    own = ((f.name, getattr(call.op, f.name)) for f in fields(call.op))
    said = [f"{name}={_plain(v)}" for name, v in own if name in SAID or isinstance(v, bool) or _sizes(v)]
    shapes = (f"{t.dtype.name.lower()} {_plain(t.shape)}" for t in call.inputs)
    return " ".join((call.op.name, *shapes, "->", f"{call.y.dtype.name.lower()} {_plain(call.y.shape)}", *said))


def _sizes(value: object) -> bool:
    """A few whole numbers, as a stride is."""
    return isinstance(value, tuple) and len(value) <= 8 and all(isinstance(n, int) for n in value)


def _plain(value: object) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


def chosen(own: Sequence[Row]) -> Choices:
    """Those beside the kernels, and before them those of the user's file."""
    beside = _beside()
    return Choices.from_rows((*beside.known.values(), *beside.tilings.values(), *own)) if own else beside


@cache
def _beside() -> Choices:
    return Choices.from_rows(read_choices(BESIDE)) if BESIDE.exists() else NO_CHOICES


def read_choices(path: Path) -> tuple[Row, ...]:
    """What a file says; CompileError if it is none of `tune-kernels`."""
    try:
        if path.stat().st_size > LARGEST:
            raise CompileError(
                f"{path}: too large for a file of kernels", have=f"{path.stat().st_size:,} bytes", need=_NEED
            )
        said = json.loads(read_text(path))
    except OSError as error:
        raise CompileError(f"cannot read {path}", have=error.strerror or str(error), try_=_TRY) from error
    except (ValueError, RecursionError) as error:
        raise CompileError(f"{path}: no file of kernels", have=f"no JSON: {error}", need=_NEED, try_=_TRY) from error
    if not isinstance(said, dict) or said.get("format") != FORMAT or not isinstance(said.get("choices"), list):
        raise CompileError(f"{path}: no file of kernels", need=_NEED, try_=_TRY)
    found = []
    for number, row in enumerate(said["choices"], 1):
        try:
            found.append(_read(row))
        except ValueError as error:
            raise CompileError(
                f"{path}: no file of kernels", have=f"choice {number}: {error}", need=_NEED, try_=_TRY
            ) from error
    unknown = sorted({row.take.kernel for row in found if isinstance(row, Choice)} - _symbols())
    if unknown:
        raise CompileError(
            f"{path}: there is no kernel {unknown[0]}", need="a file of this version of Baretorch", try_=_TRY
        )
    return tuple(found)


_NEED = "what `baretorch tune-kernels MODEL --board BOARD` writes"
_TRY = "run that again, or leave --kernels out"


def _read(row: Any) -> Row:
    """A choice of a file; ValueError if it is damaged."""
    if not isinstance(row, dict):
        raise ValueError(f"{short(repr(row))} is no table")
    tiles = "chip" in row
    for name in ("chip", "model", "layer", "take") if tiles else ("cpu", "layer", "take"):
        if not isinstance(row.get(name), str):
            raise ValueError(f"{name} must be text")
    cores, tried = _number(row, "cores", 1), row.get("tried")
    if not (isinstance(tried, dict) and all(isinstance(cost, dict) for cost in tried.values())):
        raise ValueError("tried must have a table for each way")
    costs = {way: Cost(_number(cost, "cycles"), _number(cost, "instructions")) for way, cost in tried.items()}
    if tiles:
        shapes = {Shape.of(way): cost for way, cost in costs.items()}
        return Tiling(row["chip"], cores, row["model"], row["layer"], Shape.of(row["take"]), shapes)
    ways = {Way.of(way): cost for way, cost in costs.items()}
    return Choice(row["cpu"], cores, row["layer"], Way.of(row["take"]), ways)


def _number(row: dict[str, Any], key: str, least: int = 0) -> int:
    value = row.get(key)
    if type(value) is not int or not least <= value < 1 << 63:  # True is an int, too
        raise ValueError(f"{key} must be a whole number from {least} on, not {short(repr(value))}")
    return value


def _digits(text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text):
        raise ValueError(f"{short(repr(text))} is no count")
    return int(text)


@cache
def _symbols() -> frozenset[str]:
    return frozenset(kernel.symbol for row in OPS for kernel in row.kernels)


def to_json(choices: Iterable[Row]) -> str:
    """The text of a file, in an order of its own, so that the same choices give the same bytes."""
    rows = (json.dumps(c.to_json()) for c in sorted(choices, key=lambda c: c.key))
    return (
        f'{{"about": "Made by Baretorch tune-kernels", "format": {FORMAT}, "choices": [\n' + ",\n".join(rows) + "\n]}\n"
    )
