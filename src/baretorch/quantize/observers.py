"""Observers: from the values that a tensor takes to its scale and zero point.

torchao's observers watch; what they make of it is ours. A scale has few bits, rounded up so that nothing clips: then
the last bits of what was watched, which differ from one computer's CPU to another's, move no result. It has no floor
but that of float32: small signals are as good as large ones. docs/arithmetic.md tells more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torchao.quantization.pt2e import (
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    PerChannelMinMaxObserver,
)

from baretorch.ir import Array

BITS = 10  # of a scale behind its leading one: multiples of 1/255, as pixels are, stay different steps
SMALLEST = 2.0**-96  # scale that is told from 0
ABSENT = -1000.0  # what is below stands for minus infinity: masks are made of that, of -1e4, -1e9 and the like
BESIDE = 32.0  # so far below all others a mask puts what takes no part
NEGLIGIBLE = 12.0  # so far below the largest number of its row nothing matters to a softmax: e^-12 is 0 in its table
DEAD = 2.0**-7  # the scale of a tensor that is always 0: of numbers from -1 to 1

SYMMETRIC = (torch.per_tensor_symmetric, torch.per_channel_symmetric)
STEP = 1e-5  # of the share of values that a histogram's search cuts off at a time


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


class MinMax(_Scales, MinMaxObserver):  # type: ignore[misc]
    """The range of all values."""


class MovingMinMax(_Scales, MovingAverageMinMaxObserver):  # type: ignore[misc]
    """The range of a batch, averaged over those of a training."""


class PerChannelMinMax(_Scales, PerChannelMinMaxObserver):  # type: ignore[misc]
    """The range of each channel of a weight. (torchao tells an observer its axis if it is called PerChannel.)"""


class MovingPerChannelMinMax(_Scales, MovingAveragePerChannelMinMaxObserver):  # type: ignore[misc]
    """The same, averaged."""


class Histogram(_Scales, HistogramObserver):  # type: ignore[misc]
    """The range that loses least, if what lies outside is cut off."""

    def _non_linear_param_search(self) -> tuple[torch.Tensor, torch.Tensor]:
        first, last = least_loss(self.histogram.double().numpy(), self.dst_nbins)
        lo = self.min_val.double()
        width = (self.max_val.double() - lo) / self.bins
        return lo + width * first, lo + width * (last + 1)


def least_loss(histogram: Array, steps: int) -> tuple[int, int]:
    """The first and the last bin of the range to divide into so many steps. Beginning with all, the end at which more
    bins hold the next small share of the values is cut, as long as the squared error does not grow. All, if that was
    better."""
    share = np.cumsum(histogram)
    total = share[-1]
    first, last, least = 0, len(histogram) - 1, np.inf
    alpha, beta = 0.0, 1.0
    while alpha < beta and first < last:
        low = min(max(int(np.searchsorted(share, (alpha + STEP) * total)), first), last)
        high = max(min(int(np.searchsorted(share, (beta - STEP) * total, "right")) - 1, last), first)
        if low - first > last - high:
            alpha, cut = alpha + STEP, (low, last)
        else:
            beta, cut = beta - STEP, (first, high)
        if cut == (first, last):
            beta = min(beta, float(share[last] / total) + STEP)  # nothing is there to be cut before
            continue
        loss = _loss(histogram, *cut, steps)
        if loss > least:
            break
        least, (first, last) = loss, cut
    everything = (0, len(histogram) - 1)
    return everything if _loss(histogram, *everything, steps) < least else (first, last)


def _loss(histogram: Array, first: int, last: int, steps: int) -> float:
    """The squared error of the histogram's values, each bin evenly filled, in steps over the bins from first to last.
    Widths are in bins, so that it does not matter how large the values are."""
    width = (last - first + 1) / steps
    begin = np.arange(len(histogram)) - first
    end = begin + 1
    step_of_begin, step_of_end = (np.clip(np.floor(x / width), 0, steps - 1) for x in (begin, end))
    half = width / 2
    from_begin = half**3 - (begin - (step_of_begin + 0.5) * width) ** 3
    between = (step_of_end - step_of_begin - 1) * 2 * half**3
    to_end = (end - (step_of_end + 0.5) * width) ** 3 + half**3
    return float(np.sum(histogram * (from_begin + between + to_end)))


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


class MaskedMinMax(_Masked, MinMaxObserver):  # type: ignore[misc]
    """The range of a mask's summands."""


class MovingMaskedMinMax(_Masked, MovingAverageMinMaxObserver):  # type: ignore[misc]
    """The same, averaged."""


class ScoresMinMax(_Scores, MinMaxObserver):  # type: ignore[misc]
    """The range of scores that matter."""


class ScoresHistogram(_Scores, Histogram):
    """The same, with the far ones cut off."""


class MovingScoresMinMax(_Scores, MovingAverageMinMaxObserver):  # type: ignore[misc]
    """The same, averaged."""


def counted(observer: Any, x: torch.Tensor) -> torch.Tensor:
    """x, without what means minus infinity to this observer."""
    own = getattr(observer, "activation_post_process", observer)
    return x.clamp(min=ABSENT) if isinstance(own, _Masked) else x


def meant(observer: Any, x: torch.Tensor) -> torch.Tensor:
    """What of x the observer's scale is chosen for: of masks and scores without what it clips on purpose."""
    return observer.bounded(x) if isinstance(observer, _Masked) else x
