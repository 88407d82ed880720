"""Take the input channels of a layer in parts, one after the other, which add up to partial sums: for a part's weights
and windows there is room where there is none for the whole layer's.

All of it is a rewrite of the Graph: the first part begins with the bias, each other one adds to what the one before has
made, where that is, and at last outputs are made of the sums. All are layers like others to what follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from baretorch.ir.graph import DType, Graph, Node, Op, Shape, Tensor, fresh, with_data
from baretorch.ops.helpers.kernel import data_of
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.int8.qlinear import QLinear
from baretorch.ops.int8.qsums import QFromSums, QSums
from baretorch.ops.layout import Reshape
from baretorch.ops.move import Slice
from baretorch.passes.rewrite import rebuilt

WORD = 4  # input channels that are not taken apart


def takes_parts(graph: Graph, node: Node) -> bool:
    """Whether it is a layer that can be made so."""
    op = node.op
    constant = len(node.inputs) == 4 and all(t.data is not None for t in graph.of(node.inputs[1:]))
    if not constant or graph[node.inputs[0]].data is not None:
        return False
    return op.bits == 8 if isinstance(op, QLinear) else isinstance(op, QConv2d) and (op.groups, op.bits) == (1, 8)


def is_pointwise(op: Op, weight: Tensor) -> bool:
    """Whether each pixel of the output is made of the one at the same place of the input: parts need no scratch."""
    if not isinstance(op, QConv2d):
        return isinstance(op, QLinear)
    plain = op.stride == op.pool == (1, 1) and not any(op.padding)
    return plain and weight.shape[1:3] == (1, 1)


def places(channels: int, count: int) -> list[int]:
    """Where so many parts begin, and where the last ends: whole words, of about the same number; fewer parts if there
    are not as many words."""
    words = -(-channels // WORD)
    count = min(count, words)
    return [*(WORD * (words * i // count) for i in range(count)), channels]


def in_parts(graph: Graph, counts: Mapping[str, int]) -> Graph:
    """The same graph, in which the layers that make these tensors take their input channels in so many parts."""
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
        return rebuilt(self.whole, nodes, self.new.values())

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
        for start, stop in pairwise(places(shape[-1], count)):
            weight = with_data(taps, data[..., start:stop])
            own = self._tensor(f"{taps.name}_in{start}to{stop}", weight)
            part, read, source = replace(sums, start=start), replace(image, shape=shape), x
            if image.count == shape[-1]:  # of one pixel they lie together, so that they can come by DMA
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
    """Of the sums of such a layer: what is pooled has more than its output."""
    y, op = graph[node.outputs[0]], node.op
    if not isinstance(op, QConv2d) or op.pool == (1, 1):
        return y.shape
    (made,) = replace(op, pool=(1, 1)).infer(graph.of(node.inputs))
    return made.shape
