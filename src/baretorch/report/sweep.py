"""Inputs streamed through a board, and what came of each: answers, PyTorch's answers, the truth."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends import Source
from baretorch.frontends.model_file import import_file
from baretorch.ir import Array, Graph, interpret
from baretorch.outputs import check_file, png
from baretorch.report.facts import largest_error, number

Answers = tuple[Array, ...]


@dataclass(frozen=True)
class Sweep:
    """What to send, in order, with what the reference answers and, where the model file knows it, the truth."""

    inputs: tuple[Answers, ...]
    expected: tuple[Answers, ...]
    truth: tuple[float, ...] | None
    reference: str  # "PyTorch", or "the graph" where there is no PyTorch model

    def x(self, index: int) -> float:
        """Where an input stands in a plot: its value if it is one number, else its place in the order."""
        arrays = self.inputs[index % len(self.inputs)]
        return value_of(arrays[0]) if len(arrays) == 1 and arrays[0].size == 1 else float(index)


@dataclass
class Trace:
    """The answers so far, each as one number: the value, or of several the index of the largest."""

    sweep: Sweep
    x: list[float] = field(default_factory=list)
    predicted: list[float] = field(default_factory=list)
    truth: list[float] = field(default_factory=list)
    max_error: float = 0.0

    def add(self, index: int, outputs: Answers) -> None:
        at = index % len(self.sweep.inputs)
        self.x.append(self.sweep.x(index))
        self.predicted.append(value_of(outputs[0]))
        if self.sweep.truth is not None:
            self.truth.append(self.sweep.truth[at])
        self.max_error = max(self.max_error, largest_error(outputs, self.sweep.expected[at]))

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


def read_sweep(model: str, source: Source, graph: Graph) -> Sweep:
    """The sweep() and truth() of a model file, or just the example inputs."""
    shapes = [graph[name].shape for name in graph.outputs]
    if not shapes or 0 in shapes[0]:
        raise CompileError(
            "the model's answers are empty",
            at=model,
            have=", ".join(f"{name} {list(shape)}" for name, shape in zip(graph.outputs, shapes, strict=True)) or None,
            need="a first output with at least one number",
        )
    path = model.partition("::")[0]
    file = import_file(Path(path)) if path.endswith(".py") else None
    sweep: Callable[[], Sequence[Any]] | None = getattr(file, "sweep", None)
    truth: Callable[..., Any] | None = getattr(file, "truth", None)
    torch = source.torch
    if torch is None or torch.module is None or torch.inputs[source.method] == ():
        expected = source.expected or tuple(interpret(graph, source.examples).values())
        return Sweep((source.examples,), (expected,), None, source.library if source.expected else "the graph")

    from baretorch.frontends.torch_export import flat_inputs, run_module, to_numpy

    samples = [_tuple(s) for s in sweep()] if sweep is not None else [torch.inputs[source.method]]
    if not samples:
        raise CompileError("sweep() gives no inputs", at=model)
    inputs, expected_all, truths = [], [], []
    module = getattr(deepcopy(torch.module) if graph.state else torch.module, source.method)
    for sample in samples:
        arrays = tuple(to_numpy(x, port.order) for x, port in zip(flat_inputs(sample), graph.takes(), strict=False))
        if [(a.shape, a.dtype) for a in arrays] != [(a.shape, a.dtype) for a in source.examples]:
            raise CompileError(
                "an input of sweep() differs in shape or type from inputs()",
                at=model,
                have=", ".join(f"{a.dtype}{list(a.shape)}" for a in arrays),
                need=", ".join(f"{a.dtype}{list(a.shape)}" for a in source.examples),
            )
        inputs.append(arrays)
        expected_all.append(run_module(module, sample, [port.order for port in graph.gives()]))
        if truth is not None:
            truths.append(value_of(np.asarray(truth(*sample))))
    return Sweep(tuple(inputs), tuple(expected_all), tuple(truths) if truth is not None else None, "PyTorch")


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
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    check_file(path, png, "--png")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(part, dpi=120, format="png")
        part.replace(path)
    except OSError as error:
        raise CompileError(f"cannot write {path}", have=str(error)) from error
    finally:
        part.unlink(missing_ok=True)


def _tuple(sample: Any) -> tuple[Any, ...]:
    return tuple(sample) if isinstance(sample, (tuple, list)) else (sample,)
