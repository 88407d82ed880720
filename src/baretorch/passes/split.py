"""Split a linear layer that is read in slices into one per slice, and a `conv3d` into its frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from baretorch.ir.graph import Graph, Node, Op, Origin, Quant, Shape, Tensor, fresh, with_data
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.layout import DepthWindows, Permute, Reshape
from baretorch.ops.linear import Linear
from baretorch.ops.move import Cat, Slice
from baretorch.passes.rewrite import rebuild


@dataclass(frozen=True)
class _Cut:
    """The layer, the views from it to what is sliced, each with its sliced axis, and the rows of weight per index."""

    layer: Node
    views: tuple[tuple[Op, int], ...]
    rows: int


def split_linear(graph: Graph) -> Graph:
    """Replace a linear layer whose result is only read in slices by one layer per slice.

    Attention projects its input once for queries, keys and values together, and gated units once for value and gate.
    Each row of the weight belongs to one slice. Reshapes and permutations between the layer and the slices are repeated
    per slice; most of them cost nothing or vanish later. Each part has the layer's name in its origin, because users
    name the layer to choose its precision or place.
    """
    producer, uses = graph.producer(), graph.uses()
    new: dict[str, Tensor] = {}
    nodes: list[Node] = []
    cuts: dict[str, _Cut | None] = {}

    def add(op: Op, inputs: tuple[str, ...], like: Tensor, name: str | None = None) -> str:
        """Add a node with one result, called `name` or something new."""
        (signature,) = op.infer([new.get(i) or graph[i] for i in inputs])
        out = name or fresh(graph, new, like.name)
        if name is None:
            new[out] = replace(like, name=out, shape=signature.shape)
        nodes.append(Node(op, inputs, (out,)))
        return out

    def part(layer: Node, start: int, stop: int) -> str:
        constants = []
        for name in layer.inputs[1:]:
            constants.append(fresh(graph, new, name))
            rows = with_data(replace(graph[name], name=constants[-1]), graph[name].numbers[start:stop])
            new[constants[-1]] = replace(rows, quant=_rows_of(rows.quant, start, stop))
        y = graph[layer.outputs[0]]
        return add(layer.op, (layer.inputs[0], *constants), replace(y, origin=_origin(y, y.origin.source)))

    for node in graph.nodes:
        cut = None
        if isinstance(node.op, Slice):
            (x,) = node.inputs
            if x not in cuts:
                cuts[x] = _cut(graph, x, producer, uses)
            cut = cuts[x]
        if cut is None or not isinstance(node.op, Slice):
            nodes.append(node)
            continue
        count = node.op.stop - node.op.start
        name = part(cut.layer, node.op.start * cut.rows, node.op.stop * cut.rows)
        for i, (op, axis) in enumerate(cut.views):
            if isinstance(op, Reshape):
                op = Reshape(_with(op.shape, axis, op.shape[axis] // graph[node.inputs[0]].shape[node.op.axis] * count))
            last = i + 1 == len(cut.views)
            name = add(op, (name,), graph[node.outputs[0]], node.outputs[0] if last else None)
        if not cut.views:
            nodes[-1] = replace(nodes[-1], outputs=node.outputs)
            del new[name]
            y, made = graph[cut.layer.outputs[0]], graph[node.outputs[0]]
            new[made.name] = replace(made, origin=_origin(y, made.origin.source))
    return rebuild(graph, nodes, new.values())


def _cut(graph: Graph, x: str, producer: dict[str, Node], uses: dict[str, list[Node]]) -> _Cut | None:
    """Return how x is made from a linear layer whose rows can be separated; None if it is not, or is not only
    sliced."""
    readers = uses[x]
    slices = [n.op for n in readers if isinstance(n.op, Slice)]
    axis = slices[0].axis
    taken = sum(s.stop - s.start for s in slices)
    alike = len(slices) == len(readers) and all((s.axis, s.step) == (axis, 1) for s in slices)
    if not alike or taken > graph[x].shape[axis] or x in graph.kept:
        return None
    views: list[tuple[Op, int]] = []
    rows = 1
    node = producer.get(x)
    while node is not None and isinstance(node.op, (Permute, Reshape)):
        before = node.inputs[0]
        views.insert(0, (node.op, axis))
        if isinstance(node.op, Permute):
            axis = node.op.dims[axis]
        else:
            found = _axis_before(graph[before].shape, node.op.shape, axis)
            if found is None:
                return None
            axis, factor = found
            rows *= factor
        if len(uses[before]) != 1 or before in graph.kept:
            return None
        node = producer.get(before)
    if node is None or not isinstance(node.op, Linear) or axis != len(graph[node.outputs[0]].shape) - 1:
        return None
    constant = all(graph[name].data is not None for name in node.inputs[1:])
    return _Cut(node, tuple(views), rows) if constant else None


def _axis_before(shape: Shape, to: Shape, axis: int) -> tuple[int, int] | None:
    """Return the axis of `shape` that a reshape to `to` splits into `axis` and perhaps later axes, and the number of
    its indices that an index of `axis` covers. Return None if there is no such axis."""
    outer, inner = prod(to[:axis]), prod(to[axis:])
    for i, size in enumerate(shape):
        if size > 1 and prod(shape[:i]) == outer and inner % (rest := prod(shape[i + 1 :])) == 0:
            factor = size // to[axis]
            return (i, factor) if size % to[axis] == 0 and factor * rest == prod(to[axis + 1 :]) else None
    return None


def _origin(y: Tensor, source: str) -> Origin:
    """Return the origin of a part of the layer that made y, in this line of the user's code."""
    return Origin(y.origin.path or y.name, source)


def _rows_of(quant: Quant | None, start: int, stop: int) -> Quant | None:
    """Return the scales of these rows."""
    if quant is None or quant.axis is None:
        return quant
    return replace(quant, scale=quant.scale[start:stop], zero_point=quant.zero_point[start:stop])


def _with(shape: Sequence[int], axis: int, size: int) -> Shape:
    return (*shape[:axis], size, *shape[axis + 1 :])


def split_depth(graph: Graph) -> Graph:
    """Compute a convolution of volumes frame by frame, so that only the frames of one window exist at a time.

        y = conv2d(depth_windows(x))  ->  y = cat of conv2d(depth_windows(frames of x)), for each window

    The frames are slices of x, which are views, and the results are computed in place for the cat.
    """
    producer, uses = graph.producer(), graph.uses()
    nodes: list[Node] = []
    new: dict[str, Tensor] = {}

    def add(op: Op, like: str, shape: tuple[int, ...], *inputs: str) -> str:
        name = fresh(graph, new, like)
        new[name] = replace(graph[like], name=name, shape=shape)
        nodes.append(Node(op, inputs, (name,)))
        return name

    for node in graph.nodes:
        before = producer.get(node.inputs[0]) if isinstance(node.op, (Conv2d, QConv2d)) else None
        if before is None or not isinstance(before.op, DepthWindows) or len(uses[before.outputs[0]]) > 1:
            nodes.append(node)
            continue
        windows, (x,), (gathered,), (out,) = before.op, before.inputs, before.outputs, node.outputs
        batch, _, *frame = graph[x].shape
        count, length = graph[out].shape[0], windows.dilation * (windows.kernel - 1) + 1
        if batch != 1 or count == 1:
            nodes.append(node)
            continue
        parts = []
        for i in range(count):
            start = i * windows.stride
            frames = add(Slice(1, start, start + length), x, (1, length, *frame), x)
            together = add(windows, gathered, (1, *graph[gathered].shape[1:]), frames)
            parts.append(add(node.op, out, (1, *graph[out].shape[1:]), together, *node.inputs[1:]))
        nodes.append(Node(Cat(0), tuple(parts), (out,)))
    return rebuild(graph, nodes, new.values()) if new else graph
