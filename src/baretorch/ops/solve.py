"""Systems of a few linear equations: solve, and the determinant of what is solved. An inverse is the solution for 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from baretorch.ir.graph import Array, DType, Op, Signature, Tensor
from baretorch.ops.helpers.check import need, need_float32
from baretorch.ops.helpers.kernel import Call, Distances, Kernel, Params

LARGEST = 4  # rows; as many squared lie on the stack


@dataclass(frozen=True)
class Solve(Op, name="solve"):
    """a[..., n, n], b[..., n, k] -> y[..., n, k] with a y = b, for n up to 4; b[n, k] serves all matrices. Gaussian
    elimination with partial pivoting; a singular matrix gives infinities and NaN."""

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        _need_square(self, inputs)
        a, b = inputs
        fits = len(b.shape) >= 2 and b.shape[-2] == a.shape[-1] and b.shape[:-2] in ((), a.shape[:-2])
        need(fits, self, "the right side does not fit the matrices", inputs, "a[..., n, n] and b[..., n, k] or b[n, k]")
        return (Signature((*a.shape[:-1], b.shape[-1]), DType.FLOAT32),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        a, b = (x.astype(np.float64) for x in inputs)
        y = np.broadcast_to(b, (*a.shape[:-1], b.shape[-1])).copy()
        with np.errstate(all="ignore"):
            for i in np.ndindex(a.shape[:-2]):
                _eliminate(a[i], y[i])
                for row in reversed(range(a.shape[-1])):
                    y[i][row] = (y[i][row] - a[i][row, row + 1 :] @ y[i][row + 1 :]) / a[i][row, row]
            return (y.astype(np.float32),)

    def macs(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> int:
        *batch, n, columns = outputs[0].shape
        return prod(batch) * n * n * (n + 3 * columns) // 3


@dataclass(frozen=True)
class Det(Op, name="det"):
    """x[..., n, n] -> the determinant of each matrix, for n up to 4."""

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        _need_square(self, inputs)
        return (Signature(inputs[0].shape[:-2], DType.FLOAT32),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x = inputs[0].astype(np.float64)
        y = np.empty(x.shape[:-2])
        with np.errstate(all="ignore"):
            for i in np.ndindex(x.shape[:-2]):
                y[i] = _eliminate(x[i], np.empty((x.shape[-1], 0))) * np.diagonal(x[i]).prod()
            return (np.asarray(y, np.float32),)


def _need_square(op: Op, inputs: Sequence[Tensor]) -> None:
    need_float32(op, inputs)
    shape = inputs[0].shape
    square = len(shape) >= 2 and shape[-1] == shape[-2]
    need(square and shape[-1] > 0, op, "the matrices are not square", inputs, "a[..., n, n]")
    need(
        shape[-1] <= LARGEST,
        op,
        f"matrices of {shape[-1]} rows are too large",
        inputs,
        f"at most {LARGEST} rows",
        "only constant matrices can be inverted, on the host: do not compute the matrix from inputs",
    )


def _eliminate(a: Array, b: Array) -> int:
    """Make a upper triangular, and apply the same row operations to b. Return the sign of the exchanges."""
    sign, n = 1, a.shape[0]
    for c in range(n):
        best = c
        for r in range(c + 1, n):
            if abs(a[r, c]) > abs(a[best, c]):
                best = r
        if best != c:
            a[[c, best]], b[[c, best]], sign = a[[best, c]], b[[best, c]], -sign
        for r in range(c + 1, n):
            if a[r, c] != 0:
                factor = a[r, c] / a[c, c]
                a[r, c:] -= factor * a[c, c:]
                b[r] -= factor * b[c]
    return sign


def _solve_params(call: Call[Solve]) -> Params:
    *batch, n, columns = call.y.shape
    step = n * columns if len(call.inputs[1].shape) > 2 else 0
    fields = {"count": prod(batch), "n": n, "columns": columns, "b_step": step}
    return Params("bt_solve_f32", tuple(fields.items()))


def _det_params(call: Call[Det]) -> Params:
    return Params("bt_det_f32", (("count", call.y.count), ("n", call.x.shape[-1])))


def _solve_overlap(call: Call[Solve]) -> Distances:
    """Return the distances: a matrix and its right side are copied before any of their solution is written."""
    a, b = call.inputs
    narrow = call.y.shape[-1] <= a.shape[-1]
    distances = ((a, 0 if narrow else None), (b, 0 if b.shape == call.y.shape else None))
    return tuple(d for t, d in distances if t.data is None)


SOLVE: tuple[Kernel[Solve], ...] = (Kernel("bt_solve_f32_ref", "solve/ref.c", _solve_params, overlap=_solve_overlap),)
DET: tuple[Kernel[Det], ...] = (Kernel("bt_det_f32_ref", "solve/ref.c", _det_params, overlap=lambda call: (0,)),)
