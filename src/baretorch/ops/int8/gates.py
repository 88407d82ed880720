"""The fixed point of recurrent layers: fractional bits of gates and states, and sigmoid and tanh in integers."""

from __future__ import annotations

import numpy as np

from baretorch.ir.graph import Array

# Fractional bits:
GATE_BITS = 12  # of sigmoid's argument: up to 8, where it is flat
UNIT_BITS = 13  # of its result: up to 1
HIDDEN_BITS = 13  # of the hidden state: up to 4, as models may give one that no layer would make
CELL_BITS = 11  # of lstm's cell state: up to 16
WORD_BITS = UNIT_BITS + 16  # of a sigmoid before its last 16 bits are dropped
PIECES = 256
HALF = 1 << (WORD_BITS - 1)  # tanh(v / 2) / 2 = sigmoid(v) - 1/2


def sigmoid_table() -> Array:
    """Return sigmoid from -8 to 8 in straight pieces: slope s and offset a of each as a << 16 | s, the pair with the
    least squared error. Later steps round down, so half a step is added. The first and the last piece are flat: numbers
    beyond them have their value, whatever their low bits are."""
    v = np.arange(-(1 << 15), 1 << 15).reshape(PIECES, -1)
    exact = 2.0**WORD_BITS / (1 + np.exp(-v / 2**GATE_BITS)) + (1 << 15)
    steepest = np.rint((exact[:, -1] - exact[:, 0]) / (v.shape[1] - 1))
    near = np.floor((exact - steepest[:, None] * (v + 1)).mean(axis=1) / (1 << 16))
    found = []
    for offset in (near, near + 1):  # the word's low half counts as well, so a slope is met once more than v times
        rest = exact - offset[:, None] * (1 << 16)
        slope = np.clip(np.rint((rest * (v + 1)).sum(axis=1) / ((v + 1) ** 2).sum(axis=1)), 0, 32767)
        error = ((rest - slope[:, None] * (v + 1)) ** 2).sum(axis=1)
        found.append((error, offset.astype(np.int64) << 16 | slope.astype(np.int64)))
    (low, below), (high, above) = found
    words = np.where(low <= high, below, above)
    for end in (0, -1):
        words[end] = int(exact[end].mean()) >> 16 << 16
    return np.asarray(words, np.int32)


def sigmoid_word(v: Array) -> Array:
    """Return the sigmoid of numbers with 12 fractional bits. The result has 29, of which 13 count."""
    piece = sigmoid_table().astype(np.int64)[(v >> 8) + PIECES // 2]
    return np.asarray(piece + (piece & 0x7FFF) * v)


def sigmoid(v: Array) -> Array:
    """Return the sigmoid with 13 fractional bits."""
    return np.asarray(sigmoid_word(v) >> 16)


def tanh(v: Array) -> Array:
    """Return tanh, with 13 fractional bits, of half of a number with 12."""
    return np.asarray((sigmoid_word(v) - HALF - (1 << 14)) >> 15)


def half_up(v: Array, bits: int) -> Array:
    return np.asarray((v + (1 << (bits - 1))) >> bits)


def clip_to_int16(v: Array) -> Array:
    return np.asarray(np.clip(v, -32768, 32767))
