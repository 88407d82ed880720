"""The facts of a model as the compiler sees it: stages, operators, kernels, parameters, memory, fit."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from baretorch.errors import CompileError
from baretorch.frontends import Source
from baretorch.ir.graph import Graph, Tensor
from baretorch.measure.worksheet import Worksheet
from baretorch.ops.delegate import Delegate
from baretorch.plan.types import Plan
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
        """Count the parameters, except those that are packed into an NPU's commands."""
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
            "outputs": [_tensor_json(t) for t in outputs_of(graph)],
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


def outputs_of(graph: Graph) -> list[Tensor]:
    """Return the outputs with their names in the file, where it has some."""
    names = graph.labels or graph.outputs
    return [replace(t, name=name) for t, name in zip(graph.of(graph.outputs), names, strict=True)]


def _unknown_fit(board: Board, error: CompileError) -> dict[str, Any]:
    return {"board": board.name, "fits": None, **error.to_json()}


def _tensor_json(t: Tensor) -> dict[str, Any]:
    """Describe an input or output; a quantized one with its scale and zero point."""
    known: dict[str, Any] = {"name": t.name, "dtype": t.dtype.label, "shape": list(t.shape)}
    if t.quant is not None and t.is_quantized:
        known |= {"scale": t.quant.scale[0], "zero_point": t.quant.zero_point[0]}
    return known
