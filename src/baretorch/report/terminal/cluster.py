"""Show a profile of a cluster in the terminal: the cycles of layers, and the activities of cores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from baretorch.escape import markup
from baretorch.measure.cluster import TracedLayer, TracedRun, Use
from baretorch.measure.cycles import time_words
from baretorch.measure.numbers import distinct_names, figure, share
from baretorch.measure.profile import Profile
from baretorch.report.terminal.layout import columns

KINDS = ("busy", "load-use", "bank", "L2", "barrier", "DMA", "unit")  # the fields of Use, for people
METHOD = (
    "Cycles are exact: the simulator's, which is held against the core's RTL. All cores, in percent of their time in a "
    "layer, compute (busy) or wait: for a register that is being loaded (load-use), a bank of L1 that serves another "
    "core, L2, other cores at the barrier, the DMA engine, an accelerator unit."
)
BESIDE = (
    " What an accelerator unit computes while the cores do another layer is that layer's time; its products per cycle "
    "are those of the time it worked."
)


def cluster_tables(profile: Profile, found: TracedRun) -> Iterator[RenderableType]:
    yield _layers(profile, found)
    yield ""
    yield _cores(found)
    yield ""
    if profile.one_core is not None:
        alone = profile.one_core.path
        yield f"[bold]speed-up {alone / found.cycles:.2f}[/] over one core, {alone:,} cycles"
        yield ""
    words = " ".join(time_words(profile.time.all, profile.chip))
    yield Text.assemble(
        (f"{found.cycles:,} cycles, {words}", "bold"),
        f"\n{METHOD}{BESIDE if any(layer.beside for layer in found.layers) else ''}",
    )


def _layers(profile: Profile, found: TracedRun) -> Table:
    moves = any(layer.moved for layer in found.layers)
    numbers = ["#MACs", "#cycles", "#MACs\nper cycle", "#share", *(f"#{name}\n%" for name in _activities(found))]
    table = columns("layer", "operator", "on", *numbers, *(["#tiles", "#bytes\nmoved"] if moves else []), apart=1)
    for column in table.columns[1:3]:
        column.no_wrap = True
    names = distinct_names([layer.name for layer in found.layers], 20)
    for name, layer, counts in zip(names, found.layers, profile.layers, strict=True):
        on = f"[dim]{layer.unit or _cores_of(layer)}[/]"
        cells = [markup(name), counts.op, on, f"{layer.macs:,}" if layer.macs else ""]
        cells += [f"{layer.cycles:,}", figure(layer.macs / layer.took) if layer.macs and layer.took else ""]
        cells += [share(layer.cycles, found.cycles), *_percent(layer.use, found)]
        table.add_row(*cells, *([str(layer.tiles), f"{layer.moved:,}" if layer.moved else ""] if moves else []))
    cycles = found.cycles - sum(layer.cycles for layer in found.layers)
    cells = ["[dim]around[/]", "", "", "", f"{cycles:,}", "", share(cycles, found.cycles)]
    table.add_row(*cells, *_percent(sum(found.own, Use()), found))
    macs = sum(layer.macs for layer in found.layers)
    whole = ["all", "", "", f"{macs:,}" if macs else "", f"{found.cycles:,}"]
    whole += [figure(macs / found.cycles) if macs else ""]
    whole += ["", *_percent(sum(found.uses, Use()), found)]
    whole += ["", f"{sum(layer.moved for layer in found.layers):,}"] if moves else []
    table.add_row(*(f"[bold]{cell}[/]" if cell else "" for cell in whole))
    return table


def _cores_of(layer: TracedLayer) -> str:
    count = len({step.executor for step in layer.steps})
    return f"{count} cores" if count > 1 else "core 0"


def _activities(found: TracedRun) -> list[str]:
    """List the activities that any core spent time on."""
    whole = astuple(sum(found.uses, Use()))
    return [name for name, cycles in zip(KINDS, whole, strict=True) if cycles]


def _percent(use: Use, found: TracedRun) -> list[str]:
    used = _activities(found)
    cells = [f"{100 * part / use.cycles:.0f}" if part else "" for part in astuple(use)]
    return [cell for name, cell in zip(KINDS, cells, strict=True) if name in used]


def _cores(found: TracedRun) -> Table:
    used = _activities(found)
    table = columns("core", "#instructions", *(f"#{name}" for name in used))
    for core, (count, use) in enumerate(zip(found.instructions, found.uses, strict=True)):
        cells = [f"{part:,}" for name, part in zip(KINDS, astuple(use), strict=True) if name in used]
        table.add_row(str(core), f"{count:,}", *cells)
    return table
