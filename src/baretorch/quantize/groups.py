"""Which tensors of a float Graph get int8 scales, and which share one.

Each operator's row in the table of operators states which scales it wants (ops/int8/scaled.py). Tensors joined by
operators that only move or select values share a scale. Some tensors that look as if they wanted a scale get none:
masks of attention, values around a Fourier transform, and parts of a larger table or layer of one int8 operator.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from baretorch.ir.graph import Array, DType, Graph, Node, Quant
from baretorch.ops import int8_rule, scaled
from baretorch.ops.elementwise import Elementwise
from baretorch.ops.int8.qelementwise import element_by_element, scales_and_shifts
from baretorch.ops.int8.scaled import FIXED, Scaled
from baretorch.ops.layout import Pad, Permute
from baretorch.ops.logic import Where
from baretorch.ops.softmax import Softmax
from baretorch.passes.to_int8 import mask_tensors
from baretorch.quantize.observers import ABSENT, NEGLIGIBLE, Masked, Meant, Scores
from baretorch.quantize.spectra import around_spectra


@dataclass(frozen=True)
class Group:
    """Tensors that share one scale, which is known, or to be found from the values of those that are `seen`, and from
    constants that they are mixed with, by the name of the constant, or of the state or result that holds it."""

    members: tuple[str, ...]
    fixed: Quant | None
    seen: Mapping[str, Meant]
    constants: Mapping[str, Array]


@dataclass(frozen=True)
class Wanted:
    """All groups, and the weights that get a scale for each output channel."""

    groups: tuple[Group, ...]
    weights: tuple[str, ...]


def wanted(graph: Graph, kept: Collection[str] = ()) -> Wanted:
    """What to choose scales for. What the nodes make that are `kept` in float gets none from them."""
    return _Walk(graph, set(kept)).wanted()


@dataclass
class _Walk:
    graph: Graph
    kept: set[str]
    parent: dict[str, str] = field(default_factory=dict)  # of what has a scale: another of its group, or itself
    fixed: dict[str, Quant] = field(default_factory=dict)  # by the first of a group
    constants: dict[str, dict[str, Array]] = field(default_factory=dict)  # by a member of a group
    weights: dict[str, None] = field(default_factory=dict)
    layers: dict[object, str] = field(default_factory=dict)  # parts of a layer that was split stay alike
    computed: set[str] = field(default_factory=set)  # what an int8 operator computes, or computes with
    scores: dict[str, Meant] = field(default_factory=dict)  # what a softmax takes, and nobody else

    def __post_init__(self) -> None:
        graph = self.graph
        self.uses, self.makers = graph.uses(), graph.producer()
        self.ends = graph.kept
        apart = self.kept | mask_tensors(graph) | around_spectra(graph)
        self.nodes = [n for n in graph.nodes if not apart.intersection(n.outputs) and self._has_form(n)]
        self.forms = {n.outputs[0] for n in self.nodes}
        self.root = self._roots()
        self.inner = self._inner()

    def wanted(self) -> Wanted:
        for node in reversed(self.nodes):
            self._find_scores(node)
        for node in self.nodes:
            self._visit(node)
        for state in self.graph.state:
            if {state.name, state.next} <= set(self.parent) and not self._settled((state.name, state.next)):
                self._join(state.name, state.next)
        members: dict[str, list[str]] = {}
        for name in self.parent:
            members.setdefault(self._first(name), []).append(name)
        groups = [self._group(first, names) for first, names in members.items() if not self._passes(names)]
        return Wanted(tuple(groups), tuple(self.weights))

    # What is part of something larger.

    def _has_form(self, node: Node) -> bool:
        """It becomes int8 if its tensors have scales."""
        constant = slice(1, None) if scaled(node.op) is Scaled.LAYER else slice(-3, None)
        if scaled(node.op) in (Scaled.LAYER, Scaled.RECURRENT):
            return all(t.data is not None for t in self.graph.of(node.inputs[constant]))
        return int8_rule(node.op) is not None

    def _roots(self) -> dict[str, str]:
        """Of what depends on one tensor only, element by element: that tensor."""
        root: dict[str, str] = {}
        for node in self.nodes:
            if isinstance(node.op, Elementwise) and element_by_element(self.graph, node):
                varying = {root.get(n, n) for n in node.inputs if self.graph[n].data is None}
                if len(varying) == 1 and self._is_value(next(iter(varying))):
                    root[node.outputs[0]] = varying.pop()
        return root

    def _inner(self) -> set[str]:
        """What only parts of the same table read, or of the same factor and summand for each channel."""
        inner = set()
        for node in self.nodes:
            (out, *more), readers = node.outputs, self.uses.get(node.outputs[0], [])
            if more or out in self.ends or not readers:
                continue
            table = out in self.root and all(self.root.get(n.outputs[0]) == self.root[out] for n in readers)
            (reader, *others) = readers
            affine = not others and reader.outputs[0] in self.forms and scales_and_shifts(self.graph, node, reader)
            if table or affine:
                inner.add(out)
        return inner

    # Scores.

    def _find_scores(self, node: Node) -> None:
        """Scores are what a softmax takes, what that is a view of, and their summands, one of which may be a mask."""
        (out, *_), values = node.outputs, self._values(node)
        if isinstance(node.op, Softmax) and scaled(node.op) is Scaled.SOFTMAX:
            self._offer(values, Scores(node.op.axis))
        elif out in self.scores and scaled(node.op) is Scaled.ALIKE and len(values) == 1 == len(node.inputs):
            self._offer(values, _through(node, self.scores[out]))
        elif out in self.scores and scaled(node.op) is Scaled.SUM:
            self._offer(values, Masked())
        elif out in self.scores and isinstance(node.op, Where):
            self._offer([name for name in values if self._may_be_masked(name)], Masked(far=NEGLIGIBLE))

    def _may_be_masked(self, name: str) -> bool:
        """Whether scores may hold minus infinity before the mask that they meet next: a second mask does that."""
        node = self.makers.get(name)
        if node is None or not isinstance(node.op, Where):
            return node is not None and scaled(node.op) is Scaled.SUM
        return any(
            data is not None and data.dtype == np.float32 and bool((data < ABSENT).any())
            for data in (self.graph[n].data for n in node.inputs)
        )

    def _offer(self, values: list[str], meant: Meant) -> None:
        """To each value that is nothing but scores, to all its readers."""
        for name in values:
            if name not in self.ends and all(self._takes_scores(n) for n in self.uses[name]):
                self.scores.setdefault(name, meant)

    def _takes_scores(self, node: Node) -> bool:
        alike = scaled(node.op) is Scaled.ALIKE and len(node.inputs) == 1
        through = alike or scaled(node.op) is Scaled.SUM or isinstance(node.op, Where)
        return scaled(node.op) is Scaled.SOFTMAX or (node.outputs[0] in self.scores and through)

    # Groups.

    def _visit(self, node: Node) -> None:
        how, (out, *_) = scaled(node.op), node.outputs
        if out in self.inner or how is None or not self._is_value(out):
            return
        values = [n for n in self._values(node) if n not in self.inner]
        if out in self.root:
            how, values = how if how in FIXED else Scaled.OWN, self._arguments(node)
        if node.op.computes or how is not Scaled.ALIKE:
            self.computed.update((*values, *node.outputs))
        for name in values if how is not Scaled.RECURRENT else values[:1]:
            self._want(name)
        if how is Scaled.ALIKE:
            self._alike(node, values, out)
        elif how is Scaled.RECURRENT:
            hidden = [*node.outputs[:2], *(n for n in node.inputs[1:-3][:1] if self.graph[n].data is None)]
            for name in hidden:
                self._want(name)
                self._join(out, name)
        else:
            self._want(out)
            if how in FIXED:
                self.fixed[out] = FIXED[how]
            if how is Scaled.LAYER:
                self.weights[node.inputs[1]] = None
                self._join(self.layers.setdefault((node.op, node.inputs[0], self.graph[out].origin), out), out)
            if how is Scaled.SUM and out in self.scores:
                for name in set(node.inputs).difference(values):  # a constant mask
                    self._want(name)

    def _arguments(self, node: Node) -> list[str]:
        """What a table is a function of: tensors with a scale of their own among its inputs, else what those are made
        of."""
        found: dict[str, None] = {}
        waiting = [n for n in node.inputs if self.graph[n].data is None]
        while waiting:
            name = waiting.pop()
            if self._is_value(name) and name not in self.inner:
                found[name] = None
            elif name in self.root:
                waiting += [n for n in self.makers[name].inputs if self.graph[n].data is None]
        return list(found)

    def _alike(self, node: Node, values: list[str], out: str) -> None:
        """All in one scale. Where an input's scale is settled otherwise, the others keep theirs, and the output its
        own: they are brought together where they meet. So it is with scores, whose scale is not for what they are
        chosen from."""
        self._want(out)
        if out in self.scores and len(node.inputs) > 1:
            return
        several = len({self._first(n) for n in values}) > 1
        if not (several and self._settled(values)):
            for name in values:
                self._join(name, out)
        inputs = self.graph.of(node.inputs)
        added = {t.name: t.data for t in inputs if t.data is not None and t.dtype is DType.FLOAT32}
        if isinstance(node.op, Pad) and node.op.value != 0:
            added[out] = np.array([node.op.value], np.float32)
        self.constants.setdefault(out, {}).update(added)

    def _group(self, first: str, names: list[str]) -> Group:
        graph = self.graph
        constants = {n: data for name in names for n, data in self.constants.get(name, {}).items()}
        constants |= {name: Masked().of(data) for name in names if (data := graph[name].data) is not None}
        after = {s.name: s.next for s in graph.state}
        passed = {state for name in names for state in _states_before(name, after)}
        constants |= {s.name: s.initial for s in graph.state if s.name in passed}
        scores = {name: self.scores[name] for name in names if name in self.scores}
        if len(scores) == len(names):
            seen = {name: meant for name, meant in scores.items() if isinstance(meant, Scores)} or scores
        else:
            free = [n for n in names if graph[n].data is None and not self._implied(n, first)]
            roots = {after[held[-1]] if (held := _states_before(n, after)) else n for n in free}
            seen = dict.fromkeys(sorted(roots - set(after)), Meant())
        return Group(tuple(names), self.fixed.get(first), seen, constants)

    def _implied(self, name: str, first: str) -> bool:
        """It is made of values of its group alone."""
        node = self.makers.get(name)
        if node is None or scaled(node.op) is not Scaled.ALIKE or name in self.root:
            return False
        values = self._values(node)
        return bool(values) and all(n in self.parent and self._first(n) == first for n in values)

    def _passes(self, names: list[str]) -> bool:
        """Nothing computes with it in int8, but something does in float: then it stays float."""
        if self.computed.intersection(names):
            return False
        neighbours = [
            *(self.makers[n] for n in names if n in self.makers),
            *(u for n in names for u in self.uses.get(n, ())),
        ]
        return any(n.op.computes and scaled(n.op) is None for n in neighbours)

    def _settled(self, names: Collection[str]) -> bool:
        return any(self._first(name) in self.fixed for name in names)

    def _values(self, node: Node) -> list[str]:
        """The float tensors that a node computes with, each once, without constants."""
        names = dict.fromkeys(node.inputs[node.op.values])
        return [n for n in names if self._is_value(n)]

    def _is_value(self, name: str) -> bool:
        return self.graph[name].dtype is DType.FLOAT32 and self.graph[name].data is None

    def _want(self, name: str) -> None:
        self.parent.setdefault(name, name)

    def _first(self, name: str) -> str:
        while self.parent[name] != name:
            self.parent[name] = name = self.parent[self.parent[name]]
        return name

    def _join(self, one: str, other: str) -> None:
        """Into the group of the first."""
        self.parent[self._first(other)] = self._first(one)


def _states_before(name: str, after: Mapping[str, str]) -> list[str]:
    """Return a state and the states that its value has been in before, which a delay line has several of."""
    held: list[str] = []
    while name in after and name not in held:
        held.append(name)
        name = after[name]
    return held


def _through(node: Node, meant: Meant) -> Meant:
    """What scores are before they are moved; where their rows are not told from others, they are not watched there."""
    if isinstance(meant, Scores):
        if isinstance(node.op, Permute):
            return Scores(node.op.dims[meant.axis])
        return Masked()
    return meant
