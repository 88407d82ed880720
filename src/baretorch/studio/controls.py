"""Chooses the control for an input or output by its shape and by the values of the examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from baretorch.ir.graph import Array, DType, Port, Shape
from baretorch.studio.digits import SIDE

MOST_SLIDERS, MOST_BARS = 32, 64
LEAST_SIDE = 8  # pixels; anything smaller is not shown as a picture
COLOURS = (1, 3)  # grey, or red, green and blue
_PARTS = ((0.0, 1.0), (-1.0, 1.0))  # usual ranges of floats
_BYTES = ((0.0, 255.0), (-128.0, 127.0))  # usual ranges of values that fill at least half of them


class ControlKind(StrEnum):
    NUMBERS = "numbers"  # sliders, bars
    PICTURE = "picture"  # a canvas
    CURVE = "curve"  # too many numbers for sliders or bars


@dataclass(frozen=True)
class Picture:
    """The layout of pixels in a tensor."""

    height: int
    width: int
    channels: int
    channels_last: bool


@dataclass(frozen=True)
class Control:
    """An input or an output on the page. Values are those of the caller, in the caller's order."""

    name: str
    dtype: DType
    shape: Shape
    picture: Picture | None
    most: int  # numbers that are shown one by one
    low: float = 0
    high: float = 0
    example: Array | None = None  # of an input

    @property
    def count(self) -> int:
        return int(np.prod(self.shape))

    @property
    def kind(self) -> ControlKind:
        if self.picture is not None:
            return ControlKind.PICTURE
        return ControlKind.NUMBERS if self.count <= self.most else ControlKind.CURVE

    def spread(self, part: Array) -> Array:
        """Return the input's values for numbers from 0 to 1, mapped to the range from its lowest to its highest
        value."""
        values = self.low + part.reshape(self.shape).astype(np.float64) * (self.high - self.low)
        return (values if self.dtype.numpy.kind == "f" else np.round(values)).astype(self.dtype.numpy)

    def to_json(self) -> dict[str, Any]:
        p = self.picture
        return {
            "name": self.name,
            "dtype": self.dtype.label,
            "shape": list(self.shape),
            "count": self.count,
            "kind": self.kind,
            "picture": p and {"height": p.height, "width": p.width, "channels": p.channels, "last": p.channels_last},
            "low": self.low,
            "high": self.high,
            "whole": self.dtype.numpy.kind != "f",
            "example": None if self.example is None else _numbers(self.example),
        }


def input_control(port: Port, name: str, samples: Sequence[Array]) -> Control:
    """Make the control of an input. `samples` are values that the input may have, in memory order, the example
    first."""
    picture = picture_of(port.shape)
    low, high = _limits(samples, port.dtype, exact=picture is not None)
    return Control(name, port.dtype, port.shape, picture, MOST_SLIDERS, low, high, port.from_memory(samples[0]))


def output_control(port: Port, name: str) -> Control:
    return Control(name, port.dtype, port.shape, picture_of(port.shape), MOST_BARS)


def picture_of(shape: Shape) -> Picture | None:
    """Return the layout if this is the shape of one picture: [1, C, H, W], [1, H, W, C], [H, W] …, or MNIST's 784
    numbers."""
    while len(shape) > 2 and shape[0] == 1:
        shape = shape[1:]
    if len(shape) == 2 and min(shape) >= LEAST_SIDE:
        return Picture(shape[0], shape[1], 1, True)
    if len(shape) == 3 and shape[0] in COLOURS and min(shape[1:]) >= LEAST_SIDE:
        return Picture(shape[1], shape[2], shape[0], False)
    if len(shape) == 3 and shape[2] in COLOURS and min(shape[:2]) >= LEAST_SIDE:
        return Picture(shape[0], shape[1], shape[2], True)
    if shape and int(np.prod(shape)) == SIDE * SIDE == max(shape):
        return Picture(SIDE, SIDE, 1, True)
    return None


def _numbers(array: Array) -> list[float]:
    """Return all numbers as a list for JSON, which supports neither NaN nor infinity."""
    numbers: list[float] = np.nan_to_num(array.astype(np.float64)).reshape(-1).tolist()
    return numbers


def _limits(samples: Sequence[Array], dtype: DType, exact: bool) -> tuple[float, float]:
    """Return a common range that contains all samples; else their own range, or round numbers around it."""
    if dtype.numpy.kind == "b":
        return 0.0, 1.0
    values = np.concatenate([np.asarray(s, np.float64).reshape(-1) for s in samples])
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    wide = _BYTES if high - low > 127 else ()
    for least, most in (*(_PARTS if dtype.numpy.kind == "f" and (low or high) else ()), *wide):
        if least <= low and high <= most:
            return least, most
    info = None if dtype.numpy.kind == "f" else np.iinfo(dtype.numpy)
    if low == high and exact and info is not None and info.bits == 8:
        return float(info.min), float(info.max)
    if low == high and exact:  # an empty picture is paper
        return low, low + 1
    if low == high:
        low, high = low - 1, high + 1
    if exact:
        return low, high
    unit = 10.0 ** np.floor(np.log10(high - low)) / 2
    low, high = float(np.floor(low / unit) * unit), float(np.ceil(high / unit) * unit)
    return (low, high) if info is None else (max(low, float(info.min)), min(high, float(info.max)))
