"""Types of a finished plan: the Layout, which has a place for every byte, and the Plan, which adds a Schedule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from baretorch.ir.graph import Array, Graph
from baretorch.ops.helpers.kernel import Lattice
from baretorch.plan.schedule import Operand, Phase, Schedule, Scratch, Step

if TYPE_CHECKING:  # other chips need no tiles
    from baretorch.plan.cluster.types import Tiles


@dataclass(frozen=True)
class Buffer:
    """A stretch of RAM and when it is alive: from the phase `first` (-1: before the run) through `last` (the number of
    phases: after the run)."""

    name: str
    size: int
    first: int
    last: int
    bank: str = ""
    offset: int = -1
    align: int = 4  # its alignment
    base: int = 0  # for a part of another storage: its offset there

    @property
    def end(self) -> int:
        return self.offset + self.size

    def meets(self, other: Buffer) -> bool:
        """Return whether both are alive in some phase."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class Bank:
    """A bank of RAM, and the number of its bytes that buffers take. `home` marks the bank of the program's other
    data."""

    name: str
    size: int
    home: bool = True


@dataclass(frozen=True)
class Overlap:
    """Two buffers that may share bytes, because the step that computes `writes` is the last to read `reads`. `reads`
    begins at least `distance` bytes after the beginning of `writes`, or as `nearer` allows, or `writes` begins at least
    `behind` bytes after that of `reads`. None: not in this way."""

    reads: str
    writes: str
    distance: int | None
    behind: int | None = None
    nearer: Lattice | None = None

    def most(self, reads: int, writes: int) -> int:
        """Return the most bytes that buffers of these sizes may share."""
        least = self.nearer.distance if self.nearer else self.distance
        forward = 0 if least is None else min(reads, writes - least)
        back = 0 if self.behind is None else min(writes, reads - self.behind)
        return max(0, forward, back)


@dataclass(frozen=True)
class Constant:
    """A constant, packed for its kernel."""

    name: str
    data: Array
    align: int = 0  # its alignment, if more than its elements need


@dataclass(frozen=True)
class InArena:
    """An offset in the model's arena in a bank of RAM."""

    bank: str
    offset: int


@dataclass(frozen=True)
class InFlash:
    """An offset in a constant in the image."""

    constant: str
    offset: int = 0


@dataclass(frozen=True)
class InRam:
    """An offset in a constant that start-up code copies to a bank of RAM."""

    constant: str
    bank: str
    offset: int = 0


@dataclass(frozen=True)
class WithCaller:
    """An offset in the buffer that the caller supplies for an input or output."""

    buffer: str
    offset: int


@dataclass(frozen=True)
class FromStream:
    """An input that is never in memory as a whole: the caller supplies its rows on request."""

    input: str


Place: TypeAlias = InArena | InFlash | InRam | WithCaller | FromStream


@dataclass(frozen=True)
class Layout:
    """The places of all data. `banks` are the bytes of RAM that the buffers need, the main bank's first. No offsets
    need less than `lower_bound` in total. If the arena is larger, `optimal` means that no offsets need less than it."""

    buffers: tuple[Buffer, ...]
    constants: tuple[Constant, ...]
    banks: tuple[Bank, ...]
    lower_bound: int
    optimal: bool
    lent: frozenset[str] = frozenset()  # buffers of inputs and outputs in the caller's memory
    streamed: frozenset[str] = frozenset()  # inputs that the caller supplies row by row
    copies: Mapping[str, str] = field(default_factory=dict)  # constants that are copied to RAM, and the bank
    flash_apart: bool = False  # other constants are in another address space than RAM

    def place(self, operand: Operand) -> Place:
        if operand.buffer:
            buffer = self.buffer(operand.buffer)
            return InArena(buffer.bank, buffer.offset + operand.offset - buffer.base)
        if operand.constant:
            bank, at = self.copies.get(operand.storage), operand.offset
            return InFlash(operand.storage, at) if bank is None else InRam(operand.storage, bank, at)
        if operand.storage in self.streamed:
            return FromStream(operand.storage)
        if operand.storage in self.lent:
            return WithCaller(operand.storage, operand.offset)
        buffer = self.buffer(operand.storage)
        return InArena(buffer.bank, buffer.offset + operand.offset)

    def scratch(self, scratch: Scratch) -> InArena:
        buffer = self.buffer(scratch.name)
        return InArena(buffer.bank, buffer.offset)

    def copied(self, bank: str) -> int:
        """Return the bytes of constants that start-up code copies to a bank."""
        return sum(self.constant(name).data.nbytes for name, to in self.copies.items() if to == bank)

    def buffer(self, name: str) -> Buffer:
        return self._buffers[name]

    def constant(self, name: str) -> Constant:
        return self._constants[name]

    @property
    def arena(self) -> int:
        """The bytes of RAM that the buffers need, in all banks."""
        return sum(b.size for b in self.banks)

    @cached_property
    def _buffers(self) -> dict[str, Buffer]:
        return {b.name: b for b in self.buffers}

    @cached_property
    def _constants(self) -> dict[str, Constant]:
        return {c.name: c for c in self.constants}


@dataclass(frozen=True)
class StateBuffer:
    """State in RAM, and the constant with its initial value; None if it begins as zeros."""

    operand: Operand
    initial: str | None


@dataclass(frozen=True)
class Bands:
    """Layers that run in bands, by the tensors they compute, the number of bands, and the additional bytes that are
    copied."""

    layers: tuple[str, ...]
    count: int
    copied: int

    def to_json(self) -> dict[str, object]:
        return {"layers": list(self.layers), "bands": self.count, "copied": self.copied}

    def __str__(self) -> str:
        return f"{len(self.layers)} layers in {self.count} bands, {self.copied:,} bytes copied"


@dataclass(frozen=True)
class Plan:
    """A Graph as a board computes it."""

    graph: Graph
    cpu: str  # whose kernels were chosen
    schedule: Schedule
    layout: Layout
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    state: tuple[StateBuffer, ...]
    bands: Bands | None = None
    no_room: frozenset[str] = frozenset()  # outputs of layers that only a unit's memory keeps from it
    tiles: Tiles | None = None

    def __repr__(self) -> str:
        return f"Plan({self.graph.name} for {self.cpu}: {len(self.steps)} steps)"

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.schedule.steps

    @property
    def phases(self) -> tuple[Phase, ...]:
        return self.schedule.phases

    @property
    def arena(self) -> int:
        return self.layout.arena

    @property
    def proof(self) -> str:
        """How close the arena is to the minimum."""
        if self.layout.optimal:
            return "optimal"
        return f"at most {100 * (self.arena / self.layout.lower_bound - 1):.1f} % above the minimum"

    def live_bytes(self, phase: int) -> int:
        """Return the bytes of the arena that are in use in a phase; bytes that two buffers share count once."""
        alive = (b for b in self.layout.buffers if b.first <= phase <= b.last)
        total = end = 0
        bank = ""
        for b in sorted(alive, key=lambda b: (b.bank, b.offset)):
            end = end if b.bank == bank else 0
            total += max(0, b.end - max(b.offset, end))
            end, bank = max(end, b.end), b.bank
        return total

    def peak(self) -> tuple[int, list[Buffer]]:
        """Return the phase with the most live bytes, and the buffers that are alive there, the largest first."""
        phase = max(range(len(self.phases)), key=self.live_bytes)
        alive = (b for b in self.layout.buffers if b.size and b.first <= phase <= b.last)
        return phase, sorted(alive, key=lambda b: -b.size)

    def weight_bytes(self) -> int:
        return sum(c.data.nbytes for c in self.layout.constants)
