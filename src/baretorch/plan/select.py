"""Choose a kernel for each node, and pack the constants the way it wants them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from baretorch.errors import CompileError
from baretorch.ir.graph import Array, Graph, Node, Tensor
from baretorch.ir.text import attributes
from baretorch.ops import kernels_of
from baretorch.ops.choose import Choose
from baretorch.ops.delegate import ALIGNED, Delegate
from baretorch.ops.helpers.kernel import Call, Kernel, Packed
from baretorch.ops.int8.qsums import QSums
from baretorch.ops.move import Assembled, Copy, PlaceSlice
from baretorch.plan.guards import Needs, side
from baretorch.plan.memory.packing import ALIGNMENT
from baretorch.plan.memory.storage import NOTHING
from baretorch.plan.schedule import Executor, Guard, Operand, Scratch, Step, View
from baretorch.plan.types import Constant
from baretorch.targets.cpus import Cpu
from baretorch.units import Unit


def select_kernel(call: Call[Any], cpu: Cpu, units: Sequence[Unit] = ()) -> Kernel[Any]:
    """Return the kernel of the first unit that takes the call, else the first of the op that fits the call and CPU."""
    for unit in units:
        if (found := unit.kernel_of(call)) is not None:
            return found
    for kernel in kernels_of(call.op):
        if kernel.needs.met_by(cpu.features) and kernel.fits(call):
            return kernel
    raise CompileError(
        f"{call.op.name}: no kernel computes this",
        at=str(call.y.origin) or None,
        have=[", ".join(map(repr, call.inputs)), *filter(None, [attributes(call.op)])],
        try_=f"`baretorch ops {call.op.name}` lists what is supported",
    )


@dataclass(frozen=True)
class Packs:
    """What a search asks for again and again: constants of calls as kernels want them, by the call's id and who packs
    them, and where some of these are found in others, by the ids of the bytes. What has an id here is kept."""

    of: dict[tuple[int, object], tuple[Call[Any], tuple[Packed, ...]]] = field(default_factory=dict)
    found: dict[tuple[int, int], tuple[bytes, bytes, int]] = field(default_factory=dict)

    def packed(self, call: Call[Any], kernel: Kernel[Any]) -> tuple[Packed, ...]:
        assert kernel.pack is not None
        key = id(call), kernel.pack
        if key not in self.of:
            self.of[key] = call, kernel.pack(call)
        return self.of[key][1]

    def place(self, raw: bytes, within: bytes) -> int:
        """Where bytes first are within others; -1 if they are not."""
        key = id(raw), id(within)
        if key not in self.found:
            self.found[key] = raw, within, within.find(raw)
        return self.found[key][2]


@dataclass
class Constants:
    """The constants of a plan; layers that share weights share them in flash. If flash is `apart`, another address
    space than RAM, kernels read from it what was packed for them; what they take as they take activations is in RAM.
    With `slices`, what is a part of another constant of its layer is read there. `packs` may be shared with
    others."""

    apart: bool = False
    slices: bool = False
    known: dict[str, Constant] = field(default_factory=dict)
    as_they_are: set[str] = field(default_factory=set)
    packs: Packs = field(default_factory=Packs)
    _by_content: dict[tuple[bool, str, bytes], str] = field(default_factory=dict)
    _stems: dict[str, list[tuple[str, str, bytes]]] = field(default_factory=dict)  # names, types and bytes

    @property
    def bytes(self) -> int:
        return sum(constant.data.nbytes for constant in self.known.values())

    def plain(self, name: str, data: Array, align: int = 0) -> Operand:
        """A tensor of the graph as it is. A layer may have it packed under its name. Kernels rely on tensors beginning
        at multiples of ALIGNMENT, whatever their elements need."""
        kept = self.known.setdefault(name, Constant(name, data))
        same = kept.data is data or _content(kept.data) == _content(data)
        packed = self.apart and kept.data is not data and name not in self.as_they_are
        storage = name if same and not packed else self._stored(name, Packed("", data), packed=False)
        self.as_they_are.add(storage)
        least = ALIGNMENT if data.itemsize < ALIGNMENT else 0
        self.known[storage] = replace(self.known[storage], align=max(self.known[storage].align, align, least))
        return Operand(name, storage, data.nbytes, constant=True, role=name.rpartition(".")[2])

    def packed(self, packed: Packed, layer: str) -> Operand:
        """What a kernel wants, called after the layer that uses it: `<layer>.weight`."""
        stem = f"{layer}.{packed.role}"
        if self.slices and (found := self._within(stem, packed)) is not None:
            return found
        name = self._stored(stem, packed)
        return Operand(name, name, packed.data.nbytes, constant=True, role=packed.role)

    def _within(self, stem: str, packed: Packed) -> Operand | None:
        """As a part of what is stored under this name, or another of the same stem."""
        kind, raw = packed.content
        for name, known_kind, known in self._stems.get(stem, ()):
            at = self.packs.place(raw, known) if known_kind == kind else -1
            if at >= 0 and at % max(4, packed.data.itemsize) == 0:
                return Operand(name, name, packed.data.nbytes, at, constant=True, role=packed.role)
        return None

    def _stored(self, stem: str, what: Packed, packed: bool = True) -> str:
        """What these bytes are called: so, unless something else is, or they are known already."""
        content = (packed or not self.apart, *what.content)
        if content not in self._by_content:
            name = self._by_content[content] = self._fresh(stem)
            self._stems.setdefault(stem, []).append((name, *what.content))
            self.known[name] = Constant(name, what.data)
        return self._by_content[content]

    def _fresh(self, stem: str) -> str:
        name, n = stem, 1
        while name in self.known:
            n += 1
            name = f"{stem}_{n}"
        return name


def _content(data: Array) -> tuple[str, bytes]:
    return data.dtype.name, data.tobytes()


def operand_of(t: Tensor, storage: Mapping[str, View]) -> Operand:
    """A tensor in RAM."""
    return Operand(t.name, storage[t.name].buffer, t.bytes, storage[t.name].offset)


def make_step(
    node: Node, call: Call[Any], kernel: Kernel[Any], constants: Constants, where: Mapping[str, View]
) -> Step:
    """The call of a kernel. `where` says where each tensor lies."""

    stored = constants_of(call, kernel, constants)
    given = iter(stored)
    operands = [
        operand_of(t, where) if t.data is None else next(given)
        for i, t in enumerate(call.inputs)
        if t.data is None or not kernel.pack or i < kernel.as_they_are
    ]
    if skipped := kernel.skips(call):
        operands[0] = replace(operands[0], offset=operands[0].offset + skipped, size=operands[0].size - skipped)
    operands += [*given, *(operand_of(t, where) for t in call.outputs)]
    size = kernel.scratch(call)
    scratch = Scratch(f"{node.outputs[0]}.scratch", size) if size else None
    step = Step(kernel, call, (node,), kernel.params(call), tuple(operands), scratch)
    own = kernel.unit or ("npu" if isinstance(call.op, Delegate) else "")
    return replace(step, executor=Executor[own.upper()]) if own else step


def constants_of(call: Call[Any], kernel: Kernel[Any], constants: Constants) -> list[Operand]:
    """The operands of a call that are constants, in their order, with what they are stored as."""
    align = ALIGNED if isinstance(call.op, Delegate) else 0
    kept = call.inputs[: kernel.as_they_are] if kernel.pack else call.inputs
    found = [constants.plain(t.name, t.data, align) for t in kept if t.data is not None]
    if kernel.pack:
        layer = "" if isinstance(call.op, QSums) else call.y.origin.path  # of which sums have parts
        found += [constants.packed(p, layer or call.y.name) for p in constants.packs.packed(call, kernel)]
    return found


def make_steps(
    graph: Graph,
    cpu: Cpu,
    storage: Mapping[str, View],
    constants: Constants,
    needs: Mapping[str, Needs] = NOTHING,
    units: Callable[[Call[Any]], Sequence[Unit]] = lambda call: (),
) -> list[Step]:
    """A step per kernel call; what they read of `constants` is added there. `storage` says where each tensor lies,
    `needs` on what conditions it is computed, `units` what may compute it besides the CPU."""
    steps = []

    def add(node: Node, call: Call[Any], needed: Needs) -> None:
        if isinstance(call.op, (PlaceSlice, Copy)) and _in_place(call, storage):
            return
        step = make_step(node, call, select_kernel(call, cpu, units(call)), constants, storage)
        guards = tuple(Guard(operand_of(graph[condition], storage), holds) for condition, holds in needed)
        steps.append(replace(step, guards=guards))

    sides = _sides(graph, needs)
    made = {t.name for t in graph.tensors.values()} - set(graph.producer())
    for node in graph.nodes:
        whole = Call(node.op, graph.of(node.inputs), graph.of(node.outputs))
        if node.op.view(whole.inputs) is None and not isinstance(node.op, Choose):
            for call in node.op.pieces(whole) if isinstance(node.op, Assembled) else (whole,):
                add(node, call, needs.get(node.outputs[0], ()))
        made.update(node.outputs)
        for ready in [s for s in sides if made.issuperset(s.after)]:
            add(ready.node, ready.call, ready.needs)
            sides.remove(ready)
    return steps


@dataclass(frozen=True, eq=False)
class _Side:
    """The step that takes one side of a choose. It comes as soon as the tensors that it waits for are there, so that
    they need not be kept."""

    node: Node
    call: Call[Any]
    needs: Needs
    after: frozenset[str]


def _sides(graph: Graph, needs: Mapping[str, Needs]) -> list[_Side]:
    sides = []
    for node in graph.nodes:
        if isinstance(node.op, Choose):
            whole = Call(node.op, graph.of(node.inputs), graph.of(node.outputs))
            for holds in (True, False):
                needed, call = side(needs, node, holds), node.op.side(whole, holds)
                sides.append(_Side(node, call, needed, frozenset((call.x.name, *(name for name, _ in needed)))))
    return sides


def _in_place(call: Call[Any], storage: Mapping[str, View]) -> bool:
    """The input already lies where the step would write it."""
    (x,), (y,) = call.inputs, call.outputs
    start = call.op.start * prod(y.shape[call.op.axis + 1 :]) * y.dtype.size if isinstance(call.op, PlaceSlice) else 0
    return x.data is None and storage[x.name] == View(storage[y.name].buffer, storage[y.name].offset + start)
