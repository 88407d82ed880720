"""Run a stage of an image network band by band, so that its largest tensors never exist as a whole.

A stage is a part of the graph with one input and one output, in which each row of a tensor depends on a few rows of
others. For each band of the stage's output rows every layer makes just the rows that are missing. What is needed once
more of a tensor, the halo, is copied away: the tensor of a band is the halo and the new rows behind it. So nothing is
computed twice, and the rows of the stage's input are asked for in order.

All of it is a rewrite of the Graph: rows of an image lie together, which makes a slice of them a view, and a cat along
them the place where they are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from baretorch.ir import Graph, Node, Op, Tensor, fresh
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.elementwise import Elementwise
from baretorch.ops.lookup import Lookup
from baretorch.ops.move import Cat, Copy, Slice
from baretorch.ops.pool import AvgPool2d, MaxPool2d
from baretorch.ops.pull import Pull
from baretorch.ops.qbinary import QAdd, QDiv, QMul
from baretorch.ops.qconv2d import QConv2d
from baretorch.ops.qpool import QAvgPool2d
from baretorch.ops.quantize import Dequantize, Quantize
from baretorch.passes.rewrite import rebuilt

HEIGHT = 1  # the axis of rows
LARGEST = 64  # layers between two places where all comes together

Block = tuple[Node, ...]


@dataclass(frozen=True)
class Rows:
    """Output row r reads the input rows from r * stride - before on, `size` of them."""

    size: int = 1
    stride: int = 1
    before: int = 0

    def needed(self, start: int, stop: int) -> tuple[int, int]:
        """The input rows that the output rows start … stop - 1 read; those below 0 or beyond the image are padding."""
        return start * self.stride - self.before, (stop - 1) * self.stride - self.before + self.size


def rows_of(graph: Graph, node: Node) -> Rows | None:
    """How the node's output rows depend on the rows of its activations; None if otherwise, or if some row depends on
    padding alone."""
    tensors = graph.of((*node.inputs, *node.outputs))
    images = [t for t in tensors if t.data is None]
    if len(node.outputs) != 1 or len(images) < 2 or any(len(t.shape) != 4 or t.shape[0] != 1 for t in images):
        return None
    rows = _window(node.op, graph.of(node.inputs), graph[node.outputs[0]])
    if rows is None:
        return None
    height, last = images[0].shape[HEIGHT], images[-1].shape[HEIGHT] - 1
    return rows if rows.needed(0, 1)[1] > 0 and rows.needed(last, last + 1)[0] < height else None


def _window(op: Op, inputs: Sequence[Tensor], y: Tensor) -> Rows | None:
    images = [t for t in inputs if t.data is None]
    if isinstance(op, Cat):
        return Rows() if op.axis > HEIGHT and len(images) == len(inputs) else None
    if isinstance(op, (Elementwise, QAdd, QMul, QDiv, Lookup, Quantize, Dequantize)):
        flat = all(len(t.shape) < 3 or t.shape[-3] == 1 for t in inputs if t.data is not None)  # the same for every row
        return Rows() if flat and all(t.shape == y.shape for t in images) else None
    if len(images) != 1 or inputs[0].data is not None:
        return None
    if isinstance(op, (Conv2d, QConv2d)):
        spread = op.dilation[0] * (inputs[1].shape[1] - 1) + 1
        return Rows((op.pool[0] - 1) * op.stride[0] + spread, op.pool[0] * op.stride[0], op.padding[0])
    if isinstance(op, (MaxPool2d, AvgPool2d)) and op.ceil_mode:
        return None
    if isinstance(op, (MaxPool2d, AvgPool2d, QAvgPool2d)):
        spread = (op.dilation[0] if isinstance(op, MaxPool2d) else 1) * (op.kernel[0] - 1) + 1
        return Rows(spread, op.stride[0], op.padding[0])
    return None


def activations(graph: Graph, node: Node) -> list[str]:
    return [name for name in node.inputs if graph[name].data is None]


def chains(graph: Graph) -> list[tuple[Block, ...]]:
    """The longest chains of blocks that can run in bands. A block is a layer, or layers that branch and come together
    again: it reads one tensor from outside, and only its last tensor is read there. In a chain, a block is all that
    reads the one before."""
    readers: dict[str, set[int]] = {}
    for i, node in enumerate(graph.nodes):
        for name in node.inputs:
            readers.setdefault(name, set()).add(i)
    for name in (*graph.outputs, *(s.next for s in graph.state)):
        readers.setdefault(name, set()).add(len(graph.nodes))
    fits = [rows_of(graph, node) is not None for node in graph.nodes]
    found: list[list[Block]] = []
    ends: dict[str, list[Block]] = {}  # by the last tensor
    at = 0
    while at < len(graph.nodes):
        stop = _block(graph, readers, fits, at, closed=True) or _block(graph, readers, fits, at, closed=False)
        if stop is None:
            at += 1
            continue
        block = graph.nodes[at:stop]
        (entry,) = entries(graph, block)
        chain = ends.pop(entry, None) if readers[entry] <= set(range(at, stop)) else None
        if chain is None:
            chain = []
            found.append(chain)
        chain.append(block)
        ends[block[-1].outputs[0]] = chain
        at = stop
    return [tuple(chain) for chain in found if sum(map(len, chain)) > 1]


def _block(graph: Graph, readers: dict[str, set[int]], fits: Sequence[bool], start: int, closed: bool) -> int | None:
    """Where the smallest block that begins with a node ends. A `closed` one is all that reads its entry."""
    for stop in range(start + 1, min(start + LARGEST, len(graph.nodes)) + 1):
        if not fits[stop - 1]:
            return None
        block = graph.nodes[start:stop]
        inside = set(range(start, stop))
        open_ends = [n.outputs[0] for n in block if not readers.get(n.outputs[0], set()) <= inside]
        read = entries(graph, block)
        if open_ends == [block[-1].outputs[0]] and len(read) == 1 and (not closed or readers[read[0]] <= inside):
            return stop
    return None


def entries(graph: Graph, block: Sequence[Node]) -> list[str]:
    """The tensors that come from outside."""
    made = {n.outputs[0] for n in block}
    return list(dict.fromkeys(name for n in block for name in activations(graph, n) if name not in made))


def in_bands(graph: Graph, stage: Sequence[Node], height: int, pull: bool = False) -> Graph:
    """The same graph, in which the stage makes `height` rows of its output at a time. With `pull` its input's rows
    come from the caller, as they are needed."""
    return _Bands(graph, stage, height, pull).graph()


@dataclass(frozen=True)
class _Part:
    """Rows of a tensor of the stage, from `first` on, that a tensor of the new graph has."""

    name: str
    first: int


class _Bands:
    """Writes the nodes of all bands."""

    def __init__(self, graph: Graph, stage: Sequence[Node], height: int, pull: bool) -> None:
        self.whole = graph
        self.stage = stage
        self.height = height
        self.pull = pull
        self.nodes: list[Node] = []
        self.new: dict[str, Tensor] = {}
        (self.entry,) = entries(graph, stage)
        self.exit = stage[-1].outputs[0]
        self.rows: list[Rows] = []
        self.readers: dict[str, list[tuple[Node, Rows]]] = {}
        for node in stage:
            rows = rows_of(graph, node)
            assert rows is not None
            self.rows.append(rows)
            for name in dict.fromkeys(activations(graph, node)):
                self.readers.setdefault(name, []).append((node, rows))
        self.done = dict.fromkeys([self.entry, *(n.outputs[0] for n in stage)], 0)  # rows made of each tensor so far
        self.there: dict[str, _Part] = {}  # what is at hand of each: what was kept, and the new rows of this band
        self.halos: set[str] = set()
        if not pull:
            self.there[self.entry] = _Part(self.entry, 0)

    def graph(self) -> Graph:
        total = self.whole[self.exit].shape[HEIGHT]
        stops = [*range(self.height, total, self.height), total]
        pieces = tuple(self._band(self._wanted(stop)) for stop in stops)
        joined = self._add(Cat(HEIGHT), pieces, self.whole[self.exit], total, self.exit)
        nodes: list[Node] = []
        for node in self.whole.nodes:
            if node is self.stage[-1]:
                nodes += self.nodes
            elif not any(node is n for n in self.stage):
                nodes.append(node)
        return rebuilt(self.whole, nodes, self.new.values(), {self.exit: joined})

    def _wanted(self, stop: int) -> dict[str, int]:
        """How many rows of each tensor the first `stop` rows of the output need."""
        wanted = {self.exit: stop}
        for node, rows in zip(reversed(self.stage), reversed(self.rows), strict=True):
            for name in activations(self.whole, node):
                until = min(rows.needed(0, wanted[node.outputs[0]])[1], self._height(name))
                wanted[name] = max(wanted.get(name, 0), until)
        return wanted

    def _band(self, wanted: dict[str, int]) -> str:
        """Make the rows between `done` and `wanted` of every tensor; gives the name of the output's."""
        if self.pull:
            start, stop = self.done[self.entry], wanted[self.entry]
            if start < stop:
                self._extend(self.entry, Pull(start, stop - start), (self.entry,), stop)
        for node, rows in zip(self.stage, self.rows, strict=True):
            output = node.outputs[0]
            start, stop = self.done[output], wanted[output]
            if start < stop:
                low, high = rows.needed(start, stop)
                total = self._height(activations(self.whole, node)[0])
                inside = [self._inside(name, max(low, 0), min(high, total)) for name in node.inputs]
                op = _padded(node.op, max(-low, 0), max(high - total, 0))
                self._extend(output, op, tuple(inside), stop)
            for name in dict.fromkeys(activations(self.whole, node)):
                if self.readers[name][-1][0] is node:
                    self._keep(name, wanted)
        return self.there.pop(self.exit).name

    def _extend(self, name: str, op: Op, inputs: tuple[str, ...], stop: int) -> None:
        """Make the next rows of a tensor, up to `stop`, behind those that are at hand."""
        like, start = self.whole[name], self.done[name]
        made = self._add(op, inputs, like, stop - start, f"{name}_rows{start}")
        kept = self.there.get(name)
        if kept is not None:
            made = self._add(Cat(HEIGHT), (kept.name, made), like, stop - kept.first, f"{name}_band{kept.first}")
        self.there[name] = _Part(made, start if kept is None else kept.first)
        self.done[name] = stop

    def _inside(self, name: str, start: int, stop: int) -> str:
        """Rows start … stop - 1 of a tensor; all of one that is no activation."""
        if self.whole[name].data is not None:
            return name
        return self._rows(self.there[name], start, stop)

    def _keep(self, name: str, wanted: dict[str, int]) -> None:
        """After its last reader in this band: what readers need again of a tensor is copied, the rest is not needed."""
        if name == self.entry and not self.pull:
            return
        again = self._height(name)
        for node, rows in self.readers[name]:
            made = wanted[node.outputs[0]]
            if made < self._height(node.outputs[0]):
                again = min(again, max(rows.needed(made, made + 1)[0], 0))
        part, stop = self.there.pop(name, None), self.done[name]
        if part is None or again >= stop:
            return
        rest = self._rows(part, again, stop)
        if part.name not in self.halos:  # else nothing was made since
            rest = self._add(Copy(), (rest,), self.whole[name], stop - again, f"{name}_halo{again}")
        self.halos.add(rest)
        self.there[name] = _Part(rest, again)

    def _rows(self, part: _Part, start: int, stop: int) -> str:
        x = self.new.get(part.name) or self.whole[part.name]
        if (start, stop) == (part.first, part.first + x.shape[HEIGHT]):
            return x.name
        low = start - part.first
        return self._add(Slice(HEIGHT, low, stop - part.first), (x.name,), x, stop - start, f"{x.name}_from{low}")

    def _height(self, name: str) -> int:
        return self.whole[name].shape[HEIGHT]

    def _add(self, op: Op, inputs: tuple[str, ...], like: Tensor, rows: int, stem: str) -> str:
        name = fresh(self.whole, self.new, stem)
        shape = (like.shape[0], rows, *like.shape[2:])
        self.new[name] = replace(like, name=name, shape=shape, data=None)
        self.nodes.append(Node(op, inputs, (name,)))
        return name


def _padded(op: Op, top: int, bottom: int) -> Op:
    """The same operator with other padding above and below."""
    if not isinstance(op, (Conv2d, QConv2d, MaxPool2d, AvgPool2d, QAvgPool2d)):
        return op
    return replace(op, padding=(top, bottom, *op.padding[2:]))
