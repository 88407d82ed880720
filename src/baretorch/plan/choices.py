"""Which kernel a layer takes, where that was measured.

`baretorch tune-kernels` tries the kernels that fit a layer, and on several cores where to cut it, and writes what was
best into a file of choices. The one beside the kernels is used by default, `--kernels` names another.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from baretorch.errors import CompileError
from baretorch.ops import OPS
from baretorch.ops.kernel import Call

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
        return Way(kernel, int(number) if cut else None)


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


@dataclass(frozen=True)
class Choices:
    """By CPU, cores and layer."""

    known: Mapping[tuple[str, int, str], Choice] = field(default_factory=dict)

    def of(self, call: Call[Any], cpu: str, cores: int) -> Choice | None:
        return self.known.get((cpu, cores, layer_of(call))) if self.known else None


NO_CHOICES = Choices()


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


def chosen(path: str | None) -> Choices:
    """Those beside the kernels, and before them those of a file."""
    return Choices({**_beside().known, **{c.key: c for c in read_choices(Path(path))}}) if path else _beside()


@cache
def _beside() -> Choices:
    return Choices({c.key: c for c in read_choices(BESIDE)}) if BESIDE.exists() else NO_CHOICES


def read_choices(path: Path) -> tuple[Choice, ...]:
    """What a file says; CompileError if it is none of `tune-kernels`."""
    try:
        if path.stat().st_size > LARGEST:
            raise CompileError(
                f"{path}: too large for a file of kernels", have=f"{path.stat().st_size:,} bytes", need=_NEED
            )
        said = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise CompileError(f"cannot read {path}", have=error.strerror or str(error), try_=_TRY) from error
    except (ValueError, RecursionError) as error:
        raise CompileError(f"{path}: no file of kernels", have=f"no JSON: {error}", need=_NEED, try_=_TRY) from error
    if not isinstance(said, dict) or said.get("format") != FORMAT or not isinstance(said.get("choices"), list):
        raise CompileError(f"{path}: no file of kernels", need=_NEED, try_=_TRY)
    try:
        found = tuple(_read(row) for row in said["choices"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CompileError(
            f"{path}: no file of kernels", have=f"a choice without {error}", need=_NEED, try_=_TRY
        ) from error
    unknown = sorted({c.take.kernel for c in found} - _symbols())
    if unknown:
        raise CompileError(
            f"{path}: there is no kernel {unknown[0]}", need="a file of this version of Baretorch", try_=_TRY
        )
    return found


_NEED = "what `baretorch tune-kernels MODEL --board BOARD` writes"
_TRY = "run that again, or leave --kernels out"


def _read(row: Any) -> Choice:
    cpu, cores, layer = row["cpu"], row["cores"], row["layer"]
    if not (isinstance(cpu, str) and isinstance(cores, int) and isinstance(layer, str)):
        raise TypeError("cpu, cores and layer")
    tried = {Way.of(w): Cost(int(c["cycles"]), int(c["instructions"])) for w, c in row["tried"].items()}
    return Choice(cpu, cores, layer, Way.of(row["take"]), tried)


@cache
def _symbols() -> frozenset[str]:
    return frozenset(kernel.symbol for row in OPS for kernel in row.kernels)


def to_json(choices: Iterable[Choice]) -> str:
    """The text of a file, in an order of its own, so that the same choices give the same bytes."""
    rows = (json.dumps(c.to_json()) for c in sorted(choices, key=lambda c: c.key))
    return (
        f'{{"about": "Made by Baretorch tune-kernels", "format": {FORMAT}, "choices": [\n' + ",\n".join(rows) + "\n]}\n"
    )
