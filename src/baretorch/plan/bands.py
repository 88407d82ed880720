"""Run a stage of an image network band by band, so that its largest tensors never exist as a whole.

A stage is a chain of layers of which each row of output depends on a few rows of input. For each band of the stage's
output rows every layer makes just the rows that are missing. What the next band needs once more of a tensor, the halo,
is copied away: the tensor of a band is the halo and the new rows behind it. So nothing is computed twice, and the rows
of the stage's input are asked for in order.

All of it is a rewrite of the Graph: rows of an image lie together, which makes a slice of them a view, and a cat along
them the place where they are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from baretorch.ir import Graph, Node, Op, Tensor
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.elementwise import Elementwise
from baretorch.ops.lookup import Lookup
from baretorch.ops.move import Cat, Copy, Slice
from baretorch.ops.pool import AvgPool2d, MaxPool2d
from baretorch.ops.pull import Pull
from baretorch.ops.qconv2d import QConv2d
from baretorch.ops.qpool import QAvgPool2d
from baretorch.ops.quantize import Dequantize, Quantize
from baretorch.passes.rewrite import fresh, rebuilt

HEIGHT = 1  # the axis of rows


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
    """How the node's output rows depend on the rows of its first input, its only activation; None if otherwise, or if
    some row depends on padding alone."""
    rows = _window(graph, node)
    if rows is None:
        return None
    height, last = graph[node.inputs[0]].shape[HEIGHT], graph[node.outputs[0]].shape[HEIGHT] - 1
    return rows if rows.needed(0, 1)[1] > 0 and rows.needed(last, last + 1)[0] < height else None


def _window(graph: Graph, node: Node) -> Rows | None:
    op, (x, *others), y = node.op, graph.of(node.inputs), graph[node.outputs[0]]
    image = len(x.shape) == len(y.shape) == 4 and x.shape[0] == y.shape[0] == 1 and len(node.outputs) == 1
    if not image or x.data is not None or any(t.data is None for t in others):
        return None
    if isinstance(op, (Conv2d, QConv2d)):
        spread = op.dilation[0] * (others[0].shape[1] - 1) + 1
        return Rows((op.pool[0] - 1) * op.stride[0] + spread, op.pool[0] * op.stride[0], op.padding[0])
    if isinstance(op, (MaxPool2d, AvgPool2d)) and op.ceil_mode:
        return None
    if isinstance(op, (MaxPool2d, AvgPool2d, QAvgPool2d)):
        spread = (op.dilation[0] if isinstance(op, MaxPool2d) else 1) * (op.kernel[0] - 1) + 1
        return Rows(spread, op.stride[0], op.padding[0])
    flat = all(len(t.shape) < 3 or t.shape[-3] == 1 for t in others)  # constants that are the same for every row
    if isinstance(op, (Lookup, Quantize, Dequantize)) or (isinstance(op, Elementwise) and flat):
        return Rows() if x.shape == y.shape else None
    return None


def chains(graph: Graph) -> list[tuple[Node, ...]]:
    """The longest chains of layers that can run in bands: each is all that reads the one before."""
    readers: dict[str, list[Node]] = {}
    for node in graph.nodes:
        for name in node.inputs:
            readers.setdefault(name, []).append(node)
    kept = {*graph.outputs, *(s.next for s in graph.state)}
    found: list[list[Node]] = []
    ends: dict[str, list[Node]] = {}
    for node in graph.nodes:
        if rows_of(graph, node) is None:
            continue
        x = node.inputs[0]
        chain = ends.pop(x, None) if len(readers[x]) == 1 and x not in kept else None
        if chain is None:
            chain = []
            found.append(chain)
        chain.append(node)
        ends[node.outputs[0]] = chain
    return [tuple(chain) for chain in found if len(chain) > 1]


def in_bands(graph: Graph, stage: Sequence[Node], height: int, pull: bool = False) -> Graph:
    """The same graph, in which the stage makes `height` rows of its output at a time. With `pull` its input's rows
    come from the caller, as they are needed."""
    return _Bands(graph, stage, height, pull).graph()


class _Bands:
    """Writes the nodes of all bands."""

    def __init__(self, graph: Graph, stage: Sequence[Node], height: int, pull: bool) -> None:
        self.whole = graph
        self.stage = stage
        self.height = height
        self.pull = pull
        self.nodes: list[Node] = []
        self.new: dict[str, Tensor] = {}
        self.names = [stage[0].inputs[0], *(n.outputs[0] for n in stage)]  # tensors of the stage: input, …, output
        self.halo = [""] * len(stage)  # of each tensor but the output, what was kept for the next band
        rows = [rows_of(graph, n) for n in stage]
        self.rows = [r for r in rows if r is not None]
        assert len(self.rows) == len(stage)

    def graph(self) -> Graph:
        total = self.whole[self.names[-1]].shape[HEIGHT]
        stops = [*range(self.height, total, self.height), total]
        done = [0] * len(self.names)  # rows made of each tensor so far
        pieces = [self._band(done, self._wanted(stop)) for stop in stops]
        whole = self.names[-1]
        joined = self._add(Cat(HEIGHT), tuple(pieces), self.whole[whole], total, whole)
        nodes: list[Node] = []
        for node in self.whole.nodes:
            if node is self.stage[-1]:
                nodes += self.nodes
            elif not any(node is n for n in self.stage):
                nodes.append(node)
        return rebuilt(self.whole, nodes, self.new.values(), {whole: joined})

    def _wanted(self, stop: int) -> list[int]:
        """How many rows of each tensor the first `stop` rows of the output need."""
        wanted = [stop]
        for rows, name in zip(reversed(self.rows), reversed(self.names[:-1]), strict=True):
            stop = min(rows.needed(0, stop)[1], self.whole[name].shape[HEIGHT])
            wanted.append(stop)
        return wanted[::-1]

    def _band(self, done: list[int], wanted: list[int]) -> str:
        """Make the rows between `done` and `wanted` of every tensor; gives the name of the output's."""
        made = self._pulled(done[0], wanted[0])  # the new rows of the tensor at hand, if there are any
        for i, (node, rows) in enumerate(zip(self.stage, self.rows, strict=True)):
            start, stop = done[i + 1], wanted[i + 1]
            if start == stop:
                made = ""
                continue
            low, high = rows.needed(start, stop)
            total = self.whole[self.names[i]].shape[HEIGHT]
            start_inside, stop_inside = max(low, 0), min(high, total)
            inside = self._inside(i, start_inside, stop_inside, done[i], made)
            op = _padded(node.op, max(-low, 0), max(high - total, 0))
            output = self.whole[node.outputs[0]]
            made = self._add(op, (inside, *node.inputs[1:]), output, stop - start, f"{output.name}_rows{start}")
            again = max(rows.needed(stop, stop + 1)[0], 0)  # the next band begins there
            more = stop < output.shape[HEIGHT]
            self.halo[i] = self._keep(i, inside, start_inside, again, stop_inside) if more else ""
        done[:] = wanted
        return made

    def _pulled(self, start: int, stop: int) -> str:
        if not self.pull or start == stop:
            return ""
        x = self.whole[self.names[0]]
        return self._add(Pull(start, stop - start), (x.name,), x, stop - start, f"{x.name}_rows{start}")

    def _inside(self, i: int, start: int, stop: int, done: int, made: str) -> str:
        """Rows start … stop - 1 of tensor `i`: what was kept of it, and what was made since, from row `done` on."""
        whole = self.whole[self.names[i]]
        if i == 0 and not self.pull:
            return self._rows(whole, start, stop)
        if made and done < start:  # a stride beyond the window leaves rows out
            made = self._rows(self.new[made], start - done, stop - done)
        parts = tuple(name for name in (self.halo[i], made) if name)
        if len(parts) == 1:
            return parts[0]
        return self._add(Cat(HEIGHT), parts, whole, stop - start, f"{whole.name}_band{start}")

    def _keep(self, i: int, inside: str, start: int, again: int, stop: int) -> str:
        """A copy of rows again … stop - 1 of tensor `i`, of which `inside` has those from `start` on."""
        if again >= stop or (i == 0 and not self.pull):
            return ""
        x = self._rows(self.new[inside], again - start, stop - start)
        return self._add(Copy(), (x,), self.new[x], stop - again, f"{self.names[i]}_halo{again}")

    def _rows(self, x: Tensor, start: int, stop: int) -> str:
        if (start, stop) == (0, x.shape[HEIGHT]):
            return x.name
        return self._add(Slice(HEIGHT, start, stop), (x.name,), x, stop - start, f"{x.name}_from{start}")

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
