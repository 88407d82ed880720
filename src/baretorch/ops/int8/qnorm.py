"""qnorm: layer_norm, rms_norm, group_norm and instance_norm in int8, with integers only. See docs/arithmetic.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from baretorch.ir.graph import Array, DType, Node, Op, Piece, Quant, Signature, Tensor
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.kernel import Call, Kernel, Params, data_of, fields_of, has_constants, pack_inputs
from baretorch.ops.int8.rules import StaysFloat, Walk
from baretorch.ops.layout import Permute, Reshape
from baretorch.ops.norm import GroupNorm, LayerNorm
from baretorch.targets.features import DSP, MVE

LONGEST = 1 << 15  # numbers that are normalised together: d fits into 63 bits
POINT = 16  # bits after the point of d
NORMAL = 22  # bits after the point of a normalised number
RESULT = 8  # bits after the point of a result before it is rounded


@dataclass(frozen=True)
class QNorm(Op, name="qnorm"):
    """x int8[N, P, G, K], weight int32[G * K], bias int32[G * K] -> int8: x normalised over P and K, times weight, plus
    bias.

    With u = x - x_zero of the n numbers of a group, and S their sum, or 0 if not `centred`: d = n * (sum of u^2) - S^2
    + eps / 2^16, and the normalised number is (n * u - S) / root(d). So `eps` is that of the float operator times 2^16
    n^2, in units of x's squared step.
    """

    x_zero: int
    eps: int
    centred: bool = True

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        x, weight, bias = inputs
        places = (x.shape[-2] * x.shape[-1],) if len(x.shape) == 4 else ()
        need(
            (x.dtype, weight.dtype, bias.dtype) == (DType.INT8, DType.INT32, DType.INT32)
            and weight.shape == bias.shape == places
            and 0 < x.shape[1] * x.shape[3] <= LONGEST,
            self,
            "the inputs are not those of an int8 norm",
            inputs,
            f"x int8[N, P, G, K], weight and bias int32[G * K], P * K from 1 to {LONGEST}",
        )
        return (Signature(x.shape, DType.INT8),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x, weight, bias = inputs
        u = x.astype(np.int64) - self.x_zero
        count = x.shape[1] * x.shape[3]
        total = u.sum(axis=(1, 3), keepdims=True) * self.centred
        spread = count * (u * u).sum(axis=(1, 3), keepdims=True) - total * total
        factor, exponent = inverse_root(np.maximum((spread << POINT) + self.eps, 1 << POINT))
        normal = (count * u - total) * factor >> (15 - POINT // 2 + exponent)
        scaled = (normal * weight.reshape(x.shape[2:]) + (1 << 31) >> 32) + bias.reshape(x.shape[2:])
        return (np.clip(scaled >> RESULT, -128, 127).astype(np.int8),)

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        return None if axis else cut.from_first(self, inputs, axis, start, stop)


def inverse_root(d: Array) -> tuple[Array, Array]:
    """Return (factor, exponent) with 1 / root(d) = factor / 2^(22 + 15 + exponent), from 16 bits of the root."""
    exponent = np.zeros_like(d)
    for _ in range(16):
        above, below = d >= 1 << 32, d < 1 << 30
        d = np.where(above, d >> 2, np.where(below, d << 2, d))
        exponent = exponent + above - below
    root = np.floor(np.sqrt(d.astype(np.float64))).astype(np.int64)  # exact: d has 32 bits
    return (0xFFFFFFFF // root) << 5, exponent


def eps_of(eps: float, count: int, scale: float) -> int:
    """Return the eps of `QNorm` for a norm of `count` numbers with this scale."""
    return round(eps * count**2 / scale**2 * (1 << POINT))


def affine_of(weight: Array, bias: Array, y: Quant) -> tuple[Array, Array] | None:
    """Return weight and bias of `QNorm` for an output of this scale, or None if they do not fit into 32 bits."""
    scaled = weight.astype(np.float64) / y.scale[0]
    moved = bias.astype(np.float64) / y.scale[0] + y.zero_point[0] + 0.5
    stored = [np.rint(v * (1 << bits)) for v, bits in ((scaled, RESULT + 32 - NORMAL), (moved, RESULT))]
    if max(np.abs(stored[0]).max() * 2, np.abs(stored[1]).max() * 4) >= 1 << 32:
        return None
    return stored[0].astype(np.int32), stored[1].astype(np.int32)


def norm(walk: Walk, node: Node) -> None:
    """Add the int8 form of layer_norm or group_norm: what is normalised together is moved to [batch, places, groups,
    depth]."""
    op, (x, *affine), (out,) = node.op, node.inputs, node.outputs
    assert isinstance(op, (LayerNorm, GroupNorm))
    shape = walk.graph[x].shape
    axes = op.axes if isinstance(op, LayerNorm) else (op.axis,)
    order = (*(i for i in range(len(shape)) if i not in axes), *axes)
    depth = prod(shape[a] for a in axes)
    if isinstance(op, LayerNorm):
        parts = (prod(shape) // max(depth, 1), 1, 1, depth)
    else:
        parts = (shape[0], prod(shape[1:]) // max(depth, 1), op.groups, depth // op.groups)
    count = parts[1] * parts[3]
    if not 0 < count <= LONGEST:
        raise StaysFloat(f"it normalises {count} numbers together, and int8 norms do up to {LONGEST}")
    s_x, z_x, y = walk.scale(x).scale[0], walk.scale(x).zero_point[0], walk.scale(out)
    if any(walk.graph[n].data is None for n in affine):
        raise StaysFloat("its weight or bias is computed")
    weight, bias = (_spread(data_of(walk.graph.of(affine), i), depth) for i in range(2))
    stored = affine_of(weight, bias, y)
    eps = eps_of(op.eps, count, s_x)
    if stored is None or eps >= 1 << 61:
        raise StaysFloat("its weights are too large for the scale of its output")
    made = QNorm(z_x, eps, not isinstance(op, LayerNorm) or op.centred)
    constants = [walk.constant(walk.graph[n], "int8", data) for n, data in zip(affine, stored, strict=True)]
    moved = walk.view(Permute(order), x, walk.int8(x))
    normal = walk.add(made, out, parts, y, walk.view(Reshape(parts), x, moved), *constants)
    whole = walk.view(Reshape(tuple(shape[i] for i in order)), out, normal)
    walk.found[out] = y
    walk.stored[out] = walk.view(Permute(tuple(int(i) for i in np.argsort(order))), out, whole)


def _spread(data: Array, depth: int) -> Array:
    """Return one number for each number that is normalised."""
    return np.broadcast_to(data.reshape(-1), (depth,))


def _params(call: Call[QNorm]) -> Params:
    names = ("batch", "places", "groups", "depth")
    op = call.op
    eps = (("eps_low", op.eps & 0xFFFFFFFF), ("eps_high", op.eps >> 32))
    return Params("bt_qnorm", (*zip(names, call.x.shape, strict=True), *fields_of(op, "x_zero", "centred"), *eps))


def _overlap(call: Call[QNorm]) -> int | None:
    """Return 0 if what is normalised together is contiguous: then it works in place."""
    _, places, groups, _ = call.x.shape
    return 0 if 1 in (places, groups) else None


LONGEST_ROW = 4096  # numbers whose roots leave room for a shift of at least one bit


def _fits_rows(call: Call[QNorm]) -> bool:
    return has_constants(call) and call.x.shape[1:3] == (1, 1) and call.x.shape[3] <= LONGEST_ROW


_REF = Kernel[QNorm](
    "bt_qnorm_ref",
    "qnorm/ref.c",
    _params,
    fits=has_constants,
    pack=lambda call: pack_inputs(call, "weight", "bias"),
    overlap=overlap.first_only(_overlap),
    splits=cut.outermost,
)
KERNELS = (
    _REF.for_cpu("mve", MVE, fits=_fits_rows),
    _REF.for_cpu("dsp", DSP, fits=_fits_rows),
    _REF,
)
