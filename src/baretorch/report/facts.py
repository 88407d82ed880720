"""The facts of a run, by the names that `--json` promises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from baretorch.emulators.run import Run
from baretorch.firmware.types import Image
from baretorch.ir import Array, interpret
from baretorch.pipeline import Compiled


@dataclass(frozen=True)
class RunFacts:
    """A verified run: the model, the image and what the emulator measured."""

    compiled: Compiled
    image: Image
    run: Run
    reference: str  # what the outputs were compared with: "PyTorch", or "the graph" where there is no PyTorch model
    max_error: float

    def to_json(self) -> dict[str, Any]:
        """The object of `run --json`; figures that are not known are null."""
        plan, image, run = self.compiled.plan, self.image, self.run
        return {
            "model": self.compiled.graph.name,
            "board": image.board.name,
            "emulator": run.emulator,
            "toolchain": image.toolchain,
            "optimize": self.compiled.optimize,
            "dtype": "float32",
            "instructions": run.instructions,
            "cycles": None,
            "clock_hz": image.board.chip.clock_hz,
            "time_ms": None,
            "macs": self.compiled.graph.macs(),
            "flash": {
                "model_code": image.flash.model_code,
                "code": image.flash.code,
                "weights": image.flash.weights,
                "total": image.flash.total,
            },
            "ram": {
                "arena": image.ram.arena,
                "model_static": image.ram.model_static,
                "static": image.ram.static,
                "stack": image.ram.stack,
                "total": image.ram.total,
            },
            "stack_peak": run.stack_peak,
            "arena_lower_bound": plan.lower_bound,
            "reference": self.reference,
            "max_error": self.max_error,
            "float_layers": [],
            "outputs": [finite(o) for o in run.outputs],
            "files": {k: str(v) for k, v in (("elf", image.elf), ("bin", image.bin), ("hex", image.hex), ("uf2", image.uf2)) if v},
        }


def compare(compiled: Compiled, image: Image, run: Run) -> RunFacts:
    """Compare the image's answers with PyTorch's, or with the interpreted graph where there is no PyTorch model."""
    expected = compiled.source.expected
    reference = "PyTorch"
    if expected is None:
        expected = tuple(interpret(compiled.graph, compiled.source.examples).values())
        reference = "the graph"
    return RunFacts(compiled, image, run, reference, largest_error(run.outputs, expected))


def largest_error(outputs: tuple[Array, ...], expected: tuple[Array, ...]) -> float:
    """The largest absolute difference; infinite where one is NaN and the other is not."""
    worst = 0.0
    for have, want in zip(outputs, expected, strict=True):
        if have.shape != want.shape:
            return float("inf")
        a, b = have.astype(np.float64), want.astype(np.float64)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        difference = np.where(same, 0.0, np.abs(a - b))
        if difference.size:
            worst = max(worst, float(np.max(np.nan_to_num(difference, nan=np.inf))))
    return worst


def finite(array: Array) -> Any:
    """Nested lists for JSON, which has no NaN and no infinity: those become text."""
    if array.dtype.kind != "f" or bool(np.isfinite(array).all()):
        return array.tolist()
    flat = [v if np.isfinite(v) else str(v) for v in array.reshape(-1).tolist()]
    return np.array(flat, dtype=object).reshape(array.shape).tolist()
