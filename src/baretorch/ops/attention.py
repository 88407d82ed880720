"""attention: softmax(scale q k^T + mask) v, one row of scores at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from baretorch.ir.graph import Array, DType, Op, Shape, Signature, Tensor
from baretorch.ops.helpers.check import need, need_float32
from baretorch.ops.helpers.kernel import Call, Fields, Kernel, Params
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
from baretorch.ops.matmul import broadcast_or_none
from baretorch.targets.features import FPU

LOOPS = 3  # over heads and batches


@dataclass(frozen=True)
class Attention(Op, name="attention", values=slice(3), reordered=3):
    """q[..., L, E], k[..., S, E], v[..., S, F], optional mask[..., L, S] -> [..., L, F].

    The mask is added to the scores, or true where a key takes part; a query without any key gives zeros. If `causal`, a
    query sees no later key. q, k and v are read permuted by their dims, and the result is stored permuted by `y_dims`,
    so that heads need not be moved.
    """

    scale: float
    causal: bool = False
    q_dims: Dims = ()
    k_dims: Dims = ()
    v_dims: Dims = ()
    y_dims: Dims = ()

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need_float32(self, inputs[:3])
        for t, dims in zip(inputs, (self.q_dims, self.k_dims, self.v_dims), strict=False):
            need_dims(self, dims, t)
        result = self.result(inputs)
        need(
            result is not None,
            self,
            "the shapes do not fit together",
            inputs,
            "q[..., L, E], k[..., S, E], v[..., S, F] and a mask that broadcasts to [..., L, S]",
        )
        assert result is not None
        if len(inputs) > 3:
            types = (DType.FLOAT32, DType.BOOL)
            need(inputs[3].dtype in types, self, "the mask's type is not supported", inputs, "a float32 or bool mask")
        return (Signature(permute_shape(result, self.y_dims), DType.FLOAT32),)

    def operands(self, inputs: Sequence[Tensor]) -> list[Shape]:
        """Return the shapes of q, k and v in the order of the formula, and the mask's."""
        orders = (self.q_dims, self.k_dims, self.v_dims, ())
        return [permute_shape(t.shape, dims) for t, dims in zip(inputs, orders, strict=False)]

    def result(self, inputs: Sequence[Tensor]) -> Shape | None:
        """Return the shape of the result before it is permuted, or None if the operands do not fit together."""
        q, k, v, *mask = self.operands(inputs)
        if min(len(q), len(k), len(v)) < 2 or q[-1] != k[-1] or k[-2] != v[-2]:
            return None
        pair = broadcast_or_none(q[:-2], k[:-2])
        batch = None if pair is None else broadcast_or_none(pair, v[:-2])
        if batch is None:
            return None
        scores = (*batch, q[-2], k[-2])
        if mask and (len(mask[0]) < 2 or broadcast_or_none(mask[0], scores) != scores):
            return None
        return (*batch, q[-2], v[-1])

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        orders = (self.q_dims, self.k_dims, self.v_dims)
        q, k, v = (x.astype(np.float64).transpose(d or range(x.ndim)) for x, d in zip(inputs, orders, strict=False))
        with np.errstate(all="ignore"):
            scores = self.scale * (q @ np.swapaxes(k, -1, -2))
            if len(inputs) > 3:
                mask = inputs[3]
                scores = np.where(mask, scores, -np.inf) if mask.dtype == np.bool_ else scores + mask
            if self.causal:
                scores = np.where(np.tri(*scores.shape[-2:], dtype=np.bool_), scores, -np.inf)
            largest = np.fmax.reduce(scores, axis=-1, keepdims=True, initial=-np.inf)
            e = np.exp(scores - np.where(largest == -np.inf, 0.0, largest))
            total = e.sum(axis=-1, keepdims=True)
            y = (np.where(total == 0.0, 0.0, e / total) @ v).astype(np.float32)
        return (y.transpose(self.y_dims or range(y.ndim)),)

    def macs(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> int:
        q, k, v = self.operands(inputs)[:3]
        return outputs[0].count // max(v[-1], 1) * k[-2] * (q[-1] + v[-1])

    def with_orders(self, read: Sequence[Shape], write: Shape) -> Op:
        own = (self.q_dims, self.k_dims, self.v_dims)
        q, k, v = (compose_orders(order, dims) for order, dims in zip(read, own, strict=True))
        return replace(self, q_dims=q, k_dims=k, v_dims=v, y_dims=compose_orders(self.y_dims, write))


def _steps(op: Attention, inputs: Sequence[Tensor]) -> tuple[list[int], list[Dims]]:
    """Return the counts of the loops over batches and heads, and for each of q, k, v, y and mask its step in each loop,
    per row and per column."""
    q, k, v, *mask = op.operands(inputs)
    y = op.result(inputs)
    assert y is not None
    read = [permuted_steps(t.shape, dims) for t, dims in zip(inputs, (op.q_dims, op.k_dims, op.v_dims), strict=False)]
    operands = [*zip((q, k, v), read, strict=True), (y, steps_into(y, op.y_dims))]
    operands += [(m, repeat_steps(m, permuted_steps(m, ()), m)) for m in mask] or [((1, 1), (0, 0))]
    counts, outer = nest_loops(y[:-2], *(repeat_steps(shape[:-2], step[:-2], y[:-2]) for shape, step in operands))
    return counts, [
        (*fill_front(loops, LOOPS, 0), *step[-2:]) for loops, (_, step) in zip(outer, operands, strict=True)
    ]


def shape_fields(op: Attention, inputs: Sequence[Tensor]) -> Fields:
    """Return the first fields of a struct that begins as bt_attention_f32 does."""
    q, k, v = op.operands(inputs)[:3]
    counts, rows = _steps(op, inputs)
    return (
        ("batch", fill_front(counts, LOOPS, 1)),
        ("queries", q[-2]),
        ("keys", k[-2]),
        ("width", q[-1]),
        ("v_width", v[-1]),
        *zip(("q_step", "k_step", "v_step", "y_step", "mask_step"), rows, strict=True),
        ("causal", int(op.causal)),
    )


def loops_fit(op: Attention, inputs: Sequence[Tensor]) -> bool:
    return len(_steps(op, inputs)[0]) <= LOOPS


def has_contiguous_heads(op: Attention, inputs: Sequence[Tensor]) -> bool:
    """Return whether the elements of a head are neighbours in q, k, v and y."""
    return all(step[-1] == 1 for step in _steps(op, inputs)[1][:4])


def _params(call: Call[Attention]) -> Params:
    return Params("bt_attention_f32", (*shape_fields(call.op, call.inputs), ("scale", call.op.scale)))


def _rows(name: str, mask: DType | None) -> tuple[Kernel[Attention], ...]:
    """Return the kernels for one type of mask."""

    def fits(call: Call[Attention]) -> bool:
        given = call.inputs[3].dtype if len(call.inputs) > 3 else None
        return given is mask and loops_fit(call.op, call.inputs)

    def together(call: Call[Attention]) -> bool:
        keys = call.op.operands(call.inputs)[1][-2]
        return fits(call) and keys > 0 and has_contiguous_heads(call.op, call.inputs)

    ref = Kernel(
        f"bt_{name}_f32_ref",
        "attention/ref.c",
        _params,
        fits=fits,
        scratch=lambda call: 4 * call.op.operands(call.inputs)[1][-2],
    )
    return (ref.for_cpu("fpu", FPU, fits=together), ref)


KERNELS: tuple[Kernel[Attention], ...] = (
    *_rows("attention", None),
    *_rows("attention_masked", DType.FLOAT32),
    *_rows("attention_chosen", DType.BOOL),
)
