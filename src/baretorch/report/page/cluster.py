"""Make the sections of the page that only a cluster has: timeline, roofline, and the tiles of layers."""

from __future__ import annotations

from baretorch.measure.cluster import TracedLayer, TracedRun
from baretorch.measure.numbers import share
from baretorch.plan.cluster.cost import estimate_cycles
from baretorch.report.page.html import Html, count_cell, el, joined, number_cell, table
from baretorch.report.page.roofline import roofline
from baretorch.report.page.timeline import timeline
from baretorch.targets.types import Chip

_TIMELINE = (
    "Time runs across, in clock cycles of the simulator. Each core has a lane. From below, it shows computing in the "
    "colour of the layer; above that, stalls in the colour of their cause. Where the core slept, the whole lane has "
    "the colour of the cause. The second figure shows the buffers in L1: addresses go up, and weights are orange until "
    "their DMA copy is done."
)
_ROOFLINE = (
    "Each dot is a layer; its size is its share of the time. No layer can be above the roofs, which follow from the "
    "chip’s TOML. Layers at the slope are limited by memory traffic, and layers at a flat roof by arithmetic."
)


def cluster_sections(found: TracedRun | None, chip: Chip) -> Html:
    """Return the sections; empty for other chips."""
    if found is None:
        return Html("")
    sections = [_section("timeline", "Timeline", _TIMELINE, timeline(found))]
    if any(layer.macs and layer.took for layer in found.layers):
        sections.append(_section("roofline", "Roofline", _ROOFLINE, el("div", roofline(found, chip), class_="scroll")))
    sections.append(_section("cuts", "Tiles and cores", _about_tiles(found), _tiles(found)))
    return joined(sections)


def _section(name: str, title: str, lead: str, *content: Html) -> Html:
    return el("section", el("h2", title), el("p", lead, class_="lead"), *content, id=name)


def _about_tiles(found: TracedRun) -> str:
    tiles = found.plan.tiles
    cores = "All layers ran on one core. " if found.cores == 1 else f"Layers are split across {found.cores} cores. "
    if tiles is None:
        return f"{cores}No data had to be copied to L1 in tiles."
    ahead = "1 phase" if tiles.ahead == 1 else f"{tiles.ahead} phases"
    off = share(abs(found.cycles - tiles.cycles), found.cycles)
    return (
        f"{cores}{tiles}, copied {ahead} ahead. Of {len(tiles.tried)} plans that fit, this one has the fewest modelled "
        f"cycles: {tiles.cycles:,}. The run took {found.cycles:,}, so the model is off by {off}."
    )


def _tiles(found: TracedRun) -> Html:
    titles = ["layer", "#tiles", "tiles along", "#cores", "shares along", "#bytes by DMA", "#largest copy"]
    titles += ["#modelled cycles", "#cycles", "#waiting for DMA"]
    return el("div", table(titles, (_row(found, layer) for layer in found.layers)), class_="scroll")


def _row(found: TracedRun, layer: TracedLayer) -> Html:
    name = layer.steps[0].layer
    phases = [p for p in found.plan.phases if p.main.layer == name]
    largest = max((copy.source.size for copy in layer.copies), default=0)
    known = next((t for t in found.plan.tiles.layers if t.layer == name), None) if found.plan.tiles else None
    modelled = (max(estimate_cycles(step.call, step.kernel) for step in phase.steps) for phase in phases)
    model = known.cycles if known else round(sum(modelled))
    use, cores = layer.use, len({step.executor for step in layer.steps})
    return el(
        "tr",
        el("td", el("code", layer.name), title=layer.name),
        count_cell(layer.tiles),
        el("td", known.axis if known else ""),
        count_cell(cores) if not layer.unit else number_cell(layer.unit, 0),
        el("td", split_axes(found, layer) if cores > 1 else ""),
        count_cell(layer.copied),
        count_cell(largest),
        count_cell(model),
        count_cell(layer.cycles),
        number_cell(share(use.dma, use.cycles) if use.cycles else "", use.dma / (use.cycles or 1)),
    )


def split_axes(found: TracedRun, layer: TracedLayer) -> str:
    """Name the axes along which steps compute parts of the layer, or of its sums."""
    first = layer.steps[0].call
    whole = found.plan.graph[first.y.name].shape
    parts = {step.call.y.shape for step in layer.steps if type(step.call.op) is type(first.op)}
    if any(len(shape) != len(whole) for shape in parts):
        return "pixels"
    axes = sorted({i for shape in parts for i, (a, b) in enumerate(zip(shape, whole, strict=True)) if a != b})
    names = {1: "rows", 2: "columns", 0: "batch", len(whole) - 1: "channels"}
    return ", ".join(names.get(axis, f"axis {axis}") for axis in axes)
