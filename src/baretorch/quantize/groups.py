"""Find the tensors of a float Graph that get int8 scales, and those that share one.

Each operator's row in the table of operators states which scales it needs (ops/int8/scaled.py). Tensors share a scale
if an operator between them only moves or selects values. Some tensors around int8 operators get none: masks of
attention, values around a Fourier transform, and intermediate values of one table or layer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from baretorch.ir.graph import Array, DType, Graph, Node, Quant
from baretorch.ops import int8_rule, scaling_of
from baretorch.ops.elementwise import Elementwise
from baretorch.ops.int8.qelementwise import element_by_element, scales_and_shifts
from baretorch.ops.int8.scaled import FIXED, Scaled
from baretorch.ops.layout import Pad, Permute
from baretorch.ops.logic import Where
from baretorch.ops.softmax import Softmax
from baretorch.passes.spectra import around_spectra
from baretorch.passes.to_int8 import mask_tensors
from baretorch.quantize.observers import MASKED_BELOW, NEGLIGIBLE, MaskedValues, Scores, Values


@dataclass(frozen=True)
class Group:
    """Tensors that share one scale, which is known, or to be found from the values of those that are `seen`, and from
    constants that they are mixed with, by the name of the constant, or of the state or result that holds it."""

    members: tuple[str, ...]
    fixed: Quant | None
    seen: Mapping[str, Values]
    constants: Mapping[str, Array]


@dataclass(frozen=True)
class Groups:
    """The groups of activations, and the weights that get a scale for each output channel."""

    activations: tuple[Group, ...]
    weights: tuple[str, ...]


def find_groups(graph: Graph, kept: Collection[str] = ()) -> Groups:
    """Return the tensors that need scales. Nodes whose outputs are `kept` in float need none."""
    return _Walk(graph, set(kept)).find_groups()


@dataclass
class _Walk:
    graph: Graph
    kept: set[str]
    parent: dict[str, str] = field(default_factory=dict)  # of each tensor with a scale: another of its group, or itself
    fixed: dict[str, Quant] = field(default_factory=dict)  # by the first tensor of a group
    constants: dict[str, dict[str, Array]] = field(default_factory=dict)  # by a tensor of the group
    weights: dict[str, None] = field(default_factory=dict)
    layers: dict[object, str] = field(default_factory=dict)  # parts of a layer that was split share a scale
    computed: set[str] = field(default_factory=set)  # inputs and outputs of int8 operators
    scores: dict[str, Values] = field(default_factory=dict)  # tensors that only a softmax reads

    def __post_init__(self) -> None:
        graph = self.graph
        self.uses, self.makers = graph.uses(), graph.producer()
        self.ends = graph.kept
        apart = self.kept | mask_tensors(graph) | around_spectra(graph)
        self.nodes = [n for n in graph.nodes if not apart.intersection(n.outputs) and self._has_form(n)]
        self.forms = {n.outputs[0] for n in self.nodes}
        self.root = self._roots()
        self.inner = self._inner()

    def find_groups(self) -> Groups:
        for node in reversed(self.nodes):
            self._find_scores(node)
        for node in self.nodes:
            self._visit(node)
        for state in self.graph.state:
            if {state.name, state.next} <= set(self.parent) and not self._have_fixed_scale((state.name, state.next)):
                self._join(state.name, state.next)
        members: dict[str, list[str]] = {}
        for name in self.parent:
            members.setdefault(self._first(name), []).append(name)
        groups = [self._group(first, names) for first, names in members.items() if not self._passes(names)]
        return Groups(tuple(groups), tuple(self.weights))

    # Intermediate values of an int8 operator.

    def _has_form(self, node: Node) -> bool:
        """Report whether the node becomes int8 if its tensors have scales."""
        constant = slice(1, None) if scaling_of(node.op) is Scaled.LAYER else slice(-3, None)
        if scaling_of(node.op) in (Scaled.LAYER, Scaled.RECURRENT):
            return all(t.data is not None for t in self.graph.of(node.inputs[constant]))
        return int8_rule(node.op) is not None

    def _roots(self) -> dict[str, str]:
        """Map each tensor that depends on a single tensor, element by element, to that tensor."""
        root: dict[str, str] = {}
        for node in self.nodes:
            if isinstance(node.op, Elementwise) and element_by_element(self.graph, node):
                varying = {root.get(n, n) for n in node.inputs if self.graph[n].data is None}
                if len(varying) == 1 and self._is_value(next(iter(varying))):
                    root[node.outputs[0]] = varying.pop()
        return root

    def _inner(self) -> set[str]:
        """Return the tensors that only nodes of the same table read, or of the same factor and summand per channel."""
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
        """Find the scores of a softmax: its input, tensors of which that is a view, and their summands, one of which
        may be a mask."""
        (out, *_), values = node.outputs, self._values(node)
        if isinstance(node.op, Softmax) and scaling_of(node.op) is Scaled.SOFTMAX:
            self._offer(values, Scores(node.op.axis))
        elif out in self.scores and scaling_of(node.op) is Scaled.ALIKE and len(values) == 1 == len(node.inputs):
            self._offer(values, _before_move(node, self.scores[out]))
        elif out in self.scores and scaling_of(node.op) is Scaled.SUM:
            self._offer(values, MaskedValues())
        elif out in self.scores and isinstance(node.op, Where):
            self._offer([name for name in values if self._may_be_masked(name)], MaskedValues(far=NEGLIGIBLE))

    def _may_be_masked(self, name: str) -> bool:
        """Report whether scores may hold minus infinity before their next mask, because there is a second mask."""
        node = self.makers.get(name)
        if node is None or not isinstance(node.op, Where):
            return node is not None and scaling_of(node.op) is Scaled.SUM
        return any(
            data is not None and data.dtype == np.float32 and bool((data < MASKED_BELOW).any())
            for data in (self.graph[n].data for n in node.inputs)
        )

    def _offer(self, values: list[str], relevant: Values) -> None:
        """Note each tensor that is nothing but scores for all nodes that read it."""
        for name in values:
            if name not in self.ends and all(self._takes_scores(n) for n in self.uses[name]):
                self.scores.setdefault(name, relevant)

    def _takes_scores(self, node: Node) -> bool:
        alike = scaling_of(node.op) is Scaled.ALIKE and len(node.inputs) == 1
        through = alike or scaling_of(node.op) is Scaled.SUM or isinstance(node.op, Where)
        return scaling_of(node.op) is Scaled.SOFTMAX or (node.outputs[0] in self.scores and through)

    # Groups.

    def _visit(self, node: Node) -> None:
        how, (out, *_) = scaling_of(node.op), node.outputs
        if out in self.inner or how is None or not self._is_value(out):
            return
        values = [n for n in self._values(node) if n not in self.inner]
        if out in self.root:
            how, values = how if how in FIXED else Scaled.OWN, self._arguments(node)
        if node.op.computes or how is not Scaled.ALIKE:
            self.computed.update((*values, *node.outputs))
        for name in values if how is not Scaled.RECURRENT else values[:1]:
            self._add(name)
        if how is Scaled.ALIKE:
            self._alike(node, values, out)
        elif how is Scaled.RECURRENT:
            hidden = [*node.outputs[:2], *(n for n in node.inputs[1:-3][:1] if self.graph[n].data is None)]
            for name in hidden:
                self._add(name)
                self._join(out, name)
        else:
            self._add(out)
            if how in FIXED:
                self.fixed[out] = FIXED[how]
            if how is Scaled.LAYER:
                self.weights[node.inputs[1]] = None
                self._join(self.layers.setdefault((node.op, node.inputs[0], self.graph[out].origin), out), out)
            if how is Scaled.SUM and out in self.scores:
                for name in set(node.inputs).difference(values):  # a constant mask
                    self._add(name)

    def _arguments(self, node: Node) -> list[str]:
        """Return the tensors of which a table is a function: inputs with a scale of their own, or else the tensors from
        which those are computed."""
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
        """Join inputs and output in one scale. If the scale of an input is fixed, the others keep their own, and the
        operator converts them. So it does with scores, whose scale is not for all values of their inputs."""
        self._add(out)
        if out in self.scores and len(node.inputs) > 1:
            return
        several = len({self._first(n) for n in values}) > 1
        if not (several and self._have_fixed_scale(values)):
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
        constants |= {name: MaskedValues().select(data) for name in names if (data := graph[name].data) is not None}
        after = {s.name: s.next for s in graph.state}
        passed = {state for name in names for state in _states_before(name, after)}
        constants |= {s.name: s.initial for s in graph.state if s.name in passed}
        scores = {name: self.scores[name] for name in names if name in self.scores}
        if len(scores) == len(names):
            seen = {name: v for name, v in scores.items() if isinstance(v, Scores)} or scores
        else:
            free = [n for n in names if graph[n].data is None and not self._implied(n, first)]
            roots = {after[held[-1]] if (held := _states_before(n, after)) else n for n in free}
            seen = dict.fromkeys(sorted(roots - set(after)), Values())
        return Group(tuple(names), self.fixed.get(first), seen, constants)

    def _implied(self, name: str, first: str) -> bool:
        """Report whether a tensor is made only from values of its group."""
        node = self.makers.get(name)
        if node is None or scaling_of(node.op) is not Scaled.ALIKE or name in self.root:
            return False
        values = self._values(node)
        return bool(values) and all(n in self.parent and self._first(n) == first for n in values)

    def _passes(self, names: list[str]) -> bool:
        """Report whether float operators compute with the tensors, but no int8 operator does: then they stay float."""
        if self.computed.intersection(names):
            return False
        neighbours = [
            *(self.makers[n] for n in names if n in self.makers),
            *(u for n in names for u in self.uses.get(n, ())),
        ]
        return any(n.op.computes and scaling_of(n.op) is None for n in neighbours)

    def _have_fixed_scale(self, names: Collection[str]) -> bool:
        return any(self._first(name) in self.fixed for name in names)

    def _values(self, node: Node) -> list[str]:
        """Return the float tensors that a node computes with, each once, without constants."""
        names = dict.fromkeys(node.inputs[node.op.values])
        return [n for n in names if self._is_value(n)]

    def _is_value(self, name: str) -> bool:
        return self.graph[name].dtype is DType.FLOAT32 and self.graph[name].data is None

    def _add(self, name: str) -> None:
        self.parent.setdefault(name, name)

    def _first(self, name: str) -> str:
        while self.parent[name] != name:
            self.parent[name] = name = self.parent[self.parent[name]]
        return name

    def _join(self, one: str, other: str) -> None:
        """Merge the group of the second tensor into the group of the first."""
        self.parent[self._first(other)] = self._first(one)


def _states_before(name: str, after: Mapping[str, str]) -> list[str]:
    """Return a state and the states that held its value before; a delay line has several."""
    held: list[str] = []
    while name in after and name not in held:
        held.append(name)
        name = after[name]
    return held


def _before_move(node: Node, relevant: Values) -> Values:
    """Return the relevant values of the input of a node that moves scores. Only a permutation keeps rows apart."""
    if isinstance(relevant, Scores):
        return Scores(node.op.dims[relevant.axis]) if isinstance(node.op, Permute) else MaskedValues()
    return relevant
