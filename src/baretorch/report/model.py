"""A model as the compiler sees it: stages, operators, kernels, parameters, memory, fit."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from baretorch.errors import CompileError
from baretorch.escape import line, markup
from baretorch.frontends import Source
from baretorch.ir.graph import Graph, Tensor
from baretorch.ir.text import to_text
from baretorch.ops.delegate import Delegate
from baretorch.plan.types import InArena, Plan
from baretorch.report.lifetimes import Lifetimes
from baretorch.report.worksheet import Worksheet, boards_table, worksheet_table
from baretorch.targets.types import Board


@dataclass(frozen=True)
class ModelFacts:
    """`board` is the one the plan is for, None if none was named: then kernels are portable ones."""

    source: Source
    graph: Graph  # after all passes
    plan: Plan
    board: Board | None
    worksheets: tuple[Worksheet | tuple[Board, CompileError], ...]

    @property
    def parameters(self) -> int:
        """Without an NPU's commands and packed weights, of which nobody knows how many there are."""
        packed = {name for node in self.graph.nodes if isinstance(node.op, Delegate) for name in node.inputs}
        return sum(t.count for t in self.graph.constants() if t.name not in packed)

    def operators(self) -> list[tuple[str, str, int]]:
        """(operator, kernel, how often), in order of first use; views have no kernel."""
        kernels = {step.nodes[0].outputs[0]: step.kernel.symbol for step in self.plan.steps}
        counts = Counter((n.op.name, kernels.get(n.outputs[0], "")) for n in self.graph.nodes)
        return [(op, kernel, count) for (op, kernel), count in counts.items()]

    def to_json(self) -> dict[str, Any]:
        graph, plan = self.graph, self.plan
        data: dict[str, Any] = {
            "model": self.source.name,
            "inputs": [_tensor_json(t) for t in graph.of(graph.inputs)],
            "outputs": [_tensor_json(t) for t in _outputs(graph)],
            "parameters": self.parameters,
            "macs": graph.macs(),
            "operators": [{"op": op, "kernel": k or None, "count": n} for op, k, n in self.operators()],
            "stages": {
                "source": self.source.calls,
                "graph": len(self.source.graph.nodes),
                "passes": len(graph.nodes),
                "steps": len(plan.steps),
            },
            "plan": {
                "board": self.board.name if self.board else None,
                "arena": plan.arena,
                "lower_bound": plan.layout.lower_bound,
                "proof": plan.proof,
                "weights": plan.weight_bytes(),
                "buffers": [
                    {"name": b.name, "size": b.size, "offset": b.offset, "first": b.first, "last": b.last}
                    for b in plan.layout.buffers
                ],
            },
        }
        if self.worksheets:
            data["boards"] = [s.to_json() if isinstance(s, Worksheet) else _unknown_fit(*s) for s in self.worksheets]
        return data


def text_before(source: Source, stage: str) -> str:
    """A form of the model before the Graph: `source`, as the file or the framework has it; `aten`; or `core`, the same
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
            else "`--stage graph` shows what it is compiled from",
        )
    return source.texts[stage]()


def stage_text(stage: str, graph: Graph, plan: Plan) -> str:
    """`graph` after all passes, or `plan` step by step."""
    return to_text(graph, data=False).rstrip() if stage == "graph" else plan_text(plan)


def plan_text(plan: Plan) -> str:
    """One line per step: C function, operands with their addresses, layer."""
    lines = [
        f"arena {plan.arena} bytes, lower bound {plan.layout.lower_bound}, {plan.proof}, weights {plan.weight_bytes()}"
    ]
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
    """The answer of `inspect`."""
    plan, board = facts.plan, facts.board
    whose = f"planned for {board.name}" if board else "planned with portable kernels; --board BOARD plans for a board"
    parts: list[RenderableType] = [_heading(facts), "", _operators(facts), ""]
    parts += [f"[bold]memory plan[/]  arena {plan.arena:,} bytes, {plan.proof}; {whose}", Lifetimes(plan)]
    if len(facts.worksheets) == 1 and isinstance(facts.worksheets[0], Worksheet):
        sheet = facts.worksheets[0]
        word = "[green]fits[/]" if sheet.fits else "[red]does not fit[/]"
        parts += ["", f"[bold]memory of {sheet.board.name}[/]  {word}", worksheet_table(sheet)]
    elif facts.worksheets:
        rows = [s if isinstance(s, Worksheet) else (s[0], s[1].what) for s in facts.worksheets]
        parts += ["", boards_table(rows)]
    return Group(*parts)


def _heading(facts: ModelFacts) -> Table:
    graph = facts.graph
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    table.add_row("model", f"[bold]{markup(facts.source.name)}[/]")
    table.add_row("input", markup(", ".join(map(repr, graph.of(graph.inputs)))))
    table.add_row("output", markup(", ".join(map(repr, _outputs(graph)))))
    npu = ", without those of the NPU" if any(isinstance(node.op, Delegate) for node in graph.nodes) else ""
    table.add_row("parameters", f"{facts.parameters:,}{npu}")
    table.add_row("MACs", f"{graph.macs():,}{npu}")
    table.add_row(
        "stages",
        f"{_calls(facts.source)}{_counted(len(facts.source.graph.nodes), 'graph node')} → "
        f"{len(graph.nodes)} after passes → {_counted(len(facts.plan.steps), 'step')}",
    )
    for note in facts.source.notes:
        table.add_row("note", markup(note))
    return table


def _outputs(graph: Graph) -> list[Tensor]:
    """The outputs, called as the file calls them where it does."""
    names = graph.labels or graph.outputs
    return [replace(t, name=name) for t, name in zip(graph.of(graph.outputs), names, strict=True)]


def _calls(source: Source) -> str:
    return "" if source.calls is None else f"{_counted(source.calls, source.calls_are)} → "


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _operators(facts: ModelFacts) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("operator")
    table.add_column("count", justify="right")
    table.add_column("kernel")
    for op, kernel, count in facts.operators():
        table.add_row(op, str(count), kernel or "[dim]a view[/]")
    return table


def _unknown_fit(board: Board, error: CompileError) -> dict[str, Any]:
    return {"board": board.name, "fits": None, **error.to_json()}


def _tensor_json(t: Tensor) -> dict[str, Any]:
    """Describe an input or output; a quantized one with its scale and zero point."""
    known: dict[str, Any] = {"name": t.name, "dtype": t.dtype.label, "shape": list(t.shape)}
    if t.quant is not None and t.is_quantized:
        known |= {"scale": t.quant.scale[0], "zero_point": t.quant.zero_point[0]}
    return known
