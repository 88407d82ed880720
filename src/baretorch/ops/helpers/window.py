"""Windows that slide over the two image dimensions of an NHWC tensor, for convolutions and pools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from baretorch.ir.graph import Array, Piece, Shape, Span, Tensor
from baretorch.ops.helpers import cut
from baretorch.ops.helpers.kernel import Fields

Pair = tuple[int, int]
Padding = tuple[int, int, int, int]  # top, bottom, left, right


@dataclass(frozen=True)
class Axis:
    """A sliding window along one dimension."""

    kernel: int
    stride: int
    before: int
    after: int
    dilation: int = 1
    ceil_mode: bool = False

    def outputs(self, size: int) -> int:
        """Return the number of windows by PyTorch's rule; 0 or less if none fits.

        In `ceil_mode` a last window may reach beyond the padding, if it starts in the input or in the padding before.
        """
        room = size + self.before + self.after - self.reach
        count = (-(-room // self.stride) if self.ceil_mode else room // self.stride) + 1
        if self.ceil_mode and (count - 1) * self.stride >= size + self.before:
            count -= 1
        return count

    @property
    def reach(self) -> int:
        """Return the size of a window, from its first element through its last."""
        return self.dilation * (self.kernel - 1) + 1


def axes(
    kernel: Pair, stride: Pair, padding: Padding, dilation: Pair = (1, 1), ceil_mode: bool = False
) -> tuple[Axis, Axis]:
    """Return the windows along height and width."""
    top, bottom, left, right = padding
    return (
        Axis(kernel[0], stride[0], top, bottom, dilation[0], ceil_mode),
        Axis(kernel[1], stride[1], left, right, dilation[1], ceil_mode),
    )


def outputs(shape: Shape, windows: tuple[Axis, Axis]) -> Pair:
    """Return the number of windows along height and width of x[N, H, W, C]."""
    return windows[0].outputs(shape[1]), windows[1].outputs(shape[2])


def image_params(x: Shape, y: Shape) -> Fields:
    """Return the sizes of x[N, H, W, C] and y[N, H', W', C] as the parameters of kernels."""
    return tuple(zip(("batch", "in_h", "in_w", "channels", "out_h", "out_w"), (*x, *y[1:3]), strict=True))


def size_params(x: Shape, weight: Shape, y: Shape) -> Fields:
    """Return the sizes of x[N, H, W, C], weight[O, KH, KW, c] and y[N, H', W', O] as the parameters of kernels."""
    names = ("batch", "in_h", "in_w", "in", "out_h", "out_w", "out", "kernel_h", "kernel_w")
    return tuple(zip(names, (*x, *y[1:], *weight[1:3]), strict=True))


def pair_params(name: str, pair: Pair) -> Fields:
    """Return a value for height and one for width as the parameters of kernels."""
    return (f"{name}_h", pair[0]), (f"{name}_w", pair[1])


def padding_params(padding: Padding) -> Fields:
    """Return the padding that kernels need to know: the output's size implies the rest."""
    return ("pad_top", padding[0]), ("pad_left", padding[2])


def cut_windows(
    op: Any, windows: tuple[Axis, Axis], inputs: Sequence[Tensor], axis: int, start: int, stop: int
) -> Piece | None:
    """Return the piece of an op whose windows slide over its first input: rows or columns of outputs depend on fewer
    inputs, with other padding at the cuts. Return None if that would be padding alone. Each channel depends on one
    channel."""
    if axis in (0, 3):
        return cut.from_first(op, inputs, axis, start, stop)
    if windows[0].ceil_mode:
        return None
    w, size = windows[axis - 1], inputs[0].shape[axis]
    first = start * w.stride - w.before
    behind = (stop - 1) * w.stride - w.before + w.reach
    if first >= size or behind <= 0:
        return None
    padding = list(op.padding)
    padding[2 * axis - 2 : 2 * axis] = max(-first, 0), max(behind - size, 0)
    inside = Span(axis, max(first, 0), min(behind, size))
    return Piece(replace(op, padding=tuple(padding)), (inside, *(None for _ in inputs[1:])))


def per_group(x: Array, taps: Array) -> Array:
    """Multiply x[N, H, W, G, C] by taps[G, O, C], each group by itself: [N, H, W, G, O]."""
    if taps.shape[2] == 1:
        depthwise: Array = x * taps[:, :, 0]
        return depthwise
    groups, out, depth = taps.shape
    rows = x.reshape(-1, groups, depth).transpose(1, 0, 2)
    sums: Array = (rows @ taps.transpose(0, 2, 1)).transpose(1, 0, 2)
    return sums.reshape(*x.shape[:3], groups, out)
