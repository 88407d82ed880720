"""qsums and qfrom_sums: an int8 convolution whose input channels are added in parts, and the requantization of the
sums. Only plans contain them: see plan/cluster/channel_parts.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from baretorch.ir.graph import Array, DType, Op, Piece, Signature, Span, Tensor
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.helpers import cut
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.kernel import (
    Call,
    Kernel,
    Packed,
    Params,
    Split,
    data_of,
    fields_of,
    has_constants,
    pack_inputs,
)
from baretorch.ops.helpers.window import Padding, Pair, cut_windows, padding_params, pair_params
from baretorch.ops.int8.arithmetic import requantize
from baretorch.ops.packing import xcv
from baretorch.targets.features import XCV

IMAGE = 4  # dimensions


@dataclass(frozen=True)
class QSums(Op, name="qsums", overwrites=1):
    """x int8[N, H, W, C], sums int32[N, H', W', O] or bias int32[O], weight int8[O, KH, KW, c] -> int32[N, H', W', O].

    The products with the `c` channels of x from `start` on are added to the sums. Padding is `x_zero`, as in qconv2d.
    The sums are those of the layer that makes the tensor `of`.
    """

    x_zero: int
    start: int = 0
    stride: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    dilation: Pair = (1, 1)
    of: str = ""

    def layer(self, y: Tensor) -> str:
        return self.of or y.name

    @property
    def windows(self) -> Conv2d:
        """Return the float convolution of the same shape."""
        return Conv2d(self.stride, self.padding, self.dilation)

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        x, sums, weight = inputs
        need(
            tuple(t.dtype for t in inputs) == (DType.INT8, DType.INT32, DType.INT8)
            and len(x.shape) == len(weight.shape) == IMAGE
            and 0 <= self.start <= x.shape[3] - weight.shape[3],
            self,
            "the inputs are not those of partial sums",
            inputs,
            "x int8[N, H, W, C], sums int32, weight int8[O, KH, KW, c] with channels that x has",
        )
        read = replace(x, shape=(*x.shape[:3], weight.shape[3]))
        (made,) = self.windows.infer([replace(t, dtype=DType.FLOAT32, data=None) for t in (read, weight)])
        need(
            sums.shape in (made.shape, made.shape[3:]),
            self,
            "the sums have another shape than their output",
            inputs,
            f"int32{list(made.shape)} or int32{list(made.shape[3:])}",
        )
        return (Signature(made.shape, DType.INT32),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        """Compute it in float64, exactly: sums are integers below 2^53."""
        x, sums, weight = inputs
        top, bottom, left, right = self.padding
        read = x[..., self.start : self.start + weight.shape[3]]
        padded = np.pad(read, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=self.x_zero)
        products = replace(self.windows, padding=(0, 0, 0, 0)).sums(padded, weight)
        return ((products.astype(np.int64) + sums).astype(np.int32),)

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        x, sums, weight = inputs
        whole = len(sums.shape) == IMAGE
        if axis == IMAGE - 1:
            return Piece(self, (None, Span(3 if whole else 0, start, stop), Span(0, start, stop)))
        found = cut_windows(self, self.windows.pooled_windows(weight.shape), (x, weight), axis, start, stop)
        return found and Piece(found.op, (found.reads[0], Span(axis, start, stop) if whole else None, None), 1)

    def macs(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> int:
        return outputs[0].count * prod(inputs[2].shape[1:])


@dataclass(frozen=True)
class QFromSums(Op, name="qfrom_sums"):
    """sums int32[..., O], multiplier int32[O] -> int8[..., O]: the outputs of a layer with these sums. The largest sum
    of each `pool` window of an image counts."""

    zero: int
    shift: int = 0
    lo: int = -128
    hi: int = 127
    pool: Pair = (1, 1)

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        sums, multiplier = inputs
        pooled = self.pool != (1, 1)
        need(
            sums.dtype is multiplier.dtype is DType.INT32
            and multiplier.shape == sums.shape[-1:]
            and (len(sums.shape) == IMAGE or not pooled),
            self,
            "the inputs are not sums and their multipliers",
            inputs,
            "sums int32[..., out], multiplier int32[out]",
        )
        return (Signature(self._pooled_shape(sums.shape) if pooled else sums.shape, DType.INT8),)

    def _pooled_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        batch, height, width, out = shape
        return batch, height // self.pool[0], width // self.pool[1], out

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        sums, multiplier = inputs
        if self.pool != (1, 1):
            (batch, height, width, out), (ph, pw) = self._pooled_shape(sums.shape), self.pool
            used = sums[:, : height * ph, : width * pw]
            sums = used.reshape(batch, height, ph, width, pw, out).max(axis=(2, 4))
        return (requantize(sums, multiplier, self.shift, self.zero, self.lo, self.hi),)

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        if axis == len(y.shape) - 1:
            return Piece(self, (Span(axis, start, stop), Span(0, start, stop)))
        each = self.pool[axis - 1] if len(y.shape) == IMAGE and axis in (1, 2) else 1
        return Piece(self, (Span(axis, each * start, each * stop), None))


def _params(call: Call[QSums]) -> Params:
    op, (x, _, weight) = call.op, call.inputs
    batch, in_h, in_w, channels = x.shape
    _, out_h, out_w, out = call.y.shape
    _, kernel_h, kernel_w, in_ = weight.shape
    return Params(
        "bt_qsums",
        (
            ("batch", batch),
            ("in_h", in_h),
            ("in_w", in_w),
            ("in", in_),
            ("x_stride", channels),
            ("out_h", out_h),
            ("out_w", out_w),
            ("out", out),
            ("y_stride", call.y_pitch),
            *pair_params("kernel", (kernel_h, kernel_w)),
            *pair_params("stride", op.stride),
            *padding_params(op.padding),
            *pair_params("dilation", op.dilation),
            ("x_zero", op.x_zero),
        ),
    )


def _is_first(call: Call[QSums]) -> bool:
    """Return whether the sums begin with biases."""
    return has_constants(call)


def _follows(call: Call[QSums]) -> bool:
    """Return whether the sums begin with those of another step."""
    return call.inputs[1].data is None and call.inputs[2].data is not None


def _pixels(call: Call[QSums]) -> bool:
    """Return whether windows are one pixel of whole words, all inside of the image."""
    return call.inputs[2].shape[1:3] == (1, 1) and not any(call.op.padding) and call.inputs[2].shape[3] % 4 == 0


def _bias(call: Call[QSums]) -> tuple[Packed, ...]:
    return (Packed("bias", data_of(call.inputs, 1)),) if _is_first(call) else ()


def _pack(call: Call[QSums]) -> tuple[Packed, ...]:
    return (Packed("weight", data_of(call.inputs, 2)), *_bias(call))


def _pack_words(call: Call[QSums]) -> tuple[Packed, ...]:
    words = xcv.pack_words(data_of(call.inputs, 2))
    return (Packed("weight", np.ascontiguousarray(words).reshape(-1)), *_bias(call))


def _scratch(call: Call[QSums]) -> int:
    return xcv.WINDOWS * -(-prod(call.inputs[2].shape[1:]) // xcv.WORD) * xcv.WORD


def _splits(step: int) -> cut.Splits:
    """Split rows and channels. The previous sums, which are an input, are split in the same way."""

    def splits(call: Call[Any]) -> tuple[Split, ...]:
        own = (Split(len(call.y.shape) - 1, step, wide=call.inputs[1].data is None),)
        return (*cut.rows(call), *own)

    return splits


def _both(kernel: Kernel[QSums]) -> tuple[Kernel[QSums], Kernel[QSums]]:
    """Return the kernel that begins with biases, and the one that adds to sums, in place if the plan allows it."""
    fits, (stem, _, variant) = kernel.fits, kernel.symbol.rpartition("_")
    own = f"{stem}_first_{variant}"
    return (
        replace(kernel, symbol=own, channels=own, fits=lambda call: _is_first(call) and fits(call)),
        replace(kernel, fits=lambda call: _follows(call) and fits(call), renews=((1, 0),)),
    )


def _kernel(symbol: str, source: str, **others: Any) -> Kernel[QSums]:
    return Kernel(symbol, source, _params, channels=symbol, skips=lambda call: call.op.start, **others)


_XCV: dict[str, Any] = {"needs": XCV, "pack": _pack_words, "splits": _splits(xcv.TOGETHER)}
SUMS: tuple[Kernel[QSums], ...] = (
    *_both(_kernel("bt_qsums_pixels_xcv", "qsums/xcv.c", fits=_pixels, **_XCV)),
    *_both(_kernel("bt_qsums_xcv", "qsums/xcv.c", scratch=_scratch, **_XCV)),
    *_both(_kernel("bt_qsums_ref", "qsums/ref.c", pack=_pack, splits=_splits(1))),
)


def _from_params(call: Call[QFromSums]) -> Params:
    op = call.op
    rows = (1, prod(call.x.shape[:-1]), 1, call.x.shape[-1])
    x, y = (call.x.shape, call.y.shape) if len(call.x.shape) == IMAGE else (rows, rows)
    return Params(
        "bt_qfrom_sums",
        (
            ("batch", x[0]),
            ("in_h", x[1]),
            ("in_w", x[2]),
            ("out_h", y[1]),
            ("out_w", y[2]),
            ("out", y[3]),
            ("stride", call.y_pitch),
            *pair_params("pool", op.pool),
            *fields_of(op, "shift", "zero", "lo", "hi"),
        ),
    )


FROM_SUMS: tuple[Kernel[QFromSums], ...] = (
    Kernel(
        "bt_qfrom_sums_ref",
        "qsums/from_ref.c",
        _from_params,
        fits=has_constants,
        pack=lambda call: pack_inputs(call, "multiplier"),
        overlap=lambda call: (0,),  # a sum is four bytes, and read before its output is written
        splits=cut.rows_and_own_channels(1),
        channels="bt_qfrom_sums_ref",
    ),
)
