"""baretorch boards: list the boards that images can be built for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from baretorch.cli.verb import Answer, complete_boards, verb
from baretorch.targets.features import feature_names

if TYPE_CHECKING:
    from rich.table import Table

    from baretorch.report.terminal.layout import Narrowing
    from baretorch.targets.types import Board


@verb("boards")
@click.argument("name", required=False, shell_complete=complete_boards)
def boards(as_json: bool, name: str | None) -> Answer:
    """List boards, or show one: memory map, UART, notes."""
    from baretorch.targets.boards import board_names, load_board

    if name is not None:
        board = load_board(name)
        return Answer(_json(board), _details(board))
    known = [load_board(n) for n in board_names()]
    return Answer({"boards": [_json(b) for b in known]}, _table(known))


def _json(board: Board) -> dict[str, Any]:
    chip = board.chip
    return {
        "name": board.name,
        "title": board.title,
        "chip": chip.name,
        "cpu": chip.cpu.name,
        "cores": chip.core_count,
        "features": feature_names(chip.cpu.features),
        "clock_hz": chip.clock_hz,
        "flash": chip.memory(chip.code).size,
        "ram": chip.memory(chip.data).size,
        "stack_bytes": chip.stack_bytes,
        "memories": [{"name": m.name, "kind": m.kind, "origin": m.origin, "size": m.size} for m in chip.memories],
        "uart": {"driver": chip.uart.driver, "base": chip.uart.base, "baud": chip.uart.baud},
        "emulators": list(board.emulators),
        "flash_methods": list(board.flash_methods),
        "notes": board.notes,
    }


def _table(known: list[Board]) -> Narrowing:
    from baretorch.measure.numbers import capacity, frequency
    from baretorch.report.terminal.layout import Narrowing, columns

    table = columns("board", "CPU", "#clock", "#flash", "#RAM", "emulators", "flashed by")
    for b in known:
        chip = b.chip
        table.add_row(
            b.name,
            chip.cpus,
            frequency(chip.clock_hz),
            capacity(chip.memory(chip.code).size),
            capacity(chip.memory(chip.data).size),
            ", ".join(b.emulators) or "-",
            ", ".join(b.flash_methods) or "-",
        )
    table.columns[0].no_wrap = True
    return Narrowing(table, [(6,), (2,), (1,)])


def _details(board: Board) -> Table:
    from baretorch.escape import markup
    from baretorch.measure.numbers import capacity, frequency
    from baretorch.report.terminal.layout import label_grid
    from baretorch.units import units_of

    chip = board.chip
    table = label_grid()
    table.add_row("board", f"[bold]{markup(board.title)}[/] ({board.name})")
    table.add_row("chip", chip.name)
    features = ", ".join(feature_names(chip.cpu.features))
    table.add_row("CPU", f"{chip.cpus} at {frequency(chip.clock_hz)}: {features}")
    roles = {chip.code: "image", chip.data: f"data, arena, {chip.stack_bytes:,} bytes of stack"}
    if chip.npu is not None and chip.npu.ram not in roles:
        roles[chip.npu.ram] = f"the arena where the NPU computes, else data that does not fit into {chip.data}"
    for i, m in enumerate(chip.memories):
        place = f"0x{m.origin:08x} .. 0x{m.origin + m.size - 1:08x}"
        what = roles.get(m.name, f"data that does not fit into {chip.data}" if m.kind == "ram" else "not used")
        table.add_row("memory" if i == 0 else "", f"{m.name:<8} {place}  {capacity(m.size):>8} {m.kind:<5}  {what}")
    table.add_row("UART", f"{chip.uart.driver} at 0x{chip.uart.base:08x}, {chip.uart.baud} baud")
    table.add_row("counter", f"{chip.counter.driver} at {frequency(chip.counter.hz)}")
    if chip.npu is not None:
        table.add_row("NPU", chip.npu.accelerator)
    if (cluster := chip.cluster) is not None and (dma := cluster.dma) is not None:
        table.add_row("DMA engine", f"{dma.bytes_per_cycle} bytes per cycle, {dma.channels} channels")
    for unit in units_of(chip):
        table.add_row(unit.title, unit.throughput)
    table.add_row("emulators", ", ".join(board.emulators) or "none")
    table.add_row("flashed by", ", ".join(board.flash_methods) or "-")
    table.add_row("notes", markup(board.notes))
    return table
