"""Draw the chip's memories to scale, and the buffers of the plan over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from baretorch.measure.layers import Peak, layer_of_buffer, when
from baretorch.measure.memory_map import BankMap, MemoryBlock
from baretorch.measure.numbers import capacity, share, shorten_name, ticks
from baretorch.plan.types import Bank, Buffer, Plan
from baretorch.report.page.html import Html, el, line_element, rect, svg, text

WIDTH = 1000
COLOURS = 8  # classes c0 … c7 of the style sheet
DRAWN = 600  # buffers at most, so that pages stay small
_LABEL = 5.9  # pixels of a letter of a label
_STEP = 22  # letters of a step's name
_AXIS, _TOP, _PLOT = 74, 22, 320  # left of the plot, above it, its height


def map_picture(banks: Sequence[BankMap]) -> Html:
    """Draw a bar for each bank, all on one scale, and below it the used bytes, as wide as the picture."""
    largest = max(bank.memory.size for bank in banks)
    parts: list[Html] = []
    y = 0.0
    for bank in banks:
        memory = bank.memory
        parts.append(text(0, y + 14, memory.name, "name"))
        about = f"{capacity(memory.size)} of {'RAM' if memory.kind == 'ram' else memory.kind} at {memory.origin:#010x}"
        used = f"{bank.used:,} bytes used, {share(bank.used, memory.size)}" if bank.pieces else "not used"
        parts.append(text(_AXIS + 20, y + 14, f"{about}; {used}", "note"))
        y += 22
        scale = WIDTH / largest
        parts.append(rect(0, y, max(memory.size * scale, 2), 14, class_="bank", rx=2))
        parts += [_whole_piece(bank, p, scale, y) for p in bank.pieces]
        y += 14
        if bank.pieces:
            parts += _zoom(bank, scale, y)
            y += 44
        y += 26
    return svg(WIDTH, y - 24, "the chip's memories to scale, with their contents", *parts)


def _whole_piece(bank: BankMap, piece: MemoryBlock, scale: float, y: float) -> Html:
    at = (piece.address - bank.memory.origin) * scale
    return rect(at, y, max(piece.size * scale, 0.7), 14, class_=f"k-{piece.kind}", data_tip=_piece_tip(piece))


def _zoom(bank: BankMap, scale: float, y: float) -> Iterator[Html]:
    """Draw the used bytes without gaps, with lines to their beginning and end in the bar above."""
    first, last = bank.pieces[0], bank.pieces[-1]
    begin = (first.address - bank.memory.origin) * scale
    end = (last.address + last.size - bank.memory.origin) * scale
    top, height = y + 18, 26
    yield el("path", d=f"M{begin:.1f} {y} L0 {top} H{WIDTH} L{max(end, begin + 0.7):.1f} {y} Z", class_="zoom")
    x = 0.0
    for piece in bank.pieces:
        width = WIDTH * piece.size / bank.used
        yield rect(x, top, max(width, 1.5), height, class_=f"k-{piece.kind}", data_tip=_piece_tip(piece))
        label = f"{piece.name}  {piece.size:,}"
        if len(label) * _LABEL < width:
            yield text(x + 6, top + 17, label, "inside")
        elif len(piece.name) * _LABEL < width:
            yield text(x + 6, top + 17, piece.name, "inside")
        x += width


def _piece_tip(piece: MemoryBlock) -> str:
    end = piece.address + piece.size
    return f"{piece.name}\n{piece.size:,} bytes\n{piece.address:#010x} to {end:#010x}"


def lifetimes_picture(plan: Plan, bank: Bank, peak: Peak | None) -> Html:
    """Draw the buffers of a bank: steps across, addresses up."""
    moments = len(plan.phases) + 2  # before, each phase, after
    column = (WIDTH - _AXIS) / moments
    up = _PLOT / max(bank.size, 1)
    bottom = _TOP + _PLOT
    parts: list[Html] = []
    for tick in ticks(0, bank.size, 5, least=1):
        y = bottom - tick * up
        parts += [line_element(_AXIS, y, WIDTH, y, "grid"), text(_AXIS - 8, y + 4, f"{tick:,.0f}", "axis end")]
    inside = [b for b in plan.layout.buffers if b.size and b.bank == bank.name]
    drawn = sorted(sorted(inside, key=lambda b: -b.size)[:DRAWN], key=lambda b: (b.first, b.offset))
    parts += [_buffer(plan, b, i % COLOURS, drawn[i + 1 :], column, up) for i, b in enumerate(drawn)]
    parts.append(line_element(_AXIS, bottom, WIDTH, bottom, "base"))
    if peak:
        x = _AXIS + (peak.step + 1) * column
        parts.append(rect(x, _TOP - 4, column, _PLOT + 4, class_="peak"))
        parts.append(text(x + column / 2, 13, f"peak {peak.live:,}", "here middle"))
    made = [phase.steps[0].call.y for phase in plan.phases]
    names = ["input", *(y.layer for y in made), "output"]
    parts += _steps(names, column, peak)
    longest = max(min(len(name), _STEP) for name in names)
    return svg(WIDTH, bottom + 22 + 4.2 * longest, f"buffers in {bank.name}: time across, addresses up", *parts)


def _buffer(plan: Plan, b: Buffer, colour: int, above: Sequence[Buffer], column: float, up: float) -> Html:
    """Draw a block with its details as a tooltip. `above` are the blocks drawn on top of it."""
    x, y = _AXIS + (b.first + 1) * column, _TOP + _PLOT - b.end * up
    width, height = (b.last - b.first + 1) * column, b.size * up
    layer = layer_of_buffer(plan, b)
    tip = f"{b.name}\n{b.size:,} bytes at {b.offset:,}\n{layer}\n{when(b, len(plan.phases))}"
    box = rect(x + 0.5, y + 0.5, width - 1, max(height - 1, 2.5), class_=f"buffer c{colour}", rx=2)
    hidden = min((o.first for o in above if o.meets(b) and o.offset < b.end and b.offset < o.end), default=b.last + 1)
    room = int(((hidden - b.first) * column - 10) / _LABEL)
    word = "scratch" if layer.startswith("scratch of ") else layer
    shown = height > 15 and room >= (len(word) if word == "scratch" else min(len(word), 5))
    label = text(x + 6, y + min(height / 2 + 4, 16), shorten_name(word, room), "inside") if shown else ""
    return el("g", box, label, class_="tensor", data_tip=tip, data_name=b.name, data_bytes=b.size)


def _steps(names: Sequence[str], column: float, peak: Peak | None) -> Iterator[Html]:
    """Label the columns with their steps, at an angle; of many steps only some, but always the peak."""
    every = max(1, -(-14 // max(int(column), 1)))
    here = peak.step + 1 if peak else None
    for i, name in enumerate(names):
        near = here is not None and abs(i - here) < every
        if i == here or (i % every == 0 and not near):
            x, y = _AXIS + (i + 0.5) * column, _TOP + _PLOT + 14
            style = "here end" if i == here else "axis end"
            yield text(x, y, shorten_name(name, _STEP), style, transform=f"rotate(-40 {x:.1f} {y})")
