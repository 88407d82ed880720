"""matmul: y = clamp(a b), for activations on both sides. A constant right side is a linear layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from baretorch.ir.graph import Array, DType, Op, Piece, Shape, Signature, Span, Tensor
from baretorch.ops.helpers.check import need, need_float32
from baretorch.ops.helpers.families import Limited
from baretorch.ops.helpers.kernel import Call, Fields, Kernel, Params, fields_of
from baretorch.ops.helpers.loops import (
    Dims,
    compose_orders,
    fill_front,
    need_dims,
    nest_loops,
    permute_shape,
    permuted_steps,
    repeat_steps,
    steps_into,
)
from baretorch.targets.features import FPU

LOOPS = 3  # over matrices


@dataclass(frozen=True)
class Matmul(Limited, name="matmul", reordered=2):
    """a[..., m, k] b[..., k, n] -> [..., m, n], limited to [lo, hi]; the leading dimensions broadcast.

    The operands are read permuted by `a_dims` and `b_dims`, the result is stored permuted by `y_dims`."""

    lo: float = -inf
    hi: float = inf
    a_dims: Dims = ()
    b_dims: Dims = ()
    y_dims: Dims = ()

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need_float32(self, inputs)
        need_dims(self, self.a_dims, inputs[0])
        need_dims(self, self.b_dims, inputs[1])
        result = self.result(inputs)
        need(
            result is not None,
            self,
            "the shapes do not fit together",
            inputs,
            "a[..., m, k] and b[..., k, n] with leading dimensions that are equal or 1",
        )
        assert result is not None
        return (Signature(permute_shape(result, self.y_dims), DType.FLOAT32),)

    def operands(self, inputs: Sequence[Tensor]) -> tuple[Shape, Shape]:
        a, b = inputs
        return permute_shape(a.shape, self.a_dims), permute_shape(b.shape, self.b_dims)

    def result(self, inputs: Sequence[Tensor]) -> Shape | None:
        """Return the shape of the result before it is permuted, or None if the operands do not fit together."""
        a, b = self.operands(inputs)
        batch = broadcast_or_none(a[:-2], b[:-2])
        if min(len(a), len(b)) < 2 or a[-1] != b[-2] or batch is None:
            return None
        return (*batch, a[-2], b[-1])

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        orders = (self.a_dims, self.b_dims)
        a, b = (x.astype(np.float64).transpose(d or range(x.ndim)) for x, d in zip(inputs, orders, strict=True))
        with np.errstate(all="ignore"):
            y = np.clip(a @ b, self.lo, self.hi).astype(np.float32)
        return (y.transpose(self.y_dims or range(y.ndim)),)

    def macs(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> int:
        return outputs[0].count * self.operands(inputs)[0][-1]

    def with_orders(self, read: Sequence[Shape], write: Shape) -> Op:
        a, b = (compose_orders(order, own) for order, own in zip(read, (self.a_dims, self.b_dims), strict=True))
        return replace(self, a_dims=a, b_dims=b, y_dims=compose_orders(self.y_dims, write))


def cut_product(op: Op, of: Matmul, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece:
    """Return the piece of an operator with the shapes of a matmul: its rows read rows of a, its columns those of b, and
    its matrices the matrices of both, where they do not repeat."""
    place = (of.y_dims[axis] if of.y_dims else axis) - len(y.shape)  # from the end of the result

    def read(shape: Shape, dims: Dims) -> Span | None:
        at = place + len(shape)
        return None if at < 0 or shape[at] == 1 else Span(dims[at] if dims else at, start, stop)

    a, b = (read(*operand) for operand in zip(of.operands(inputs), (of.a_dims, of.b_dims), strict=True))
    return Piece(op, (None if place == -1 else a, None if place == -2 else b))


def broadcast_or_none(a: Shape, b: Shape) -> Shape | None:
    """Return the shape by NumPy's rule, or None if the shapes do not fit."""
    try:
        return tuple(int(n) for n in np.broadcast_shapes(a, b))
    except ValueError:
        return None


def _steps(op: Matmul, inputs: Sequence[Tensor]) -> tuple[list[int], list[Dims]]:
    """Return the counts of the loops over matrices, and for each of a, b and y its step in each loop, per row and per
    column."""
    a, b = op.operands(inputs)
    y = op.result(inputs)
    assert y is not None
    operands = (
        (a, permuted_steps(inputs[0].shape, op.a_dims)),
        (b, permuted_steps(inputs[1].shape, op.b_dims)),
        (y, steps_into(y, op.y_dims)),
    )
    counts, outer = nest_loops(y[:-2], *(repeat_steps(shape[:-2], step[:-2], y[:-2]) for shape, step in operands))
    return counts, [
        (*fill_front(loops, LOOPS, 0), *step[-2:]) for loops, (_, step) in zip(outer, operands, strict=True)
    ]


def shape_fields(op: Matmul, inputs: Sequence[Tensor]) -> Fields:
    """Return the first fields of a struct that begins as bt_matmul_f32 does."""
    a, b = op.operands(inputs)
    counts, rows = _steps(op, inputs)
    return (
        ("batch", fill_front(counts, LOOPS, 1)),
        ("m", a[-2]),
        ("k", a[-1]),
        ("n", b[-1]),
        *zip(("a_step", "b_step", "y_step"), rows, strict=True),
    )


def loops_fit(op: Matmul, inputs: Sequence[Tensor]) -> bool:
    return len(_steps(op, inputs)[0]) <= LOOPS


def _params(call: Call[Matmul]) -> Params:
    return Params("bt_matmul_f32", (*shape_fields(call.op, call.inputs), *fields_of(call.op, "lo", "hi")))


def _fits(call: Call[Matmul]) -> bool:
    return loops_fit(call.op, call.inputs)


def _rows_together(call: Call[Matmul]) -> bool:
    """Return whether the rows of b and y are contiguous, and fill eights."""
    _, (_, b, y) = _steps(call.op, call.inputs)
    rows, columns = call.op.operands(call.inputs)[1][-2:]
    return _fits(call) and b[-1] == y[-1] == 1 and rows > 0 and columns >= 8


def _sums_together(call: Call[Matmul]) -> bool:
    """Return whether the rows of a and the columns of b are contiguous."""
    _, (a, b, _) = _steps(call.op, call.inputs)
    return _fits(call) and a[-1] == b[-2] == 1


KERNELS: tuple[Kernel[Matmul], ...] = (
    Kernel("bt_matmul_columns_f32_fpu", "matmul/fpu.c", _params, needs=FPU, fits=_rows_together),
    Kernel("bt_matmul_dots_f32_fpu", "matmul/fpu.c", _params, needs=FPU, fits=_sums_together),
    Kernel("bt_matmul_f32_ref", "matmul/ref.c", _params, fits=_fits),
)
