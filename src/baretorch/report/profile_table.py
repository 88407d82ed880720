"""A profile for the terminal: layers with bars, the hottest inner loops, and their instructions."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from baretorch.escape import markup
from baretorch.firmware.types import Image
from baretorch.report.cycles import time_words
from baretorch.report.loops import InnerLoop
from baretorch.report.numbers import bar, cut, figure, share
from baretorch.report.profile import Layer, Profile
from baretorch.report.tables import heading
from baretorch.targets.cycles import TIMINGS

if TYPE_CHECKING:
    from baretorch.pipeline import Compiled

BAR = 16
HOTTEST = 5
_CODE = re.compile(r"^\s*([0-9a-f]+):\t([0-9a-f ]+?)\s*\t(.*)$")


def profile_screen(
    compiled: Compiled, image: Image, emulator: str, profile: Profile, with_code: bool
) -> RenderableType:
    """The answer of `profile`; `with_code` adds the instructions of each layer's hottest loop."""
    parts: list[RenderableType] = [heading(compiled, image, emulator), "", _layers(profile), ""]
    parts += [_hottest(profile), ""]
    if with_code:
        parts += _code(image, profile)
    return Group(*parts, _method(profile))


def _layers(profile: Profile) -> Table:
    table = _table()
    table.add_column("layer", overflow="fold")
    table.add_column("operator")
    table.add_column("kernel", style="dim")
    for name in ("MACs", "instructions", "per MAC", "cycles"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, min_width=BAR)
    most = max((layer.instructions for layer in profile.layers), default=0)
    for layer in profile.layers:
        table.add_row(
            markup(cut(layer.name)),
            layer.op,
            layer.variant,
            f"{layer.macs:,}" if layer.macs else "",
            f"{layer.instructions:,}",
            f"{layer.instructions / layer.macs:.2f}" if layer.macs else "",
            f"{layer.cycles.expected:,.0f}",
            share(layer.instructions, profile.instructions),
            f"[cyan]{bar(layer.instructions, most, BAR)}[/]",
        )
    rest = profile.cycles.expected - sum(layer.cycles.expected for layer in profile.layers)
    cells = (f"{profile.rest:,}", "", f"{rest:,.0f}", _part(profile.rest, profile))
    table.add_row("[dim]between layers[/]", "", "", "", *cells, "")
    macs = profile.macs
    table.add_row(
        *("[bold]all[/]", "", "", f"[bold]{macs:,}[/]" if macs else "", f"[bold]{profile.instructions:,}[/]"),
        f"[bold]{profile.instructions / macs:.2f}[/]" if macs else "",
        f"[bold]{profile.cycles.expected:,.0f}[/]",
    )
    return table


def _hottest(profile: Profile) -> Table:
    """Layers that share code share the loops in it."""
    users: dict[tuple[int, int], list[tuple[str, InnerLoop]]] = {}
    for layer in profile.layers:
        for loop in layer.loops:
            users.setdefault((loop.start, loop.end), []).append((layer.name, loop))
    table = _table()
    table.add_column("hottest inner loops", no_wrap=True)
    for name in ("passes", "instructions per pass", "instructions", "share"):
        table.add_column(name, justify="right")
    table.add_column("layers", overflow="fold")
    rows = ((sum(loop.instructions for _, loop in shared), code, shared) for code, shared in users.items())
    for instructions, (start, end), shared in sorted(rows, reverse=True)[:HOTTEST]:
        passes = sum(loop.passes for _, loop in shared)
        table.add_row(
            f"{start:#x}–{end:#x}",
            f"{passes:,}",
            figure(instructions / passes),
            f"{instructions:,}",
            _part(instructions, profile),
            markup(", ".join(name for name, _ in shared)),
        )
    return table


def _code(image: Image, profile: Profile) -> list[RenderableType]:
    """The hottest loop of each layer; one that several layers share is shown once."""
    users: dict[tuple[int, int], list[Layer]] = {}
    for layer in profile.layers:
        if layer.loops:
            users.setdefault((layer.loops[0].start, layer.loops[0].end), []).append(layer)
    parts: list[RenderableType] = []
    for layers in users.values():
        parts += [Text(_loop_title(layer), style="bold") for layer in layers]
        parts += [*(Text(line) for line in disassembly(image, layers[0].loops[0])), ""]
    return parts


def _loop_title(layer: Layer) -> str:
    loop = layer.loops[0]
    part = share(loop.instructions, layer.instructions)
    return f"{layer.name}: {loop.passes:,} passes of {figure(loop.per_pass)} instructions, {part} of the layer"


def disassembly(image: Image, loop: InnerLoop) -> list[str]:
    """The instructions of a loop, by the objdump of the CPU's GNU toolchain."""
    program = shutil.which(f"{image.board.chip.cpu.gcc_prefix}objdump")
    if program is None:
        return [f"  {loop.start:#x}–{loop.end:#x}: to see the instructions, install the board's GNU toolchain"]
    command = [program, "-d", f"--start-address={loop.start}", f"--stop-address={loop.end}", str(image.elf)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = (_CODE.match(line) for line in text.splitlines())
    return [f"  {m[1]:>8}  {m[2]:<10} {m[3].expandtabs(10)}" for m in found if m is not None]


def _method(profile: Profile) -> RenderableType:
    return Text.assemble(
        (" ".join(time_words(profile.cycles, profile.clock_hz)), "bold"),
        f"\nInstructions are exact. Cycles: {TIMINGS[profile.cpu].source}; memory without wait states.",
    )


def _part(instructions: int, profile: Profile) -> str:
    return share(instructions, profile.instructions)


def _table() -> Table:
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
