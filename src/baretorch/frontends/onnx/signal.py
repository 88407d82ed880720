"""Rows of the ONNX table: Fourier transforms. The last dimension holds real numbers, or real and imaginary parts."""

from __future__ import annotations

from baretorch.errors import CompileError
from baretorch.frontends.aten import fft, index, shapes
from baretorch.frontends.lowering import Complex
from baretorch.frontends.onnx.call import OnnxCall, need_float
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow, row
from baretorch.frontends.onnx.shapes import pad_constant
from baretorch.ops.elementwise import Mul

BY_N = 2  # the inverse is divided by the length, as aten counts normalizations


def dft(
    g: OnnxLowering,
    x: str,
    count: str | None = None,
    along: str | None = None,
    *,
    axis: int = 1,
    inverse: int = 0,
    onesided: int = 0,
    call: OnnxCall,
) -> str:
    """Lower DFT. Before version 20 the axis is an attribute, 1 by default; later an input, the last but one by
    default."""
    need_float(g, "DFT", x)
    if call.version >= 20:
        axis = -2 if along is None else g.ints(along, "DFT: axis")[0]
    axis, half_inverse = g.axis(x, axis), bool(inverse and onesided)
    if count is not None:
        length = g.ints(count, "DFT: dft_length")[0]
        x = _resize(g, x, axis, length // 2 + 1 if half_inverse else length)
    else:
        length = 2 * (g.shape(x)[axis] - 1) if half_inverse else g.shape(x)[axis]
    return transform(g, x, axis, length, bool(inverse), bool(onesided))


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


def stft(
    g: OnnxLowering, x: str, frame_step: str, window: str | None = None, size: str | None = None, *, onesided: int = 1
) -> str:
    """Multiply frames of the signal by the window, and transform each."""
    need_float(g, "STFT", x)
    (step,) = g.ints(frame_step, "STFT: frame_step")
    if size is not None:
        (length,) = g.ints(size, "STFT: frame_length")
    else:
        length = g[window].count if window is not None else g.shape(x)[1]
    frames = index.unfold(g, x, 1, length, step)  # [N, frames, parts, length]
    if window is not None:
        frames = g.b.add(Mul(), frames, window)
    return transform(g, g.permute(frames, (0, 1, 3, 2)), 2, length, False, bool(onesided))


ROWS: dict[str, OnnxRow] = {"DFT": row(dft), "STFT": row(stft)}
