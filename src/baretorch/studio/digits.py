"""Converts a drawn digit to the 28×28 grey picture that MNIST would have made of it.

MNIST's digits were scaled into a box of 20×20, at the same aspect, and then moved so that the centre of mass is on
the pixel right below the middle of 28×28. Strokes are scaled before they are drawn, so that the pen is equally thick
however large they were.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from baretorch.errors import CompileError
from baretorch.ir.graph import Array

MODEL = Path(__file__).parent / "bundled" / "digits.pte"  # a network that reads them; tools/train_digits.py made it
SIDE, BOX = 28, 20
MIDDLE = SIDE / 2 + 0.5  # where MNIST has the centre of mass
PEN = 2.5  # pixels: strokes then have as much ink as those of MNIST
FURTHEST = (SIDE - BOX) / 2  # pixels that the centre of mass may move the digit: all of it stays in the picture
SMALLEST = 0.12  # of the canvas: anything smaller is a dot, not a small digit
MOST_POINTS = 4000
MOST_BYTES = 200_000
NEED = f'{{"strokes": [[[x, y], …], …]}} with coordinates from 0 to 1 and at most {MOST_POINTS:,} points'
_CHUNK = 256  # segments at a time, so that many of them need little memory


def read_strokes(body: bytes) -> tuple[Array, ...]:
    """Parse the strokes that the page sends: points [n, 2] from 0 to 1 across and down the canvas."""
    try:
        strokes = tuple(np.array(s, np.float64).reshape(-1, 2) for s in json.loads(body)["strokes"] if s)
        points = np.concatenate([np.zeros((0, 2)), *strokes])
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        raise CompileError("an invalid drawing", need=NEED) from None
    if len(points) > MOST_POINTS or not ((points >= 0) & (points <= 1)).all():
        raise CompileError("an invalid drawing", have=f"{len(points):,} points", need=NEED)
    return strokes


def picture(strokes: Sequence[Array]) -> Array:
    """Convert strokes to float32[28, 28]: 0 is paper, 1 is ink."""
    if not strokes:
        return np.zeros((SIDE, SIDE), np.float32)
    points = np.concatenate(strokes)
    low, high = points.min(0), points.max(0)
    scale = (BOX - PEN) / max(float((high - low).max()), SMALLEST)
    placed = [(s - (low + high) / 2) * scale + MIDDLE for s in strokes]
    off = np.clip(MIDDLE - _centre_of_mass(_draw(placed)), -FURTHEST, FURTHEST)
    return _draw([s + off for s in placed]).astype(np.float32)


def _draw(strokes: Sequence[Array]) -> Array:
    """Draw the strokes as pixels, with edges that fade over one pixel."""
    begins = np.concatenate([s[:-1] if len(s) > 1 else s for s in strokes])
    ends = np.concatenate([s[1:] if len(s) > 1 else s for s in strokes])
    y, x = np.mgrid[:SIDE, :SIDE] + 0.5
    pixels = np.stack([x.reshape(-1), y.reshape(-1)], 1)
    nearest = np.full(len(pixels), np.inf)
    for at in range(0, len(begins), _CHUNK):
        nearest = np.minimum(nearest, _distances(pixels, begins[at : at + _CHUNK], ends[at : at + _CHUNK]))
    return np.clip(PEN / 2 + 0.5 - nearest, 0, 1).reshape(SIDE, SIDE)


def _distances(pixels: Array, begins: Array, ends: Array) -> Array:
    """Return the distance from each pixel to the nearest segment."""
    along = ends - begins
    square = np.maximum((along**2).sum(1), 1e-12)
    from_begin = pixels[:, None] - begins
    part = np.clip((from_begin * along).sum(2) / square, 0, 1)
    apart = from_begin - part[:, :, None] * along
    nearest: Array = np.sqrt((apart**2).sum(2)).min(1)
    return nearest


def _centre_of_mass(pixels: Array) -> Array:
    middles = np.arange(SIDE) + 0.5
    ink = max(float(pixels.sum()), 1e-9)
    return np.array([(pixels.sum(0) * middles).sum(), (pixels.sum(1) * middles).sum()]) / ink
