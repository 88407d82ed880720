"""Draw plots in the terminal with braille dots: eight dots per character, one colour per series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style

from baretorch.measure.numbers import figure, ticks

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # [row][column] of a braille character
_BRAILLE = 0x2800


@dataclass(frozen=True)
class Series:
    """Points of one colour, joined by a line or each drawn as a large dot."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: str
    line: bool = False


class Plot:
    """Series over common axes, `height` characters high and as wide as the console. Later series are drawn on top.

    The axes cover at least `x_range` and `y_range`; fixed ranges keep a growing plot from jumping.
    """

    def __init__(
        self,
        series: Sequence[Series],
        height: int = 16,
        x_range: tuple[float, float] | None = None,
        y_range: tuple[float, float] | None = None,
    ) -> None:
        self._series = series
        self._height = max(2, height)
        self._x = _span([x for s in series for x in s.x], x_range)
        low, high = _span([y for s in series for y in s.y], y_range)
        margin = (high - low) / 20
        self._y = (low - margin, high + margin)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        bottom = self._height - 1
        labels = {round((1 - _part(tick, self._y)) * bottom): figure(tick) for tick in ticks(*self._y, 5)}
        gutter = max(map(len, labels.values())) + 1
        width = max(8, options.max_width - gutter - 2)
        dots, colours = self._draw(width)
        for row in range(self._height):
            yield Segment(f"{labels.get(row, ''):>{gutter}}{'┤' if row in labels else '│'}")
            for column in range(width):
                bits = dots[row][column]
                if bits:
                    yield Segment(chr(_BRAILLE + bits), Style(color=colours[row][column]))
                else:
                    yield Segment(" ")
            yield Segment("\n")
        left, right = figure(self._x[0]), figure(self._x[1])
        yield Segment(f"{'':>{gutter}}└{'─' * width}\n")
        yield Segment(f"{'':>{gutter + 1}}{left}{right:>{width - len(left)}}\n")
        yield Segment(" " * (gutter + 1))
        for s in self._series:
            yield Segment("── " if s.line else "⣿ ", Style(color=s.colour))
            yield Segment(f"{s.name}   ")
        yield Segment("\n")

    def _draw(self, width: int) -> tuple[list[list[int]], list[list[str]]]:
        """Return for each character its dots, and the colour of the topmost series."""
        dots = [[0] * width for _ in range(self._height)]
        colours = [[""] * width for _ in range(self._height)]
        columns, rows = 2 * width - 1, 4 * self._height - 1

        def mark(x: int, y: int, colour: str) -> None:
            if 0 <= x <= columns and 0 <= y <= rows:
                dots[y // 4][x // 2] |= _DOTS[y % 4][x % 2]
                colours[y // 4][x // 2] = colour

        for s in self._series:
            points = [
                (round(_part(x, self._x) * columns), round((1 - _part(y, self._y)) * rows))
                for x, y in zip(s.x, s.y, strict=True)
                if x - x == 0 and y - y == 0  # finite
            ]
            if s.line:
                for a, b in pairwise(points):
                    for x, y in _between(a, b):
                        mark(x, y, s.colour)
            else:
                for x, y in points:
                    for dx, dy in ((0, 0), (1, 0), (0, 1), (1, 1)):
                        mark(x + dx, y + dy, s.colour)
        return dots, colours


def _span(values: Sequence[float], at_least: tuple[float, float] | None) -> tuple[float, float]:
    """Return the range of the finite values; never empty."""
    known = [v for v in (*values, *(at_least or ())) if v - v == 0]
    low, high = min(known, default=0.0), max(known, default=1.0)
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _part(value: float, span: tuple[float, float]) -> float:
    return (value - span[0]) / (span[1] - span[0])


def _between(a: tuple[int, int], b: tuple[int, int]) -> Sequence[tuple[int, int]]:
    """Return the dots of a line from a to b."""
    steps = max(abs(b[0] - a[0]), abs(b[1] - a[1]), 1)
    return [(a[0] + (b[0] - a[0]) * i // steps, a[1] + (b[1] - a[1]) * i // steps) for i in range(steps + 1)]
