"""A profile of a cluster for the terminal: what layers took, and what cores did meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from baretorch.escape import markup
from baretorch.measure.cluster import TracedLayer, TracedRun, Use
from baretorch.measure.cycles import time_words
from baretorch.measure.numbers import apart, figure, share
from baretorch.measure.profile import Profile

KINDS = ("busy", "load-use", "bank", "L2", "barrier", "DMA", "GEMM")  # the fields of Use, for people
METHOD = (
    "Cycles are exact: the simulator's, which is held against the core's RTL. All cores, in percent of their time in a "
    "layer, compute (busy) or wait: for a register that is being loaded (load-use), a bank of L1 that serves another "
    "core, L2, other cores at the barrier, the DMA engine, the GEMM unit."
)
BESIDE = (
    " What the GEMM unit computes while the cores do another layer is that layer's time; its products per cycle are "
    "those of the time it worked."
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
    table = _table(1)
    table.add_column("layer", overflow="fold", min_width=6)
    table.add_column("operator", no_wrap=True)
    table.add_column("on", style="dim", no_wrap=True)
    for name in ("MACs", "cycles", "MACs\nper cycle", "share"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in _used(found):
        table.add_column(f"{name}\n%", justify="right", no_wrap=True)
    moves = any(layer.moved for layer in found.layers)
    for name in ("tiles", "bytes\nmoved") if moves else ():
        table.add_column(name, justify="right", no_wrap=True)
    names = apart([layer.name for layer in found.layers], 20)
    for name, layer, told in zip(names, found.layers, profile.layers, strict=True):
        cells = [markup(name), told.op, layer.unit or _cores_of(layer), f"{layer.macs:,}" if layer.macs else ""]
        cells += [f"{layer.cycles:,}", figure(layer.macs / layer.took) if layer.macs and layer.took else ""]
        cells += [share(layer.cycles, found.cycles), *_percent(layer.use, found)]
        table.add_row(*cells, *([str(layer.tiles), f"{layer.moved:,}" if layer.moved else ""] if moves else []))
    cycles = found.cycles - sum(layer.cycles for layer in found.layers)
    cells = ["[dim]around[/]", "", "", "", f"{cycles:,}", "", share(cycles, found.cycles)]
    table.add_row(*cells, *_percent(sum(found.own, Use()), found))
    macs = sum(layer.macs for layer in found.layers)
    whole = [
        "all",
        "",
        "",
        f"{macs:,}" if macs else "",
        f"{found.cycles:,}",
        figure(macs / found.cycles) if macs else "",
    ]
    whole += ["", *_percent(sum(found.uses, Use()), found)]
    whole += ["", f"{sum(layer.moved for layer in found.layers):,}"] if moves else []
    table.add_row(*(f"[bold]{cell}[/]" if cell else "" for cell in whole))
    return table


def _cores_of(layer: TracedLayer) -> str:
    count = len({step.executor for step in layer.steps})
    return f"{count} cores" if count > 1 else "core 0"


def _used(found: TracedRun) -> list[str]:
    """List the activities that any core spent time on."""
    whole = astuple(sum(found.uses, Use()))
    return [name for name, cycles in zip(KINDS, whole, strict=True) if cycles]


def _percent(use: Use, found: TracedRun) -> list[str]:
    used = _used(found)
    cells = [f"{100 * part / use.cycles:.0f}" if part else "" for part in astuple(use)]
    return [cell for name, cell in zip(KINDS, cells, strict=True) if name in used]


def _cores(found: TracedRun) -> Table:
    table = _table(2)
    table.add_column("core")
    used = _used(found)
    for name in ("instructions", *used):
        table.add_column(name, justify="right", no_wrap=True)
    for core, (count, use) in enumerate(zip(found.instructions, found.uses, strict=True)):
        cells = [f"{part:,}" for name, part in zip(KINDS, astuple(use), strict=True) if name in used]
        table.add_row(str(core), f"{count:,}", *cells)
    return table


def _table(apart: int) -> Table:
    return Table(box=None, pad_edge=False, padding=(0, apart, 0, 0), header_style="bold")
