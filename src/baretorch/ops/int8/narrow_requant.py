"""Narrow requantization: 32 bits are enough from accumulator to output. See docs/arithmetic.md.

    y = clamp((acc * multiplier + offset) >> shift, lo, hi)        offset = (zero << shift) + 2^(shift - 1)

It is the rule of arithmetic.py with multipliers that end with zeros. So a layer's constants alone show whether it is
narrow, and kernels that do not support narrow layers compute the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from baretorch.ir.graph import Array
from baretorch.ops.helpers.kernel import Call, data_of

LARGEST_SHIFT = 30
LEAST_MULTIPLIER = 16  # of a layer's largest: below, scales would be coarser by more than a 16th


@dataclass(frozen=True)
class NarrowRequant:
    """The multiplier of each channel, and one shift for all."""

    multiplier: Array
    shift: int


def narrow_form(call: Call[Any]) -> NarrowRequant | None:
    """Return the narrow form of an int8 layer with weights, int8[out, ...], and biases into which the input's zero
    point is folded, or None if it needs 64 bits."""
    weight, bias, multiplier = (data_of(call.inputs, i) for i in (1, 2, 3))
    all_ = int(np.bitwise_or.reduce(multiplier))  # its lowest bit is the lowest of them
    most = 31 - call.op.shift
    zeros = min((all_ & -all_).bit_length() - 1, most) if all_ else most
    shift = 32 - call.op.shift - zeros
    if shift > LARGEST_SHIFT:
        return None
    found = NarrowRequant(multiplier >> zeros, shift)
    return found if fits(found, weight, bias, call.op.zero) else None


def fits(narrow: NarrowRequant, weight: Array, bias: Array, zero: int) -> bool:
    """Return whether no accumulator that an input can cause leaves 32 bits during requantization."""
    rows = weight.reshape(len(weight), -1).astype(np.int64)
    positive, all_ = np.maximum(rows, 0).sum(axis=1), rows.sum(axis=1)
    negative = all_ - positive
    factor = narrow.multiplier.astype(np.int64)
    offset = (zero << narrow.shift) + (1 << narrow.shift - 1)
    highest = (bias + 127 * positive - 128 * negative) * factor + offset
    lowest = (bias - 128 * positive + 127 * negative) * factor + offset
    limits = np.iinfo(np.int32)
    return bool((highest <= limits.max).all() and (lowest >= limits.min).all())
