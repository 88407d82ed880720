"""The results of `fit`: which boards hold a model, and what makes it fit the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from baretorch.errors import CompileError
from baretorch.measure.cycles import Time, cycles_json
from baretorch.options import Options
from baretorch.plan.types import Bands
from baretorch.targets.parts import MemoryBank
from baretorch.targets.types import Board

_CLOSE = {"flash": 2048, "ram": 64}  # bytes left: if fewer, an estimate is not good enough


@dataclass(frozen=True)
class MemoryUse:
    """The need of a memory, including the reserved stack."""

    memory: MemoryBank
    need: int

    @property
    def room(self) -> int:
        """Bytes left; negative if it is too small."""
        return self.memory.size - self.need

    @property
    def close(self) -> bool:
        return abs(self.room) < _CLOSE[self.memory.kind]

    def to_json(self) -> dict[str, Any]:
        return {"memory": self.memory.name, "size": self.memory.size, "need": self.need, "room": self.room}


@dataclass(frozen=True)
class Trial:
    """A model with some options on a board: first flash, then the main bank of RAM, then others that it uses. What was
    not `planned` is told for whole tensors in one bank. `measured`: built for this very board."""

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
        """The weights alone are too large: only smaller weights help."""
        return self.weights > self.flash.memory.size

    @property
    def missing(self) -> int:
        """Bytes, in all memories that are too small."""
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
    """The result for one board. `change` is what makes the model fit if it does not, None if nothing was found; `error`
    is why nothing is known at all."""

    board: Board
    as_is: Trial | None = None
    change: Trial | None = None
    advice: str = ""
    error: CompileError | None = None
    time: Time | None = None  # of an inference, as it fits; None if that was not asked, or nobody tells

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
