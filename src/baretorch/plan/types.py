"""The Plan: which kernel computes each node, and where every byte lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from baretorch.ir import Array, Graph, Node
from baretorch.ops.kernel import Call, Kernel, Params


@dataclass(frozen=True)
class Buffer:
    """A stretch of RAM and when it is alive: from the step `first` (-1: before the run) through `last`
    (the number of steps: after the run)."""

    name: str
    size: int
    first: int
    last: int
    bank: str = ""
    offset: int = -1

    @property
    def end(self) -> int:
        return self.offset + self.size

    def meets(self, other: Buffer) -> bool:
        """Both are alive at some step."""
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
    least `distance` bytes behind the beginning of `writes`."""

    reads: str
    writes: str
    distance: int


@dataclass(frozen=True)
class Place:
    """Where a tensor lies: so many bytes into a buffer."""

    buffer: str
    offset: int = 0


@dataclass(frozen=True)
class Scratch:
    """Memory of a step's own, while it runs."""

    name: str
    size: int


@dataclass(frozen=True)
class Constant:
    """A constant as it lies in flash: packed for its kernel. It is copied to the `bank` of RAM at start, if any."""

    name: str
    data: Array
    bank: str = ""


@dataclass(frozen=True)
class Operand:
    """A view: bytes from `offset` of the buffer or the constant `storage`, seen as `tensor`."""

    tensor: str
    storage: str
    constant: bool
    offset: int = 0


@dataclass(frozen=True)
class Region:
    """The part of the output that a step makes: [start, stop) per dimension."""

    start: tuple[int, ...]
    stop: tuple[int, ...]


@dataclass(frozen=True)
class Guard:
    """A truth value in RAM, and what it must be for a step to run."""

    condition: Operand
    holds: bool


@dataclass(frozen=True)
class Step:
    """One kernel call. `region` None is the whole output; `after` are the steps it waits for. It runs only if all
    `guards` hold, the outermost first; one is looked at only if those before it hold."""

    kernel: Kernel[Any]
    call: Call[Any]
    nodes: tuple[Node, ...]
    params: Params
    operands: tuple[Operand, ...]
    scratch: Scratch | None = None
    region: Region | None = None
    executor: str = "core0"
    after: tuple[int, ...] = ()
    guards: tuple[Guard, ...] = ()

    @property
    def uses(self) -> tuple[Operand, ...]:
        """All that it reads, conditions first, then all that it writes."""
        return (*(g.condition for g in self.guards), *self.operands)


@dataclass(frozen=True)
class StateBuffer:
    """State in RAM, and the constant it begins as; None if it begins as zeros."""

    operand: Operand
    initial: str | None


@dataclass(frozen=True)
class Patches:
    """A stage that runs in bands: its layers by the tensors they make, and the bytes that are copied more for it."""

    layers: tuple[str, ...]
    bands: int
    copied: int

    def to_json(self) -> dict[str, object]:
        return {"layers": list(self.layers), "bands": self.bands, "copied": self.copied}

    def __str__(self) -> str:
        return f"{len(self.layers)} layers in {self.bands} bands, {self.copied:,} bytes copied"


@dataclass(frozen=True)
class Memory:
    """What the user asks of RAM: layers that lie in other banks; how large the arena may be; whether the rows of the
    input come from the caller as they are needed; whether inputs and outputs stay in the caller's buffers; and whether
    weights are copied to RAM."""

    elsewhere: Mapping[str, str] = field(default_factory=dict)
    ram: int | None = None
    rows: bool = False
    direct: bool = False
    weights: bool = False


@dataclass(frozen=True)
class Plan:
    """`banks` are the bytes of RAM the buffers need, the main bank's first; for these steps in this order no offsets
    need less than `lower_bound` altogether. Where the arena is larger, `optimal` says that none need less than it."""

    graph: Graph
    cpu: str  # whose kernels were chosen
    steps: tuple[Step, ...]
    buffers: tuple[Buffer, ...]
    constants: tuple[Constant, ...]
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    state: tuple[StateBuffer, ...]
    banks: tuple[Bank, ...]
    lower_bound: int
    optimal: bool
    patches: Patches | None = None
    direct: frozenset[str] = frozenset()  # buffers of inputs and outputs that lie with the caller, not in the arena

    @property
    def arena(self) -> int:
        """The bytes of RAM the buffers need, in all banks."""
        return sum(b.size for b in self.banks)

    @property
    def proof(self) -> str:
        """How good the arena is."""
        if self.optimal:
            return "optimal"
        return f"within {100 * (self.arena / self.lower_bound - 1):.1f} % of the bound"

    def buffer(self, name: str) -> Buffer:
        return self._buffers[name]

    def constant(self, name: str) -> Constant:
        return self._constants[name]

    @cached_property
    def _buffers(self) -> dict[str, Buffer]:
        return {b.name: b for b in self.buffers}

    @cached_property
    def _constants(self) -> dict[str, Constant]:
        return {c.name: c for c in self.constants}

    def live_bytes(self, step: int) -> int:
        """Bytes of the arena that are in use at a step; what two buffers share counts once."""
        total = end = 0
        bank = ""
        for b in sorted((b for b in self.buffers if b.first <= step <= b.last), key=lambda b: (b.bank, b.offset)):
            end = end if b.bank == bank else 0
            total += max(0, b.end - max(b.offset, end))
            end, bank = max(end, b.end), b.bank
        return total

    def weight_bytes(self) -> int:
        return sum(c.data.nbytes for c in self.constants)
