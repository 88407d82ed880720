"""qattention: attention of int8 queries, keys and values, in integers only. See docs/arithmetic.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import e as E
from math import log2

import numpy as np

from baretorch.ir.graph import Array, DType, Node, Quant, Signature, Tensor, fresh
from baretorch.ops import attention
from baretorch.ops.attention import Attention
from baretorch.ops.elementwise import Mul
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.families import Quantized
from baretorch.ops.helpers.kernel import Call, Kernel, Packed, Params, fields_of
from baretorch.ops.helpers.loops import Dims
from baretorch.ops.int8.arithmetic import multipliers, requantize
from baretorch.ops.int8.quantize import ToFixed
from baretorch.ops.int8.rules import PRODUCT, Walk, fits_32_bits
from baretorch.targets.features import DSP, MVE

BITS = 8  # fractional bits of a score, as a power of two
STEPS = 1 << BITS
NONE = -(1 << 30)  # the score of a key that takes no part
ABSENT = -(1 << 15)  # in a mask: that key takes no part
WHOLE = 1 << 14  # the sum of a query's weights
TABLE = np.rint(32767 * 2.0 ** (-np.arange(STEPS) / STEPS)).astype(np.int16)


@dataclass(frozen=True)
class QAttention(Quantized, name="qattention", values=slice(3)):
    """q, k, v int8, optional mask -> int8, with shapes, orders and `causal` as in attention.

    The mask is int16, steps to add to a score, or bool, true where a key takes part."""

    q_zero: int
    k_zero: int
    v_zero: int
    score_multiplier: int
    score_shift: int
    multiplier: int
    shift: int
    zero: int
    causal: bool = False
    q_dims: Dims = ()
    k_dims: Dims = ()
    v_dims: Dims = ()
    y_dims: Dims = ()

    @property
    def geometry(self) -> Attention:
        return Attention(1.0, self.causal, self.q_dims, self.k_dims, self.v_dims, self.y_dims)

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        valid = all(t.dtype is DType.INT8 for t in inputs[:3]) and all(
            t.dtype in (DType.INT16, DType.BOOL) for t in inputs[3:]
        )
        need(valid, self, "the inputs are not quantized", inputs, "q, k and v int8, a mask int16 or bool")
        return self.infer_as_float(inputs, DType.INT8)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        orders = (self.q_dims, self.k_dims, self.v_dims)
        q, k, v = (x.astype(np.int64).transpose(d or range(x.ndim)) for x, d in zip(inputs, orders, strict=False))
        sums = (q - self.q_zero) @ np.swapaxes(k - self.k_zero, -1, -2)
        scores = ((sums << self.score_shift) * self.score_multiplier + (1 << 31)) >> 32
        if len(inputs) > 3:
            mask = inputs[3]
            out = ~mask if mask.dtype == np.bool_ else mask == ABSENT
            added = 0 if mask.dtype == np.bool_ else mask.astype(np.int64)
            scores = np.where(out, NONE, scores + added)
        if self.causal:
            scores = np.where(np.tri(*scores.shape[-2:], dtype=np.bool_), scores, NONE)
        largest = scores.max(axis=-1, keepdims=True, initial=NONE)
        distance = largest - scores
        near = (largest > NONE) & (distance < 16 * STEPS)
        parts = np.where(near, TABLE[distance % STEPS].astype(np.int64) >> np.minimum(distance // STEPS, 16), 0)
        total = parts.sum(axis=-1, keepdims=True)
        weights = ((parts * (0xFFFFFFFF // np.maximum(total, 1)) >> 17) + 1) >> 1
        acc = weights @ v - weights.sum(axis=-1, keepdims=True) * self.v_zero
        y = requantize(acc, np.array(self.multiplier), self.shift, self.zero, -128, 127)
        return (y.transpose(self.y_dims or range(y.ndim)),)


def attention_of(op: Attention, q: Quant, k: Quant, v: Quant, y: Quant) -> QAttention:
    """Return the int8 form of an attention of tensors with these scales."""
    score, score_shift = multipliers([q.scale[0] * k.scale[0] * op.scale * log2(E) * STEPS])
    multiplier, shift = multipliers([v.scale[0] / (y.scale[0] * WHOLE)])
    zeros = (q.zero_point[0], k.zero_point[0], v.zero_point[0])
    factors = (int(score[0]), score_shift, int(multiplier[0]), shift)
    return QAttention(*zeros, *factors, y.zero_point[0], op.causal, op.q_dims, op.k_dims, op.v_dims, op.y_dims)


def mask_of(mask: Array) -> Array:
    """Return a constant mask of attention, in steps."""
    if mask.dtype == np.bool_:
        return np.where(mask, 0, ABSENT).astype(np.int16)
    steps = np.rint(np.nan_to_num(mask.astype(np.float64) * log2(E) * STEPS, neginf=ABSENT))
    return np.clip(steps, ABSENT, -ABSENT - 1).astype(np.int16)


def attend(walk: Walk, node: Node) -> None:
    """Add the int8 form of attention."""
    op = node.op
    assert isinstance(op, Attention)
    q, k, v, *mask = node.inputs
    made = attention_of(op, walk.scale(q), walk.scale(k), walk.scale(v), walk.scale(node.outputs[0]))
    fits_32_bits(PRODUCT * op.operands(walk.graph.of(node.inputs))[0][-1] << made.score_shift)
    masks = [_mask(walk, name) for name in mask]
    walk.emit(node, made, *map(walk.int8, (q, k, v)), *masks)


def _mask(walk: Walk, name: str) -> str:
    """Return a mask as `QAttention` reads it: truth values, or steps. The steps of a mask that is computed are computed
    too."""
    t = walk.graph[name]
    if t.data is not None:
        return walk.constant(t, "steps", mask_of(t.data))
    if t.dtype is DType.BOOL:
        return walk.real(name)
    powers, steps = (fresh(walk.graph, walk.new, f"{name}_{suffix}") for suffix in ("powers", "steps"))
    walk.new[powers] = replace(t, name=powers, quant=None)
    walk.new[steps] = replace(t, name=steps, quant=None, dtype=DType.INT16)
    factor = walk.constant(t, "log2_e", np.array(log2(E), np.float32))
    walk.nodes += (Node(Mul(), (walk.real(name), factor), (powers,)), Node(ToFixed(BITS), (powers,), (steps,)))
    return steps


def _params(call: Call[QAttention]) -> Params:
    zeros = fields_of(call.op, "q_zero", "k_zero", "v_zero")
    factors = fields_of(call.op, "score_multiplier", "score_shift", "multiplier", "shift", "zero")
    return Params("bt_qattention", (*attention.shape_fields(call.op.geometry, call.inputs), *zeros, *factors))


def _pack(call: Call[QAttention]) -> tuple[Packed, ...]:
    return (Packed("table", TABLE),)


def _rows(name: str, mask: DType | None) -> tuple[Kernel[QAttention], ...]:
    """Return the kernels for one type of mask."""

    def fits(call: Call[QAttention]) -> bool:
        given = call.inputs[3].dtype if len(call.inputs) > 3 else None
        return given is mask and attention.loops_fit(call.op.geometry, call.inputs)

    def together(call: Call[QAttention]) -> bool:
        return fits(call) and attention.has_contiguous_heads(call.op.geometry, call.inputs)

    ref = Kernel(
        f"bt_{name}_ref",
        "qattention/ref.c",
        _params,
        fits=fits,
        pack=_pack,
        as_they_are=4,
        scratch=lambda call: 4 * call.op.geometry.operands(call.inputs)[1][-2],
    )
    return (ref.for_cpu("mve", MVE, fits=together), ref.for_cpu("dsp", DSP, fits=together), ref)


KERNELS: tuple[Kernel[QAttention], ...] = (
    *_rows("qattention", None),
    *_rows("qattention_masked", DType.INT16),
    *_rows("qattention_chosen", DType.BOOL),
)
