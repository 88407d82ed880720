"""What is rounded while a model is trained: a torchao Quantizer for what the int8 kernels can do.

Weights are symmetric per output channel, activations affine per tensor. An operator that only moves or selects values
(max pools, views, cat) keeps its input's scale. ReLU and its kin belong to the operator before them: nothing is rounded
in between. What masks attention is neither rounded nor observed; scores that a softmax takes have a scale for those
that matter to it. Which of these an operator is, its row of the ATen table says; the forms that work in place mean the
same.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

import torch
from torch.fx import Node
from torchao.quantization.pt2e import FakeQuantize
from torchao.quantization.pt2e.quantizer import (
    FixedQParamsQuantizationSpec,
    QuantizationAnnotation,
    QuantizationSpec,
    Quantizer,
    SharedQuantizationSpec,
)

from baretorch.frontends.aten.rows import Scales
from baretorch.frontends.aten.table import TABLE
from baretorch.frontends.torch.read import table_name
from baretorch.quantize.qat import observers
from baretorch.quantize.qat.spectra import around_spectra, name_of

# Operators that torch takes apart after quantization, so that they have no row in the ATen table.
APART = {
    "aten::concatenate": Scales.ALIKE,
    "aten::feature_dropout": Scales.SAME,
    "aten::glu": Scales.OWN,
    "aten::special_log_ndtr": Scales.OWN,
    "aten::special_ndtr": Scales.OWN,
    "aten::tensor_split": Scales.PARTS,
    "aten::true_divide": Scales.PAIR,
}
LAYERS = (Scales.LAYER, Scales.TRANSPOSED)
RECURRENT = (Scales.RECURRENT, Scales.CELL)
TAKE_LIMITS = (*LAYERS, Scales.PAIR, Scales.SUM)  # operators that can take along what follows
MOVES = (Scales.SAME, Scales.PARTS)
# Outputs whose range is known: scale and zero point.
FIXED = {Scales.UNIT: (1 / 256, -128), Scales.SOFTMAX: (1 / 256, -128), Scales.SIGNED: (1 / 128, 0)}


def scales_of(node: Any) -> Scales | None:
    """Which int8 scales an operator has; None if it stays float, or is no operator."""
    name = table_name(node.target) if isinstance(node, Node) and node.op == "call_function" else ""
    return TABLE[name].scales if name in TABLE else APART.get(name.rstrip("_"))


def activation_spec(observer: Any) -> QuantizationSpec:
    """int8, affine, one scale per tensor, which this observer finds."""
    return QuantizationSpec(torch.int8, _trained(observer), -128, 127, torch.per_tensor_affine)


def weight_spec(axis: int) -> QuantizationSpec:
    """int8 from -127 to 127, symmetric, one scale per output channel, which is this axis."""
    made = _trained(observers.MovingPerChannelMinMax, ch_axis=axis)
    return QuantizationSpec(torch.int8, made, -127, 127, torch.per_channel_symmetric, ch_axis=axis)


def _trained(observer: Any, **how: int) -> Any:
    """Rounds while a model is trained. torch's fused form would have a floor under scales of its own."""
    return FakeQuantize.with_args(observer=observer, **how)


class Int8Quantizer(Quantizer):  # type: ignore[misc]
    """Annotates every operator that has an int8 kernel, but for the layers named in `keep_float`."""

    def __init__(self, keep_float: Collection[str] = ()) -> None:
        self.keep_float = frozenset(keep_float)
        self.activation = activation_spec(observers.MovingMinMax)
        self.mask = activation_spec(observers.MovingMaskedMinMax)
        self.weights = tuple(weight_spec(axis) for axis in (0, 1))
        self.whole = replace(self.activation, quant_min=-127, qscheme=torch.per_tensor_symmetric)
        self.kept: set[str] = set()  # which of keep_float were found
        self.settled: dict[Node, Any] = {}  # values whose scale is not for their readers to choose
        self.scores: dict[Node, QuantizationSpec] = {}  # values that a softmax takes and nobody else
        self.constants: set[Node] = set()

    def transform_for_annotation(self, model: Any) -> Any:
        """A product of matrices with a summand, as two operators."""
        for node in list(model.graph.nodes):
            if node.target is torch.ops.aten.baddbmm.default and not node.kwargs:
                _apart(model.graph, node)
        model.recompile()
        return model

    def annotate(self, model: Any) -> Any:
        apart = around_spectra(model, lambda node: scales_of(node) in (*LAYERS, *RECURRENT))
        apart |= _masks(model.graph.nodes)
        self.constants = _constants(model.graph.nodes)
        for node in reversed(model.graph.nodes):
            self._find_scores(node)
        for node in model.graph.nodes:
            if node.op == "call_function" and not self._keeps(node) and node not in apart:
                self._annotate(node)
        return model

    def _find_scores(self, node: Node) -> None:
        """Scores are what a softmax takes, what that is a view of, and their summands, one of which may be a mask."""
        scales = scales_of(node)
        if scales is Scales.SOFTMAX:
            value, axis = node.args[:2]
            axis -= value.meta["val"].dim() if axis >= 0 else 0
            self._offer(value, activation_spec(observers.MovingScoresMinMax.with_args(axis=axis)))
        elif node in self.scores and scales is Scales.SAME:
            self._offer(node.args[0], self.scores[node])
        elif node in self.scores and scales is Scales.SUM:
            for value in _floats(node)[:2]:
                self._offer(value, self.mask)

    def _offer(self, value: Node, spec: QuantizationSpec) -> None:
        """For the value, if it is nothing but scores, to all its readers."""
        through = (Scales.SAME, Scales.SUM)
        if all(scales_of(u) is Scales.SOFTMAX or (u in self.scores and scales_of(u) in through) for u in value.users):
            self.scores.setdefault(value, spec)

    def validate(self, model: Any) -> None:
        """Nothing can be wrong with our own annotations."""

    def _annotate(self, node: Node) -> None:
        scales = scales_of(node)
        values = _floats(node)
        if scales in LAYERS:
            x, weight = node.args[:2]
            _note(node, {x: self._spec(x), weight: self._weight(node)}, self._output(node))
        elif scales in (Scales.LIMITS, Scales.NORM) and self._taken_along(node):
            _note(node, {}, self._output(node) if scales is Scales.NORM else self._own(node))
        elif node.target is operator.getitem:
            self._part(node, node.args[0], node.args[1])
        elif not values:
            return
        elif scales is Scales.COPIED:
            self._same(node, values[-1:])
        elif scales in RECURRENT:
            begins = dict.fromkeys(_begins(node), self.activation)
            single = isinstance(node.meta["val"], torch.Tensor)
            _note(node, {values[0]: self._spec(values[0]), **begins}, self._hidden(node, node) if single else None)
        elif scales in FIXED:
            scale, zero = FIXED[scales]
            fixed = FixedQParamsQuantizationSpec(torch.int8, scale, zero, -128, 127, torch.per_tensor_affine)
            self.settled[node] = fixed
            _note(node, {values[0]: self._spec(values[0])}, fixed)
        elif scales in (Scales.PAIR, Scales.SUM):
            _note(node, {v: self._spec(v) for v in values[:2]}, self._output(node))
        elif scales in (Scales.OWN, Scales.NORM):
            _note(node, {values[0]: self._spec(values[0])}, self._output(node))
        elif scales is Scales.LIMITS:
            _note(node, {values[0]: self._spec(values[0])}, self._own(node))
        elif scales is Scales.ATTENTION:
            _note(node, {v: self._spec(v) for v in node.args[:3]}, self._own(node))
        elif scales is Scales.SAME and node in self.constants:
            return
        elif scales in MOVES:
            self._same(node, values[:1], scales is Scales.PARTS)
        elif scales is Scales.ALIKE and node in self.scores:
            _note(node, {v: self._spec(v) for v in values if v not in self.constants}, self.scores[node])
        elif scales is Scales.ALIKE:
            self._same(node, values)

    def _part(self, node: Node, whole: Node, index: int) -> None:
        """One of several results."""
        scales = scales_of(whole)
        if scales is Scales.PARTS:
            self.settled[node] = SharedQuantizationSpec((whole.args[0], whole))
        elif scales in RECURRENT and index in ((0, 1) if scales is Scales.RECURRENT else (0,)):
            _note(node, {}, self._hidden(whole, node))

    def _same(self, node: Node, values: list[Node], parts: bool = False) -> None:
        """All in one scale. Where an input's scale is settled otherwise, the others keep theirs, and the output its
        own: they are brought together where they meet."""
        first, *rest = sorted(values)  # in the order of execution: scales that share in a circle have torchao recurse
        if rest and any(v in self.settled for v in values):
            _note(node, {v: self._spec(v) for v in values}, self.activation)
            return
        shared = SharedQuantizationSpec((first, node))
        _note(node, {first: self._spec(first), **dict.fromkeys(rest, shared)}, None if parts else shared)
        if first in self.settled:
            self.settled[node] = self.settled[first]

    def _hidden(self, layer: Node, result: Node) -> Any:
        """The scale of a recurrent layer's hidden state: the same before and after."""
        begins = _begins(layer)
        if not begins:
            return self.activation
        self.settled[result] = SharedQuantizationSpec((begins[0], layer))
        return self.settled[result]

    def _spec(self, value: Node) -> Any:
        return self.settled.get(value, self._own(value))

    def _own(self, value: Node) -> Any:
        return self.scores.get(value, self.activation)

    def _weight(self, node: Node) -> QuantizationSpec:
        """By output channel; the groups of a transposed convolution do not have them along one axis."""
        transposed = scales_of(node) is Scales.TRANSPOSED
        groups = node.args[6] if transposed and len(node.args) > 6 else 1
        return self.whole if groups != 1 else self.weights[transposed]

    def _output(self, node: Node) -> QuantizationSpec | None:
        """None where limits follow, or a BatchNorm: they are part of this operator, and the scale is theirs."""
        (user,) = node.users if len(node.users) == 1 else (None,)
        follows = user is not None and scales_of(user) in (Scales.LIMITS, Scales.NORM)
        return None if follows and self._taken_along(user) else self._own(node)

    def _taken_along(self, node: Node) -> bool:
        """The limits follow an operator that nobody else reads, so they become part of it. So does a BatchNorm behind a
        layer."""
        before = node.args[0]
        if not isinstance(before, Node) or len(before.users) != 1:
            return False
        if scales_of(node) is Scales.NORM:
            return scales_of(before) in LAYERS
        return scales_of(before) in TAKE_LIMITS or (scales_of(before) is Scales.NORM and self._taken_along(before))

    def _keeps(self, node: Node) -> bool:
        stack = node.meta.get("nn_module_stack") or {}
        path = str(list(stack.values())[-1][0]) if stack else ""
        names = {path, node.name}
        self.kept |= names & self.keep_float
        return bool(names & self.keep_float)


def _apart(graph: Any, node: Node) -> None:
    summand, a, b = node.args
    with graph.inserting_before(node):
        product = graph.call_function(torch.ops.aten.bmm.default, (a, b))
        total = graph.call_function(torch.ops.aten.add.Tensor, (product, summand))
    product.meta, total.meta = dict(node.meta), dict(node.meta)
    node.replace_all_uses_with(total)
    graph.erase_node(node)


def _masks(nodes: Iterable[Node]) -> set[Node]:
    """What only says which keys take part in attention."""
    masks: set[Node] = set()
    for node in reversed(list(nodes)):
        if node.op == "call_function" and node.users and all(u in masks or _is_mask(node, u) for u in node.users):
            masks.add(node)
    return masks


def _is_mask(value: Node, user: Node) -> bool:
    return scales_of(user) is Scales.ATTENTION and value not in user.args[:3]


def _begins(node: Node) -> list[Node]:
    """The hidden state that a recurrent layer is given; none if that is zeros."""
    states = node.args[1]
    first = states[0] if isinstance(states, (list, tuple)) else states
    return [] if name_of(first) == "zeros" else [first]


def _floats(node: Node) -> list[Node]:
    """The float tensors among the arguments, each once."""
    flat = [a for argument in node.args for a in (argument if isinstance(argument, (list, tuple)) else (argument,))]
    return list(dict.fromkeys(a for a in flat if _is_float(a)))


def _constants(nodes: Iterable[Node]) -> set[Node]:
    """What depends on no input."""
    found: set[Node] = set()
    for node in nodes:
        if node.op == "get_attr" or (node.op == "call_function" and found.issuperset(node.all_input_nodes)):
            found.add(node)
    return found


def _is_float(argument: Any) -> bool:
    value = argument.meta.get("val") if isinstance(argument, Node) else None
    return isinstance(value, torch.Tensor) and value.dtype is torch.float32


def _note(node: Node, inputs: dict[Any, Any], output: Any) -> None:
    node.meta["quantization_annotation"] = QuantizationAnnotation(
        input_qspec_map=inputs, output_qspec=output, _annotated=True
    )
