"""Draw the roofline of a cluster: how near each layer is to the chip's limits. The axes are products per cycle, and
products per byte that moves between L1 and slower memory, both in powers of two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import atan2, ceil, cos, degrees, floor, log2, sin
from typing import TypeAlias

from baretorch.measure.cluster import TracedLayer, TracedRun
from baretorch.measure.numbers import figure, share, shorten_name
from baretorch.report.page.html import Html, el, line_element, rect, svg, text
from baretorch.targets.features import Feature
from baretorch.targets.types import Chip
from baretorch.units import units_of

WIDTH, HEIGHT = 1000, 420
LEFT, RIGHT, TOP, BOTTOM = 64, 130, 20, 44  # around the plot; RIGHT holds layers that move nothing
DOT_PRODUCT = 4  # products of bytes in an instruction of Xcv
COLOURS = 8
LABEL, BOLD = 6.0, 6.8  # pixels of a letter
PLACES = (0.62, 0.3, 0.45, 0.78, 0.15)  # on the slope: where its name may be

Box: TypeAlias = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True)
class Roof:
    """A limit of the chip: products per cycle, or per byte that moves."""

    name: str
    per_cycle: float | None = None
    bytes_per_cycle: float | None = None


def roofs(chip: Chip, cores: int, with_units: bool) -> list[Roof]:
    """Return the limits that follow from the chip's TOML."""
    cluster = chip.cluster
    assert cluster is not None
    each = DOT_PRODUCT if Feature.XCV in chip.cpu.features else 1
    found = [
        Roof(f"{cores} cores, {each} products a cycle each" if cores > 1 else f"a core, {each} a cycle", cores * each)
    ]
    if with_units:
        found += [Roof(f"{unit.title}, {unit.products} products a cycle", unit.products) for unit in units_of(chip)]
    if cluster.dma:
        found.append(Roof(f"DMA, {cluster.dma.bytes_per_cycle} bytes a cycle", None, cluster.dma.bytes_per_cycle))
    return found


@dataclass(frozen=True)
class _Scale:
    """Powers of two at the plot's edges."""

    left: int
    right: int
    low: int
    high: int

    def x(self, per_byte: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (log2(per_byte) - self.left) / (self.right - self.left)

    def y(self, per_cycle: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (log2(per_cycle) - self.low) / (self.high - self.low)


def roofline(found: TracedRun, chip: Chip) -> Html:
    layers = [layer for layer in found.layers if layer.macs and layer.took]
    limits = roofs(chip, found.cores, any(layer.unit for layer in layers))
    scale = _scale(layers, limits)
    spots = [_spot(found, layer, scale) for layer in layers]
    taken = [(x - r, y - r, x + r, y + r) for x, y, r in spots]
    at = next((p for p in PLACES if not any(_meet(a, b) for a in _names(limits, scale, p) for b in taken)), PLACES[0])
    names = _names(limits, scale, at)
    parts = [*_grid(scale), *(_roof(roof, scale, at) for roof in limits), *_dots(found, layers, scale, names)]
    label = "products per cycle of each layer over products per byte moved, below the limit of the chip"
    return svg(WIDTH, HEIGHT, label, *parts)


def _scale(layers: list[TracedLayer], limits: list[Roof]) -> _Scale:
    rates = [layer.macs / layer.took for layer in layers] + [r.per_cycle for r in limits if r.per_cycle]
    bytes_ = [layer.macs / layer.moved for layer in layers if layer.moved] or [1.0]
    return _Scale(
        floor(log2(min(bytes_))) - 1,
        ceil(log2(max(*bytes_, 64))) + 1,
        floor(log2(min(rates))),
        ceil(log2(max(rates))) + 1,
    )


def _grid(scale: _Scale) -> Iterator[Html]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for power in range(scale.low, scale.high + 1):
        y = scale.y(2.0**power)
        yield line_element(LEFT, y, right, y, "grid")
        yield text(LEFT - 8, y + 4, f"{2.0**power:g}", "axis end")
    for power in range(scale.left, scale.right + 1):
        x = scale.x(2.0**power)
        yield line_element(x, TOP, x, bottom, "grid")
        if (power - scale.left) % 2 == 0:
            yield text(x, bottom + 16, f"{2.0**power:g}", "axis middle")
    yield line_element(LEFT, bottom, right, bottom, "base")
    yield text((LEFT + right) / 2, HEIGHT - 6, "MACs per byte between L1 and L2", "note middle")
    yield text(4, 12, "MACs per cycle", "note")
    yield rect(right + 14, TOP, RIGHT - 18, bottom - TOP, class_="lane", rx=4)
    yield text(right + 14 + (RIGHT - 18) / 2, bottom + 16, "all in L1", "axis middle")


def _slope(roof: Roof, scale: _Scale) -> tuple[float, float, float, float]:
    """Return the ends of the line that limits memory traffic."""
    per_cycle = roof.bytes_per_cycle or 1.0
    low, high = 2.0**scale.low, 2.0**scale.high
    a, b = max(low / per_cycle, 2.0**scale.left), min(high / per_cycle, 2.0**scale.right)
    return scale.x(a), scale.y(a * per_cycle), scale.x(b), scale.y(b * per_cycle)


def _names(limits: list[Roof], scale: _Scale, at: float) -> list[Box]:
    return [box for roof in limits for box in _name_boxes(roof, scale, at)]


def _meet(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _spot(found: TracedRun, layer: TracedLayer, scale: _Scale) -> tuple[float, float, float]:
    """Return the place of a layer's dot, and its radius."""
    apart = WIDTH - RIGHT + 14 + (RIGHT - 18) / 2
    x = scale.x(layer.macs / layer.moved) if layer.moved else apart
    return x, scale.y(layer.macs / layer.took), 4 + 14 * (layer.cycles / found.cycles) ** 0.5


def _name_boxes(roof: Roof, scale: _Scale, at: float) -> Iterator[Box]:
    """Yield the place of a roof's name: one box, or one for each letter if the roof is a slope."""
    width = BOLD * len(roof.name)
    if roof.per_cycle:
        y = scale.y(roof.per_cycle)
        yield LEFT + 8, y - 17, LEFT + 8 + width, y - 3
        return
    x1, y1, x2, y2 = _slope(roof, scale)
    turn = atan2(y2 - y1, x2 - x1)
    for i in range(len(roof.name)):
        along = BOLD * (i + 0.5) - width / 2
        x = x1 + at * (x2 - x1) + along * cos(turn) + 11 * sin(turn)
        y = y1 + at * (y2 - y1) + along * sin(turn) - 11 * cos(turn)
        yield x - 6, y - 6, x + 6, y + 6


def _roof(roof: Roof, scale: _Scale, at: float) -> Html:
    if roof.per_cycle:
        y = scale.y(roof.per_cycle)
        parts = [line_element(LEFT, y, WIDTH, y, "roof"), text(LEFT + 8, y - 6, roof.name, "here")]
        return el("g", *parts, data_tip=f"{roof.name}\nno layer there can do more")
    x1, y1, x2, y2 = _slope(roof, scale)
    at_x, at_y = x1 + at * (x2 - x1), y1 + at * (y2 - y1)
    turn = f"rotate({degrees(atan2(y2 - y1, x2 - x1)):.1f} {at_x:.1f} {at_y:.1f})"
    parts = [line_element(x1, y1, x2, y2, "roof"), text(at_x, at_y - 7, roof.name, "here middle", transform=turn)]
    return el("g", *parts, data_tip=f"{roof.name}\na layer left of it waits for its bytes")


def _dots(found: TracedRun, layers: list[TracedLayer], scale: _Scale, names: list[Box]) -> Iterator[Html]:
    """Draw the dots, the largest first so that small ones are on top; names only where they cover nothing."""
    taken = list(names)
    ordered = sorted(layers, key=lambda layer: -layer.cycles)
    for layer in ordered:
        x, y, radius = _spot(found, layer, scale)
        style = f"spot c{found.layers.index(layer) % COLOURS}"
        yield el("circle", cx=x, cy=y, r=radius, class_=style, data_tip=_tip(found, layer), tabindex=0)
    for layer in ordered:
        (x, y, radius), name = _spot(found, layer, scale), shorten_name(layer.name, 16)
        width = LABEL * len(name)
        for left, end in ((x + radius + 4, False), (x - radius - 4 - width, True)):
            box = (left, y - 7, left + width, y + 6)
            inside = box[0] > 4 and box[2] < (WIDTH - 2 if layer.moved == 0 else WIDTH - RIGHT + 10)
            if inside and not any(_meet(box, other) for other in taken):
                taken.append(box)
                yield text(x - radius - 4 if end else left, y + 4, name, "axis end" if end else "axis")
                break


def _tip(found: TracedRun, layer: TracedLayer) -> str:
    rate = f"{figure(layer.macs / layer.took)} MACs per cycle"
    moved = (
        f"{figure(layer.macs / layer.moved)} per byte: {layer.moved:,} bytes moved" if layer.moved else "nothing moves"
    )
    where = layer.unit or f"{len({step.executor for step in layer.steps})} cores"
    return f"{layer.name}\n{rate}, on {where}\n{moved}\n{layer.cycles:,} cycles, {share(layer.cycles, found.cycles)}"
