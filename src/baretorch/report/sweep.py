"""Inputs streamed through a board, and what came of each: answers, PyTorch's answers, the truth."""

from __future__ import annotations

from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.files.ownership import png
from baretorch.files.write import put
from baretorch.ir.graph import Array, Graph
from baretorch.ir.io import stored
from baretorch.ir.ties import up_to_ties
from baretorch.measure.facts import largest_error, number

Answers = tuple[Array, ...]


@dataclass(frozen=True)
class Sweep:
    """What to send, in order, with what the reference answers and, where the model file knows it, the truth."""

    inputs: tuple[Answers, ...]
    expected: tuple[Answers, ...]
    truth: tuple[float, ...] | None
    reference: str  # "PyTorch", or "the graph" where there is no PyTorch model
    exact: tuple[Answers, ...] | None = None  # what the image must give, if that is not `expected`: int8 by ourselves

    def x(self, index: int) -> float:
        """Where an input stands in a plot: its value if it is one number, else its place in the order."""
        arrays = self.inputs[index % len(self.inputs)]
        return value_of(arrays[0]) if len(arrays) == 1 and arrays[0].size == 1 else float(index)


@dataclass
class Trace:
    """The answers so far, each as one number: the value, or of several the index of the largest."""

    sweep: Sweep
    graph: Graph
    x: list[float] = field(default_factory=list)
    predicted: list[float] = field(default_factory=list)
    truth: list[float] = field(default_factory=list)
    max_error: float = 0.0
    answers: list[Answers] = field(default_factory=list)

    def add(self, index: int, outputs: Answers) -> None:
        at = index % len(self.sweep.inputs)
        self.answers.append(outputs)
        self.x.append(self.sweep.x(index))
        self.predicted.append(value_of(outputs[0]))
        if self.sweep.truth is not None:
            self.truth.append(self.sweep.truth[at])
        want = self.sweep.expected[at]
        judged = up_to_ties(self.graph, stored(self.graph, self.sweep.inputs[at]), outputs, want)
        self.max_error = max(self.max_error, largest_error(judged, want))

    @property
    def right(self) -> list[Answers]:
        """What the image must give for each input so far."""
        known = self.sweep.exact or self.sweep.expected
        return [known[i % len(known)] for i in range(len(self.answers))]

    @property
    def max_error_truth(self) -> float | None:
        if self.sweep.truth is None or not self.truth:
            return None
        return max(abs(p - t) for p, t in zip(self.predicted, self.truth, strict=True))

    def to_json(self) -> dict[str, Any]:
        worst = self.max_error_truth
        return {
            "count": len(self.x),
            "x": [number(v) for v in self.x],
            "predicted": [number(v) for v in self.predicted],
            "truth": [number(v) for v in self.truth] if self.sweep.truth is not None else None,
            "max_error_truth": None if worst is None else number(worst),
            "max_error": number(self.max_error),
            "reference": self.sweep.reference,
        }


def value_of(array: Array) -> float:
    """One number for an answer: itself, or the index of the largest of several (a class)."""
    flat = np.asarray(array).reshape(-1)
    return float(flat[0]) if flat.size == 1 else float(np.argmax(flat))


def need_matplotlib() -> None:
    """Fails before anything is run if a picture cannot be drawn."""
    import importlib.util

    if importlib.util.find_spec("matplotlib") is None:
        raise CompileError(
            "matplotlib is needed for --png and is not installed", try_='`pip install "baretorch[plot]"`'
        )


def write_png(trace: Trace, title: str, path: Path) -> None:
    """Predicted dots on the true curve, the error below. The file appears whole or not at all."""
    from matplotlib.figure import Figure

    known = trace.sweep.truth is not None
    expected = [value_of(trace.sweep.expected[i % len(trace.sweep.expected)][0]) for i in range(len(trace.x))]
    curve, name = (trace.truth, "truth") if known else (expected, trace.sweep.reference)
    order = np.argsort(trace.x)
    x, y, line = (np.asarray(values)[order] for values in (trace.x, trace.predicted, curve))
    figure = Figure(figsize=(8, 6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    above.plot(x, line, color="0.6", linewidth=2, label=name)
    above.plot(x, y, ".", color="tab:red", label="predicted by the board")
    above.set_title(title)
    above.legend()
    below.axhline(0, color="0.8")
    below.plot(x, y - line, color="tab:blue")
    below.set_ylabel("error")
    below.set_xlabel("input")
    picture = BytesIO()
    figure.savefig(picture, dpi=120, format="png")
    put(path, picture.getvalue(), png, "--png")
