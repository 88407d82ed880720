"""A model as the compiler sees it, for the terminal and as text."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table

from baretorch.errors import CompileError
from baretorch.escape import line, markup
from baretorch.frontends import Source
from baretorch.ir.graph import Graph
from baretorch.ir.text import to_text
from baretorch.measure.model import ModelFacts, Worksheet, outputs_of
from baretorch.measure.numbers import bar, portion, share
from baretorch.ops.delegate import Delegate
from baretorch.plan.types import InArena, Plan
from baretorch.report.terminal.layout import columns, figure_grid, label_grid
from baretorch.report.terminal.lifetimes import Lifetimes

BAR = 24


def text_before(source: Source, stage: str) -> str:
    """Return a form of the model before the Graph: `source`, as the file or the framework has it; `aten`; or `core`,
    after torch's full decomposition."""
    if stage == "source" and source.texts:
        stage = next(iter(source.texts))
    if stage not in source.texts:
        raise CompileError(
            f"{source.name} was not read with PyTorch, which decomposes to core ATen"
            if stage == "core"
            else f"{source.name} was never an ATen program",
            try_="`--stage source` shows the model as it was read"
            if source.texts
            else "`--stage graph` shows the compiled graph",
        )
    return source.texts[stage]()


def stage_text(stage: str, graph: Graph, plan: Plan) -> str:
    """Return the `graph` after all passes, or the `plan` step by step."""
    return to_text(graph, data=False).rstrip() if stage == "graph" else plan_text(plan)


def plan_text(plan: Plan) -> str:
    """Return one line per step: C function, operands with their addresses, layer."""
    lines = [f"arena {plan.arena} bytes ({plan.proof}), weights {plan.weight_bytes()} bytes"]
    for i, step in enumerate(plan.steps):
        operands = []
        for o in step.operands:
            place = plan.layout.place(o)
            operands.append(f"{line(o.tensor)}@{place.offset}" if isinstance(place, InArena) else line(o.tensor))
        origin = line(str(plan.graph[step.nodes[0].outputs[0]].origin))
        lines.append(f"{i:>3}  {step.function}({', '.join(operands)}){f'  # {origin}' if origin else ''}")
    for b in sorted(plan.layout.buffers, key=lambda b: (b.first, b.offset)):
        lines.append(f"buffer {line(b.name)}: {b.size} bytes at {b.offset}, steps {b.first} to {b.last}")
    return "\n".join(lines)


def model_screen(facts: ModelFacts) -> RenderableType:
    """Return the answer of `inspect`."""
    plan, board = facts.plan, facts.board
    whose = f"planned for {board.name}" if board else "planned with portable kernels; --board BOARD plans for a board"
    parts: list[RenderableType] = [_heading(facts), "", _operators(facts), ""]
    parts += [f"[bold]memory plan[/]  arena {plan.arena:,} bytes, {plan.proof}; {whose}", Lifetimes(plan)]
    if board is not None and isinstance(sheet := facts.fits[0][1], Worksheet):
        word = "[green]fits[/]" if sheet.fits else "[red]does not fit[/]"
        parts += ["", f"[bold]memory of {board.name}[/]  {word}", _worksheet(sheet)]
    elif facts.fits:
        parts += ["", _boards(facts)]
    return Group(*parts)


def _heading(facts: ModelFacts) -> Table:
    graph = facts.graph
    table = label_grid()
    table.add_row("model", f"[bold]{markup(facts.source.name)}[/]")
    table.add_row("input", markup(", ".join(map(repr, graph.of(graph.inputs)))))
    table.add_row("output", markup(", ".join(map(repr, outputs_of(graph)))))
    npu = ", without those of the NPU" if any(isinstance(node.op, Delegate) for node in graph.nodes) else ""
    table.add_row("parameters", f"{facts.parameters:,}{npu}")
    table.add_row("MACs", f"{graph.macs():,}{npu}")
    table.add_row(
        "stages",
        f"{_calls(facts.source)}{_count(len(facts.source.graph.nodes), 'graph node')} → "
        f"{len(graph.nodes)} after passes → {_count(len(facts.plan.steps), 'step')}",
    )
    for note in facts.source.notes:
        table.add_row("note", markup(note))
    return table


def _calls(source: Source) -> str:
    return "" if source.calls is None else f"{_count(source.calls, source.calls_are)} → "


def _count(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _operators(facts: ModelFacts) -> Table:
    table = columns("operator", "#count", "kernel")
    for op, kernel, count in facts.operators():
        table.add_row(op, str(count), kernel or "[dim]a view[/]")
    return table


def _worksheet(sheet: Worksheet) -> Table:
    """Return flash and RAM with a bar per item. Bars are shares of the used bytes, so that small images are visible."""
    table = figure_grid(bars=True)
    for title, account in (("flash", sheet.flash), ("RAM", sheet.ram)):
        size = portion(account.used, account.memory.size, account.memory.name)
        table.add_row(f"[bold]{title}[/]", f"[bold]{account.used:,}[/]", size, _verdict(account.room))
        for name, count in account.items:
            drawn = bar(count, account.used, BAR)
            table.add_row(f"  {name}", f"{count:,}", f"[cyan]{drawn}[/]", share(count, account.used or 1))
    return table


def _boards(facts: ModelFacts) -> Table:
    """Return one row per board: whether the model fits and by how much, or why that is not known."""
    table = columns("board", "CPU", "", "#flash used", "#flash left", "#RAM used", "#RAM left")
    for board, found in facts.fits:
        if isinstance(found, CompileError):
            table.add_row(board.name, board.chip.cpu.name, f"[yellow]{markup(found.what)}[/]")
            continue
        word = "[green]fits[/]" if found.fits else "[red]does not fit[/]"
        cells = [f"{account.used:,}" for account in (found.flash, found.ram)]
        left = [f"{a.room:,}" if a.room >= 0 else f"[red]{a.room:,}[/]" for a in (found.flash, found.ram)]
        table.add_row(board.name, board.chip.cpu.name, word, cells[0], left[0], cells[1], left[1])
    return table


def _verdict(room: int) -> str:
    return f"[green]fits, {room:,} bytes left[/]" if room >= 0 else f"[red]{-room:,} bytes too small[/]"
