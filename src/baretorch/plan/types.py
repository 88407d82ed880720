"""The Layout: where every byte lies; and the Plan, which is that and a Schedule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from baretorch.ir.graph import Array, Graph
from baretorch.ops.helpers.kernel import Lattice
from baretorch.plan.schedule import Operand, Phase, Schedule, Scratch, Step


@dataclass(frozen=True)
class Buffer:
    """A stretch of RAM and when it is alive: from the phase `first` (-1: before the run) through `last`
    (the number of phases: after the run)."""

    name: str
    size: int
    first: int
    last: int
    bank: str = ""
    offset: int = -1
    align: int = 4  # it begins at a multiple of that
    base: int = 0  # of a buffer for a part of another storage: where in that it begins

    @property
    def end(self) -> int:
        return self.offset + self.size

    def meets(self, other: Buffer) -> bool:
        """Both are alive in some phase."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class Bank:
    """A bank of RAM, and the bytes of it that buffers take. `home` is where the program's other data lies."""

    name: str
    size: int
    home: bool = True


@dataclass(frozen=True)
class Overlap:
    """The step that makes the buffer `writes` is the last to read `reads`. They may share bytes if `reads` begins at
    least `distance` bytes behind the beginning of `writes`, or as far as `nearer` says, or `writes` at least `behind`
    bytes behind that of `reads`. None: not in this way."""

    reads: str
    writes: str
    distance: int | None
    behind: int | None = None
    nearer: Lattice | None = None

    def most(self, reads: int, writes: int) -> int:
        """The most bytes that they may share, if they have so many."""
        least = self.nearer.distance if self.nearer else self.distance
        forward = 0 if least is None else min(reads, writes - least)
        back = 0 if self.behind is None else min(writes, reads - self.behind)
        return max(0, forward, back)


@dataclass(frozen=True)
class Constant:
    """A constant, packed for its kernel."""

    name: str
    data: Array
    align: int = 0  # where it must begin, if its elements ask for less


@dataclass(frozen=True)
class InArena:
    """In the model's RAM: so many bytes into its arena in a bank."""

    bank: str
    offset: int


@dataclass(frozen=True)
class InFlash:
    """A constant where the image has it, or so many bytes into it."""

    constant: str
    offset: int = 0


@dataclass(frozen=True)
class InRam:
    """A constant that start-up code copies to a bank of RAM, or so many bytes into it."""

    constant: str
    bank: str
    offset: int = 0


@dataclass(frozen=True)
class WithCaller:
    """In the memory that the caller gives for an input or output: so many bytes into the buffer of that name."""

    buffer: str
    offset: int


@dataclass(frozen=True)
class FromStream:
    """An input that is nowhere as a whole: the caller gives its rows when they are asked for."""

    input: str


Place: TypeAlias = InArena | InFlash | InRam | WithCaller | FromStream


@dataclass(frozen=True)
class Layout:
    """Where everything lies. `banks` are the bytes of RAM the buffers need, the main bank's first; no offsets need less
    than `lower_bound` altogether. Where the arena is larger, `optimal` says that none need less than it."""

    buffers: tuple[Buffer, ...]
    constants: tuple[Constant, ...]
    banks: tuple[Bank, ...]
    lower_bound: int
    optimal: bool
    lent: frozenset[str] = frozenset()  # buffers of inputs and outputs that lie with the caller
    streamed: frozenset[str] = frozenset()  # inputs of which the caller gives rows
    copies: Mapping[str, str] = field(default_factory=dict)  # constants that are copied to RAM, and the bank
    flash_apart: bool = False  # the others are in another address space than RAM

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
        """Bytes of constants that start-up code copies to a bank."""
        return sum(self.constant(name).data.nbytes for name, to in self.copies.items() if to == bank)

    def buffer(self, name: str) -> Buffer:
        return self._buffers[name]

    def constant(self, name: str) -> Constant:
        return self._constants[name]

    @property
    def arena(self) -> int:
        """The bytes of RAM the buffers need, in all banks."""
        return sum(b.size for b in self.banks)

    @cached_property
    def _buffers(self) -> dict[str, Buffer]:
        return {b.name: b for b in self.buffers}

    @cached_property
    def _constants(self) -> dict[str, Constant]:
        return {c.name: c for c in self.constants}


@dataclass(frozen=True)
class StateBuffer:
    """State in RAM, and the constant it begins as; None if it begins as zeros."""

    operand: Operand
    initial: str | None


@dataclass(frozen=True)
class Bands:
    """Layers that run in bands, by the tensors they make; how many bands, and the bytes that are copied more for it."""

    layers: tuple[str, ...]
    count: int
    copied: int

    def to_json(self) -> dict[str, object]:
        return {"layers": list(self.layers), "bands": self.count, "copied": self.copied}

    def __str__(self) -> str:
        return f"{len(self.layers)} layers in {self.count} bands, {self.copied:,} bytes copied"


@dataclass(frozen=True)
class LayerTiles:
    """The tiles of a layer, which is named by the tensor that it makes: along `rows`, `channels` (of its output) or
    `input channels`, or the layer as a whole (""), how many, what the buffers of one of them take, and about how many
    cycles all of them."""

    layer: str
    axis: str
    count: int
    buffers: int
    cycles: int

    def to_json(self) -> dict[str, object]:
        own = {"layer": self.layer, "axis": self.axis or None, "tiles": self.count}
        return {**own, "buffer_bytes": self.buffers, "cycles": self.cycles}


@dataclass(frozen=True)
class Tiles:
    """What comes to a scratchpad during a run: weights in tiles of `limit` bytes at most, copied so many phases ahead,
    or one more, and `rows` of activations that lie in slower memory, so many bytes at most; how many `copies`, of how
    many bytes of weights (`copied`) and activations (`moved`), and about how many cycles a run takes so. `tried` are
    both limits, phases ahead and cycles of all that fit and might have been better."""

    limit: int
    rows: int
    ahead: int
    copies: int
    copied: int
    moved: int
    cycles: int
    layers: tuple[LayerTiles, ...]
    tried: tuple[tuple[int, int, int, int], ...] = ()

    def to_json(self) -> dict[str, object]:
        names = ("limit", "rows", "ahead", "cycles")
        own = {"limit": self.limit, "rows": self.rows, "ahead": self.ahead, "copies": self.copies}
        return {
            **own,
            "copied": self.copied,
            "moved": self.moved,
            "cycles": self.cycles,
            "layers": [layer.to_json() for layer in self.layers],
            "tried": [dict(zip(names, one, strict=True)) for one in self.tried],
        }

    def __str__(self) -> str:
        moved = f", {self.moved:,} bytes of activations in tiles of rows" if self.moved else ""
        return f"{self.copied:,} bytes of weights in tiles of at most {self.limit:,} bytes{moved}"


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
    no_room: frozenset[str] = frozenset()  # outputs of layers that a unit takes, but for its memory
    tiles: Tiles | None = None

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
        """How good the arena is."""
        if self.layout.optimal:
            return "optimal"
        return f"within {100 * (self.arena / self.layout.lower_bound - 1):.1f} % of the bound"

    def live_bytes(self, phase: int) -> int:
        """Bytes of the arena that are in use in a phase; what two buffers share counts once."""
        alive = (b for b in self.layout.buffers if b.first <= phase <= b.last)
        total = end = 0
        bank = ""
        for b in sorted(alive, key=lambda b: (b.bank, b.offset)):
            end = end if b.bank == bank else 0
            total += max(0, b.end - max(b.offset, end))
            end, bank = max(end, b.end), b.bank
        return total

    def weight_bytes(self) -> int:
        return sum(c.data.nbytes for c in self.layout.constants)
