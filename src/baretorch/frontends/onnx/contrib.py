"""Rows of the ONNX table: operators of onnxruntime's domain com.microsoft, which its optimizer and the exporters of
transformer models write. They are other operators fused, as onnxruntime's ContribOperators.md defines them."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, sqrt

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import shapes
from baretorch.frontends.aten.products import linear_layer, matmul
from baretorch.frontends.aten.sequence import attention as attend
from baretorch.frontends.lowering import Result
from baretorch.frontends.onnx.activations import hard_sigmoid, swish
from baretorch.frontends.onnx.attention import rotary
from baretorch.frontends.onnx.call import MICROSOFT, OnnxCall, key, need_float
from baretorch.frontends.onnx.convs import conv
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow, row
from baretorch.frontends.onnx.nn import layer_norm, rms_norm
from baretorch.frontends.onnx.products import gemm
from baretorch.ops.activations import Gelu, LeakyRelu
from baretorch.ops.elementwise import Add, Clamp, Mul
from baretorch.ops.functions import Rsqrt, Sigmoid, Tanh
from baretorch.ops.reduce import Mean


def gelu(g: OnnxLowering, x: str, bias: str | None = None, *, call: OnnxCall) -> str:
    """Lower Gelu and BiasGelu, and FastGelu, which is the approximation by tanh."""
    need_float(g, call.op, x)
    return g.b.add(Gelu(call.op == "FastGelu"), _sum(g, (x, bias)))


def skip_norm(
    g: OnnxLowering,
    x: str,
    skip: str,
    weight: str,
    beta: str | None = None,
    bias: str | None = None,
    *,
    epsilon: float = 1e-12,
    call: OnnxCall,
) -> Result:
    """Lower the layer norm of a sum, which may be the fourth output."""
    need_float(g, call.op, x, skip)
    total = _sum(g, (x, bias, skip))
    made = layer_norm(g, total, weight, beta, epsilon=epsilon, call=call)
    return made if isinstance(made, str) else (*made, total)


def skip_rms_norm(
    g: OnnxLowering,
    x: str,
    skip: str,
    weight: str,
    bias: str | None = None,
    *,
    epsilon: float = 1e-12,
    call: OnnxCall,
) -> Result:
    """Lower the RMS norm of a sum, which may be the fourth output."""
    need_float(g, call.op, x, skip)
    total = _sum(g, (x, bias, skip))
    y = rms_norm(g, total, weight, epsilon=epsilon)
    if call.outputs == 1:
        return y
    last = (len(g.shape(total)) - 1,)
    power = g.b.add(Mean(last, True), g.b.add(Mul(), total, total))
    inverse = g.b.add(Rsqrt(), g.b.add(Add(), power, g.operand(epsilon, total)))
    return y, g.b.add(Mean(last, True), total), inverse, total


def _sum(g: OnnxLowering, terms: Sequence[str | None]) -> str:
    first, *others = (t for t in terms if t is not None)
    for t in others:
        first = g.b.add(Add(), first, t)
    return first


def fused_matmul(
    g: OnnxLowering,
    a: str,
    b: str,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> str:
    """Lower alpha a b. A transposed batch has its rows outermost: [M, ..., K] instead of [..., M, K]."""
    need_float(g, "FusedMatMul", a, b)
    a, b = (_transpose(g, x, bool(t), bool(o)) for x, t, o in ((a, transA, transBatchA), (b, transB, transBatchB)))
    y = matmul(g, a, b)
    return y if alpha == 1.0 else g.b.add(Mul(), y, g.operand(alpha, y))


def _transpose(g: OnnxLowering, x: str, transposed: bool, batch: bool) -> str:
    dims = list(range(len(g.shape(x))))
    if batch and len(dims) > 2:
        dims = [*dims[1:-1], 0, dims[-1]]
    if transposed and len(dims) > 1:
        dims[-2:] = dims[:-3:-1]
    return x if dims == sorted(dims) else g.permute(x, dims)


def fused_conv(
    g: OnnxLowering,
    x: str,
    weight: str,
    bias: str | None = None,
    z: str | None = None,
    *,
    group: int = 1,
    activation: str = "",
    activation_params: Sequence[float] = (),
    call: OnnxCall,
) -> str:
    y = _sum(g, (conv(g, x, weight, bias, group=group, call=call), z))
    return _activate(g, call, y, activation, activation_params)


def fused_gemm(g: OnnxLowering, a: str, b: str, c: str | None = None, *, call: OnnxCall) -> str:
    known = {n: call.attribute(n) for n in ("alpha", "beta", "transA", "transB") if n in call.attributes}
    names = ("activation_alpha", "activation_beta", "activation_gamma")
    given = [float(call.attribute(n)) for n in names if n in call.attributes]
    return _activate(g, call, gemm(g, a, b, c, **known), str(call.attribute("activation", "")), given)


def _activate(g: OnnxLowering, call: OnnxCall, y: str, kind: str, given: Sequence[float]) -> str:
    """Apply the activation of a fused layer, with onnxruntime's parameters of it."""
    match kind:
        case "":
            return y
        case "Relu":
            return g.b.add(Clamp(0.0, inf), y)
        case "Sigmoid":
            return g.b.add(Sigmoid(), y)
        case "Tanh":
            return g.b.add(Tanh(), y)
        case "LeakyRelu":
            return g.b.add(LeakyRelu(*(given[:1] or (0.01,))), y)
        case "Clip":
            return g.b.add(Clamp(*(given[:2] if len(given) > 1 else (-inf, inf))), y)
        case "HardSigmoid":
            return hard_sigmoid(g, y, **dict(zip(("alpha", "beta"), given, strict=False)))
    raise CompileError(
        f"{call.op}: the activation {kind} is not supported",
        need="Relu, Sigmoid, Tanh, LeakyRelu, Clip or HardSigmoid",
    )


def attention(g: OnnxLowering, call: OnnxCall) -> str:
    """Lower the self-attention whose weights for queries, keys and values are one matrix."""
    x, weight = call.need(0), call.need(1)
    need_float(g, call.op, x)
    _need_plain(g, call, ("past", 4), ("mask_index", 3), ("past_sequence_length", 6))
    heads = int(call.attribute("num_heads"))
    bias = call.input(2)
    columns = g.shape(weight)[-1]
    sizes = tuple(call.attribute("qkv_hidden_sizes", (columns // 3,) * 3))
    _need_columns(g, call, bias, sum(sizes))
    if g.shape(weight) != (g.shape(x)[-1], sum(sizes)):
        raise CompileError(f"{call.op}: the weight does not fit", have=f"{g[weight]}, sizes {list(sizes)}")
    every = linear_layer(g, x, g.permute(weight, (1, 0)), bias)
    ends = np.cumsum(sizes)
    q, k, v = (shapes.slice_(g, every, 2, int(e) - n, int(e)) for n, e in zip(sizes, ends, strict=True))
    return _attend(g, call, q, k, v, heads, call.input(5), bool(call.attribute("unidirectional", 0)))


def multi_head_attention(g: OnnxLowering, call: OnnxCall) -> str:
    """Lower attention of queries, keys and values [N, L, heads * E], to all of which a bias may be added."""
    q, k, v = (call.need(i) for i in range(3))
    need_float(g, call.op, q, k, v)
    _need_plain(g, call, ("key_padding_mask", 4), ("past_key", 6), ("past_value", 7))
    bias = call.input(3)
    if bias is not None:
        ends = np.cumsum([g.shape(t)[-1] for t in (q, k, v)])
        _need_columns(g, call, bias, int(ends[-1]))
        parts = [
            shapes.slice_(g, bias, 0, int(e) - g.shape(t)[-1], int(e)) for t, e in zip((q, k, v), ends, strict=True)
        ]
        q, k, v = (g.b.add(Add(), t, part) for t, part in zip((q, k, v), parts, strict=True))
    heads = int(call.attribute("num_heads"))
    return _attend(g, call, q, k, v, heads, call.input(5), bool(call.attribute("unidirectional", 0)))


def _need_columns(g: OnnxLowering, call: OnnxCall, bias: str | None, columns: int) -> None:
    if bias is not None and g.shape(bias) != (columns,):
        raise CompileError(f"{call.op}: the bias does not fit", have=str(g[bias]), need=f"float32[{columns}]")


def _need_plain(g: OnnxLowering, call: OnnxCall, *others: tuple[str, int]) -> None:
    """Raise CompileError for inputs, outputs and layouts other than those of plain attention."""
    given = [name for name, i in others if call.input(i) is not None]
    if given or call.outputs > 1 or call.attribute("do_rotary", 0):
        what = ", ".join(given) or ("do_rotary" if call.attribute("do_rotary", 0) else "more than one output")
        raise CompileError(f"{call.op}: {what} is not supported", need="one output, and no cache and no key mask")
    for i in range(3 if call.op == "MultiHeadAttention" else 1):
        if len(g.shape(call.need(i))) != 3:
            raise CompileError(f"{call.op}: input {i} is {g[call.need(i)].type}", need="[batch, positions, numbers]")


def _attend(g: OnnxLowering, call: OnnxCall, q: str, k: str, v: str, heads: int, mask: str | None, causal: bool) -> str:
    """Compute attention per head; the mask is added to the scores."""

    def apart(x: str) -> str:
        batch, rows, width = g.shape(x)
        return g.permute(g.reshape(x, (batch, rows, heads, width // heads)), (0, 2, 1, 3))

    q, k, v = map(apart, (q, k, v))
    scale = float(call.attribute("scale", 0.0)) or 1 / sqrt(g.shape(q)[-1])
    batch, _, rows, width = g.shape(attended := attend(g, q, k, v, mask, 0.0, causal, scale))
    return g.reshape(g.permute(attended, (0, 2, 1, 3)), (batch, rows, heads * width))


def rotary_embedding(
    g: OnnxLowering,
    x: str,
    positions: str,
    cos: str,
    sin: str,
    *,
    interleaved: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
    call: OnnxCall,
) -> str:
    """Lower onnxruntime's order of inputs. One position is that of the first row."""
    need_float(g, call.op, x)
    shape = g.shape(x)
    rows = shape[1] if len(shape) == 3 else shape[2]
    if scale != 1.0:
        raise CompileError(f"{call.op}: scale {scale} is not supported", need="1.0")
    if g.shape(positions) == (1,):
        positions = g.b.add(Add(), g.b.const("rows", np.arange(rows, dtype=g[positions].dtype.numpy)), positions)
        positions = g.reshape(positions, (1, rows))
    heads = num_heads or shape[-1] // (2 * g.shape(cos)[-1])
    return rotary(
        g,
        x,
        cos,
        sin,
        positions,
        interleaved=interleaved,
        num_heads=heads,
        rotary_embedding_dim=rotary_embedding_dim,
    )


def _rows() -> dict[str, OnnxRow]:
    rows = {
        **{name: row(gelu) for name in ("Gelu", "FastGelu", "BiasGelu")},
        "QuickGelu": row(lambda g, x, *, alpha=1.702: swish(g, x, alpha=alpha)),
        "SkipLayerNormalization": row(skip_norm),
        "SkipSimplifiedLayerNormalization": row(skip_rms_norm),
        "FusedMatMul": row(fused_matmul),
        "FusedConv": row(fused_conv),
        "FusedGemm": row(fused_gemm),
        "Attention": OnnxRow(attention),
        "MultiHeadAttention": OnnxRow(multi_head_attention),
        "RotaryEmbedding": row(rotary_embedding),
    }
    return {key(op, MICROSOFT): made for op, made in rows.items()}


ROWS = _rows()
