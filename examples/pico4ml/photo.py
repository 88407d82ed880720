"""Handwritten digits as a camera sees them: on paper in uneven light, tilted, near or far, sharp or not, with noise."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
FIRMWARE = HERE / "firmware"
SIDE = 324  # pixels across and down a frame of the HM01B0
BORDER, CELL, VIEW, PICTURE = 2, 4, 80, 28  # see firmware/drivers/camera.h and firmware/vision.h
_ROWS, _COLUMNS = (np.mgrid[:SIDE, :SIDE].astype(np.float32) + 0.5) / SIDE * 2 - 1  # from -1 to 1


def photograph(digit: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A frame, uint8[324, 324], of an MNIST digit, float[784] from 0 to 1."""
    ink = _written(digit.reshape(28, 28).astype(np.float32), rng)
    paper = rng.uniform(120, 225) * _light(rng)
    dark = rng.uniform(0.15, 0.5)  # what ink leaves of the light
    frame = paper * (1 - (1 - dark) * ink)
    frame += rng.standard_normal((SIDE, SIDE), np.float32) * rng.uniform(2, 9)
    return np.clip(frame, 0, 255).astype(np.uint8)


def _written(digit: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Where ink is, from 0 to 1."""
    tilt, shear = np.deg2rad(rng.uniform(-15, 15)), rng.uniform(-0.12, 0.12)
    size = 14 / (rng.uniform(0.4, 0.7) * 1.4)  # MNIST's pixels per half frame: the digit is 20 of 28 high
    x, y = _COLUMNS - rng.uniform(-0.15, 0.15), _ROWS - rng.uniform(-0.15, 0.15)
    near = 1 + rng.uniform(-0.1, 0.1) * x + rng.uniform(-0.1, 0.1) * y  # the camera looks a little from the side
    u = (np.cos(tilt) * x + (np.sin(tilt) + shear) * y) * near * size + 14
    v = (np.cos(tilt) * y - np.sin(tilt) * x) * near * size + 14
    grey = _between(digit, u - 0.5, v - 0.5)
    edge, soft = rng.uniform(0.25, 0.6), rng.uniform(0.1, 0.4)  # thick or thin strokes, sharp or not
    t = np.clip((grey - edge) / soft + 0.5, 0, 1)
    return np.asarray(t * t * (3 - 2 * t))


def _between(picture: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A picture's values between its pixels, 0 outside of it."""
    padded = np.pad(picture, 2)
    x, y = (np.clip(c + 2, 0, len(padded) - 1.01) for c in (x, y))
    column, row = x.astype(np.int32), y.astype(np.int32)
    right, below = x - column, y - row
    upper = padded[row, column] * (1 - right) + padded[row, column + 1] * right
    lower = padded[row + 1, column] * (1 - right) + padded[row + 1, column + 1] * right
    return np.asarray(upper * (1 - below) + lower * below)


def _light(rng: np.random.Generator) -> np.ndarray:
    """How bright it is, about 1: a lamp at one side, darker corners, and often the edge of a shadow."""
    angle, slope = rng.uniform(0, 2 * np.pi), rng.uniform(0, 0.35)
    along = np.cos(angle) * _COLUMNS + np.sin(angle) * _ROWS
    light = (1 + slope * along) * (1 - rng.uniform(0, 0.2) * (_COLUMNS**2 + _ROWS**2) / 2)
    if rng.random() < 0.5:
        angle = rng.uniform(0, 2 * np.pi)
        far = np.cos(angle) * _COLUMNS + np.sin(angle) * _ROWS - rng.uniform(0, 0.8)
        light = light * (1 - rng.uniform(0.05, 0.25) / (1 + np.exp(-far / 0.12)))
    return np.asarray(light, np.float32)


def photographs(digits: Sequence[np.ndarray] | np.ndarray, seed: int) -> Iterator[np.ndarray]:
    """A frame of each; one does not depend on how many come before."""
    for number, digit in enumerate(digits):
        yield photograph(digit, np.random.default_rng((seed, number)))


def seen(frame: np.ndarray) -> np.ndarray:
    """Return the 80x80 cells that the firmware's driver reads from a frame."""
    inner = frame[BORDER : BORDER + VIEW * CELL, BORDER : BORDER + VIEW * CELL].astype(np.uint32)
    return (inner.reshape(VIEW, CELL, VIEW, CELL).sum((1, 3)) // CELL**2).astype(np.uint8)


class Vision:
    """The firmware's own firmware/vision.c, compiled for this computer."""

    def __init__(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "vision.so"
            compiler = ["gcc"] if shutil.which("gcc") else [sys.executable, "-m", "ziglang", "cc"]
            source = FIRMWARE / "vision.c"
            subprocess.run([*compiler, "-O2", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
            self._read = ctypes.CDLL(str(library)).vision_read

    def __call__(self, view: np.ndarray) -> np.ndarray | None:
        """The picture, uint8[784]; None if nothing is there to read."""
        view, picture = np.ascontiguousarray(view, np.uint8), np.empty(PICTURE * PICTURE, np.uint8)
        assert view.shape == (VIEW, VIEW)
        found = self._read(view.ctypes.data_as(ctypes.c_void_p), picture.ctypes.data_as(ctypes.c_void_p))
        return picture if found else None
