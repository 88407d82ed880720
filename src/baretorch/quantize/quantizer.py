"""What is quantized, and how: a torchao Quantizer for what the int8 kernels can do.

Weights are symmetric per output channel, activations affine per tensor. An operator that only moves or selects values
(pools, views, cat) keeps its input's scale. ReLU and its kin belong to the operator before them: nothing is rounded in
between.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch.fx import Node
from torchao.quantization.pt2e import (
    FusedMovingAvgObsFakeQuantize,
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    PerChannelMinMaxObserver,
)
from torchao.quantization.pt2e.quantizer import (
    FixedQParamsQuantizationSpec,
    QuantizationAnnotation,
    QuantizationSpec,
    Quantizer,
    SharedQuantizationSpec,
)

aten = torch.ops.aten

# Layers: an input, a weight and a bias.
WEIGHTED = {
    aten.linear.default,
    aten.conv1d.default,
    aten.conv1d.padding,
    aten.conv2d.default,
    aten.conv2d.padding,
}
# Two quantized inputs, one output with a scale of its own.
BINARY = {aten.add.Tensor, aten.add_.Tensor, aten.mul.Tensor, aten.mul_.Tensor, aten.sub.Tensor}
# One input, one output with a scale of its own.
UNARY = {
    aten.mean.dim,
    aten.adaptive_avg_pool2d.default,
    aten.avg_pool2d.default,
    aten.avg_pool1d.default,
    aten.hardswish.default,
    aten.hardswish_.default,
    aten.silu.default,
    aten.silu_.default,
    aten.gelu.default,
    aten.elu.default,
    aten.leaky_relu.default,
    aten.leaky_relu_.default,
    aten.hardsigmoid.default,
    aten.softplus.default,
}
# Outputs whose range is known.
FIXED = {
    aten.sigmoid.default: (1 / 256, -128),
    aten.softmax.int: (1 / 256, -128),
    aten._softmax.default: (1 / 256, -128),
    aten.tanh.default: (1 / 128, 0),
}
# The output is made of the input's own values.
SAME = {
    aten.max_pool2d.default,
    aten.max_pool1d.default,
    aten.adaptive_max_pool2d.default,
    aten.view.default,
    aten.reshape.default,
    aten.flatten.using_ints,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.unsqueeze.default,
    aten.permute.default,
    aten.transpose.int,
    aten.slice.Tensor,
    aten.select.int,
    aten.dropout.default,
    aten.pad.default,
    aten.constant_pad_nd.default,
    aten.upsample_nearest2d.vec,
    aten.clone.default,
    aten.contiguous.default,
}
# Limits that the operator before them can take along.
LIMITS = {
    aten.relu.default,
    aten.relu_.default,
    aten.relu6.default,
    aten.relu6_.default,
    aten.hardtanh.default,
    aten.hardtanh_.default,
    aten.clamp.default,
    aten.clamp_.default,
    aten.clamp_min.default,
}


def activation_spec(observer: str = "histogram", qat: bool = False) -> QuantizationSpec:
    """int8, affine, one scale per tensor. `observer`: "histogram" cuts outliers off, "minmax" keeps them."""
    if qat:
        made = FusedMovingAvgObsFakeQuantize.with_args(observer=MovingAverageMinMaxObserver, eps=2**-12)
    else:
        made = (HistogramObserver if observer == "histogram" else MinMaxObserver).with_args(eps=2**-12)
    return QuantizationSpec(torch.int8, made, -128, 127, torch.per_tensor_affine)


def weight_spec(qat: bool = False) -> QuantizationSpec:
    """int8 from -127 to 127, symmetric, one scale per output channel."""
    if qat:
        made = FusedMovingAvgObsFakeQuantize.with_args(observer=MovingAveragePerChannelMinMaxObserver, eps=2**-12)
    else:
        made = PerChannelMinMaxObserver.with_args(eps=2**-12)
    return QuantizationSpec(torch.int8, made, -127, 127, torch.per_channel_symmetric, ch_axis=0)


class Int8Quantizer(Quantizer):  # type: ignore[misc]
    """Annotates every operator that has an int8 kernel, but for the layers named in `keep_float`."""

    def __init__(self, keep_float: Collection[str] = (), observer: str = "histogram", qat: bool = False) -> None:
        self.keep_float = frozenset(keep_float)
        self.activation = activation_spec(observer, qat)
        self.weight = weight_spec(qat)
        self.kept: set[str] = set()  # which of keep_float were found

    def annotate(self, model: Any) -> Any:
        for node in model.graph.nodes:
            if node.op == "call_function" and not self._keeps(node):
                self._annotate(node)
        return model

    def validate(self, model: Any) -> None:
        """Nothing can be wrong with our own annotations."""

    def _annotate(self, node: Node) -> None:
        target = node.target
        if target in WEIGHTED:
            x, weight = node.args[:2]
            _note(node, {x: self.activation, weight: self.weight}, self._output(node))
        elif target in BINARY and all(_is_float(a) for a in node.args[:2]):
            inputs = dict.fromkeys(node.args[:2], self.activation)
            _note(node, inputs, self._output(node))
        elif target in FIXED and _is_float(node.args[0]):
            scale, zero = FIXED[target]
            fixed = FixedQParamsQuantizationSpec(torch.int8, scale, zero, -128, 127, torch.per_tensor_affine)
            _note(node, {node.args[0]: self.activation}, fixed)
        elif target in UNARY and _is_float(node.args[0]):
            _note(node, {node.args[0]: self.activation}, self._output(node))
        elif target in SAME and _is_float(node.args[0]):
            shared = SharedQuantizationSpec((node.args[0], node))
            _note(node, {node.args[0]: self.activation}, shared)
        elif target is aten.cat.default:
            parts = list(node.args[0])
            first = parts[0]
            shared = SharedQuantizationSpec((first, node))
            _note(node, {first: self.activation, **{p: shared for p in parts[1:] if p is not first}}, shared)
        elif target in LIMITS and not _taken_along(node) and _is_float(node.args[0]):
            _note(node, {node.args[0]: self.activation}, self.activation)
        elif target in LIMITS and _taken_along(node):
            _note(node, {}, self.activation)

    def _output(self, node: Node) -> QuantizationSpec | None:
        """None where limits follow: they are part of this operator, and the scale is theirs."""
        (user,) = node.users if len(node.users) == 1 else (None,)
        return None if user is not None and user.target in LIMITS else self.activation

    def _keeps(self, node: Node) -> bool:
        stack = node.meta.get("nn_module_stack") or {}
        path = str(list(stack.values())[-1][0]) if stack else ""
        names = {path, node.name}
        self.kept |= names & self.keep_float
        return bool(names & self.keep_float)


def _taken_along(node: Node) -> bool:
    """The limits follow an operator that nobody else reads, so they become part of it."""
    before = node.args[0]
    return isinstance(before, Node) and len(before.users) == 1 and before.target in (WEIGHTED | BINARY)


def _is_float(argument: Any) -> bool:
    value = argument.meta.get("val") if isinstance(argument, Node) else None
    return isinstance(value, torch.Tensor) and value.dtype is torch.float32


def _note(node: Node, inputs: dict[Any, Any], output: Any) -> None:
    node.meta["quantization_annotation"] = QuantizationAnnotation(
        input_qspec_map=inputs, output_qspec=output, _annotated=True
    )
