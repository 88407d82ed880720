"""conv2d on NHWC, with bias, limits and a following max pool in one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, prod
from typing import Any

import numpy as np

from baretorch.ir.graph import Array, DType, Piece, Shape, Signature, Span, Tensor
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.check import need, need_channels, need_float32
from baretorch.ops.helpers.families import Limited
from baretorch.ops.helpers.kernel import (
    Call,
    Distances,
    Fields,
    Kernel,
    Packed,
    Params,
    apart,
    bias_of,
    data_of,
    fields_of,
    has_constants,
    in_eights,
    nowhere,
    with_pitch,
)
from baretorch.ops.helpers.window import (
    Axis,
    Padding,
    Pair,
    axes,
    cut_windows,
    outputs,
    padding_params,
    pair_params,
    per_group,
    size_params,
)
from baretorch.ops.packing import half
from baretorch.targets.features import FPU, MVE, VECTORS, Needs


@dataclass(frozen=True)
class Conv2d(Limited, name="conv2d"):
    """x[N, H, W, C], weight[O, KH, KW, C / groups], optional bias[O] -> [N, H', W', O], limited to [lo, hi].

    `padding` is (top, bottom, left, right). The maximum of each `pool` window of the convolution is output; the windows
    do not overlap, and a remainder that fills no window is dropped. With `half`, weights are rounded to float16 and
    stored as that.
    """

    stride: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    dilation: Pair = (1, 1)
    groups: int = 1
    lo: float = -inf
    hi: float = inf
    pool: Pair = (1, 1)
    half: bool = False

    @property
    def geometry(self) -> Conv2d:
        return self

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need_float32(self, inputs)
        need_channels(self, inputs, self.groups)
        x, weight = inputs[:2]
        valid = min(*weight.shape[1:3], *self.stride, *self.dilation, *self.pool) > 0
        need(valid, self, "a window without size or stride", inputs, "kernel, stride, dilation and pool of 1 or more")
        need(min(self.padding) >= 0, self, f"padding {self.padding} is negative", inputs, "padding of 0 or more")
        h, w = self._size_after_pool(self._size_before_pool(x.shape, weight.shape))
        need(
            h > 0 and w > 0,
            self,
            "the output is empty",
            inputs,
            f"an image that holds the kernel at dilation {self.dilation} and the pool {self.pool}",
        )
        return (Signature((x.shape[0], h, w, weight.shape[0]), DType.FLOAT32),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            y = self.sums(inputs[0], half.round_to_half(inputs[1]) if self.half else inputs[1])
            if len(inputs) > 2:
                y = y + inputs[2]
            return (np.clip(y, self.lo, self.hi).astype(np.float32),)

    def sums(self, x: Array, weight: Array) -> Array:
        """Return the convolution and its pool in float64, without bias and limits."""
        x, weight = x.astype(np.float64), weight.astype(np.float64)
        h, w = self._size_before_pool(x.shape, weight.shape)
        out, kernel_h, kernel_w, depth = weight.shape
        top, bottom, left, right = self.padding
        padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
        sums = np.zeros((x.shape[0], h, w, self.groups, out // self.groups))
        (sh, sw), (dh, dw) = self.stride, self.dilation
        for i in range(kernel_h):
            for j in range(kernel_w):
                part = padded[:, i * dh :: sh, j * dw :: sw][:, :h, :w].reshape(-1, h, w, self.groups, depth)
                taps = weight[:, i, j].reshape(self.groups, -1, depth)
                sums += per_group(part, taps)
        y = sums.reshape(-1, h, w, out)
        ph, pw = self.pool
        h, w = self._size_after_pool((h, w))
        pooled: Array = y[:, : h * ph, : w * pw].reshape(-1, h, ph, w, pw, out).max(axis=(2, 4))
        return pooled

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        return cut_convolution(self, inputs, axis, start, stop)

    def macs(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> int:
        return outputs[0].count * prod(self.pool) * prod(inputs[1].shape[1:])

    def _size_before_pool(self, x: Shape, weight: Shape) -> Pair:
        """Return height and width before the pool."""
        return outputs(x, self._windows(weight))

    def _windows(self, weight: Shape) -> tuple[Axis, Axis]:
        return axes((weight[1], weight[2]), self.stride, self.padding, self.dilation)

    def pooled_windows(self, weight: Shape) -> tuple[Axis, Axis]:
        """Return the windows of input that an output after the pool depends on."""
        rows, columns = (
            Axis((pool - 1) * w.stride + w.reach, pool * w.stride, w.before, w.after)
            for pool, w in zip(self.pool, self._windows(weight), strict=True)
        )
        return rows, columns

    def _size_after_pool(self, size: Pair) -> Pair:
        return size[0] // self.pool[0], size[1] // self.pool[1]

    def takes_affine(self) -> bool:
        return (self.lo, self.hi) == (-inf, inf) and self.pool == (1, 1) and not self.half


def cut_convolution(op: Any, inputs: Sequence[Tensor], axis: int, start: int, stop: int) -> Piece | None:
    """Cut a convolution, float or int8: images, rows, columns; channels where all read the same inputs, or each one of
    its own."""
    if axis == 3 and op.groups == 1:
        return cut.channels_of(op, inputs, start, stop)
    if axis == 3:
        if not op.groups == inputs[0].shape[3] == inputs[1].shape[0]:
            return None
        reads = (Span(3, start, stop), *(Span(0, start, stop) for _ in inputs[1:]))
        return Piece(replace(op, groups=stop - start), reads)
    return cut_windows(op, op.geometry.pooled_windows(inputs[1].shape), inputs, axis, start, stop)


def flatten_pixels(call: Call[Any]) -> Call[Any]:
    """Return a pointwise convolution with all pixels in one column, so that rows are pixels."""
    geometry = getattr(call.op, "geometry", None)
    if not isinstance(geometry, Conv2d) or len(call.outputs) != 1 or len(call.x.shape) != 4:
        return call
    plain = geometry.stride == geometry.pool == (1, 1) and not any(geometry.padding) and geometry.groups == 1
    if not plain or call.inputs[1].shape[1:3] != (1, 1):
        return call

    def column(t: Tensor) -> Tensor:
        return replace(t, shape=(1, prod(t.shape[:3]), 1, t.shape[3]))

    return replace(call, inputs=(column(call.x), *call.inputs[1:]), outputs=(column(call.y),))


def geometry_params(call: Call[Conv2d]) -> Fields:
    """Return the parameters that describe the windows; the int8 convolution has the same."""
    op = call.op
    return (
        *size_params(call.x.shape, call.inputs[1].shape, call.y.shape),
        *pair_params("stride", op.stride),
        *padding_params(op.padding),
        *pair_params("dilation", op.dilation),
        ("groups", op.groups),
        *pair_params("pool", op.pool),
    )


def _params(call: Call[Conv2d]) -> Params:
    params = Params("bt_conv2d_f32", (*geometry_params(call), *fields_of(call.op, "lo", "hi")))
    return with_pitch("bt_conv2d_channels_f32", params, call)


def _flat_params(call: Call[Conv2d]) -> Params:
    """Return `_params` with all pixels of a pointwise convolution in one row, which has no edges."""
    x, y = call.x, call.y
    if not _pointwise(call):
        return _params(call)
    row = 1, 1, prod(x.shape[:3])
    return _params(
        replace(
            call,
            inputs=(replace(x, shape=(*row, x.shape[3])), *call.inputs[1:]),
            outputs=(replace(y, shape=(*row, y.shape[3])),),
        )
    )


def _pointwise(call: Call[Conv2d]) -> bool:
    """Return whether each output pixel depends on one input pixel."""
    return call.inputs[1].shape[1:3] == (1, 1) and replace(call.op, lo=-inf, hi=inf, half=False) == Conv2d()


def _pack(call: Call[Conv2d]) -> tuple[Packed, ...]:
    return (Packed("weight", data_of(call.inputs, 1)), Packed("bias", bias_of(call)))


def _pack_eights(call: Call[Conv2d]) -> tuple[Packed, ...]:
    weight = data_of(call.inputs, 1)
    return (Packed("weight", in_eights(weight.reshape(weight.shape[0], -1))), Packed("bias", bias_of(call)))


def _rows_together(call: Call[Conv2d]) -> bool:
    """Return whether the inputs of one kernel row are contiguous."""
    return has_constants(call) and (call.op.dilation[1] == 1 or call.inputs[1].shape[2] == 1)


def _fits_dense(call: Call[Conv2d]) -> bool:
    return _rows_together(call) and call.op.groups == 1


def _fits_depthwise(call: Call[Conv2d]) -> bool:
    return _rows_together(call) and call.x.shape[3] == call.y.shape[3] == call.op.groups and call.op.pool == (1, 1)


def _pool_scratch(call: Call[Conv2d]) -> int:
    return 4 * prod(call.op.pool) * call.y.shape[3]


def pixel_distances(together: int) -> Callable[[Call[Any]], Distances]:
    """Return the distances of a convolution that computes its output pixel by pixel; see overlap.py."""
    return overlap.windows(
        lambda op: (op.stride[0] * op.pool[0], op.stride[1] * op.pool[1]), lambda op: op.padding, together
    )


def pointwise_back(pointwise: Callable[[Call[Any]], bool], together: int) -> Callable[[Call[Any]], Distances]:
    """Return the distances of a kernel that has a function `back` for whole pointwise layers."""
    return lambda call: (overlap.pixels_back(together) if pointwise(call) and not call.pitch else apart)(call)


def _in_eights(variant: str, needs: Needs, windows: int = 2) -> tuple[Kernel[Conv2d], ...]:
    """Return kernels that compute eight outputs of several windows together."""

    def row(
        kind: str,
        params: Callable[[Call[Conv2d]], Params],
        fits: Callable[[Call[Conv2d]], bool],
        together: int,
        scratch: Callable[[Call[Conv2d]], int] = lambda call: 0,
    ) -> Kernel[Conv2d]:
        symbol, source = f"bt_conv2d{kind}_f32_{variant}", f"conv2d/{variant}.c"
        splits = cut.rows if kind == "_depthwise" else cut.rows_or_channels(8)
        return Kernel(
            symbol, source, params, needs, fits, _pack_eights, scratch, pixel_distances(together), splits=splits
        )

    plain = row("", _flat_params, lambda call: _fits_dense(call) and call.op.pool == (1, 1), windows)
    if variant in ("fpu", "mve"):
        plain = replace(plain, back=f"bt_conv2d_back_f32_{variant}", behind=pointwise_back(_pointwise, windows))
    if variant == "fpu":
        plain = replace(plain, splits=cut.rows_and_channels(8), channels="bt_conv2d_channels_f32_fpu")
    return (
        plain,
        row("_pool", _params, _fits_dense, 0, _pool_scratch),
        row("_depthwise", _params, _fits_depthwise, 0),
    )


_REF = Kernel(
    "bt_conv2d_f32_ref",
    "conv2d/ref.c",
    _params,
    fits=has_constants,
    pack=_pack,
    overlap=pixel_distances(1),
    splits=cut.rows_and_channels(1),
    channels="bt_conv2d_channels_f32_ref",
)
_FLOAT: tuple[Kernel[Conv2d], ...] = (
    *_in_eights("mve", MVE),
    *_in_eights("fpu", FPU),
    *(
        replace(kernel, splits=nowhere) for kernel in _in_eights("vectors", VECTORS, 4)
    ),  # because observers read whole layers
    _REF,
)
KERNELS: tuple[Kernel[Conv2d], ...] = (
    *map(half.for_float32, _FLOAT),
    *map(half.make_half_in_eights, (*_in_eights("mve", MVE), *_in_eights("fpu", FPU))),
    half.make_half(_REF),
)
