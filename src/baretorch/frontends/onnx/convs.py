"""Rows of the ONNX table: convolutions and transposed convolutions of signals, images and volumes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import conv as aten
from baretorch.frontends.aten import shapes
from baretorch.frontends.aten.conv import conv_image, convolve_transposed
from baretorch.frontends.lowering import Ints, Lowering, Result
from baretorch.frontends.onnx.call import OnnxCall, need_float
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow, row
from baretorch.frontends.onnx.shapes import pad_constant
from baretorch.frontends.windows import Windows, same_padding
from baretorch.ops.activations import Silu
from baretorch.ops.conv2d import Conv2d


def windows(call: OnnxCall, sizes: Sequence[int], kernel: Sequence[int]) -> Windows:
    """Return the windows over dimensions of these sizes."""
    dims = len(sizes)
    strides = tuple(call.attribute("strides", (1,) * dims))
    dilations = tuple(call.attribute("dilations", (1,) * dims))
    if not len(kernel) == len(strides) == len(dilations) == dims:
        raise CompileError(f"{call.op}: the windows have {len(kernel)} dimensions", have=f"{dims} to slide over")
    pads = tuple(call.attribute("pads", (0,) * 2 * dims))
    before, after = pads[:dims], pads[dims:]
    mode = call.attribute("auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        before, after = halves(same_padding(sizes, kernel, strides, dilations), mode)
    elif mode == "VALID":
        before = after = (0,) * dims
    return Windows(tuple(kernel), strides, dilations, before, after)


def halves(missing: Sequence[int], mode: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the padding before and after; the odd one goes to the end, or with SAME_LOWER to the beginning."""
    less, more = tuple(m // 2 for m in missing), tuple(m - m // 2 for m in missing)
    return (less, more) if mode == "SAME_UPPER" else (more, less)


def conv(g: OnnxLowering, x: str, weight: str, bias: str | None = None, *, group: int = 1, call: OnnxCall) -> str:
    _need_constants(g, call, x, weight, bias)
    return convolve(g, x, weight, bias, windows(call, g.shape(x)[2:], g.shape(weight)[2:]), group)


def convolve(g: Lowering, x: str, weight: str, bias: str | None, w: Windows, groups: int) -> str:
    """Lower a convolution; a volume is padded first."""
    if w.dims > 3:
        raise CompileError(f"Conv over {w.dims} dimensions is not supported", have=str(g[x]), need="1 to 3")
    if w.dims == 3:
        x = pad_constant(g, x, [(0, 0), (0, 0), *zip(w.before, w.after, strict=True)], 0.0)
        w = replace(w, before=(0, 0, 0), after=(0, 0, 0))
    return aten.convolve(g, x, weight, bias, w, groups)


def conv_transpose(
    g: OnnxLowering,
    x: str,
    weight: str,
    bias: str | None = None,
    *,
    auto_pad: str = "NOTSET",
    group: int = 1,
    output_padding: Ints = (0, 0, 0),
    output_shape: Ints | None = None,
    call: OnnxCall,
) -> str:
    """Lower a transposed convolution. `output_shape` is the size after padding is cut off; output_padding is padding
    that is not cut off."""
    _need_constants(g, call, x, weight, bias)
    sizes, kernel = g.shape(x)[2:], g.shape(weight)[2:]
    dims = len(sizes)
    if dims > 3:
        raise CompileError(f"ConvTranspose over {dims} dimensions is not supported", have=str(g[x]), need="1 to 3")
    w, extra = windows(call, sizes, kernel), output_padding[:dims]
    if output_shape is None and auto_pad.startswith("SAME"):
        output_shape = [n * s for n, s in zip(sizes, w.strides, strict=True)]
    before, after = w.before, w.after
    if output_shape is not None:
        each = zip(sizes, w.strides, w.dilations, kernel, extra, output_shape[-dims:], strict=True)
        before, after = halves([s * (n - 1) + p + d * (k - 1) + 1 - out for n, s, d, k, p, out in each], auto_pad)
    if min(before) < 0:
        raise CompileError(
            "ConvTranspose: its first outputs are made of no input",
            have=f"kernel {list(kernel)}, strides {list(w.strides)}, padding {list(before)} before",
            need="padding of 0 or more before; a kernel as large as the strides",
        )
    after = tuple(a - e for a, e in zip(after, extra, strict=True))
    return convolve_transposed(g, x, weight, bias, replace(w, before=before, after=after), group)


def _need_constants(g: OnnxLowering, call: OnnxCall, x: str, weight: str, bias: str | None) -> None:
    need_float(g, call.op, x, weight)
    g.constant(weight, f"{call.op}: the weight")
    if bias is not None:
        g.constant(bias, f"{call.op}: the bias")


def causal_conv(
    g: OnnxLowering,
    x: str,
    weight: str,
    bias: str | None = None,
    past: str | None = None,
    *,
    activation: str = "none",
    call: OnnxCall,
) -> Result:
    """Convolve each channel separately over the past (the state, or zeros) and the input."""
    _need_constants(g, call, x, weight, bias)
    channels, kernel = g.shape(x)[1], g.shape(weight)[2]
    missing = [(0, 0), (0, 0), (kernel - 1, 0)]
    whole = pad_constant(g, x, missing, 0.0) if past is None else shapes.cat(g, [past, x], 2)
    y = conv_image(g, Conv2d((1, 1), (0, 0, 0, 0), (1, 1), channels), whole, weight, bias)
    if activation in ("silu", "swish"):
        y = g.b.add(Silu(), y)
    length = g.shape(whole)[2]
    return (y, shapes.slice_(g, whole, 2, length - kernel + 1, length))[: call.outputs]


def col2im(g: OnnxLowering, x: str, image_shape: str, block_shape: str, *, call: OnnxCall) -> str:
    """Add each column of a block at its place: a transposed convolution whose weights are an identity matrix."""
    image, block = g.ints(image_shape, "Col2Im: image_shape"), g.ints(block_shape, "Col2Im: block_shape")
    if len(image) > 3:
        raise CompileError(f"Col2Im of {len(image)} dimensions is not supported", need="1 to 3")
    w = windows(call, image, block)
    spread = zip(image, block, w.strides, w.dilations, w.before, w.after, strict=True)
    counts = [(n + b + a - d * (k - 1) - 1) // s + 1 for n, k, s, d, b, a in spread]
    n, rows, _ = g.shape(x)
    each = int(np.prod(block))
    taps = np.tile(np.eye(each, dtype=np.float32), (rows // each, 1)).reshape(rows, 1, *block)
    left = [(c - 1) * s + d * (k - 1) + 1 for c, s, d, k in zip(counts, w.strides, w.dilations, block, strict=True)]
    after = tuple(have - b - out for have, b, out in zip(left, w.before, image, strict=True))
    blocks = g.reshape(x, (n, rows, *counts))
    return convolve_transposed(g, blocks, g.b.const("taps", taps), None, replace(w, after=after), rows // each)


ROWS: dict[str, OnnxRow] = {
    "Conv": row(conv),
    "ConvTranspose": row(conv_transpose),
    "CausalConvWithState": row(causal_conv),
    "Col2Im": row(col2im),
}
