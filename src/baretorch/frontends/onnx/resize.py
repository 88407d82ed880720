"""Rows of the ONNX table: tensors enlarged or reduced.

Along each axis an output is a weighted sum of inputs that are known ahead of time. Where one of the Graph's own
operators means the same, it is taken; else the weights are a matrix, and entries that are chosen an index.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten.index import take
from baretorch.frontends.aten.promotion import cast
from baretorch.frontends.aten.resampling import apply_matrix, cubic, triangle
from baretorch.frontends.lowering import Lowering
from baretorch.frontends.onnx.call import OnnxCall, need_room
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow
from baretorch.ir.graph import Array, DType
from baretorch.ops.layout import Expand
from baretorch.ops.logic import Where
from baretorch.ops.upsample import UpsampleBicubic2d, UpsampleBilinear2d, UpsampleNearest2d

FAR = 1e30  # more than any size
HALF_PIXEL = ("half_pixel", "pytorch_half_pixel")


@dataclass(frozen=True)
class Along:
    """The resizing of one axis."""

    axis: int
    have: int
    want: int
    scale: float
    start: float  # start and end of the region of interest
    end: float

    def places(self, mode: str) -> Array:
        """Return each output's position among the inputs; in float32, as runtimes compute it, because that decides
        halves."""
        i = np.arange(self.want, dtype=np.float32)
        width = self.scale * self.have
        if mode == "half_pixel" or (mode == "pytorch_half_pixel" and self.want > 1):
            return (i + 0.5) / self.scale - 0.5
        if mode == "pytorch_half_pixel":
            return np.zeros(1)
        if mode == "half_pixel_symmetric":
            return self.have / 2 * (1 - self.want / width) + (i + 0.5) / self.scale - 0.5
        if mode == "asymmetric":
            return i / self.scale
        if mode == "align_corners":
            return (
                i * (self.have - 1) / (width - 1) if width != 1 else i * 0
            )  # the width before it is rounded, unlike onnxruntime
        if mode == "tf_crop_and_resize":
            last = self.have - 1
            if self.want == 1:
                return np.array([0.5 * (self.start + self.end) * last])
            return self.start * last + i * (self.end - self.start) * last / (width - 1)
        raise CompileError(f"Resize: no coordinate_transformation_mode is called {mode!r}")


def resize(g: OnnxLowering, call: OnnxCall) -> str:
    x = call.need(0)
    mode, where = call.attribute("mode", "nearest"), call.attribute("coordinate_transformation_mode", "half_pixel")
    axes = [a for a in _axes(g, call) if (a.have, a.scale) != (a.want, 1.0) or where == "tf_crop_and_resize"]
    if not g[x].count or not all(a.have > 0 and a.want > 0 for a in axes):
        sizes = ", ".join(f"{a.have} to {a.want}" for a in axes)
        raise CompileError("Resize: the input or the output is empty", have=sizes or str(g[x]))
    for a in axes:
        need_room("Resize", a.want)
    if mode == "nearest":
        y = _nearest(g, call, x, axes, where)
    elif mode in ("linear", "cubic"):
        dtype = g[x].dtype
        y = cast(g, _interpolate(g, call, cast(g, x, DType.FLOAT32), axes, mode, where), dtype)
    else:
        raise CompileError(f"Resize: no mode is called {mode!r}", need="nearest, linear or cubic")
    if where != "tf_crop_and_resize":
        return y
    outside = np.zeros(g.shape(y), np.bool_)
    for a in axes:
        at = a.places(where)
        column = ((at < 0) | (at > a.have - 1)).reshape([-1 if i == a.axis else 1 for i in range(outside.ndim)])
        outside |= column
    if not outside.any():
        return y
    value = g.operand(float(call.attribute("extrapolation_value", 0.0)), y)
    return g.b.add(Where(), g.b.const("outside", outside), g.b.add(Expand(g.shape(y)), value), y)


def _axes(g: OnnxLowering, call: OnnxCall) -> list[Along]:
    """Return the axes to resize, by `scales` or by `sizes`; the other is missing or empty."""
    x = call.need(0)
    shape = g.shape(x)
    axes = [g.axis(x, int(a)) for a in call.attribute("axes", range(len(shape)))]
    have = [shape[a] for a in axes]
    sizes = g.ints(call.input(3), "Resize: sizes") if call.input(3) else ()
    if sizes:
        ratios = [want / n for want, n in zip(sizes, have, strict=True)]
        policy = call.attribute("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            ratio = (min if policy == "not_larger" else max)(ratios)
            ratios = [ratio] * len(axes)
            sizes = tuple(floor(n * ratio + 0.5) for n in have)
        want = list(sizes)
    else:
        ratios = [float(s) for s in g.constant(call.input(2), "Resize: scales").reshape(-1)]
        want = [floor(np.float32(min(n * s, FAR))) for n, s in zip(have, ratios, strict=True)]  # as onnxruntime rounds
    roi = [0.0] * len(axes) + [1.0] * len(axes)
    if call.attribute("coordinate_transformation_mode") == "tf_crop_and_resize":
        roi = [float(v) for v in g.constant(call.input(1), "Resize: roi").reshape(-1)]
        if not sizes:
            size = zip(have, ratios, roi[: len(axes)], roi[len(axes) :], strict=True)
            want = [floor(n * (end - start) * s) for n, s, start, end in size]
    starts, ends = roi[: len(axes)], roi[len(axes) :]
    return [Along(*each) for each in zip(axes, have, want, ratios, starts, ends, strict=True)]


# --- nearest --------------------------------------------------------------------------------------------------

ROUNDING: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda at: np.ceil(at - 0.5),
    "round_prefer_ceil": lambda at: np.floor(at + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _nearest(g: Lowering, call: OnnxCall, x: str, axes: list[Along], where: str) -> str:
    rounding = ROUNDING[call.attribute("nearest_mode", "round_prefer_floor")]
    chosen = {a.axis: np.clip(rounding(a.places(where)), 0, a.have - 1).astype(np.int64) for a in axes}
    if _is_image(g, x, axes):
        have, want = g.shape(x)[2:], tuple(len(chosen[a]) if a in chosen else g.shape(x)[a] for a in (2, 3))
        op = UpsampleNearest2d((want[0], want[1]), (have[0] / want[0], have[1] / want[1]))
        if all(np.array_equal(chosen[a], op.sources(a - 2, g.shape(x)[a])) for a in chosen):
            return g.nhwc(op, x)
    for axis, index in chosen.items():
        x = take(g, x, axis, index)
    return x


def _is_image(g: Lowering, x: str, axes: list[Along]) -> bool:
    return len(g.shape(x)) == 4 and all(a.axis >= 2 for a in axes) and bool(axes)


# --- weighted sums --------------------------------------------------------------------------------------------


def _interpolate(g: Lowering, call: OnnxCall, x: str, axes: list[Along], mode: str, where: str) -> str:
    bent = float(call.attribute("cubic_coeff_a", -0.75))
    plain = not call.attribute("antialias", 0) and not call.attribute("exclude_outside", 0)
    same = where == "align_corners" or (where in HALF_PIXEL and all(a.want > 1 for a in axes))
    exact = all(a.want == a.have * a.scale for a in axes)
    if plain and same and exact and _is_image(g, x, axes) and (mode == "linear" or bent == -0.75):
        return _image(g, x, axes, mode, where == "align_corners")
    for a in axes:
        matrix = _weights(call, a, mode, where, bent)
        x = apply_matrix(g, x, a.axis, matrix)
    return x


def _image(g: Lowering, x: str, axes: list[Along], mode: str, corners: bool) -> str:
    want, step = list(g.shape(x)[2:]), [1.0, 1.0]
    for a in axes:
        want[a.axis - 2] = a.want
        ratio = (a.have - 1) / (a.want - 1) if corners and a.want > 1 else 0.0 if corners else a.have / a.want
        step[a.axis - 2] = float(np.float32(ratio))
    kind = UpsampleBilinear2d if mode == "linear" else UpsampleBicubic2d
    return g.nhwc(kind((want[0], want[1]), (step[0], step[1]), corners), x)


def _weights(call: OnnxCall, a: Along, mode: str, where: str, bent: float) -> Array:
    """Return matrix[output, input]; positions outside use the border, or are left out."""
    stretch = min(a.scale, 1.0) if call.attribute("antialias", 0) else 1.0
    reach = (1 if mode == "linear" else 2) / stretch
    need_room("Resize", a.want, a.have)
    matrix = np.zeros((a.want, a.have))
    for i, at in enumerate(a.places(where)):
        taps = np.arange(ceil(at - reach), floor(at + reach) + 1)
        part = triangle((taps - at) * stretch) if mode == "linear" else cubic((taps - at) * stretch, bent)
        part = part / part.sum()
        if call.attribute("exclude_outside", 0):
            inside = (taps >= 0) & (taps < a.have)
            taps, part = taps[inside], part[inside] / part[inside].sum()
        np.add.at(matrix[i], np.clip(taps, 0, a.have - 1), part)
    return matrix.astype(np.float32)


ROWS: dict[str, OnnxRow] = {"Resize": OnnxRow(resize)}
