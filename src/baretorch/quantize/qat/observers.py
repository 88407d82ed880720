"""Observers while a model is trained: torchao's watch; what they make of it is ours, as in quantize/observers.py."""

from __future__ import annotations

from typing import Any

import torch
from torchao.quantization.pt2e import MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver

from baretorch.quantize.observers import ABSENT, BESIDE, BITS, DEAD, NEGLIGIBLE, SMALLEST

SYMMETRIC = (torch.per_tensor_symmetric, torch.per_channel_symmetric)


class _Scales:
    """Mixed into an observer of torchao: its range becomes a scale by our rule."""

    def _calculate_qparams(self: Any, min_val: torch.Tensor, max_val: torch.Tensor) -> tuple[Any, Any]:
        if min_val.numel() == 0:  # it has seen nothing
            min_val = max_val = torch.zeros(1)
        lo, hi = min_val.double().reshape(-1).clamp(max=0), max_val.double().reshape(-1).clamp(min=0)
        symmetric = self.qscheme in SYMMETRIC
        span = 2 * torch.maximum(-lo, hi) if symmetric else hi - lo
        scale = _rounded_up(span / (self.quant_max - self.quant_min))
        dead = scale < SMALLEST
        scale = torch.where(dead, DEAD, scale)
        zero = (self.quant_min - torch.round(lo / scale)).clamp(self.quant_min, self.quant_max)
        zero = torch.where(dead | symmetric, 0, zero)
        return scale.float(), zero.to(torch.int64)


def _rounded_up(x: torch.Tensor) -> torch.Tensor:
    """The next number of few bits."""
    mantissa, exponent = torch.frexp(x)
    whole = 2.0 ** (BITS + 1)
    return torch.ldexp(torch.ceil(mantissa * whole) / whole, exponent)


class MovingMinMax(_Scales, MovingAverageMinMaxObserver):  # type: ignore[misc]
    """The range of a batch, averaged over those of a training."""


class MovingPerChannelMinMax(_Scales, MovingAveragePerChannelMinMaxObserver):  # type: ignore[misc]
    """The range of each channel of a weight, averaged. (torchao tells it its axis if it is called PerChannel.)"""


class _Masked(_Scales):
    """Mixed into an observer of a tensor in which minus infinity, or nearly so, means that something takes no part."""

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        super().forward(self.bounded(x.detach()))  # type: ignore[misc]
        return x

    def bounded(self, x: torch.Tensor) -> torch.Tensor:
        """What is to be watched of x. A summand of scores: what it puts out of the way needs not go farther."""
        near = x[x >= ABSENT]
        if near.numel() == x.numel():
            return x
        lowest = near.min().clamp(max=0) if near.numel() else x.new_zeros(())
        return torch.cat([near, (lowest - BESIDE).reshape(1)])


class _Scores(_Masked):
    """Of what a softmax takes along `axis`, counted from the end."""

    def __init__(self, axis: int = -1, **how: Any) -> None:
        super().__init__(**how)
        self.axis = axis

    def bounded(self, x: torch.Tensor) -> torch.Tensor:
        low = torch.maximum(x, x.amax(self.axis, keepdim=True) - NEGLIGIBLE)
        return low[low >= ABSENT]


class MovingMaskedMinMax(_Masked, MovingAverageMinMaxObserver):  # type: ignore[misc]
    """The range of a mask's summands, averaged."""


class MovingScoresMinMax(_Scores, MovingAverageMinMaxObserver):  # type: ignore[misc]
    """The range of scores that matter, averaged."""
