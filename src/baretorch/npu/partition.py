"""Choose the operators of a Graph that an NPU computes: maximal regions of those it supports become one delegate each.

An operator's level is the largest number of changes between CPU and NPU on any path to it. The NPU's operators of one
level are a region: no path leaves it and comes back. A reshape at its border stays outside, where it costs nothing, and
so does a region that computes nothing. A softmax at its border stays outside unless all is wanted on the NPU: it takes
forty operations there, and more cycles than instructions of the CPU.

If Vela refuses a region, its operators are tried one by one, and those that it refuses by themselves stay on the CPU.
If a stream computes something other than its region, the first operator that differs stays on the CPU, or, if the
stream does not finish, each whose own stream is wrong. The rest of the region is tried again, a few times; then all of
it stays on the CPU. If all is wanted on the NPU, that is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from baretorch.errors import CompileError
from baretorch.ir.graph import DType, Graph, Node, Op, Tensor, fresh
from baretorch.npu.accelerators import ACCELERATORS_BY_NAME
from baretorch.npu.payload import INPUT, OUTPUT, Payload, Slot
from baretorch.npu.to_tosa import to_tosa, why_not
from baretorch.npu.vela import VelaRefused, VelaResult, compile_tosa
from baretorch.ops.delegate import ALIGNED, Delegate, DelegatePort
from baretorch.ops.int8.qsoftmax import QSoftmax
from baretorch.ops.layout import Reshape
from baretorch.ops.move import Cat, Copy, Slice
from baretorch.passes.rewrite import rebuild
from baretorch.targets.parts import Npu

MOVES = "it computes nothing, and costs the CPU less"
WRONG = "Vela's stream does not compute the graph"
BORDERS = "it is the first or last of a region, and costs the CPU less"
MOST_WRONG = 8  # wrong streams after which whole regions stay on the CPU


class WrongStream(CompileError):
    """A stream does not compute its region."""

    first = ""  # the tensor that the first wrong operation computes
    sure = True  # False: the stream did not finish, so another operation may be wrong


@dataclass(frozen=True)
class DelegatedRegion:
    """A region that the NPU computes at once: its operators by the tensors they compute, and Vela's estimate."""

    layers: tuple[str, ...]
    delegate: str  # the tensor that its node computes
    bytes_in: int
    bytes_out: int
    commands: int  # bytes
    weights: int
    scratch: int
    cycles: int | None  # None: it came with a file, without an estimate


@dataclass(frozen=True)
class Left:
    """An operator that stays on the CPU, by the tensor that it computes, and why."""

    layer: str
    op: str
    why: str


@dataclass(frozen=True)
class Partition:
    """The graph with delegates, and what runs where."""

    graph: Graph
    regions: tuple[DelegatedRegion, ...]
    left: tuple[Left, ...]

    @property
    def brought(self) -> bool:
        """Report whether some region is in commands that came with a file, so that no graph defines its results."""
        return any(region.cycles is None for region in self.regions)

    @property
    def cycles(self) -> int | None:
        """Vela's estimate for all regions; None if it is missing for a region."""
        known = [region.cycles for region in self.regions if region.cycles is not None]
        return sum(known) if len(known) == len(self.regions) else None


Compiler: TypeAlias = Callable[[Graph, Npu], VelaResult]
Judge: TypeAlias = Callable[[Graph, Payload], None]  # raises WrongStream if the payload does not compute the graph


def accept(region: Graph, payload: Payload) -> None:
    """Accept any stream."""


def compile_with_vela(graph: Graph, npu: Npu) -> VelaResult:
    return compile_tosa(to_tosa(graph, ACCELERATORS_BY_NAME[npu.accelerator].family), npu)


def make_partition(
    graph: Graph, npu: Npu, compile_: Compiler = compile_with_vela, most: bool = False, judge: Judge = accept
) -> Partition:
    """Return the graph with a delegate for each region that the NPU supports, as large as possible with `most`."""
    outside = (Reshape,) if most else (Reshape, QSoftmax)
    refused = {i: why for i, node in enumerate(graph.nodes) if (why := why_not(graph, node)) is not None}
    results: dict[tuple[int, ...], tuple[Graph, VelaResult]] = {}
    wrongs, asked = 0, set[int]()
    while True:
        found = _regions(graph, set(refused), outside)
        again = False
        for region in found:
            if region not in results:
                part = _part(graph, region)
                try:
                    results[region] = (part, _check_result(part, compile_(part, npu), npu))
                    judge(part, results[region][1].payload)
                except VelaRefused as refusal:
                    refused |= _find_refused(graph, region, npu, compile_, str(refusal))
                    again = True
                except WrongStream as wrong:
                    if most:
                        raise
                    wrongs += 1
                    alone = {} if wrong.sure else _find_wrong(graph, set(region) - asked, npu, compile_, judge)
                    asked |= set() if wrong.sure else set(region)
                    first = [i for i in region if wrong.first in graph.nodes[i].outputs and wrongs <= MOST_WRONG]
                    refused |= alone or dict.fromkeys(first or region, _describe(wrong))
                    again = True
        if not again:
            break
    regions = [(region, *results[region]) for region in found]
    delegated = {i for region in found for i in region}
    reasons = {
        i: refused.get(i, MOVES if isinstance(node.op, Reshape) or not node.op.computes else BORDERS)
        for i, node in enumerate(graph.nodes)
        if i not in delegated
    }
    return _rewrite(graph, regions, npu, reasons)


def _check_result(part: Graph, result: VelaResult, npu: Npu) -> VelaResult:
    """Return Vela's result if the planner can place it."""
    if result.payload.fast:
        raise CompileError(
            f"Vela needs {result.payload.fast:,} bytes of a fast memory in addition to the arena's",
            at=f"memory_mode = {npu.memory_mode!r}",
            need="one bank for scratch: Shared_Sram or Sram_Only",
        )
    _parts(part.of(part.inputs), result.payload.inputs, INPUT)
    _parts(part.of(part.outputs), result.payload.outputs, OUTPUT)
    return result


def _find_refused(graph: Graph, region: tuple[int, ...], npu: Npu, compile_: Compiler, whole: str) -> dict[int, str]:
    """Return the operators that Vela refuses when they are compiled one by one; if it refuses none of them alone,
    return all."""
    found: dict[int, str] = {}
    for i in region:
        try:
            compile_(_part(graph, (i,)), npu)
        except VelaRefused as refusal:
            found[i] = f"Vela: {refusal}"
    return found or dict.fromkeys(region, f"Vela: {whole}")


def _find_wrong(graph: Graph, nodes: set[int], npu: Npu, compile_: Compiler, judge: Judge) -> dict[int, str]:
    """Return the operators whose streams are wrong by themselves."""
    found: dict[int, str] = {}
    for i in sorted(nodes):
        part = _part(graph, (i,))
        try:
            judge(part, _check_result(part, compile_(part, npu), npu).payload)
        except VelaRefused:
            continue  # such as a reshape, which is empty by itself
        except WrongStream as wrong:
            found[i] = _describe(wrong)
    return found


def _describe(wrong: WrongStream) -> str:
    return f"{wrong.what}: {'; '.join((*wrong.at, *wrong.have))}"


def _regions(graph: Graph, refused: set[int], outside: tuple[type[Op], ...]) -> list[tuple[int, ...]]:
    """Return the nodes of each region, in order."""
    maker = {name: i for i, node in enumerate(graph.nodes) for name in node.outputs}
    level: list[int] = []
    for i, node in enumerate(graph.nodes):
        before = [maker[name] for name in node.inputs if name in maker]
        level.append(
            max((level[j] + ((i in refused) != (j in refused)) for j in before), default=int(i not in refused))
        )
    members: dict[int, list[int]] = {}
    for i in range(len(graph.nodes)):
        if i not in refused:
            members.setdefault(level[i], []).append(i)
    found = (_without_borders(graph, members[n], outside) for n in sorted(members))
    return [tuple(region) for region in found if any(graph.nodes[i].op.computes for i in region)]


def _without_borders(graph: Graph, region: list[int], outside: tuple[type[Op], ...]) -> list[int]:
    """Remove operators of these kinds that only the region's inputs or outputs pass through."""
    uses = graph.uses()
    while True:
        made = {name for i in region for name in graph.nodes[i].outputs}
        inside = {id(graph.nodes[i]) for i in region}

        def outer(i: int, made: set[str] = made, inside: set[int] = inside) -> bool:
            node = graph.nodes[i]
            first = node.inputs[0] not in made
            last = not any(id(user) in inside for name in node.outputs for user in uses.get(name, ()))
            return isinstance(node.op, outside) and (first or last)

        kept = [i for i in region if not outer(i)]
        if kept == region:
            return kept
        region = kept


def _part(graph: Graph, region: Sequence[int]) -> Graph:
    """Return the region as a graph of its own."""
    nodes = [graph.nodes[i] for i in region]
    made = {name for node in nodes for name in node.outputs}
    read = list(dict.fromkeys(name for node in nodes for name in node.inputs))
    inputs = [name for name in read if name not in made and graph[name].data is None]
    own = set(map(id, nodes))
    elsewhere = {name for node in graph.nodes if id(node) not in own for name in node.inputs}
    elsewhere |= {*graph.outputs, *(s.next for s in graph.state)}
    outputs = [name for node in nodes for name in node.outputs if name in elsewhere]
    tensors = {name: graph[name] for name in (*read, *(n for node in nodes for n in node.outputs))}
    return Graph(graph.name, tensors, tuple(nodes), tuple(inputs), tuple(outputs))


def _rewrite(
    graph: Graph, regions: Sequence[tuple[tuple[int, ...], Graph, VelaResult]], npu: Npu, why: dict[int, str]
) -> Partition:
    new: dict[str, Tensor] = {}
    groups: list[tuple[int, list[Node]]] = [(i, [graph.nodes[i]]) for i in why]
    told = []
    for region, part, result in regions:
        nodes, about = _delegate(graph, part, result, npu, new)
        groups.append((region[0], nodes))
        told.append(about)
    nodes = _sort_groups(
        groups, {*graph.inputs, *(s.name for s in graph.state), *(t.name for t in graph.constants()), *new}
    )
    left = [
        Left(layer_name_of(graph[node.outputs[0]]), node.op.name, why[i])
        for i, node in enumerate(graph.nodes)
        if i in why and not isinstance(node.op, Delegate) and node.op.view(graph.of(node.inputs)) is None
    ]
    return Partition(rebuild(graph, nodes, new.values()), tuple(told), tuple(left))


def layer_name_of(t: Tensor) -> str:
    """Return the user's name for the layer that computes a tensor."""
    return str(t.origin.path) or t.name


def _sort_groups(groups: list[tuple[int, list[Node]]], there: set[str]) -> list[Node]:
    """Order the groups so that each follows what it reads, and keep the given order where possible. `there` are tensors
    that exist from the start, such as constants of delegates."""
    waiting, nodes = sorted(groups, key=lambda group: group[0]), list[Node]()
    made = {name for _, group in groups for node in group for name in node.outputs}
    there = there - made
    while waiting:
        ready = next(group for group in waiting if _reads(group[1]) <= there)  # else regions wait for each other
        nodes += ready[1]
        there |= {name for node in ready[1] for name in node.outputs}
        waiting.remove(ready)
    return nodes


def _reads(nodes: Sequence[Node]) -> set[str]:
    """Return the tensors that nodes read and do not compute."""
    return {n for node in nodes for n in node.inputs} - {n for node in nodes for n in node.outputs}


def _delegate(
    graph: Graph, part: Graph, result: VelaResult, npu: Npu, new: dict[str, Tensor]
) -> tuple[list[Node], DelegatedRegion]:
    """Return the nodes that compute a region, and add their tensors to `new`."""
    payload = result.payload
    inputs = _parts(part.of(part.inputs), payload.inputs, INPUT)
    outputs = _parts(part.of(part.outputs), payload.outputs, OUTPUT)
    nodes: list[Node] = []
    last = part[part.outputs[-1]]

    def add(op: Op, like: Tensor, *reads: str) -> str:
        (signature,) = op.infer([new.get(n) or graph[n] for n in reads])
        name = fresh(graph, new, f"{last.name}_npu")
        new[name] = replace(like, name=name, shape=signature.shape, dtype=signature.dtype, quant=None, data=None)
        nodes.append(Node(op, reads, (name,)))
        return name

    def constant(role: str, data: np.ndarray[tuple[int, ...], np.dtype[np.generic]], dtype: DType) -> str:
        name = fresh(graph, new, f"{last.name}.{role}")
        new[name] = Tensor(name, data.shape, dtype, data=data, origin=last.origin)
        return name

    layers = tuple(f"{layer_name_of(part[node.outputs[0]])}: {node.op.name}" for node in part.nodes)
    config = payload.accelerator.config
    op = Delegate(layers, payload.scratch, npu.ram, config, part, inputs, outputs)
    commands = constant("commands", np.frombuffer(payload.commands, np.int32), DType.INT32)
    weights = constant("weights", np.frombuffer(payload.weights or bytes(16), np.uint8), DType.UINT8)
    x = part.inputs[0]
    if len(inputs) == 1 and _offset(graph, x) % ALIGNED:
        x = add(Copy(), graph[x], x)
    if len(inputs) > 1:
        rows, at = list[str](), 0
        for name, place in sorted(zip(part.inputs, inputs, strict=True), key=lambda pair: pair[1].offset):
            if place.offset > at:
                rows.append(constant("gap", np.zeros(place.offset - at, np.int8), DType.INT8))
            rows.append(add(Reshape((graph[name].count,)), graph[name], name))
            at = place.end
        x = add(Cat(0), graph[x], *rows)
    if len(outputs) == 1:
        made = last.name
        nodes.append(Node(op, (x, commands, weights), (made,)))
    else:
        made = add(op, last, x, commands, weights)
        for name, place in zip(part.outputs, outputs, strict=True):
            row = add(Slice(0, place.offset, place.end), graph[name], made)
            nodes.append(Node(Reshape(graph[name].shape), (row,), (name,)))
    return nodes, DelegatedRegion(
        tuple(layer_name_of(part[node.outputs[0]]) for node in part.nodes),
        made,
        sum(t.bytes for t in part.of(part.inputs)),
        sum(t.bytes for t in part.of(part.outputs)),
        len(payload.commands),
        len(payload.weights),
        payload.scratch,
        result.cycles,
    )


def _offset(graph: Graph, name: str) -> int:
    """Return the offset of a tensor in the one that it is a view of."""
    producer, found = graph.producer(), 0
    while name in producer and (at := producer[name].op.view(graph.of(producer[name].inputs))) is not None:
        name, found = producer[name].inputs[0], found + at
    return found


def _parts(tensors: Sequence[Tensor], slots: Sequence[Slot], region: int) -> tuple[DelegatePort, ...]:
    """Return the places of tensors in Vela's region. Their number and sizes must be the same there."""
    if [s.size for s in slots] != [t.bytes for t in tensors] or any(s.region != region for s in slots):
        raise VelaRefused("its inputs or outputs are not those of the graph")
    if len(slots) == 1 and slots[0].offset:  # one alone is the delegate's own, and begins where that does
        raise VelaRefused("its only input or output does not begin where its region does")
    return tuple(DelegatePort(t.shape, s.offset) for t, s in zip(tensors, slots, strict=True))
