"""Parameters of int8 layers, and their weights in the layout of portable kernels."""

from __future__ import annotations

from math import prod
from typing import Any

from baretorch.ir.graph import Array
from baretorch.ops.conv2d import geometry_params
from baretorch.ops.helpers.kernel import Call, Kernel, Packed, Params, data_of, fields_of, pack_inputs, with_pitch


def conv_params(call: Call[Any]) -> Params:
    """Return the parameters of a qconv2d."""
    shape = geometry_params(Call(call.op.geometry, call.inputs, call.outputs))
    own = fields_of(call.op, "shift", "x_zero", "zero", "lo", "hi")
    return with_pitch("bt_qconv2d_channels", Params("bt_qconv2d", (*shape, *own)), call)


def row_params(call: Call[Any]) -> Params:
    """Return the parameters of a qlinear, or of a qconv2d of single pixels, whose pixels are its rows."""
    out, in_ = weight_rows(call).shape
    sizes = (("batch", prod(call.x.shape[:-1])), ("in", in_), ("out", out))
    return Params("bt_qlinear", (*sizes, *fields_of(call.op, "shift", "zero", "lo", "hi")))


# `for_cpu` derives the kernels of int8 layers from these.
CONVOLUTION = Kernel[Any]("bt_qconv2d_ref", "qconv2d/ref.c", conv_params)
LINEAR = Kernel[Any]("bt_qlinear_ref", "qlinear/ref.c", row_params)


def pack_layer(call: Call[Any]) -> tuple[Packed, ...]:
    """Return the constants of an int8 layer as they are."""
    return pack_inputs(call, "weight", "bias", "multiplier")


def pack_weight(call: Call[Any], weight: Array) -> tuple[Packed, ...]:
    """Return these weights, and the other constants of an int8 layer as they are."""
    return (Packed("weight", weight), *pack_inputs(call, "bias", "multiplier", first=2))


def to_multiple(count: int, to: int) -> int:
    return -(-count // to) * to


def weight_rows(call: Call[Any]) -> Array:
    """Return the weights of each output as a row."""
    weight = data_of(call.inputs, 1)
    return weight.reshape(len(weight), -1)
