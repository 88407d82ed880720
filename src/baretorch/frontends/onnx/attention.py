"""Rows of the ONNX table: attention, and rotary embeddings of its operands."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import index, shapes
from baretorch.frontends.aten.sequence import attention as fused
from baretorch.frontends.lowering import Result
from baretorch.frontends.onnx.call import OnnxCall, need_float, need_room
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow, row
from baretorch.frontends.onnx.shapes import pad_constant
from baretorch.ir.graph import Array, DType
from baretorch.ops.elementwise import Add, Mul, Sub
from baretorch.ops.functions import Tanh
from baretorch.ops.logic import Eq, LogicalAnd, Where
from baretorch.ops.matmul import Matmul
from baretorch.ops.reduce import Amax
from baretorch.ops.softmax import Softmax

FLOAT = 1  # in ONNX's enumeration of types


def attention(g: OnnxLowering, call: OnnxCall) -> Result:
    """Return y, keys and values including those of the past, and the scores at one of four stages."""
    q, k, v = (call.need(i) for i in range(3))
    need_float(g, call.op, q, k, v)
    if call.attribute("softmax_precision", FLOAT) != FLOAT:
        g.notes.append(f"{call.name}: the softmax is computed in float32")
    flat = len(g.shape(q)) == 3
    if flat:
        q = _heads(g, q, int(call.attribute("q_num_heads")))
        k, v = (_heads(g, t, int(call.attribute("kv_num_heads"))) for t in (k, v))
    past = call.input(4)
    if past is not None:
        k = shapes.cat(g, [past, k], 2)
        v = shapes.cat(g, [call.need(5), v], 2)
    scale = float(call.attribute("scale", 1 / sqrt(g.shape(q)[-1])))
    hidden = _find_hidden(g, call, q, k, past)
    if call.outputs < 4 and not call.attribute("softcap", 0.0):
        y, scores = fused(g, q, k, v, hidden.mask, 0.0, hidden.causal, scale, True), ""
    else:
        y, scores = _compute_stages(g, call, q, k, v, scale, hidden)
    if flat:
        b, heads, rows, width = g.shape(y)
        y = g.reshape(g.permute(y, (0, 2, 1, 3)), (b, rows, heads * width))
    return (y, k, v, scores)[: call.outputs]


def _heads(g: OnnxLowering, x: str, heads: int) -> str:
    b, rows, width = g.shape(x)
    return g.permute(g.reshape(x, (b, rows, heads, width // heads)), (0, 2, 1, 3))


@dataclass(frozen=True)
class _Hidden:
    """The keys that a query does not see: a mask that is added, or true for hidden keys, and the later ones if
    `causal`."""

    mask: str | None = None
    causal: bool = False


def _find_hidden(g: OnnxLowering, call: OnnxCall, q: str, k: str, past: str | None) -> _Hidden:
    """Combine the mask that is known ahead of time with the given one."""
    mask = call.input(3)
    seen, plain = _find_seen(g, call, q, k, past)
    if mask is None:
        if plain or seen is None or bool(seen.all()):
            return _Hidden(None, plain)
        return _Hidden(g.b.const("seen", seen), False)
    keys, truths = g.shape(k)[2], g[mask].dtype is DType.BOOL
    if not truths:
        need_float(g, call.op, mask)
    if len(g.shape(mask)) == 1:
        mask = g.reshape(mask, (1, *g.shape(mask)))
    missing = keys - g.shape(mask)[-1]
    if missing and g.shape(mask)[-1] > 1:  # keys beyond the mask are hidden
        pairs = [(0, 0)] * (len(g.shape(mask)) - 1) + [(0, missing)]
        mask = pad_constant(g, mask, pairs, 0.0 if truths else -inf)
    if seen is None or bool(seen.all()):
        return _Hidden(mask, False)
    if plain and not truths:
        return _Hidden(mask, True)
    known = g.b.const("seen", seen)
    if truths:
        return _Hidden(g.b.add(LogicalAnd(), mask, known), False)
    return _Hidden(g.b.add(Where(), known, mask, g.operand(-inf, mask)), False)


def _find_seen(g: OnnxLowering, call: OnnxCall, q: str, k: str, past: str | None) -> tuple[Array | None, bool]:
    """Return booleans [(N, 1,) L, S], or None if every query sees every key; and whether `causal` alone has this
    meaning. The position of query i is i plus the length of the past."""
    queries, keys = g.shape(q)[2], g.shape(k)[2]
    before, after = int(call.attribute("left_window_size", -1)), int(call.attribute("right_window_size", -1))
    causal = bool(call.attribute("is_causal", 0))
    valid = g.ints(call.input(6), "Attention: nonpad_kv_seqlen") if call.input(6) is not None else None
    if not causal and before < 0 and after < 0 and valid is None:
        return None, False
    if past is not None:
        offset = np.array(g.shape(past)[2])
    elif valid is not None:
        offset = np.array(valid).reshape(-1, 1, 1, 1) - queries
    else:
        offset = np.array(0)
    need_room("Attention", offset.size, queries, keys)
    place, key = np.arange(queries)[:, None] + offset, np.arange(keys)
    seen = np.ones(np.broadcast_shapes(place.shape, key.shape), np.bool_)
    if causal:
        seen &= key <= place
    if before >= 0:
        seen &= key >= place - before
    if after >= 0:
        seen &= key <= place + after
    if valid is not None:
        seen = seen & (key < np.array(valid).reshape(-1, 1, 1, 1))
    plain = causal and before < 0 and after < 0 and valid is None and not offset.any()
    return seen, plain


def _compute_stages(
    g: OnnxLowering, call: OnnxCall, q: str, k: str, v: str, scale: float, hidden: _Hidden
) -> tuple[str, str]:
    """Compute the steps separately, because the scores are an output or are limited: product, softcap, mask, softmax,
    product."""
    b, heads, rows, width = g.shape(q)
    shared, keys = g.shape(k)[1:3]
    grouped = g.reshape(q, (b, shared, heads // shared, rows, width))
    turned = g.permute(shapes.unsqueeze(g, k, 2), (0, 1, 2, 4, 3))
    raw = g.reshape(g.b.add(Matmul(), grouped, turned), (b, heads, rows, keys))
    stages = [g.b.add(Mul(), raw, g.operand(scale, raw))]
    cap = float(call.attribute("softcap", 0.0))
    if cap:
        part = g.b.add(Tanh(), g.b.add(Mul(), stages[0], g.operand(1.0 / cap, raw)))
        stages.append(g.b.add(Mul(), part, g.operand(cap, raw)))
    else:
        stages.append(stages[0])
    scores, mask = stages[1], hidden.mask
    if hidden.causal:
        seen = g.b.const("seen", np.tri(rows, keys, dtype=np.bool_))
        scores = g.b.add(Where(), seen, scores, g.operand(-inf, scores))
    if mask is not None and g[mask].dtype is DType.BOOL:
        scores = g.b.add(Where(), mask, scores, g.operand(-inf, scores))
    elif mask is not None:
        scores = g.b.add(Add(), scores, mask)
    stages.append(scores)
    shares = g.b.add(Softmax(3), scores)
    if mask is not None:  # a query without a visible key gives zeros
        alone = g.b.add(Eq(), g.b.add(Amax((3,), True), scores), g.operand(-inf, scores))
        shares = g.b.add(Where(), alone, g.operand(0.0, shares), shares)
    stages.append(shares)
    parts = g.reshape(shares, (b, shared, heads // shared, rows, keys))
    y = g.b.add(Matmul(), parts, shapes.unsqueeze(g, v, 2))
    mode = int(call.attribute("qk_matmul_output_mode", 0))
    if not 0 <= mode < len(stages):
        raise CompileError(f"Attention: qk_matmul_output_mode {mode} is not known", need="0 to 3")
    return g.reshape(y, (b, heads, rows, g.shape(v)[-1])), stages[mode]


def rotary(
    g: OnnxLowering,
    x: str,
    cos: str,
    sin: str,
    positions: str | None = None,
    *,
    interleaved: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> str:
    """Rotate pairs of elements by an angle that depends on the position: the halves of a row, or neighbours."""
    shape = g.shape(x)
    if len(shape) == 3:  # [N, L, heads, E], and the angles with a dimension of 1 for the heads
        x, between = g.reshape(x, (*shape[:2], num_heads, shape[2] // num_heads)), 2
    else:
        between = 1
    if positions is not None:
        cos, sin = (index.select_rows(g, t, 0, positions) for t in (cos, sin))
    cos, sin = (shapes.unsqueeze(g, t, between) for t in (cos, sin))
    width = rotary_embedding_dim or g.shape(x)[-1]
    turned, rest = shapes.slice_(g, x, 3, 0, width), shapes.slice_(g, x, 3, width)
    if interleaved:
        a, b = shapes.slice_(g, turned, 3, 0, width, 2), shapes.slice_(g, turned, 3, 1, width, 2)
    else:
        a, b = shapes.split(g, turned, width // 2, 3)
    real = g.b.add(Sub(), g.b.add(Mul(), a, cos), g.b.add(Mul(), b, sin))
    imaginary = g.b.add(Add(), g.b.add(Mul(), a, sin), g.b.add(Mul(), b, cos))
    if interleaved:
        y = g.reshape(shapes.stack(g, [real, imaginary], -1), g.shape(turned))
    else:
        y = shapes.cat(g, [real, imaginary], 3)
    return g.reshape(shapes.cat(g, [y, rest], 3) if g[rest].count else y, shape)


ROWS: dict[str, OnnxRow] = {"Attention": OnnxRow(attention), "RotaryEmbedding": row(rotary)}
