"""Remove channels that are not needed, with everything that depends on them alone: rows of the weights that compute
them, columns of those that read them, and tensors between.

Channels are the last axis, as `layout` leaves it. Channels that pass from layer to layer together are one set: a
residual sum joins the channels of both sides, a depthwise convolution those before and after it. Sets that reach an
input, an output, state, a grouped convolution, or an unknown operator stay whole.

Heads of attention are such a set too: each is some rows of the layers that compute queries, keys and values, and some
columns of the layer that reads the result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from baretorch.errors import CompileError
from baretorch.ir.graph import Array, Graph, Node, Op, Shape, Tensor, with_data
from baretorch.ir.verify import verify
from baretorch.ops.attention import Attention
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.elementwise import Elementwise
from baretorch.ops.layout import Pad, Reshape
from baretorch.ops.linear import Linear
from baretorch.ops.pool import AdaptiveAvgPool2d, AdaptiveMaxPool2d, AvgPool2d, MaxPool2d
from baretorch.ops.reduce import Reduction
from baretorch.ops.upsample import Resampled

_BY_CHANNEL = (AdaptiveAvgPool2d, AdaptiveMaxPool2d, AvgPool2d, MaxPool2d, Resampled)


@dataclass(frozen=True)
class Channels:
    """`count` channels that can only be removed together.

    `name` is the layer that computes them first. `makers` have a row of weights for each of them, `readers` columns,
    and in `tensors` they are the last axis, once or repeated. Rows and columns of `heads` are contiguous, the same
    number for each.
    """

    name: str
    count: int
    makers: tuple[Node, ...]
    readers: tuple[Node, ...]
    tensors: frozenset[str]
    heads: bool = False

    def columns(self, graph: Graph) -> int:
        """Return how many columns a reader's weights have for the channels at one place."""
        return graph[self.readers[0].inputs[1]].shape[-1] if self.heads else self.count

    def columns_of(self, graph: Graph, numbers: Sequence[int]) -> list[int]:
        """Return the columns of some channels."""
        width = self.columns(graph) // self.count
        return [n * width + i for n in numbers for i in range(width)]


@dataclass
class _Set:
    count: int
    tensors: set[str] = field(default_factory=set)
    whole: bool = False  # no channel can be removed


class _Sets:
    """Sets of channels under construction, by the tensors that have them."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._of: dict[str, _Set] = {}

    def of(self, name: str) -> _Set:
        if name not in self._of:
            shape = self._graph[name].shape
            self._of[name] = _Set(shape[-1] if shape else 1, {name})
        return self._of[name]

    def keep_whole(self, names: Sequence[str]) -> None:
        for name in names:
            self.of(name).whole = True

    def join(self, x: str, y: str, count: int | None = None) -> None:
        """Let `y` have the channels of `x`, or keep both whole."""
        a = self.of(x)
        if y not in self._of:
            self._of[y] = _Set(count or a.count, {y})
        b = self.of(y)
        if a is b:
            return
        whole = a.whole or b.whole or a.count != b.count
        large, small = (a, b) if len(a.tensors) >= len(b.tensors) else (b, a)
        large.count, large.whole = a.count, whole
        large.tensors |= small.tensors
        for name in small.tensors:
            self._of[name] = large

    def all(self) -> list[_Set]:
        return list({id(s): s for s in self._of.values()}.values())


class _Layers:
    """The layers of a graph by the tensors that they compute and read, each with its place in the graph."""

    def __init__(self, graph: Graph) -> None:
        self.made: dict[str, list[tuple[int, Node]]] = {}
        self.read: dict[str, list[tuple[int, Node]]] = {}
        for i, node in enumerate(graph.nodes):
            if _is_layer(graph, node):
                self.made.setdefault(node.outputs[0], []).append((i, node))
                self.read.setdefault(node.inputs[0], []).append((i, node))

    @staticmethod
    def of(tensors: Collection[str], table: Mapping[str, list[tuple[int, Node]]]) -> tuple[Node, ...]:
        """Return the layers that a table has for some tensors, in the order of the graph."""
        found = [pair for name in tensors for pair in table.get(name, ())]
        return tuple(node for _, node in sorted(found, key=lambda pair: pair[0]))


def channels(graph: Graph) -> tuple[Channels, ...]:
    """Return the sets of channels of which some can be removed, in the order in which they are computed."""
    sets, uses = _Sets(graph), graph.uses()
    seen = {*graph.inputs, *graph.outputs, *(n for s in graph.state for n in (s.name, s.next))}
    own = {t.name for t in graph.constants() if len(uses.get(t.name, [])) == 1 and t.name not in seen}
    sets.keep_whole(sorted(seen))
    for node in graph.nodes:
        _follow(graph, node, sets, own)
    layers = _Layers(graph)
    found = (_describe(graph, s, layers) for s in sets.all() if not s.whole)
    made = [*(c for c in found if c is not None), *_heads(graph, own, seen)]
    place = {id(node): i for i, node in enumerate(graph.nodes)}
    return tuple(sorted(made, key=lambda c: place[id(c.makers[0])]))


def _heads(graph: Graph, own: set[str], seen: set[str]) -> Iterator[Channels]:
    """Yield heads that layers compute and a layer reads, with only reshapes between, none of which is `seen`."""
    made, uses = graph.producer(), graph.uses()
    for node in graph.nodes:
        if not isinstance(node.op, Attention):
            continue
        y = graph[node.outputs[0]]
        count, rank = y.shape[-2] if len(y.shape) > 3 else 1, len(y.shape)
        orders = (node.op.q_dims, node.op.k_dims, node.op.v_dims, node.op.y_dims)
        masked = any(len(graph[n].shape) > 2 and graph[n].shape[-3] != 1 for n in node.inputs[3:])
        if count < 2 or masked or not _heads_lie_together(orders, rank):
            continue
        splits = [made.get(n) for n in node.inputs[:3]]
        joins = uses.get(y.name, [])
        if not all(s is not None and _splits_heads(graph, s, count, uses) for s in splits) or len(joins) != 1:
            continue
        (join,) = joins
        makers = [made.get(s.inputs[0]) for s in splits if s is not None]
        fits = isinstance(join.op, Reshape) and join.op.shape[-1] == count * y.shape[-1]
        readers = uses.get(join.outputs[0], [])
        layers = [n for n in (*makers, *readers) if n is not None and isinstance(n.op, Linear) and _is_layer(graph, n)]
        if not fits or len(layers) != 3 + len(readers) or not readers or len({id(n) for n in layers}) != len(layers):
            continue
        if any(not own.issuperset(n.inputs[1:]) for n in layers):
            continue
        inner = (*(s.outputs[0] for s in splits if s is not None), *node.inputs[:3], y.name, join.outputs[0])
        tensors = frozenset((*inner, *(n.outputs[0] for n in makers if n is not None)))
        if seen & tensors:
            continue
        path = graph[y.name].origin.path or graph[layers[0].outputs[0]].origin.path or y.name
        yield Channels(f"heads of {path}", count, tuple(layers[:3]), tuple(readers), tensors, heads=True)


def _heads_lie_together(orders: Sequence[Shape], rank: int) -> bool:
    """Return whether q, k, v and the result, read in these orders, all have heads as their last axis but one."""
    if any(len(dims) != rank or dims[-1] != rank - 1 for dims in orders):
        return False
    *reads, written = orders
    heads = {dims.index(rank - 2) for dims in reads} | {written[-2]}
    return len(heads) == 1 and max(heads) < rank - 2


def _splits_heads(graph: Graph, node: Node, count: int, uses: Mapping[str, Sequence[Node]]) -> bool:
    x, y = graph[node.inputs[0]], graph[node.outputs[0]]
    alone = len(uses[x.name]) == len(uses[y.name]) == 1
    return isinstance(node.op, Reshape) and alone and y.shape[-2] == count and x.shape[-1] == count * y.shape[-1]


def _follow(graph: Graph, node: Node, sets: _Sets, own: set[str]) -> None:
    """Apply a node's effect on the channels of its inputs."""
    varying = [n for n in node.inputs if graph[n].data is None]
    constants = [n for n in node.inputs if graph[n].data is not None]
    y = node.outputs[0]
    if _is_layer(graph, node):
        if own.issuperset(constants) and _is_depthwise(graph, node):
            sets.join(varying[0], y)
        elif not own.issuperset(constants) or (isinstance(node.op, Conv2d) and node.op.groups != 1):
            sets.keep_whole([varying[0], y])
        else:
            sets.of(y)
    elif isinstance(node.op, Reshape) and varying:
        shape, count = graph[y].shape, sets.of(varying[0]).count
        fits = bool(shape) and bool(count) and shape[-1] % count == 0
        sets.join(varying[0], y, count)
        if not fits:
            sets.keep_whole([y])
    elif isinstance(node.op, Elementwise) and len(node.outputs) == 1:
        _follow_elements(graph, y, varying, constants, sets, own)
    elif varying and _each_by_itself(node, len(graph[varying[0]].shape)):
        sets.join(varying[0], y)
    else:
        sets.keep_whole([*varying, *node.outputs])


def _follow_elements(
    graph: Graph, y: str, varying: Sequence[str], constants: Sequence[str], sets: _Sets, own: set[str]
) -> None:
    """Join operands with equal sizes of the last axis; one number goes with all of them. A constant may be the only
    operand of its size: its channels are those of `y`, whatever the others are."""
    last = graph[y].shape[-1:]
    for name in varying:
        if graph[name].shape[-1:] == last:
            sets.join(name, y, sets.of(name).count)
        else:
            sets.keep_whole([name])
    for name in constants:
        if graph[name].count > 1 and graph[name].shape[-1:] == last:
            if name in own:
                sets.join(y, name)
            else:
                sets.keep_whole([y])


def _each_by_itself(node: Node, rank: int) -> bool:
    """Return whether each channel of the output depends only on the same channel of the only input."""
    if isinstance(node.op, Reduction):
        return rank - 1 not in node.op.axes
    if isinstance(node.op, Pad):
        return node.op.padding[-1] == (0, 0)
    return isinstance(node.op, _BY_CHANNEL)


def _is_layer(graph: Graph, node: Node) -> bool:
    return (
        isinstance(node.op, (Linear, Conv2d))
        and graph[node.inputs[0]].data is None
        and all(graph[n].data is not None for n in node.inputs[1:])
    )


def _is_depthwise(graph: Graph, node: Node) -> bool:
    """Return whether each channel depends on one of its own. With as many groups as outputs, each may still read
    several inputs."""
    if not isinstance(node.op, Conv2d):
        return False
    out, *_, read = graph[node.inputs[1]].shape
    return node.op.groups == out > 1 and read == 1


def _describe(graph: Graph, found: _Set, layers: _Layers) -> Channels | None:
    makers = layers.of(found.tensors, layers.made)
    readers = tuple(n for n in layers.of(found.tensors, layers.read) if not _is_depthwise(graph, n))
    if not readers or found.count < 2 or all(_is_depthwise(graph, m) for m in makers):
        return None
    first = makers[0].outputs[0]
    return Channels(graph[first].origin.path or first, found.count, makers, readers, frozenset(found.tensors))


def drop_channels(graph: Graph, removed: Mapping[str, Sequence[int]]) -> Graph:
    """Return the graph without some channels of the sets with these names."""
    if not removed:
        return graph
    sets = channels(graph)
    known = _by_name(sets)
    for name in removed:
        made = [c.makers[0].outputs[0] for c in sets if c.name == name]
        if len(made) > 1:
            raise CompileError(
                f"channels of {name!r} cannot be distinguished from others",
                have=f"several layers of that name: {', '.join(made)}",
                need="a module of its own for each, whose channels are removed",
            )
        if name not in known:
            raise CompileError(
                f"no channels of {name[:100]!r} can be removed",
                have=", ".join(dict.fromkeys(c.name for c in sets)) or "no layer whose channels can be",
            )
    for name, numbers in removed.items():
        graph = _cut(graph, known[name], _kept_channels(known[name], numbers))
        known = _by_name(channels(graph))
    return graph


def _by_name(sets: Sequence[Channels]) -> dict[str, Channels]:
    """Return the sets by the names of their layers, and of what these make: parts of a layer have its name."""
    return {c.makers[0].outputs[0]: c for c in sets} | {c.name: c for c in sets}


def _kept_channels(found: Channels, numbers: Sequence[int]) -> Array:
    outside = [n for n in numbers if not 0 <= n < found.count]
    kept = np.setdiff1d(np.arange(found.count), np.array(numbers, np.int64))
    if outside or not len(kept):
        raise CompileError(
            f"channels of {found.name!r} that are to be removed: {outside[0] if outside else 'all of them'}",
            need=f"some of 0 to {found.count - 1}, and not all",
        )
    return kept


def _cut(graph: Graph, found: Channels, kept: Array) -> Graph:
    tensors = dict(graph.tensors)
    makers, readers = ({id(n) for n in nodes} for nodes in (found.makers, found.readers))

    def cut(name: str, axis: int) -> None:
        """Remove channels of a constant, along an axis in which they may be repeated."""
        data = tensors[name].numbers
        shape = data.shape
        two = (found.count, -1) if found.heads else (-1, found.count)
        parts = data.reshape(*shape[:axis], *two, *shape[axis + 1 :]).take(kept, axis if found.heads else axis + 1)
        tensors[name] = with_data(tensors[name], parts.reshape(*shape[:axis], -1, *shape[axis + 1 :]))

    nodes = []
    for node in graph.nodes:
        if id(node) in readers:
            cut(node.inputs[1], len(graph[node.inputs[1]].shape) - 1)
        if id(node) in makers:
            for name in node.inputs[1:]:
                cut(name, 0)
        nodes.append(replace(node, op=_op(graph, node, found, len(kept))))
    for name in found.tensors:
        if tensors[name].data is not None:
            cut(name, len(tensors[name].shape) - 1)
    return verify(replace(graph, nodes=tuple(nodes), tensors=_infer_shapes(nodes, tensors)))


def _op(graph: Graph, node: Node, found: Channels, count: int) -> Op:
    """Return a node's operator, with `count` channels left."""
    if isinstance(node.op, Reshape) and node.outputs[0] in found.tensors:
        *outer, last = node.op.shape
        if found.heads and outer[-1:] == [found.count] and graph[node.inputs[0]].shape[-1] == found.count * last:
            return replace(node.op, shape=(*outer[:-1], count, last))
        return replace(node.op, shape=(*outer, last // found.count * count))
    if isinstance(node.op, Conv2d) and node.outputs[0] in found.tensors and _is_depthwise(graph, node):
        return replace(node.op, groups=node.op.groups // found.count * count)
    return node.op


def _infer_shapes(nodes: Sequence[Node], tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return all tensors, with the shapes that nodes now give them."""
    known = dict(tensors)
    for node in nodes:
        for name, made in zip(node.outputs, node.op.infer([known[n] for n in node.inputs]), strict=True):
            known[name] = replace(known[name], shape=made.shape)
    return known
