"""Observers compute scales and zero points from the values of tensors.

A scale has few bits and is rounded up, so that no value is cut off. Values may differ in their last bits between
computers, which then changes no result. Scales have no lower limit except that of float32, so small signals are as
accurate as large ones. See docs/arithmetic.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

import numpy as np

from baretorch.ir.graph import Array, Quant
from baretorch.ops.int8.groups_of_inputs import FACTORS

BITS = 10  # of a scale after its leading one: multiples of 1/255, as pixels are, stay different steps
SMALLEST = 2.0**-96  # smaller scales count as 0
DEAD = 2.0**-7  # the scale of a tensor that is always 0; it fits numbers from -1 to 1
MASKED_BELOW = -1000.0  # smaller values mean minus infinity: masks consist of that, of -1e4, -1e9 and the like
BESIDE = 32.0  # the distance of masked values from all others
NEGLIGIBLE = 12.0  # a softmax ignores values this far below the largest of their row: e^-12 is 0 in its table

STEPS = 256  # of int8
BINS = 4096  # of a histogram, at most; it uses more than half of them
FINEST = -140  # the smallest width of a bin, as a power of two: that of a tensor that is always 0
STEP = 1e-5  # the share of values that the search cuts off a histogram at a time


def affine_quant(lo: float, hi: float) -> Quant:
    """Return the scale for numbers from lo to hi, and for 0."""
    lo, hi = min(lo, 0.0), max(hi, 0.0)
    scale = float(round_up(np.float64((hi - lo) / 255)))
    if scale < SMALLEST:
        return Quant((DEAD,), (0,))
    return Quant((float(np.float32(scale)),), (int(np.clip(-128 - np.rint(lo / scale), -128, 127)),))


def per_channel(weight: Array, bits: int = 8, group: int = 0) -> Quant:
    """Return the symmetric scales of a weight with N bits, one for each index of axis 0. If groups of inputs have
    factors, a scale is the step of the largest group divided by the largest factor."""
    largest = np.abs(weight.reshape(len(weight), -1).astype(np.float64)).max(axis=1, initial=0.0)
    scales = round_up(largest / (((1 << (bits - 1)) - 1) * (FACTORS if group else 1)))
    scales = np.where(scales < SMALLEST, DEAD, scales).astype(np.float32)
    return Quant(tuple(map(float, scales)), (0,) * len(weight), 0, bits=bits, group=group)


def round_up(x: Array | np.float64) -> Array:
    """Round up to the next number of few bits."""
    mantissa, exponent = np.frexp(x)
    whole = 2.0 ** (BITS + 1)
    return np.asarray(np.ldexp(np.ceil(mantissa * whole) / whole, exponent))


@dataclass
class MinMax:
    """The range of all values."""

    lo: float = inf
    hi: float = -inf

    def watch(self, x: Array, times: int = 1) -> None:
        if x.size:
            self.lo, self.hi = min(self.lo, float(x.min())), max(self.hi, float(x.max()))

    def quant(self) -> Quant:
        return affine_quant(self.lo, self.hi) if self.lo <= self.hi else affine_quant(0.0, 0.0)


@dataclass
class Histogram(MinMax):
    """The range with the smallest error when values outside it are cut off. Bins are a power of two wide and begin at
    multiples of it. If there would be too many, neighbours are joined, so that the order of values does not matter."""

    power: int = FINEST
    first: int = 0  # the number of the first bin: it begins at first * 2^power
    counts: Array = field(default_factory=lambda: np.zeros(1, np.int64))

    def watch(self, x: Array, times: int = 1) -> None:
        if not x.size:
            return
        super().watch(x)
        empty = not self.counts.any()
        while self._last() - self._bin(self.lo) >= BINS:
            if empty:
                self.power += 1
            else:
                self._coarser()
        begin, end = self._bin(self.lo), self._last() + 1
        grown = np.zeros(end - begin, np.int64)
        grown[self.first - begin : self.first - begin + len(self.counts)] = self.counts
        index = np.floor(x.reshape(-1).astype(np.float64) * 2.0**-self.power).astype(np.int64)
        self.counts = grown + times * np.bincount(index - begin, minlength=end - begin)
        self.first = begin

    def quant(self) -> Quant:
        if self.lo > self.hi:
            return affine_quant(0.0, 0.0)
        filled = np.flatnonzero(self.counts)
        begin, end = int(filled[0]), int(filled[-1]) + 1
        first, last = least_loss(self.counts[begin:end].astype(np.float64), STEPS)
        width = 2.0**self.power
        lo, hi = (self.first + begin + first) * width, (self.first + begin + last + 1) * width
        return affine_quant(max(lo, self.lo), min(hi, self.hi))

    def _bin(self, x: float) -> int:
        """Return the number of the bin of x, or that of 0 if it is smaller: bins always reach 0."""
        return int(np.floor(np.ldexp(min(x, 0.0), -self.power)))

    def _last(self) -> int:
        return int(np.floor(np.ldexp(max(self.hi, 0.0), -self.power)))

    def _coarser(self) -> None:
        if self.first % 2:
            self.first, self.counts = self.first - 1, np.concatenate([[0], self.counts])
        if len(self.counts) % 2:
            self.counts = np.concatenate([self.counts, [0]])
        self.first, self.counts, self.power = self.first // 2, self.counts.reshape(-1, 2).sum(axis=1), self.power + 1


def least_loss(histogram: Array, steps: int) -> tuple[int, int]:
    """Return the first and the last bin of the range to divide into N steps. Beginning with all bins, the search cuts
    the end at which more bins hold the next small share of the values, as long as the squared error does not grow. It
    returns all bins if they are better."""
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
            beta = min(beta, float(share[last] / total) + STEP)  # there is nothing to cut before
            continue
        loss = _loss(histogram, *cut, steps)
        if loss > least:
            break
        least, (first, last) = loss, cut
    everything = (0, len(histogram) - 1)
    return everything if _loss(histogram, *everything, steps) < least else (first, last)


def _loss(histogram: Array, first: int, last: int, steps: int) -> float:
    """Return the squared error of the histogram's values, in steps over the bins from first to last, if each bin is
    filled evenly. Widths are in bins, so that the size of the values does not matter."""
    width = (last - first + 1) / steps
    edges = np.arange(len(histogram) + 1) - first
    step = np.clip(np.floor(edges / width), 0, steps - 1)
    half = width / 2
    apart = (edges - (step + 0.5) * width) ** 3
    from_begin = half**3 - apart[:-1]
    between = (step[1:] - step[:-1] - 1) * 2 * half**3
    to_end = apart[1:] + half**3
    return float(np.sum(histogram * (from_begin + between + to_end)))


@dataclass(frozen=True)
class Values:
    """The values of a tensor for which its scale is chosen: all of them."""

    def select(self, x: Array) -> Array:
        """Return the values that determine the scale."""
        return x

    def finite(self, x: Array) -> Array:
        """Return all values, with a number instead of minus infinity where that means that a value is masked."""
        return x


@dataclass(frozen=True)
class MaskedValues(Values):
    """The values of a tensor in which minus infinity, or a number near it, masks something. Masked values need to be
    `far` below all others, but not further: more for a summand of scores than for scores."""

    far: float = field(default=BESIDE, kw_only=True)

    def select(self, x: Array) -> Array:
        near = x[x >= MASKED_BELOW]
        if near.size == x.size:
            return x
        lowest = min(float(near.min(initial=0.0)), 0.0)
        return np.append(near, np.float32(lowest - self.far))

    def finite(self, x: Array) -> Array:
        return np.maximum(x, np.float32(MASKED_BELOW))


@dataclass(frozen=True)
class Scores(MaskedValues):
    """The values of the input of a softmax along an axis."""

    axis: int

    def select(self, x: Array) -> Array:
        low = np.maximum(x, x.max(axis=self.axis, keepdims=True) - np.float32(NEGLIGIBLE))
        return np.asarray(low[low >= MASKED_BELOW])
