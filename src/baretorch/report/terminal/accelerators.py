"""Add what an NPU and a chip's other units compute to a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from baretorch.escape import markup
from baretorch.measure.units import used_units

if TYPE_CHECKING:
    from baretorch.pipeline import Compiled


def npu_rows(table: Table, compiled: Compiled) -> None:
    """Add what runs on the NPU, and what does not and why."""
    found, npu = compiled.partition, compiled.board.chip.npu
    if found is None or npu is None:
        return
    table.add_row("[bold]NPU[/]", "", npu.accelerator)
    for number, region in enumerate(found.regions, 1):
        crossing = f"{region.bytes_in:,} bytes in, {region.bytes_out:,} out"
        count = f"{len(region.layers)}" if region.cycles is not None else ""
        kind = "operators" if region.cycles is not None else region.layers[0]
        table.add_row(f"  region {number}", count, f"{kind}; {crossing}")
        table.add_row("    commands", f"{region.commands:,}", "bytes")
        table.add_row("    weights", f"{region.weights:,}", "bytes")
        table.add_row("    scratch", f"{region.scratch:,}", "bytes of the arena")
    if found.regions:
        estimate = "unknown" if found.cycles is None else f"{found.cycles:,}"
        table.add_row("  cycles", estimate, "of the NPU, as Vela estimates")
    for i, left in enumerate(found.left):
        table.add_row("" if i else "  on the CPU", left.op, f"{markup(left.layer)}: {markup(left.why)}")


def unit_rows(table: Table, compiled: Compiled) -> None:
    """Add what each unit computes, and what it leaves to the cores and why."""
    for unit, own, kept in used_units(compiled):
        table.add_row(f"[bold]{unit.name}[/]", f"{len(own)}", "layers")
        for i, left in enumerate(kept):
            table.add_row("" if i else "  on the cores", left.op, f"{markup(left.layer)}: {markup(left.why)}")
