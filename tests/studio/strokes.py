"""Ten digits as a hand would draw them: strokes of points, from 0 to 1 across and down."""

from __future__ import annotations

from itertools import pairwise
from math import cos, pi, sin
from typing import TypeAlias

Stroke: TypeAlias = list[tuple[float, float]]


def arc(x: float, y: float, wide: float, high: float, begin: float, end: float, steps: int = 24) -> Stroke:
    """Part of an ellipse around x, y; 0 points right, 0.25 down, 0.5 left, 0.75 up."""
    angles = [2 * pi * (begin + (end - begin) * i / steps) for i in range(steps + 1)]
    return [(x + wide * cos(a), y + high * sin(a)) for a in angles]


def straight(*corners: tuple[float, float], steps: int = 8) -> Stroke:
    """Lines from corner to corner."""
    points = [corners[0]]
    for (x, y), (to_x, to_y) in pairwise(corners):
        points += [(x + (to_x - x) * i / steps, y + (to_y - y) * i / steps) for i in range(1, steps + 1)]
    return points


DIGITS: dict[int, list[Stroke]] = {
    0: [arc(0.5, 0.5, 0.19, 0.3, -0.25, 0.76)],
    1: [straight((0.53, 0.18), (0.47, 0.83))],
    2: [[*arc(0.49, 0.35, 0.18, 0.16, 0.52, 1.12), *straight((0.6, 0.5), (0.32, 0.79), (0.71, 0.78))]],
    3: [[*arc(0.47, 0.35, 0.17, 0.15, 0.6, 1.22), *arc(0.47, 0.65, 0.19, 0.16, -0.25, 0.42)]],
    4: [straight((0.38, 0.2), (0.3, 0.55), (0.7, 0.53)), straight((0.62, 0.25), (0.58, 0.83))],
    5: [[*straight((0.66, 0.2), (0.4, 0.21), (0.36, 0.46)), *arc(0.46, 0.61, 0.2, 0.18, -0.32, 0.4)]],
    6: [[*straight((0.6, 0.17), (0.4, 0.45)), *arc(0.5, 0.65, 0.16, 0.17, 0.55, -0.5)]],
    7: [straight((0.3, 0.24), (0.69, 0.22), (0.46, 0.83))],
    8: [
        [
            *arc(0.5, 0.34, 0.14, 0.15, -0.1, -0.75),
            *arc(0.5, 0.66, 0.17, 0.17, -0.25, 0.75),
            *arc(0.5, 0.34, 0.14, 0.15, 0.25, -0.1),
        ]
    ],
    9: [[*arc(0.5, 0.36, 0.16, 0.16, 0, -1), *straight((0.66, 0.36), (0.6, 0.84))]],
}
