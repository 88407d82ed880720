"""Run a part of an image network in bands of rows, so that its largest tensors never exist as a whole.

Such a part has one input and one output, and each row of a tensor depends on a few rows of others, as the operators
define (`Op.cut`). For each band of the part's output rows, every layer computes only the rows that are missing. Rows
of a tensor that are needed again, the halo, are copied: the tensor of a band is the halo followed by the new rows. So
nothing is computed twice, and the rows of the part's input are requested in order.

This is a rewrite of the Graph: the rows of an image are contiguous, so a slice of them is a view, and a cat along them
is where they are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from baretorch.ir.graph import Graph, Node, Op, Piece, Tensor, fresh
from baretorch.ops.input_rows import Pull
from baretorch.ops.move import Cat, Copy, Slice
from baretorch.passes.rewrite import rebuild
from baretorch.plan.types import Bands, Plan

HEIGHT = 1  # the axis of rows
LARGEST = 64  # layers of a block

Segment = tuple[Node, ...]


def goes_in_rows(graph: Graph, node: Node) -> bool:
    """Return whether each row of the node's output depends only on some rows of its activations, and on padding."""
    images = [t for t in graph.of((*node.inputs, *node.outputs)) if t.data is None]
    if len(node.outputs) != 1 or len(images) < 2 or any(len(t.shape) != 4 or t.shape[0] != 1 for t in images):
        return False
    last = images[-1].shape[HEIGHT] - 1
    return _takes_rows(graph, node, 0, 1) and _takes_rows(graph, node, last, last + 1)


def _takes_rows(graph: Graph, node: Node, start: int, stop: int) -> bool:
    """Return whether these rows depend on some rows of each activation, and on all of each constant."""
    piece = _piece(graph, node, start, stop)
    if piece is None:
        return False
    reads = zip(graph.of(node.inputs), piece.reads, strict=True)
    return all(span is None if t.data is not None else span and span.axis == HEIGHT for t, span in reads)


def _piece(graph: Graph, node: Node, start: int, stop: int) -> Piece | None:
    """Return the piece of a node that computes rows start to stop - 1 of its output."""
    return node.op.cut(graph.of(node.inputs), graph[node.outputs[0]], HEIGHT, start, stop)


def activations(graph: Graph, node: Node) -> list[str]:
    return [name for name in node.inputs if graph[name].data is None]


def chains(graph: Graph) -> list[tuple[Segment, ...]]:
    """Find the longest chains of blocks that can run in bands.

    A block is a layer, or layers that branch and join again: it reads one tensor from outside, and only its last tensor
    is read there. In a chain, each block is the only reader of the one before.
    """
    readers: dict[str, set[int]] = {}
    for i, node in enumerate(graph.nodes):
        for name in node.inputs:
            readers.setdefault(name, set()).add(i)
    for name in (*graph.outputs, *(s.next for s in graph.state)):
        readers.setdefault(name, set()).add(len(graph.nodes))
    fits = [goes_in_rows(graph, node) for node in graph.nodes]
    found: list[list[Segment]] = []
    ends: dict[str, list[Segment]] = {}  # by the last tensor
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
    """Return the end of the smallest block that begins at a node. Nodes outside of a `closed` block do not read its
    input."""
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
    """Return the tensors that a block reads from outside."""
    made = {n.outputs[0] for n in block}
    return list(dict.fromkeys(name for n in block for name in activations(graph, n) if name not in made))


def rewrite_in_bands(graph: Graph, part: Sequence[Node], height: int, pull: bool = False) -> Graph:
    """Rewrite a graph so that a part of it computes `height` rows of its output at a time. With `pull`, the caller
    supplies the rows of the part's input as they are needed."""
    return _Bands(graph, part, height, pull).graph()


@dataclass(frozen=True)
class _Part:
    """A tensor of the new graph that has rows of a tensor of the part, from `first` on."""

    name: str
    first: int


class _Bands:
    """Writes the nodes of all bands."""

    def __init__(self, graph: Graph, part: Sequence[Node], height: int, pull: bool) -> None:
        self.whole = graph
        self.part = part
        self.height = height
        self.pull = pull
        self.nodes: list[Node] = []
        self.new: dict[str, Tensor] = {}
        (self.entry,) = entries(graph, part)
        self.exit = part[-1].outputs[0]
        self.readers: dict[str, list[Node]] = {}
        for node in part:
            for name in dict.fromkeys(activations(graph, node)):
                self.readers.setdefault(name, []).append(node)
        self.done = dict.fromkeys([self.entry, *(n.outputs[0] for n in part)], 0)  # rows computed of each tensor so far
        self.there: dict[str, _Part] = {}  # rows of each at hand: the halo and the new rows of this band
        self.halos: set[str] = set()
        if not pull:
            self.there[self.entry] = _Part(self.entry, 0)

    def graph(self) -> Graph:
        total = self.whole[self.exit].shape[HEIGHT]
        stops = [*range(self.height, total, self.height), total]
        pieces = tuple(self._band(self._rows_needed(stop)) for stop in stops)
        joined = self._add(Cat(HEIGHT), pieces, self.whole[self.exit], total, self.exit)
        nodes: list[Node] = []
        for node in self.whole.nodes:
            if node is self.part[-1]:
                nodes += self.nodes
            elif not any(node is n for n in self.part):
                nodes.append(node)
        return rebuild(self.whole, nodes, self.new.values(), {self.exit: joined})

    def _rows_needed(self, stop: int) -> dict[str, int]:
        """Return how many rows of each tensor the first `stop` rows of the output need."""
        wanted = {self.exit: stop}
        for node in reversed(self.part):
            for name, (_, until) in self._read(node, 0, wanted[node.outputs[0]]).items():
                wanted[name] = max(wanted.get(name, 0), until)
        return wanted

    def _band(self, wanted: dict[str, int]) -> str:
        """Compute the rows between `done` and `wanted` of every tensor, and return the name of the output's."""
        if self.pull:
            start, stop = self.done[self.entry], wanted[self.entry]
            if start < stop:
                self._extend(self.entry, Pull(start, stop - start), (self.entry,), stop)
        for node in self.part:
            output = node.outputs[0]
            start, stop = self.done[output], wanted[output]
            if start < stop:
                read = self._read(node, start, stop)
                inside = (self._rows(self.there[n], *read[n]) if n in read else n for n in node.inputs)
                self._extend(output, self._cut(node, start, stop).op, tuple(inside), stop)
            for name in dict.fromkeys(activations(self.whole, node)):
                if self.readers[name][-1] is node:
                    self._keep(name, wanted)
        return self.there.pop(self.exit).name

    def _extend(self, name: str, op: Op, inputs: tuple[str, ...], stop: int) -> None:
        """Compute the next rows of a tensor, up to `stop`, and append them to those at hand."""
        like, start = self.whole[name], self.done[name]
        made = self._add(op, inputs, like, stop - start, f"{name}_rows{start}")
        kept = self.there.get(name)
        if kept is not None:
            made = self._add(Cat(HEIGHT), (kept.name, made), like, stop - kept.first, f"{name}_band{kept.first}")
        self.there[name] = _Part(made, start if kept is None else kept.first)
        self.done[name] = stop

    def _cut(self, node: Node, start: int, stop: int) -> Piece:
        piece = _piece(self.whole, node, start, stop)
        assert piece is not None, "the node does not go in rows"
        return piece

    def _read(self, node: Node, start: int, stop: int) -> dict[str, tuple[int, int]]:
        """Return the rows of each activation that rows start to stop - 1 of the node's output depend on."""
        reads = zip(node.inputs, self._cut(node, start, stop).reads, strict=True)
        return {name: (span.start, span.stop) for name, span in reads if span is not None}

    def _keep(self, name: str, wanted: dict[str, int]) -> None:
        """Copy the rows of a tensor that readers need again after this band, and drop the others."""
        if name == self.entry and not self.pull:
            return
        again = self._height(name)
        for node in self.readers[name]:
            made = wanted[node.outputs[0]]
            if made < self._height(node.outputs[0]):
                again = min(again, self._read(node, made, made + 1)[name][0])
        part, stop = self.there.pop(name, None), self.done[name]
        if part is None or again >= stop:
            return
        rest = self._rows(part, again, stop)
        if part.name not in self.halos:  # else it has no new rows
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


HEIGHTS = (24, 16, 12, 8, 6, 4, 3, 2, 1)  # rows of a band
TRIALS = 150  # plans that are made before giving up
HOPELESS = 12  # plans that are tried even though they will not fit, to report how near they come


@dataclass(frozen=True)
class _Choice:
    """Layers to run in bands, and what is expected of it."""

    nodes: tuple[Node, ...]
    height: int
    bands: int
    least: int  # at least the plan's bytes, or the limit if that is more

    @property
    def cost(self) -> int:
        """The number of kernel calls: each has an overhead, and each band copies its halos."""
        return self.bands * len(self.nodes)


def choose_bands(
    whole: Plan, plan_of: Callable[[Graph], Plan], limit: int, pull: bool, fits: Callable[[Plan], bool]
) -> Plan:
    """Return the plan with the fewest calls that `fits`, or else the smallest plan tried. `whole` is the plan without
    bands, and `limit` an arena size that may be enough. With `pull`, the rows of the model's input come from the
    caller."""
    best: Plan | None = None
    choices = _choices(whole, limit, pull)
    hopeful = sum(choice.least <= limit for choice in choices)
    for choice in choices[: min(TRIALS, max(hopeful, HOPELESS))]:
        plan = plan_of(rewrite_in_bands(whole.graph, choice.nodes, choice.height, pull))
        plan = replace(plan, bands=_describe(choice, plan, whole))
        if best is None or plan.arena < best.arena:
            best = plan
        if fits(plan):
            return plan
    return best or whole


def _choices(whole: Plan, limit: int, pull: bool) -> list[_Choice]:
    """List what may help, the fewest calls first: the tensors that remain whole fit. Choices that come near follow."""
    graph = whole.graph
    live: dict[str, int] = {}
    for time, phase in enumerate(whole.phases):
        for step in phase.steps:
            name = step.nodes[0].outputs[0]
            live[name] = max(live.get(name, 0), whole.live_bytes(time))
    found = []
    for chain in chains(graph):
        for nodes in _parts(chain, graph, pull):
            inside = {n.outputs[0] for n in nodes}
            last = graph[nodes[-1].outputs[0]]
            ends = last.bytes + (0 if pull else graph[entries(graph, nodes)[0]].bytes)
            outside = max((bytes_ for name, bytes_ in live.items() if name not in inside), default=0)
            rows = last.shape[HEIGHT]
            least = max(outside, ends, limit)
            found += [_Choice(nodes, h, -(-rows // h), least) for h in HEIGHTS if h < rows]
    return sorted(found, key=lambda choice: (choice.least, choice.cost))


def _parts(chain: tuple[Segment, ...], graph: Graph, pull: bool) -> Iterator[tuple[Node, ...]]:
    """Yield two or more neighbouring layers of a chain. With `pull`, they begin with the only readers of the input."""
    for start in range(len(chain)):
        if pull and not _reads_alone(chain[start], graph):
            continue
        for stop in range(start + 1, len(chain) + 1):
            nodes = tuple(node for block in chain[start:stop] for node in block)
            if len(nodes) > 1:
                yield nodes


def _reads_alone(block: Segment, graph: Graph) -> bool:
    """Return whether a block is the only reader of an input of the model."""
    (name,) = entries(graph, block)
    others = (n for n in graph.nodes if name in n.inputs and not any(n is own for own in block))
    return name in graph.inputs and name not in graph.kept and not any(others)


def _describe(choice: _Choice, plan: Plan, whole: Plan) -> Bands:
    return Bands(tuple(n.outputs[0] for n in choice.nodes), choice.bands, _copied_bytes(plan) - _copied_bytes(whole))


def _copied_bytes(plan: Plan) -> int:
    calls = (step.call for step in plan.steps)
    return sum(call.x.bytes for call in calls if call.op.destination(call.inputs, call.y) is not None)
