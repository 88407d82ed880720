"""qmatmul: products of int8 matrices, for activations on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from baretorch.ir.graph import Array, DType, Node, Piece, Quant, Signature, Tensor
from baretorch.ops import matmul
from baretorch.ops.helpers import cut
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.families import Quantized
from baretorch.ops.helpers.kernel import Call, Kernel, Params, fields_of
from baretorch.ops.helpers.loops import Dims
from baretorch.ops.int8.arithmetic import multipliers, requantize
from baretorch.ops.int8.rules import PRODUCT, Walk, fits_32_bits, limits
from baretorch.ops.matmul import Matmul
from baretorch.targets.features import DSP, MVE


class ByteProduct(Quantized):
    """A product of int8 matrices."""

    a_zero: int
    b_zero: int
    a_dims: Dims
    b_dims: Dims
    y_dims: Dims

    @property
    def geometry(self) -> Matmul:
        return Matmul(a_dims=self.a_dims, b_dims=self.b_dims, y_dims=self.y_dims)

    def sums(self, a: Array, b: Array) -> Array:
        """Return the product of a - a_zero and b - b_zero, in matmul's order."""
        a, b = (x.astype(np.int64).transpose(d or range(x.ndim)) for x, d in ((a, self.a_dims), (b, self.b_dims)))
        return np.asarray((a - self.a_zero) @ (b - self.b_zero))

    def arrange(self, y: Array) -> Array:
        """Return a result in the order of the output."""
        return y.transpose(self.y_dims or range(y.ndim))

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        return matmul.cut_product(self, self.geometry, inputs, y, axis, start, stop)


@dataclass(frozen=True)
class QMatmul(ByteProduct, name="qmatmul"):
    """a int8[..., m, k], b int8[..., k, n] -> the product of a - a_zero and b - b_zero, requantized.

    Broadcasting and the orders that operands are read in are those of matmul."""

    a_zero: int
    b_zero: int
    multiplier: int
    shift: int
    zero: int
    lo: int = -128
    hi: int = 127
    a_dims: Dims = ()
    b_dims: Dims = ()
    y_dims: Dims = ()

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need(all(t.dtype is DType.INT8 for t in inputs), self, "the inputs are not quantized", inputs, "int8 and int8")
        return self.infer_as_float(inputs, DType.INT8)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        factor = np.array(self.multiplier)
        return (self.arrange(requantize(self.sums(*inputs), factor, self.shift, self.zero, self.lo, self.hi)),)


def matmul_of(op: Matmul, a: Quant, b: Quant, y: Quant, lo: int, hi: int) -> QMatmul:
    """Return the int8 form of a product of tensors with these scales, with these limits."""
    multiplier, shift = multipliers([a.scale[0] * b.scale[0] / y.scale[0]])
    zeros = (a.zero_point[0], b.zero_point[0])
    return QMatmul(*zeros, int(multiplier[0]), shift, y.zero_point[0], lo, hi, op.a_dims, op.b_dims, op.y_dims)


def product(walk: Walk, node: Node) -> None:
    """Add the int8 form of matmul."""
    op = node.op
    assert isinstance(op, Matmul)
    a, b, y = (walk.scale(n) for n in (*node.inputs, *node.outputs))
    lo, hi = limits(op.lo, op.hi, y)
    made = matmul_of(op, a, b, y, lo, hi)
    fits_32_bits(PRODUCT * op.operands(walk.graph.of(node.inputs))[0][-1] << made.shift)
    walk.emit(node, made, *map(walk.int8, node.inputs))


def _params(call: Call[QMatmul]) -> Params:
    own = fields_of(call.op, "a_zero", "b_zero", "multiplier", "shift", "zero", "lo", "hi")
    return Params("bt_qmatmul", (*matmul.shape_fields(call.op.geometry, call.inputs), *own))


def _fits(call: Call[QMatmul]) -> bool:
    return matmul.loops_fit(call.op.geometry, call.inputs)


def _fields(call: Call[QMatmul]) -> dict[str, Any]:
    return dict(_params(call).fields)


def _side_by_side(call: Call[QMatmul]) -> bool:
    """Return whether columns of b are contiguous, or rows of four numbers and more."""
    fields = _fields(call)
    down, right = fields["b_step"][3:]
    return bool(down == 1 or (right == 1 and fields["n"] >= 4))


def _in_vectors(call: Call[QMatmul]) -> bool:
    """Return whether the numbers that a vector loads and stores are contiguous."""
    fields = _fields(call)
    (down, right), along, beside = fields["b_step"][3:], fields["a_step"][4], fields["y_step"][4]
    return bool((down == 1 and along == 1) or (down != 1 and right == 1 and beside == 1))


_REF = Kernel[QMatmul]("bt_qmatmul_ref", "qmatmul/ref.c", _params, fits=_fits, splits=cut.outermost)
KERNELS = (
    _REF.for_cpu("mve", MVE, fits=lambda call: _fits(call) and _in_vectors(call)),
    _REF.for_cpu(
        "dsp",
        DSP,
        fits=lambda call: _fits(call) and _side_by_side(call),
        scratch=lambda call: 2 * (-(-_fields(call)["k"] // 4) * 4),
    ),
    _REF,
)
