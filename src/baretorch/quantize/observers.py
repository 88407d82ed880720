"""Observers: from the values that tensors take to their scales and zero points.

A scale has few bits, rounded up so that nothing clips: then the last bits of what was watched, which may differ from
one computer to another, move no result. It has no floor but that of float32: small signals are as good as large ones.
docs/arithmetic.md tells more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

import numpy as np

from baretorch.ir.graph import Array, Quant
from baretorch.ops.int8.groups_of_inputs import FACTORS

BITS = 10  # of a scale behind its leading one: multiples of 1/255, as pixels are, stay different steps
SMALLEST = 2.0**-96  # scale that is told from 0
DEAD = 2.0**-7  # the scale of a tensor that is always 0: of numbers from -1 to 1
ABSENT = -1000.0  # what is below stands for minus infinity: masks are made of that, of -1e4, -1e9 and the like
BESIDE = 32.0  # so far below all others a mask puts what takes no part
NEGLIGIBLE = 12.0  # so far below the largest number of its row nothing matters to a softmax: e^-12 is 0 in its table

STEPS = 256  # of int8
BINS = 4096  # of a histogram, at most; it uses more than half of them
FINEST = -140  # the power of two that a bin is wide, at least: of a tensor that is always 0
STEP = 1e-5  # of the share of values that a histogram's search cuts off at a time


def affine(lo: float, hi: float) -> Quant:
    """For numbers from lo to hi, and 0."""
    lo, hi = min(lo, 0.0), max(hi, 0.0)
    scale = float(rounded_up(np.float64((hi - lo) / 255)))
    if scale < SMALLEST:
        return Quant((DEAD,), (0,))
    return Quant((float(np.float32(scale)),), (int(np.clip(-128 - np.rint(lo / scale), -128, 127)),))


def per_channel(weight: Array, bits: int = 8, group: int = 0) -> Quant:
    """For a weight of so many bits, symmetric, one for each index of axis 0. Where groups of inputs have factors, it is
    the step of the largest divided by the largest factor."""
    largest = np.abs(weight.reshape(len(weight), -1).astype(np.float64)).max(axis=1, initial=0.0)
    scales = rounded_up(largest / (((1 << (bits - 1)) - 1) * (FACTORS if group else 1)))
    scales = np.where(scales < SMALLEST, DEAD, scales).astype(np.float32)
    return Quant(tuple(map(float, scales)), (0,) * len(weight), 0, bits=bits, group=group)


def rounded_up(x: Array | np.float64) -> Array:
    """The next number of few bits."""
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
        return affine(self.lo, self.hi) if self.lo <= self.hi else affine(0.0, 0.0)


@dataclass
class Histogram(MinMax):
    """The range that loses least, if what lies outside is cut off. Bins are a power of two wide and begin at multiples
    of it; where there would be too many, neighbours become one: so the order of what is watched does not matter."""

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
            return affine(0.0, 0.0)
        filled = np.flatnonzero(self.counts)
        begin, end = int(filled[0]), int(filled[-1]) + 1
        first, last = least_loss(self.counts[begin:end].astype(np.float64), STEPS)
        width = 2.0**self.power
        lo, hi = (self.first + begin + first) * width, (self.first + begin + last + 1) * width
        return affine(max(lo, self.lo), min(hi, self.hi))

    def _bin(self, x: float) -> int:
        """Bins always reach 0."""
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
    edges = np.arange(len(histogram) + 1) - first
    step = np.clip(np.floor(edges / width), 0, steps - 1)
    half = width / 2
    apart = (edges - (step + 0.5) * width) ** 3
    from_begin = half**3 - apart[:-1]
    between = (step[1:] - step[:-1] - 1) * 2 * half**3
    to_end = apart[1:] + half**3
    return float(np.sum(histogram * (from_begin + between + to_end)))


@dataclass(frozen=True)
class Meant:
    """What of a tensor's values its scale is for: all of them."""

    def of(self, x: Array) -> Array:
        return x

    def finite(self, x: Array) -> Array:
        """The values without what means minus infinity."""
        return x


@dataclass(frozen=True)
class Masked(Meant):
    """The values of a tensor in which minus infinity, or nearly so, means that something takes no part. What is masked
    needs to be `far` below all other values, and no farther: more for a summand of scores than for scores."""

    far: float = field(default=BESIDE, kw_only=True)

    def of(self, x: Array) -> Array:
        near = x[x >= ABSENT]
        if near.size == x.size:
            return x
        lowest = min(float(near.min(initial=0.0)), 0.0)
        return np.append(near, np.float32(lowest - self.far))

    def finite(self, x: Array) -> Array:
        return np.maximum(x, np.float32(ABSENT))


@dataclass(frozen=True)
class Scores(Masked):
    """Of what a softmax takes along an axis."""

    axis: int

    def of(self, x: Array) -> Array:
        low = np.maximum(x, x.max(axis=self.axis, keepdims=True) - np.float32(NEGLIGIBLE))
        return np.asarray(low[low >= ABSENT])
