"""Compute layers too large for the scratchpad in parts of their input channels, which add up to partial sums.

The scratchpad may have room for one part's weights and windows where it has none for the whole layer's, even cut along
rows and output channels. This is a rewrite of the Graph: the first part starts with the bias, each other part adds to
the sums of the one before, in place, and the last node requantizes the sums. Later stages see ordinary layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod
from typing import Any

from baretorch.ir.graph import DType, Graph, Node, Op, Shape, Tensor, fresh, with_data
from baretorch.ops.helpers.kernel import Call, data_of
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.int8.qlinear import QLinear
from baretorch.ops.int8.qsums import QFromSums, QSums
from baretorch.ops.layout import Reshape
from baretorch.ops.move import Slice
from baretorch.passes.rewrite import rebuild
from baretorch.plan.cluster.choose_tiles import LIMITS
from baretorch.plan.schedule import Step
from baretorch.plan.types import Plan

WORD = 4  # input channels that stay together


def takes_parts(graph: Graph, node: Node) -> bool:
    """Return whether a layer can take its input channels in parts."""
    op = node.op
    constant = len(node.inputs) == 4 and all(t.data is not None for t in graph.of(node.inputs[1:]))
    if not constant or graph[node.inputs[0]].data is not None:
        return False
    return op.bits == 8 if isinstance(op, QLinear) else isinstance(op, QConv2d) and (op.groups, op.bits) == (1, 8)


def is_pointwise(op: Op, weight: Tensor) -> bool:
    """Return whether each output pixel depends on the input pixel at the same place only: parts need no scratch."""
    if not isinstance(op, QConv2d):
        return isinstance(op, QLinear)
    plain = op.stride == op.pool == (1, 1) and not any(op.padding)
    return plain and weight.shape[1:3] == (1, 1)


def cut_places(channels: int, count: int) -> list[int]:
    """Return where `count` parts begin, and where the last ends. Parts are whole words, and of about the same size;
    there are fewer if there are not enough words."""
    words = -(-channels // WORD)
    count = min(count, words)
    return [*(WORD * (words * i // count) for i in range(count)), channels]


def split_channels(graph: Graph, counts: Mapping[str, int]) -> Graph:
    """Rewrite the graph so that the layers that compute these tensors take their input channels in that many parts."""
    return _Sums(graph, counts).graph()


@dataclass
class _Sums:
    whole: Graph
    counts: Mapping[str, int]
    new: dict[str, Tensor] = field(default_factory=dict)

    def graph(self) -> Graph:
        nodes: list[Node] = []
        for node in self.whole.nodes:
            count = self.counts.get(node.outputs[0], 1)
            nodes += self._parts(node, count) if count > 1 else (node,)
        return rebuild(self.whole, nodes, self.new.values())

    def _parts(self, node: Node, count: int) -> Iterator[Node]:
        (image, taps, bias, multiplier), y = self.whole.of(node.inputs), self.whole[node.outputs[0]]
        op, shape = node.op, image.shape
        assert isinstance(op, (QConv2d, QLinear))
        data, sums = data_of((taps,), 0), QSums(0, of=y.name)
        pool = (1, 1)
        if isinstance(op, QConv2d):
            sums = replace(sums, x_zero=op.x_zero, stride=op.stride, padding=op.padding, dilation=op.dilation)
            pool = op.pool
        if is_pointwise(op, taps):  # all pixels in one column: cores share them
            shape, data = (1, image.count // image.shape[-1], 1, image.shape[-1]), data.reshape(len(data), 1, 1, -1)
        x = image.name
        if shape != image.shape:
            x = self._tensor(f"{y.name}_pixels", replace(image, shape=shape))
            yield Node(Reshape(shape), (image.name,), (x,))
        before = bias.name
        for start, stop in pairwise(cut_places(shape[-1], count)):
            weight = with_data(taps, data[..., start:stop])
            own = self._tensor(f"{taps.name}_in{start}to{stop}", weight)
            part, read, source = replace(sums, start=start), replace(image, shape=shape), x
            if image.count == shape[-1]:  # channels of a single pixel are contiguous, so DMA can copy them
                part, read = sums, replace(read, shape=(1, 1, 1, stop - start))
                source = self._tensor(f"{x}_from{start}", read)
                yield Node(Slice(3, start, stop), (x,), (source,))
            (made,) = part.infer([read, bias, weight])
            after = self._tensor(f"{y.name}_sums{start}", Tensor("", made.shape, DType.INT32, origin=y.origin))
            yield Node(part, (source, before, own), (after,))
            before = after
        if pool == (1, 1) and made.shape != y.shape:
            seen = self._tensor(f"{y.name}_sums", Tensor("", y.shape, DType.INT32, origin=y.origin))
            yield Node(Reshape(y.shape), (before,), (seen,))
            before = seen
        last: Op = QFromSums(op.zero, op.shift, op.lo, op.hi, pool)
        yield Node(last, (before, multiplier.name), (y.name,))

    def _tensor(self, stem: str, like: Tensor) -> str:
        name = fresh(self.whole, self.new, stem)
        self.new[name] = replace(like, name=name)
        return name


def sums_shape(graph: Graph, node: Node) -> Shape:
    """Return the shape of such a layer's sums, which are larger than its output if that is pooled."""
    y, op = graph[node.outputs[0]], node.op
    if not isinstance(op, QConv2d) or op.pool == (1, 1):
        return y.shape
    (made,) = replace(op, pool=(1, 1)).infer(graph.of(node.inputs))
    return made.shape


COUNTS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
TRIED = 2  # counts tried from the first with which everything seems to fit; and the first that fits with more tiles
TOGETHER = 4  # output channels whose weights stay together
SUM = 4  # bytes


@dataclass(frozen=True)
class _Layer:
    """A layer that does not fit, and how many parts to try."""

    name: str
    like: tuple[Op, Shape, Shape]  # equal layers are cut in the same way
    counts: tuple[int, ...]


def choose_parts(plain: Plan, plan_of: Callable[[Graph], Plan], room: int, over: Callable[[Plan], int]) -> Plan:
    """Return the best plan, with or without layers in parts. Of the plans that fit a scratchpad with this room, that is
    the one with the fewest modelled cycles; if none fits, the one with the fewest bytes `over`."""
    layers = list(_layers(plain, room))
    kinds = dict.fromkeys(layer.like for layer in layers)
    tries = {like: next(layer.counts for layer in layers if layer.like == like) for like in kinds}
    tries = {like: counts for like, counts in tries.items() if counts}

    def cost(plan: Plan) -> tuple[int, bool, int]:
        """Return what decides between plans. Without tiles, cores read weights from slower memory."""
        return over(plan), plan.tiles is None, plan.tiles.cycles if plan.tiles else 0

    def make_with(chosen: dict[tuple[Op, Shape, Shape], int]) -> Plan:
        counts = {layer.name: chosen[layer.like] for layer in layers if layer.like in chosen}
        return plan_of(split_channels(plain.graph, counts)) if any(n > 1 for n in counts.values()) else plain

    best, chosen = plain, {like: counts[0] for like, counts in tries.items()}
    if chosen and cost(first := make_with(chosen)) < cost(best):
        best = first
    else:
        chosen = dict.fromkeys(tries, 1)
    for like, counts in tries.items():
        for count in (1, *counts):
            if count != chosen[like] and cost(other := make_with({**chosen, like: count})) < cost(best):
                best, chosen = other, {**chosen, like: count}
    return best


def _layers(plan: Plan, room: int) -> Iterator[_Layer]:
    graph, cores = plan.graph, len(plan.schedule.cores)
    steps = {step.call.y.name: step for step in plan.steps}
    for node in graph.nodes:
        step = steps.get(node.outputs[0])
        if step is None or step.kernel.unit or step.guards or not takes_parts(graph, node):
            continue
        x, weight = graph.of(node.inputs[:2])
        sums = SUM * prod(sums_shape(graph, node))
        beside, (scratch, weights) = x.bytes + graph[node.outputs[0]].bytes, _own(graph, node, step, cores)
        if beside + scratch + weights <= room:
            continue
        scratch = 0 if is_pointwise(node.op, weight) else scratch
        some = [n for n in COUNTS if n * WORD <= weight.shape[-1]]
        whole = [n for n in some if beside + sums + (scratch + 2 * weight.bytes) // n <= room]
        one_tile = [n for n in whole if -(-weight.bytes // n) + SUM * weight.shape[0] <= LIMITS[0]]  # of each part
        least = [n for n in some if sums + (scratch + weights) // n <= room]
        counts = tuple(dict.fromkeys((*(one_tile or whole)[:TRIED], *least[:1])))
        yield _Layer(node.outputs[0], (node.op, x.shape, weight.shape), counts)


def _own(graph: Graph, node: Node, step: Step, cores: int) -> tuple[int, int]:
    """Return scratch and weights of a layer: the fewest bytes that all cores need in addition to its input and output,
    and that shrink with fewer input channels. Weights are double-buffered; for a single pixel, cores share the output
    channels."""
    weight, y = graph[node.inputs[1]], graph[node.outputs[0]]
    call: Call[Any] = replace(step.call, inputs=graph.of(node.inputs), outputs=(y,), op=node.op, pitch=0)
    together = TOGETHER * (cores if y.count == y.shape[-1] else 1)
    each = weight.bytes // weight.shape[0]
    return cores * step.kernel.scratch(call), 2 * min(together, weight.shape[0]) * each
