"""Rows of the ONNX table: Fourier transforms. The last dimension holds real numbers, or real and imaginary parts."""

from __future__ import annotations

from baretorch.errors import CompileError
from baretorch.frontends.aten import fft, index, shapes
from baretorch.frontends.lowering import Complex
from baretorch.frontends.onnx.call import OnnxCall, need_float
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow
from baretorch.frontends.onnx.shapes import pad_constant
from baretorch.ops.elementwise import Mul

BY_N = 2  # the inverse is divided by the length, as aten counts normalizations


def dft(g: OnnxLowering, call: OnnxCall) -> str:
    """Lower DFT. Before version 20 the axis is an attribute, 1 by default; later an input, the last but one by
    default."""
    x = call.need(0)
    need_float(g, "DFT", x)
    if call.version < 20:
        axis = int(call.attribute("axis", 1))
    else:
        axis = g.ints(call.input(2), "DFT: axis")[0] if call.input(2) is not None else -2
    axis = g.axis(x, axis)
    inverse, half = bool(call.attribute("inverse", 0)), bool(call.attribute("onesided", 0))
    if call.input(1) is not None:
        wanted = g.ints(call.input(1), "DFT: dft_length")[0]
        x = _resize(g, x, axis, wanted // 2 + 1 if inverse and half else wanted)
    else:
        wanted = g.shape(x)[axis] if not (inverse and half) else 2 * (g.shape(x)[axis] - 1)
    return transform(g, x, axis, wanted, inverse, half)


def transform(g: OnnxLowering, x: str, axis: int, length: int, inverse: bool, half: bool) -> str:
    shape = g.shape(x)
    real = shape[-1] == 1
    if real and not inverse:
        return str(fft.r2c(g, g.reshape(x, shape[:-1]), (axis,), 0, half))
    if inverse and half:
        if real:
            raise CompileError("DFT: the inverse of half a spectrum that is real is not supported", have=str(g[x]))
        return shapes.unsqueeze(g, fft.c2r(g, Complex(x), (axis,), BY_N, length), -1)
    if real:
        x = pad_constant(g, x, [*((0, 0) for _ in shape[:-1]), (0, 1)], 0.0)
    z = fft.c2c(g, Complex(x), (axis,), BY_N if inverse else 0, not inverse)
    return shapes.slice_(g, str(z), axis, 0, length // 2 + 1) if half else str(z)


def _resize(g: OnnxLowering, x: str, axis: int, length: int) -> str:
    """Cut off the end, or append zeros."""
    have = g.shape(x)[axis]
    if length <= have:
        return shapes.slice_(g, x, axis, 0, length)
    return pad_constant(g, x, [(0, length - have) if i == axis else (0, 0) for i in range(len(g.shape(x)))], 0.0)


def stft(g: OnnxLowering, call: OnnxCall) -> str:
    """Multiply frames of the signal by the window, and transform each."""
    x, window = call.need(0), call.input(2)
    need_float(g, "STFT", x)
    (step,) = g.ints(call.need(1), "STFT: frame_step")
    if call.input(3) is not None:
        (length,) = g.ints(call.input(3), "STFT: frame_length")
    else:
        length = g[window].count if window is not None else g.shape(x)[1]
    frames = index.unfold(g, x, 1, length, step)  # [N, frames, parts, length]
    if window is not None:
        frames = g.b.add(Mul(), frames, window)
    return transform(g, g.permute(frames, (0, 1, 3, 2)), 2, length, False, bool(call.attribute("onesided", 1)))


ROWS: dict[str, OnnxRow] = {"DFT": OnnxRow(dft), "STFT": OnnxRow(stft)}
