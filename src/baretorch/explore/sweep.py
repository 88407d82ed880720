"""Stream inputs through a board: those of a model file's sweep(), or the examples."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.consecutive_calls import in_graph, start_reference
from baretorch.frontends.user_code import import_file
from baretorch.ir.graph import Array, Graph
from baretorch.ir.io import arrange_inputs, real_inputs, real_outputs, store_inputs
from baretorch.ir.ties import replace_tied_indices
from baretorch.machines.run import call_image, open_link
from baretorch.machines.types import Machine
from baretorch.measure.facts import largest_error, number
from baretorch.pipeline import LoweredModel

Answers = tuple[Array, ...]


@dataclass(frozen=True)
class Sweep:
    """The inputs to send in order, with the reference's outputs and the results of the model file's truth()."""

    inputs: tuple[Answers, ...]
    expected: tuple[Answers, ...]
    truth: tuple[float, ...] | None
    reference: str  # "PyTorch", or "the graph" if there is no PyTorch model
    exact: tuple[Answers, ...] | None = None  # of a model that Baretorch quantized: the outputs of its int8 graph

    def x(self, index: int) -> float:
        """Return the position of an input in a plot: its value if it is one number, else its index."""
        return float(index) if self.counts_inputs else value_of(self.inputs[index % len(self.inputs)][0])

    @property
    def counts_inputs(self) -> bool:
        """Report whether inputs are numbered, since they are not single numbers."""
        return any(len(arrays) != 1 or arrays[0].size != 1 for arrays in self.inputs[:1])

    def expected_value(self, index: int) -> float:
        """Return the reference's answer to an input, as one number."""
        return value_of(self.expected[index % len(self.expected)][0])

    @property
    def curve_name(self) -> str:
        """Return the name of the curve that outputs are plotted against."""
        return self.reference if self.truth is None else "truth"

    def curve(self, count: int) -> list[float]:
        """Return the values that the first `count` outputs are plotted against: of truth(), else the reference's."""
        if self.truth is None:
            return [self.expected_value(i) for i in range(count)]
        return [self.truth[i % len(self.truth)] for i in range(count)]


@dataclass
class SweepTrace:
    """The outputs so far, each as one number: its value, or the index of the largest of several."""

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
        judged = replace_tied_indices(self.graph, store_inputs(self.graph, self.sweep.inputs[at]), outputs, want)
        self.max_error = max(self.max_error, largest_error(judged, want))

    @property
    def predicted_classes(self) -> bool:
        """Report whether outputs are integers, such as the index of the largest of several numbers."""
        return all(outputs[0].size > 1 or outputs[0].dtype.kind != "f" for outputs in self.answers)

    @property
    def right(self) -> list[Answers]:
        """Return the outputs that the image must return for the inputs so far."""
        known = self.sweep.exact or self.sweep.expected
        return [known[i % len(known)] for i in range(len(self.answers))]

    @property
    def curve(self) -> list[float]:
        return self.sweep.curve(len(self.x))

    @property
    def errors(self) -> list[float]:
        """Return the signed distances of the outputs so far from the curve."""
        return [p - c for p, c in zip(self.predicted, self.curve, strict=True)]

    @property
    def max_error_truth(self) -> float | None:
        return max(map(abs, self.errors)) if self.truth else None

    @property
    def mean_error_truth(self) -> float | None:
        return sum(map(abs, self.errors)) / len(self.truth) if self.truth else None

    def to_json(self) -> dict[str, Any]:
        worst, mean = self.max_error_truth, self.mean_error_truth
        return {
            "count": len(self.x),
            "x": [number(v) for v in self.x],
            "predicted": [number(v) for v in self.predicted],
            "truth": [number(v) for v in self.truth] if self.sweep.truth is not None else None,
            "max_error_truth": None if worst is None else number(worst),
            "mean_error_truth": None if mean is None else number(mean),
            "max_error": number(self.max_error),
            "reference": self.sweep.reference,
        }


def read_sweep(model: str, lowered: LoweredModel) -> Sweep:
    """Read the sweep() and truth() of a model file, or just the example inputs, and run the reference. Add the outputs
    of the int8 graph if Baretorch quantized the model."""
    graph, source = lowered.graph, lowered.source
    shapes = [graph[name].shape for name in graph.outputs]
    if not shapes or 0 in shapes[0]:
        raise CompileError(
            "the model's outputs are empty",
            at=model,
            have=", ".join(f"{name} {list(shape)}" for name, shape in zip(graph.outputs, shapes, strict=True)) or None,
            need="a first output with at least one number",
        )
    path = model.partition("::")[0]
    file = import_file(Path(path)) if path.endswith(".py") else None
    sweep: Callable[[], Sequence[Any]] | None = getattr(file, "sweep", None)
    truth: Callable[..., Any] | None = getattr(file, "truth", None)
    if sweep is None:
        samples = [source.torch.inputs[source.method]] if source.torch and source.torch.module is not None else []
        inputs: tuple[Answers, ...] = (source.examples,)
    else:
        samples = [_tuple(sample) for sample in sweep()]
        if not samples:
            raise CompileError("sweep() returns no inputs", at=model)
        flat = [_tensors(sample) if source.torch else sample for sample in samples]
        inputs = tuple(real_inputs(graph, arrange_inputs(graph, sample, "sweep()")) for sample in flat)
    truths = tuple(value_of(np.asarray(truth(*sample))) for sample in samples) if truth and samples else None
    begin, reference = start_reference(source, graph)
    expected: tuple[Answers, ...]
    if sweep is None and source.expected is not None:
        expected, reference = (source.expected,), source.library
    else:
        expected = tuple(map(begin(), inputs))
    exact = None if lowered.quantization is None else tuple(map(in_graph(graph), inputs))
    return Sweep(inputs, expected, truths, reference, exact)


def _tensors(sample: Sequence[Any]) -> Sequence[Any]:
    """Return the tensors of a sample of a PyTorch model, whose arguments may be nested."""
    from baretorch.frontends.torch.calls import flat_tensors

    return flat_tensors(sample)


def stream(
    machine: Machine, graph: Graph, trace: SweepTrace, total: int, rate: float | None, show: Callable[[], None]
) -> None:
    """Send the inputs one after the other, and show each output."""
    link = open_link(machine, graph)
    due = time.monotonic()
    for i in range(total):
        inputs = trace.sweep.inputs[i % len(trace.sweep.inputs)]
        if graph.state and i % len(trace.sweep.inputs) == 0:
            link.reset()  # the reference, too, begins each sweep with its initial state
        answer = call_image(link, graph, store_inputs(graph, inputs))
        trace.add(i, real_outputs(graph, answer))
        show()
        if rate is not None:
            due = max(due + 1 / rate, time.monotonic() - 1)
            time.sleep(max(0.0, due - time.monotonic()))


def _tuple(sample: Any) -> tuple[Any, ...]:
    return tuple(sample) if isinstance(sample, (tuple, list)) else (sample,)


def value_of(array: Array) -> float:
    """Return one number for an output: its value, or the index of the largest of several (a class)."""
    flat = np.asarray(array).reshape(-1)
    return float(flat[0]) if flat.size == 1 else float(np.argmax(flat))
