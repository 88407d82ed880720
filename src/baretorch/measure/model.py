"""Compute the facts of a model as the compiler sees it: stages, operators, parameters, and its memory on boards.

A worksheet lists the flash and RAM that an image needs. A model that may not fit is built for a board like its own in
which everything fits.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from baretorch.errors import CompileError
from baretorch.files.write import scratch
from baretorch.firmware.elf import read_elf
from baretorch.firmware.sizes import needed_bytes, reserved_stack
from baretorch.firmware.types import Image
from baretorch.frontends import Source
from baretorch.ir.graph import Graph, Tensor
from baretorch.measure.sizes import MemoryUse, build_for_sizes
from baretorch.ops.delegate import Delegate
from baretorch.pipeline import Compiled
from baretorch.plan.types import Plan
from baretorch.targets.types import Board


@dataclass(frozen=True)
class Worksheet:
    """The bytes of an image on a board."""

    flash: MemoryUse
    ram: MemoryUse

    @property
    def fits(self) -> bool:
        return self.flash.room >= 0 and self.ram.room >= 0

    def to_json(self) -> dict[str, Any]:
        uses = {"flash": self.flash, "ram": self.ram}
        more = {name: use.to_json() | {"used": use.used, "items": dict(use.items)} for name, use in uses.items()}
        return {"fits": self.fits, **more}


def find_worksheet(compiled: Compiled, board: Board) -> Worksheet:
    """Build a model that was compiled for a board, or for a larger one like it, and return its worksheet."""
    with scratch() as folder:
        return make_worksheet(compiled, board, build_for_sizes(compiled, folder))


def make_worksheet(compiled: Compiled, board: Board, image: Image) -> Worksheet:
    """Return the worksheet of an image that was built for a board like this in which everything fits."""
    chip, flash, ram = board.chip, image.flash, image.ram
    code, data = chip.memory(chip.code), chip.memory(chip.data)
    flash_items = (
        ("model code", flash.model_code),
        ("runtime code", flash.code - flash.model_code),
        ("weights", flash.weights),
    )
    copied = [(what, size) for what, size in (("weights", ram.weights), ("code", ram.code)) if size]
    if image.board.hosted:
        stack, flash_need, ram_need = chip.stack_bytes, flash.total, ram.total
    else:
        elf = read_elf(image.elf.read_bytes())
        stack = reserved_stack(elf)
        flash_need, ram_need = (needed_bytes(image.board, elf, name) for name in (chip.code, chip.data))
    banks = [bank for plan in compiled.plans.values() for bank in plan.layout.banks if bank.name == chip.data]
    arena = max((bank.size for bank in banks), default=0)  # without its parts in other banks
    ram_items = (("arena", arena), *copied, ("static", ram.static), ("stack (reserved)", stack))
    return Worksheet(MemoryUse(code, flash_need, flash_items), MemoryUse(data, ram_need, ram_items))


@dataclass(frozen=True)
class ModelFacts:
    """The answer of `inspect`. `board` is the board that the plan is for; None plans with portable kernels. `fits` has
    for each board a worksheet, or the error that prevents one: no compiler, no kernel."""

    source: Source
    graph: Graph  # after all passes
    plan: Plan
    board: Board | None
    fits: tuple[tuple[Board, Worksheet | CompileError], ...]

    @property
    def parameters(self) -> int:
        """Count the parameters, except those that are packed into an NPU's commands."""
        packed = {name for node in self.graph.nodes if isinstance(node.op, Delegate) for name in node.inputs}
        return sum(t.count for t in self.graph.constants() if t.name not in packed)

    def operators(self) -> list[tuple[str, str, int]]:
        """Return (operator, kernel, count) in order of first use; views have no kernel."""
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
        if self.fits:
            data["boards"] = [{"board": board.name, "fits": None} | found.to_json() for board, found in self.fits]
        return data


def outputs_of(graph: Graph) -> list[Tensor]:
    """Return the outputs, with the names that the file gives them."""
    names = graph.labels or graph.outputs
    return [replace(t, name=name) for t, name in zip(graph.of(graph.outputs), names, strict=True)]


def _tensor_json(t: Tensor) -> dict[str, Any]:
    """Describe an input or output; a quantized one with its scale and zero point."""
    known: dict[str, Any] = {"name": t.name, "dtype": t.dtype.label, "shape": list(t.shape)}
    if t.quant is not None and t.is_quantized:
        known |= {"scale": t.quant.scale[0], "zero_point": t.quant.zero_point[0]}
    return known
