"""qconv2d16: the convolution of int16 activations with int8 weights, for linear layers too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from baretorch.ir.graph import Array, DType, Node, Shape, Signature, Tensor
from baretorch.ops import conv2d
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.helpers import overlap
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.families import Quantized
from baretorch.ops.helpers.kernel import Call, Distances, Kernel, Packed, Params, data_of, has_constants
from baretorch.ops.helpers.window import Padding, Pair
from baretorch.ops.int8.arithmetic import HIGHEST, LOWEST
from baretorch.ops.int8.layer import store, weights_of
from baretorch.ops.int8.rules import StaysFloat, Walk
from baretorch.ops.layout import Reshape
from baretorch.ops.packing.layer import pack_layer
from baretorch.targets.features import DSP, MVE


@dataclass(frozen=True)
class QConv2d16(Quantized, name="qconv2d16"):
    """x int16[N, H, W, C], weight int8[O, KH, KW, C / groups], bias int32[O], multiplier int32[O] -> int16.

    All zero points are 0. Geometry as in conv2d."""

    shift: int = 0
    lo: int = LOWEST
    hi: int = HIGHEST
    stride: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    dilation: Pair = (1, 1)
    groups: int = 1

    @property
    def geometry(self) -> Conv2d:
        return Conv2d(self.stride, self.padding, self.dilation, self.groups)

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        _, weight, bias, multiplier = inputs
        need(
            tuple(t.dtype for t in inputs) == (DType.INT16, DType.INT8, DType.INT32, DType.INT32)
            and bias.shape == multiplier.shape == weight.shape[:1],
            self,
            "the inputs are not those of a layer of int16",
            inputs,
            "x int16, weight int8[out, ...], bias int32[out], multiplier int32[out]",
        )
        return self.infer_as_float(inputs[:2], DType.INT16)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        """Compute it in float64, exactly: accumulators are integers below 2^53."""
        x, weight, bias, multiplier = inputs
        acc = (self.geometry.sums(x, weight) + bias).astype(np.int64) << self.shift
        y = (acc * multiplier.astype(np.int64) + (1 << 31)) >> 32
        return (np.clip(y, self.lo, self.hi).astype(np.int16),)


def convolution(walk: Walk, node: Node, op: Conv2d) -> str:
    """Add the int16 form of a convolution, without its pool, and return its output."""
    own = (op.stride, op.padding, op.dilation, op.groups)
    x, shape = walk.int16(node.inputs[0]), walk.graph[node.inputs[1]].shape
    return _layer(walk, node, x, shape, (op.lo, op.hi), QConv2d16(0, LOWEST, HIGHEST, *own))


def linear(walk: Walk, node: Node, lo: float, hi: float) -> str:
    """Add the int16 form of a linear layer: a convolution with a pixel for each row of x."""
    x, w, y = walk.graph[node.inputs[0]], walk.graph[node.inputs[1]], walk.graph[node.outputs[0]]
    if w.data is None:
        raise StaysFloat("its weight or bias is computed")
    out, in_ = w.shape
    pixels = walk.add_int16(Reshape((1, prod(x.shape[:-1]), 1, in_)), x.name, walk.int16(x.name))
    whole = _layer(walk, node, pixels, (out, 1, 1, in_), (lo, hi), QConv2d16())
    return walk.add_int16(Reshape(y.shape), y.name, whole)


def _layer(walk: Walk, node: Node, x: str, shape: Shape, limits: tuple[float, float], op: QConv2d16) -> str:
    """Add the layer with weights of this shape, and return its output."""
    w, quant, bias = weights_of(walk.graph, node)
    s_x, s_y = walk.finer_scale(node.inputs[0]), walk.finer_scale(node.outputs[0])
    real = data_of([w], 0).reshape(len(bias), -1).astype(np.float64)
    stored = store(real, bias, np.array(quant.scale), s_x, s_y, steps=256, largest=-LOWEST)
    lo, hi = (int(v) for v in np.clip(np.rint(np.array(limits) / s_y), LOWEST, HIGHEST))
    made = replace(op, shift=stored.shift, lo=lo, hi=hi)
    return walk.add_int16(made, node.outputs[0], x, *stored.constants(walk, w, shape))


def _params(call: Call[QConv2d16]) -> Params:
    op = call.op
    shape = conv2d.geometry_params(Call(op.geometry, call.inputs, call.outputs))
    own = (("shift", op.shift), ("x_zero", 0), ("zero", 0), ("lo", op.lo), ("hi", op.hi))
    return Params("bt_qconv2d", (*shape, *own))


def _fits_three(call: Call[QConv2d16]) -> bool:
    return has_constants(call) and call.op.groups == 1 and not call.op.shift and call.y.shape[3] % 2 == 0


def _pack_three(call: Call[QConv2d16]) -> tuple[Packed, ...]:
    """Return all constants of two channels together; see kernels/qconv2d16/qconv2d16.h."""
    weight, bias, multiplier = (data_of(call.inputs, i) for i in (1, 2, 3))
    rows = weight.reshape(weight.shape[0], -1)
    full = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 4)))
    taps = full.reshape(full.shape[0] // 2, 2, -1).transpose(0, 2, 1)
    words = taps.reshape(full.shape[0] // 2, -1).view("<i4")
    together = np.concatenate([bias.reshape(-1, 2), words, multiplier.reshape(-1, 2)], axis=1)
    return (Packed("weight", together.astype(np.int32).reshape(-1)),)


def _scratch_three(call: Call[QConv2d16]) -> int:
    taps = prod(call.inputs[1].shape[1:])
    return 6 * (taps + -taps % 4) + 28


def _fits_rows(call: Call[QConv2d16]) -> bool:
    """Return whether there are only pixels, and so few that computing three at a time would be a waste."""
    op, (_, kernel_h, kernel_w, in_) = call.op, call.inputs[1].shape
    pixels = (op.stride, op.groups, (kernel_h, kernel_w)) == ((1, 1), 1, (1, 1)) and not any(op.padding)
    return has_constants(call) and pixels and in_ % 4 == 0 and prod(call.x.shape[:3]) < 3


def _pack_rows(call: Call[QConv2d16]) -> tuple[Packed, ...]:
    """Return four rows together, a word of each."""
    weight, bias, multiplier = (data_of(call.inputs, i) for i in (1, 2, 3))
    rows = weight.reshape(weight.shape[0], -1)
    full = np.pad(rows, ((0, -rows.shape[0] % 4), (0, 0)))
    fours = full.reshape(full.shape[0] // 4, 4, -1, 4)[..., [0, 2, 1, 3]]
    words = np.ascontiguousarray(fours.transpose(0, 2, 1, 3)).view("<i4").astype(np.int32).reshape(-1)
    return Packed("weight", words), Packed("bias", bias), Packed("multiplier", multiplier)


def _firsts(channels: int, together: int) -> Array:
    """Return the first channel of each block; the last block may overlap the one before."""
    return np.minimum(np.arange(0, channels, together), channels - together)[:, None]


def _pack_eights(call: Call[QConv2d16]) -> tuple[Packed, ...]:
    """Return all constants of four channels together, eight taps of each in turn; see kernels/qconv2d16/qconv2d16.h."""
    weight, bias, multiplier = (data_of(call.inputs, i) for i in (1, 2, 3))
    four = _firsts(len(weight), 4) + np.arange(4)
    rows = weight.reshape(len(weight), -1)
    full = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 8)))[four]
    taps = full.reshape(len(four), 4, -1, 8).transpose(0, 2, 1, 3)
    words = np.ascontiguousarray(taps).reshape(len(four), -1).view("<i4")
    stream = np.concatenate([bias[four], words, multiplier[four]], axis=1)
    return (Packed("constants", stream.astype(np.int32).reshape(-1)),)


def _fits_eights(call: Call[QConv2d16]) -> bool:
    return has_constants(call) and call.op.groups == 1 and call.y.shape[3] >= 4


def _scratch_eights(call: Call[QConv2d16]) -> int:
    taps = prod(call.inputs[1].shape[1:])
    return 2 * (taps + -taps % 8) * min(2, prod(call.y.shape[1:3]))


def _overlap(together: int) -> overlap.Overlap:
    """Return the distance of a kernel that computes pixel after pixel; see overlap.windows."""
    return overlap.windows(lambda op: op.stride, lambda op: op.padding, together)


@dataclass(frozen=True)
class _Blocks:
    """The order of weights, and of biases and multipliers, for the channels that a depthwise kernel computes together;
    see kernels/qconv2d16/depthwise.h."""

    weights: tuple[int, ...]
    terms: tuple[int, ...]

    def fits(self, call: Call[QConv2d16]) -> bool:
        return has_constants(call) and call.op.groups == call.x.shape[3] == call.y.shape[3] >= len(self.terms)

    def pack(self, call: Call[QConv2d16]) -> tuple[Packed, ...]:
        weight, bias, multiplier = (data_of(call.inputs, i) for i in (1, 2, 3))
        channels, together = len(weight), len(self.terms)
        first = _firsts(channels, together)
        taps = weight.reshape(channels, -1)[first + self.weights].transpose(0, 2, 1)
        words = np.ascontiguousarray(taps).reshape(len(first), -1).view("<i4")
        terms = first + self.terms
        stream = np.concatenate([bias[terms], multiplier[terms], words], axis=1)
        return (Packed("constants", stream.astype(np.int32).reshape(-1)),)

    def overlap(self, call: Call[QConv2d16]) -> Distances:
        """Return the distance; channels that the last block repeats are read again after they have been written."""
        return _overlap(1 if call.x.shape[3] % len(self.terms) else 0)(call)


_FOURS = _Blocks((0, 2, 1, 3), (0, 1, 2, 3))
_EIGHTS = _Blocks(tuple(range(8)), (0, 2, 4, 6, 1, 3, 5, 7))

_REF = Kernel[QConv2d16](
    "bt_qconv2d16_ref", "qconv2d16/ref.c", _params, fits=has_constants, pack=pack_layer, overlap=_overlap(1)
)
KERNELS = (
    _REF.for_cpu("depthwise_mve", MVE, fits=_EIGHTS.fits, pack=_EIGHTS.pack, overlap=_EIGHTS.overlap),
    _REF.for_cpu("mve", MVE, fits=_fits_eights, pack=_pack_eights, scratch=_scratch_eights, overlap=_overlap(0)),
    _REF.for_cpu("depthwise_dsp", DSP, fits=_FOURS.fits, pack=_FOURS.pack, overlap=_FOURS.overlap),
    _REF.for_cpu("rows_dsp", DSP, fits=_fits_rows, pack=_pack_rows),
    _REF.for_cpu("dsp", DSP, fits=_fits_three, pack=_pack_three, scratch=_scratch_three, overlap=_overlap(0)),
    _REF,
)
