"""Show a profile in the terminal: layers with bars, the hottest inner loops, and their instructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from baretorch.escape import markup
from baretorch.firmware.types import Image
from baretorch.measure.cycles import Time, core_source, flash_source, time_words
from baretorch.measure.loops import InnerLoop
from baretorch.measure.numbers import bar, distinct_names, figure, share
from baretorch.measure.profile import LoopCode, Profile, ProfiledLayer
from baretorch.ops.delegate import Delegate
from baretorch.report.terminal.cluster import cluster_tables
from baretorch.report.terminal.layout import BAR, Narrowing, columns
from baretorch.report.terminal.tables import heading
from baretorch.targets.types import Chip

if TYPE_CHECKING:
    from baretorch.pipeline import Compiled

HOTTEST = 5


def profile_screen(
    compiled: Compiled, image: Image, emulator: str, profile: Profile, code: Sequence[LoopCode]
) -> RenderableType:
    """Return the answer of `profile`, with the instructions of these loops."""
    if profile.traced is not None:
        return Group(heading(compiled, image, emulator), "", *cluster_tables(profile, profile.traced))
    parts: list[RenderableType] = [heading(compiled, image, emulator), "", _layers(profile), ""]
    parts += [_hottest(profile), ""]
    for loop in code:
        parts += [Text(_loop_title(layer), style="bold") for layer in loop.layers]
        parts += [*map(Text, loop.lines), ""]
    return Group(*parts, _method(profile))


def _layers(profile: Profile) -> Narrowing:
    flash, part = ((), "#share") if profile.time.flash is None else (_flash_titles(profile.chip), "#share\nof time")
    cycles = "#core\ncycles" if flash else "#cycles"
    table = columns("layer", "operator", "kernel", "#MACs", "#instructions", "#per MAC", cycles, *flash, part)
    width = BAR // 2 if flash else BAR
    table.add_column("", no_wrap=True, min_width=width)
    most = max((layer.weight for layer in profile.layers), default=0)
    whole = profile.weight
    for name, layer in zip(distinct_names([layer.name for layer in profile.layers]), profile.layers, strict=True):
        table.add_row(
            markup(name),
            layer.op,
            f"[dim]{layer.variant}[/]",
            f"{layer.macs:,}" if layer.macs else "",
            f"{layer.instructions:,}",
            f"{layer.instructions / layer.macs:.2f}" if layer.macs else "",
            *_cycles(layer.time),
            share(layer.weight, whole),
            f"[cyan]{bar(layer.weight, most, width)}[/]",
        )
    rest = whole - sum(layer.weight for layer in profile.layers)
    cells = (f"{profile.rest:,}", "", *_cycles(profile.own), share(rest, whole))
    table.add_row("[dim]between layers[/]", "", "", "", *cells, "")
    macs = profile.macs
    table.add_row(
        *("[bold]all[/]", "", "", f"[bold]{macs:,}[/]" if macs else "", f"[bold]{profile.instructions:,}[/]"),
        f"[bold]{profile.instructions / macs:.2f}[/]" if macs else "",
        *(f"[bold]{cell}[/]" for cell in _cycles(profile.time)),
    )
    misses = [(8,), (7,)] if flash else []
    return Narrowing(table, [(len(table.columns) - 1,), (3, 5), *misses, (2,)])


def _flash_titles(chip: Chip) -> tuple[str, ...]:
    """Return the titles of the columns for flash: its cycles, and its misses with the bytes that each reads."""
    path = chip.flash_path
    return "#flash\ncycles", f"#misses of\n{path.fills[0]} bytes" if path else "#misses"


def _cycles(time: Time) -> list[str]:
    cells = [f"{time.core.expected:,.0f}"]
    if time.flash:
        cells += [f"{time.flash.waits.expected:,.0f}", f"{time.flash.misses:,}"]
    return cells


def _hottest(profile: Profile) -> Table:
    """Return the hottest loops. Layers that share code share its loops."""
    users: dict[tuple[int, int], list[tuple[str, InnerLoop]]] = {}
    for layer in profile.layers:
        for loop in layer.loops:
            users.setdefault((loop.start, loop.end), []).append((layer.name, loop))
    numbers = ("#passes", "#instructions per pass", "#instructions", "#share")
    table = columns("hottest inner loops", *numbers, "layers")
    rows = ((sum(loop.instructions for _, loop in shared), code, shared) for code, shared in users.items())
    for instructions, (start, end), shared in sorted(rows, reverse=True)[:HOTTEST]:
        passes = sum(loop.passes for _, loop in shared)
        table.add_row(
            f"{start:#x}–{end:#x}",
            f"{passes:,}",
            figure(instructions / passes),
            f"{instructions:,}",
            share(instructions, profile.instructions),
            markup(", ".join(name for name, _ in shared)),
        )
    return table


def _loop_title(layer: ProfiledLayer) -> str:
    loop = layer.loops[0]
    part = share(loop.instructions, layer.instructions)
    return f"{layer.name}: {loop.passes:,} passes of {figure(loop.per_pass)} instructions, {part} of the layer"


def _method(profile: Profile) -> RenderableType:
    time, chip = profile.time, profile.chip
    core = core_source(chip)
    method = f"\nInstruction counts are exact. Source of the cycles: {core}; memory without wait states."
    if time.flash is not None:
        method = f"\nCounts of instructions and misses are exact. Source of the core's cycles: {core}. "
        method += f"Source of the flash's cycles: {flash_source(chip)}."
    if any(layer.op == Delegate.name for layer in profile.layers):
        method = f", without the NPU's time{method}"
    return Text.assemble((" ".join(time_words(time.all, chip)), "bold"), method)
