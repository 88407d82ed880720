"""Draw the memory plan in the terminal: steps across, addresses up, and each buffer as a block while it is alive."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style

from baretorch.escape import line
from baretorch.measure.layers import when
from baretorch.measure.numbers import shorten_name
from baretorch.plan.types import Plan

HEIGHT = 16
COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red", "bright_cyan", "bright_magenta")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_LISTED = 24  # buffers in the legend


class Lifetimes:
    """Draws a plan as wide as the terminal; more steps or bytes than there are cells share cells."""

    def __init__(self, plan: Plan) -> None:
        self._buffers = sorted((b for b in plan.layout.buffers if b.size), key=lambda b: (b.first, b.offset))
        self._plan = plan

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        plan = self._plan
        if not self._buffers or not plan.arena:
            yield Segment("no buffers\n")
            return
        moments = len(plan.phases) + 2  # before, each phase, after
        gutter = len(f"{plan.arena:,}") + 2
        columns = min(options.max_width - gutter, 4 * moments)
        rows = min(HEIGHT, max(len(self._buffers), 4))
        owners = self._owners(rows, columns, moments)
        for row in range(rows - 1, -1, -1):
            top = plan.arena * (row + 1) // rows
            yield Segment(f"{top:>{gutter - 2},} ┤" if row % 2 == 1 or row == rows - 1 else " " * (gutter - 1) + "│")
            yield from self._line(owners[row])
            yield Segment("\n")
        yield Segment(f"{'0':>{gutter - 2}} └{'─' * columns}\n")
        ends = f"in{'steps':^{max(0, columns - 5)}}out" if columns >= 10 else ""
        yield Segment(" " * gutter + ends + "\n")
        yield from self._legend(options.max_width)

    def _owners(self, rows: int, columns: int, moments: int) -> list[list[int | None]]:
        """Return the buffer that each cell shows: the one that covers its middle, else any that touches it."""
        arena = self._plan.arena
        cells: list[list[int | None]] = [[None] * columns for _ in range(rows)]
        for number, b in enumerate(self._buffers):
            left = (b.first + 1) * columns // moments
            right = max(left + 1, (b.last + 2) * columns // moments)
            for row in range(rows):
                low, high = arena * row / rows, arena * (row + 1) / rows
                middle = (low + high) / 2
                for column in range(left, min(right, columns)):
                    covers = b.offset <= middle < b.end
                    if covers or (cells[row][column] is None and b.offset < high and low < b.end):
                        cells[row][column] = number
        return cells

    def _line(self, owners: list[int | None]) -> RenderResult:
        """Draw runs of one buffer as coloured blocks, with its letter at the start if there is room."""
        start = 0
        while start < len(owners):
            end = start
            while end < len(owners) and owners[end] == owners[start]:
                end += 1
            owner = owners[start]
            if owner is None:
                yield Segment(" " * (end - start))
            else:
                letter = _letter(owner) if end - start > 2 else ""  # with many steps letters would be noise
                yield Segment(letter + "░▒"[owner % 2] * (end - start - len(letter)), _style(owner))
            start = end

    def _legend(self, width: int) -> RenderResult:
        """List the largest buffers in the order of their first steps: letter, name, bytes, steps."""
        shown = sorted(range(len(self._buffers)), key=lambda i: -self._buffers[i].size)[:_LISTED]
        names = {i: line(self._buffers[i].name) for i in shown}
        name_width = min(32, max(map(len, names.values())))
        for i in sorted(shown):
            b = self._buffers[i]
            yield Segment(_letter(i), _style(i))
            place = f"{b.size:>9,} bytes at {b.offset:<9,}"
            yield Segment(
                f" {shorten_name(names[i], name_width):<{name_width}} {place} {when(b, len(self._plan.phases))}"[:width]
            )
            yield Segment("\n")
        if len(self._buffers) > len(shown):
            yield Segment(f"  and {len(self._buffers) - len(shown)} more\n")


def _letter(number: int) -> str:
    return _LETTERS[number % len(_LETTERS)]


def _style(number: int) -> Style:
    return Style(color=COLOURS[number % len(COLOURS)])
