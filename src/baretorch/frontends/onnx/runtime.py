"""Computes the model's own results with onnxruntime if it is installed, else with onnx.reference."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from baretorch.frontends.onnx.double import in_double
from baretorch.frontends.onnx.interface import Interface
from baretorch.frontends.onnx.tensors import array_of, tensor_of
from baretorch.frontends.runtimes.process import Crash, OpenModel
from baretorch.ir.equivalence import MOVE, Reference
from baretorch.ir.graph import Array, Graph
from baretorch.ir.io import Answer, arranged, restored

LIBRARY = "onnxruntime"
Run: TypeAlias = Callable[[dict[str, Array]], dict[str, Array]]


def runtimes(model: Any, crashes: list[str] | None = None) -> Iterator[tuple[Run, str]]:
    """Yield the model in each runtime that accepts it, and the runtime's name. One that crashes is added to
    `crashes`."""
    names = [o.name for o in model.graph.output]
    try:
        opened = OpenModel[str](LIBRARY, model.SerializeToString()) if find_spec(LIBRARY) else None
    except Exception as error:  # the file is newer than it, or too large, or it has no kernel
        opened = None
        if crashes is not None and isinstance(error, Crash):
            crashes.append(error.what)
    if opened is not None:
        yield lambda feeds: opened.run(feeds, names), LIBRARY
    try:
        reference = ReferenceEvaluator(model)
    except Exception:
        return

    def run(feeds: dict[str, Array]) -> dict[str, Array]:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return dict(zip(names, map(np.asarray, reference.run(None, feeds)), strict=True))

    yield run, "onnx.reference"


def answers(run: Run, interface: Interface, inputs: Sequence[Array], runs: int) -> tuple[Array, ...]:
    """Return the outputs of several runs; each starts with the state that the previous run left."""
    memory = {s.input.name: s.initial for s in interface.state}
    found: list[Array] = []
    for _ in range(runs):
        made = run({i.name: x for i, x in zip(interface.inputs, inputs, strict=True)} | memory)
        memory = {s.input.name: made[s.output] for s in interface.state}
        found += [made[name] for name in interface.outputs]
    return tuple(found)


class InRuntime:
    """Runs the model in its runtime, once per call; state starts with the file's values."""

    def __init__(self, model: Any, interface: Interface, graph: Graph, library: str) -> None:
        self._run = next(run for run, name in runtimes(model) if name == library)  # it has answered before
        self._interface, self._graph = interface, graph
        self._memory: dict[str, Array] = {}
        self.reset()

    def __call__(self, *inputs: Any) -> Answer:
        given = zip(self._interface.inputs, arranged(self._graph, inputs), strict=True)
        made = self._run({i.name: x for i, x in given} | self._memory)
        self._memory = {s.input.name: made[s.output] for s in self._interface.state}
        return restored(self._graph, [made[name] for name in self._interface.outputs])

    def reset(self) -> None:
        self._memory = {s.input.name: s.initial for s in self._interface.state}


def reference_of(
    model: Any, interface: Interface, inputs: tuple[Array, ...], crashes: list[str]
) -> tuple[Reference, str] | None:
    """Return the model's results, and the name of the runtime; None if no runtime can run it. Runtimes that crash are
    added to `crashes`."""
    runs = 2 if interface.state else 1
    for run, library in runtimes(model, crashes):
        try:
            found = answers(run, interface, inputs, runs)
        except Crash as crash:
            crashes.append(crash.what)
            continue
        except Exception:  # it takes the file and then fails
            continue
        moved = _moved(model, interface, inputs, runs, run, library)
        return Reference(found, runs, moved, inputs, lambda: _exact(model, interface, inputs, runs)), library
    return None


def _exact(model: Any, interface: Interface, inputs: tuple[Array, ...], runs: int) -> tuple[Array, ...] | None:
    """Return the results in double precision, or None if onnx.reference cannot compute them."""
    try:
        return answers(partial(in_double, model), interface, inputs, runs)
    except Exception:
        return None


def _moved(
    model: Any, interface: Interface, inputs: tuple[Array, ...], runs: int, run: Run, library: str
) -> Callable[[int], tuple[Array, ...]]:
    """Return a function from a seed to the runtime's results for slightly changed inputs and constants; seed 0 changes
    nothing."""

    def moved(seed: int) -> tuple[Array, ...]:
        rng = np.random.default_rng(seed)

        def move(x: Array) -> Array:
            moves = seed != 0 and x.dtype.kind == "f"
            return np.asarray(x * (1 + MOVE * rng.uniform(-1, 1, x.shape)), x.dtype) if moves else x

        other = onnx.ModelProto()
        other.CopyFrom(model)
        for tensor in other.graph.initializer:
            tensor.CopyFrom(tensor_of(move(array_of(tensor)), tensor.name))
        again = next((run for run, name in runtimes(other) if name == library), run)
        return answers(again, interface, tuple(map(move, inputs)), runs)

    return moved
