"""Draw a run on a cluster: cores, DMA engine and units over time, and below it the contents of L1.

Positions are parts of the run in percent, so that zooming widens the figure but not its text. A core's lane is filled
from below with the share of time that it computed in a step, and above that with the causes of its stalls. If it slept,
the whole lane has the colour of the cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from baretorch.measure.cluster import DMA_NAME, TracedCopy, TracedRun, Use, Visit
from baretorch.measure.layers import layer_of_buffer
from baretorch.measure.numbers import share, ticks
from baretorch.plan.types import Buffer
from baretorch.report.page.html import Html, el, joined

SCALE = 10_000  # units of a drawing's width
LANE, GAP = 24, 4
HEIGHT = 220  # of L1
COLOURS = 8
DRAWN = 600  # buffers at most
# Causes of waiting: the field of Use, the style, the name.
WAITS = (
    ("load_use", "w-load", "a register that is being loaded"),
    ("conflict", "w-bank", "a bank of L1 that serves another core"),
    ("slow", "w-slow", "L2"),
    ("barrier", "w-barrier", "other cores, at the barrier"),
    ("dma", "w-dma", "the DMA engine"),
    ("unit", "w-unit", "a unit"),
)


def timeline(found: TracedRun) -> Html:
    """Draw the whole timeline."""
    lanes = [*(f"core {core}" for core in range(found.cores)), *_units(found)]
    chart = el("div", _layer_names(found), _lanes(found, lanes), _ticks(found), class_="chart")
    names = el("div", el("span", "", class_="layers"), *(el("span", name) for name in lanes), class_="names")
    parts = [el("div", names, el("div", chart, class_="pan", tabindex=0, **_label(found)), class_="timeline")]
    if _inside(found):
        memory = el("div", _memory(found), _ticks(found), class_="chart")
        scale = el("div", *_addresses(found), class_="names addresses")
        label = {"role": "group", "aria_label": "buffers in L1 over time; addresses go up"}
        parts.append(el("div", scale, el("div", memory, class_="pan", tabindex=0, **label), class_="timeline"))
    return joined([_tools(found), *parts])


def _label(found: TracedRun) -> dict[str, str]:
    busy = ", ".join(f"core {i} {share(use.busy, found.cycles)}" for i, use in enumerate(found.uses))
    return {"role": "group", "aria_label": f"{found.cycles:,} cycles; busy: {busy}"}


def _tools(found: TracedRun) -> Html:
    whole = sum(found.uses, Use())
    used = [(style, name, getattr(whole, field)) for field, style, name in WAITS if getattr(whole, field)]
    items = [_key("busy", "computing", whole.busy, whole)]
    items += [_key(style, f"waiting for {name}", cycles, whole) for style, name, cycles in used]
    items += [el("li", el("i", class_=_style(unit)), f"work of {unit}") for unit in _units(found)]
    zoom = el("input", type="range", min=1, max=24, step=1, value=1, class_="zoom-by")
    return el("div", el("ul", *items, class_="legend"), el("label", "zoom ", zoom), class_="tools")


def _key(style: str, name: str, cycles: int, whole: Use) -> Html:
    return el("li", el("i", class_=style), f"{name}, {share(cycles, whole.cycles)}")


def _units(found: TracedRun) -> list[str]:
    return sorted({work.unit for work in found.trace.works}, key=lambda unit: (unit != DMA_NAME, unit))


def _style(unit: str) -> str:
    return "dma" if unit == DMA_NAME else "unit"


def _at(found: TracedRun, cycle: int) -> float:
    return SCALE * (cycle - found.trace.begin) / found.cycles


def _box(found: TracedRun, begin: int, end: int, top: float, height: float) -> str:
    """Return a rectangle as a part of a path."""
    x, width = _at(found, begin), SCALE * (end - begin) / found.cycles
    return f"M{x:.1f} {top:.1f}h{max(width, 0.5):.1f}v{height:.1f}h-{max(width, 0.5):.1f}z"


def _path(boxes: Iterable[str], style: str, tip: str | None = None) -> Html:
    d = "".join(boxes)
    return el("path", d=d, class_=style, data_tip=tip) if d else Html("")


def _drawing(height: float, parts: Iterable[Html], label: str) -> Html:
    box = f"0 0 {SCALE} {height:g}"
    about = {"viewBox": box, "preserveAspectRatio": "none", "role": "img", "aria_label": label}
    return el("svg", *parts, height=height, **about)


def _lanes(found: TracedRun, lanes: Sequence[str]) -> Html:
    height = len(lanes) * (LANE + GAP) - GAP
    parts = [_path([f"M0 {i * (LANE + GAP)}h{SCALE}v{LANE}h-{SCALE}z" for i in range(len(lanes))], "lane")]
    for layer in range(len(found.layers)):
        visits = [visit for visit in found.visits if visit.layer == layer]
        tip = _layer_tip(found, layer)
        parts.append(_path((_busy(found, v) for v in visits), f"busy c{layer % COLOURS}", tip))
    for field, style, name in WAITS[:3]:
        parts.append(_path(_stalls(found, field), style, f"waiting for {name}"))
    parts += _asleep(found)
    for i, unit in enumerate(_units(found), found.cores):
        parts += _draw_works(found, unit, i * (LANE + GAP))
    return _drawing(height, parts, "the work of each core, the DMA engine and units over time")


def _busy(found: TracedRun, visit: Visit) -> str:
    """Draw the share of a visit in which the core computed, from below."""
    top = visit.core * (LANE + GAP)
    part = LANE * visit.use.busy / max(1, _awake(visit))
    return _box(found, visit.begin, visit.end, top + LANE - part, part)


def _awake(visit: Visit) -> int:
    """Return the cycles of a visit without sleep, which is drawn on top."""
    return visit.use.busy + visit.use.load_use + visit.use.conflict + visit.use.slow


def _stalls(found: TracedRun, field: str) -> Iterator[str]:
    """Draw a box per visit for the stalls of one cause. It is stacked on those for computing and earlier causes."""
    below = {"load_use": 0, "conflict": 1, "slow": 2}[field]
    for visit in found.visits:
        causes = (visit.use.busy, visit.use.load_use, visit.use.conflict, visit.use.slow)
        if causes[below + 1] * 200 > _awake(visit):  # else it would not be visible
            part, awake = LANE / max(1, _awake(visit)), sum(causes[: below + 2])
            top = visit.core * (LANE + GAP) + LANE - part * awake
            yield _box(found, visit.begin, visit.end, top, part * causes[below + 1])


def _asleep(found: TracedRun) -> Iterator[Html]:
    """Draw where cores sleep. Cores that wait for core 0 while it waits for a unit appear as waiting for the unit."""
    slept: dict[tuple[int, str], list[tuple[int, int]]] = {}
    pauses = [p for p in found.trace.pauses if p.core == 0]
    own = {what: [(p.begin, p.end) for p in pauses if p.what == what] for what in _units(found)}
    for pause in found.trace.pauses:
        rest = [(pause.begin, pause.end)]
        if pause.what not in own and pause.core:  # at a barrier
            for what, times in own.items():
                both = [(max(a, b), min(c, d)) for a, c in rest for b, d in times if max(a, b) < min(c, d)]
                slept.setdefault((pause.core, what), []).extend(both)
                rest = [piece for stretch in rest for piece in _without(stretch, both)]
        slept.setdefault((pause.core, pause.what), []).extend(rest)
    styles = dict.fromkeys(own, WAITS[5]) | {DMA_NAME: WAITS[4]}
    for (core, what), times in sorted(slept.items()):
        field, style, name = styles.get(what, WAITS[3])  # else a barrier
        cycles = getattr(found.uses[core], field)
        tip = f"core {core} waiting for {name}\n{cycles:,} cycles in all, {share(cycles, found.cycles)}"
        top, least = core * (LANE + GAP), found.cycles / SCALE  # shorter ones are not visible even when zoomed
        visible = ((begin, end) for begin, end in times if end - begin > least)
        yield _path((_box(found, begin, end, top, LANE) for begin, end in visible), style, tip)


def _without(stretch: tuple[int, int], taken: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    at = stretch[0]
    for begin, end in sorted(taken):
        if begin < stretch[1] and end > at:
            if begin > at:
                yield at, begin
            at = end
    if at < stretch[1]:
        yield at, stretch[1]


def _draw_works(found: TracedRun, unit: str, top: float) -> Iterator[Html]:
    layer_of_work = {id(copy.work): copy.layer for copy in found.copies}
    works = [work for work in found.trace.works if work.unit == unit]
    for i, work in enumerate(works):
        layer = layer_of_work.get(id(work))
        if layer is None:
            layer = next((v.layer for v in found.visits if v.core == work.core and v.begin <= work.asked <= v.end), -1)
        name = found.layers[layer].name if layer >= 0 else "the run function"
        did = f"copies {work.bytes:,} bytes" if unit == DMA_NAME else f"computes {work.bytes:,} bytes"
        times = (
            f"cycles {work.begin - found.trace.begin:,} to {work.end - found.trace.begin:,}: {work.end - work.begin:,}"
        )
        tip = f"{unit} {did}\nfor {name}\n{times}"
        yield _path([_box(found, work.begin, work.end, top, LANE)], f"{_style(unit)} odd{i % 2}", tip)


def _layer_tip(found: TracedRun, number: int) -> str:
    layer = found.layers[number]
    op = layer.steps[0].call.op.name
    lines = [f"{layer.name}: {op}", f"{layer.cycles:,} cycles, {share(layer.cycles, found.cycles)} of the run"]
    if layer.macs:
        lines.append(f"{layer.macs:,} MACs, {layer.macs / max(1, layer.took):.2f} per cycle")
    lines.append(
        f"on {layer.unit}" if layer.unit else f"on {len({v.core for v in found.visits if v.layer == number})} cores"
    )
    if layer.copies:
        lines.append(f"{len(layer.copies)} tiles, {layer.copied:,} bytes by DMA")
    use = layer.use
    if not use.cycles:
        return "\n".join([*lines, "while the cores computed other layers"])
    waits = [
        f"{share(getattr(use, field), use.cycles)} {name}"
        for field, _, name in WAITS
        if getattr(use, field) * 200 > use.cycles
    ]
    return "\n".join([*lines, f"{share(use.busy, use.cycles)} computing", *waits])


def _stretches(found: TracedRun) -> Iterator[tuple[int, int, int]]:
    """Yield each layer with the times at which it runs without another layer in between."""
    phases = sorted((begin, end, i) for i, layer in enumerate(found.layers) for begin, end in layer.windows)
    for number, group in groupby(phases, key=lambda phase: phase[2]):
        times = list(group)
        yield number, times[0][0], times[-1][1]


def _layer_names(found: TracedRun) -> Html:
    names = [
        el(
            "span",
            found.layers[number].name,
            class_=f"c{number % COLOURS}",
            style=f"left:{_percent(found, begin)};width:{100 * (end - begin) / found.cycles:.3f}%",
            data_tip=_layer_tip(found, number),
        )
        for number, begin, end in _stretches(found)
    ]
    return el("div", *names, class_="layers")


def _percent(found: TracedRun, cycle: int) -> str:
    return f"{100 * (cycle - found.trace.begin) / found.cycles:.3f}%"


def _ticks(found: TracedRun) -> Html:
    parts = ((cycle, 100 * cycle / found.cycles) for cycle in ticks(0, found.cycles, 8, least=1))
    marks = (el("span", f"{cycle:,.0f}", style=f"left:{part:.3f}%") for cycle, part in parts if part < 95)
    return el("div", *marks, class_="ticks")


# L1 ------------------------------------------------------------------------------------------------------------------


def _addresses(found: TracedRun) -> Iterator[Html]:
    top = _room(found)
    for at in ticks(0, top, 4, least=1):
        yield el("span", f"{at:,.0f}", style=f"bottom:{100 * at / top:.2f}%")


def _room(found: TracedRun) -> int:
    return max((b.end for b in _inside(found)), default=1)


def _inside(found: TracedRun) -> list[Buffer]:
    return [b for b in found.plan.layout.buffers if b.size and b.bank == found.cluster.scratchpad]


def _when(found: TracedRun, buffer: Buffer) -> tuple[int, int]:
    """Return the cycles between which a buffer is alive; one that a copy fills, from the request of the copy."""
    bounds = found.bounds
    first = found.trace.begin if buffer.first < 0 else bounds[buffer.first]
    last = found.trace.end if buffer.last + 1 >= len(bounds) else bounds[max(buffer.last + 1, 0)]
    return first, last


def _memory(found: TracedRun) -> Html:
    """Draw the buffers at their addresses while they are alive, striped until their copy is done."""
    up = HEIGHT / _room(found)
    filled = {m.copy.target.buffer or m.copy.target.storage: m for m in found.copies if not m.copy.source.buffer}
    parts = [_path([f"M0 0h{SCALE}v{HEIGHT}h-{SCALE}z"], "lane")]
    inside = _inside(found)
    makes = {step.call.y.name: i for i, layer in enumerate(found.layers) for step in layer.steps}
    makes |= {o.buffer: i for i, layer in enumerate(found.layers) for step in layer.steps for o in step.writes}
    for buffer in sorted(sorted(inside, key=lambda b: -b.size)[:DRAWN], key=lambda b: (b.first, b.offset)):
        parts += _draw_buffer(found, buffer, filled.get(buffer.name), makes, up)
    return _drawing(HEIGHT, parts, f"{len(inside)} buffers in {found.cluster.scratchpad} over time")


def _draw_buffer(
    found: TracedRun, buffer: Buffer, copy: TracedCopy | None, makes: dict[str, int], up: float
) -> Iterator[Html]:
    begin, end = _when(found, buffer)
    top, height = HEIGHT - buffer.end * up, max(buffer.size * up, 1.0)
    place = f"{buffer.size:,} bytes at {buffer.offset:,}"
    if copy is None:
        layer = layer_of_buffer(found.plan, buffer)
        number = makes.get(buffer.name, next((i for i, x in enumerate(found.layers) if layer.endswith(x.name)), 0))
        tip = f"{buffer.name}\n{place}\n{layer}\ncycles {begin - found.trace.begin:,} to {end - found.trace.begin:,}"
        yield _path([_box(found, begin, end, top, height)], f"buffer c{number % COLOURS}", tip)
        return
    work, layer = copy.work, found.layers[copy.layer].name
    times = f"requested at {work.asked - found.trace.begin:,}, done at {work.end - found.trace.begin:,}"
    what = "weights of" if copy.copy.source.constant else f"{copy.copy.source.tensor} for"
    tip = f"{what} {layer}\n{place}\n{times}, used until {end - found.trace.begin:,}"
    yield _path([_box(found, work.asked, work.end, top, height)], "filling", tip)
    if end > work.end:
        yield _path([_box(found, work.end, end, top, height)], f"buffer tile c{copy.layer % COLOURS}", tip)
