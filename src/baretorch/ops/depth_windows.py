"""Volumes as images: the frames that a window along the depth meets become channels, and a conv3d a conv2d."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from baretorch.ir.graph import Array, Op, Signature, Tensor
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.kernel import Call, Kernel
from baretorch.ops.helpers.strided import Move, StridedLoop, move_kernels, steps


@dataclass(frozen=True)
class DepthWindows(Op, name="depth_windows", computes=False):
    """x[N, D, H, W, C] -> [N D', H, W, kernel C]: for each window along the depth its frames, one beside the other.
    Each of `groups` equal parts of the channels has those of all frames together."""

    kernel: int
    stride: int = 1
    dilation: int = 1
    groups: int = 1

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need(len(x.shape) == 5, self, "the input must have five dimensions", inputs, "x[N, D, H, W, C]")
        need(
            min(self.kernel, self.stride, self.dilation, self.groups) > 0 and x.shape[4] % self.groups == 0,
            self,
            f"{x.shape[4]} channels do not fit windows of {self.kernel} and groups of {self.groups}",
            inputs,
            "kernel, stride and dilation of 1 or more, and channels that are a multiple of groups",
        )
        windows = self.windows(x.shape[1])
        need(windows > 0, self, "the output is empty", inputs, f"a depth that holds {self.kernel} frames")
        n, _, h, w, c = x.shape
        return (Signature((n * windows, h, w, self.kernel * c), x.dtype, x.quant),)

    def windows(self, depth: int) -> int:
        return (depth - self.dilation * (self.kernel - 1) - 1) // self.stride + 1

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        n, d, h, w, c = inputs[0].shape
        grouped = inputs[0].reshape(n, d, h, w, self.groups, c // self.groups)
        starts = np.arange(self.windows(d)) * self.stride
        frames = grouped[:, starts[:, None] + np.arange(self.kernel) * self.dilation]
        return (frames.transpose(0, 1, 3, 4, 5, 2, 6).reshape(-1, h, w, self.kernel * c),)


def _move(call: Call[DepthWindows]) -> Move:
    op = call.op
    n, d, h, w, c = call.x.shape
    windows, part = op.windows(d), c // op.groups
    batch, frame, row, pixel, group, _ = steps((n, d, h, w, op.groups, part))
    y = steps((n, windows, h, w, op.groups, op.kernel, part))
    return Move(
        call.x.dtype.size,
        (
            StridedLoop(n, batch, y[0]),
            StridedLoop(windows, op.stride * frame, y[1]),
            StridedLoop(h, row, y[2]),
            StridedLoop(w, pixel, y[3]),
            StridedLoop(op.groups, group, y[4]),
            StridedLoop(op.kernel, op.dilation * frame, y[5]),
            StridedLoop(part, 1, 1),
        ),
    )


KERNELS: tuple[Kernel[DepthWindows], ...] = move_kernels(_move)
