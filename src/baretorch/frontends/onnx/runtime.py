"""Computes the model's own results with onnxruntime if it is installed, else with onnx.reference."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator

from baretorch.frontends.onnx.interface import Interface
from baretorch.frontends.onnx.proto import array_of, tensor_of
from baretorch.frontends.onnx.versions import upgrade
from baretorch.frontends.runtimes.process import Crash, OpenModel
from baretorch.frontends.source import Original
from baretorch.ir.graph import Array, Graph
from baretorch.passes.equivalence import Reference, mover

LIBRARY = "onnxruntime"
RunFeeds: TypeAlias = Callable[[dict[str, Array]], dict[str, Array]]


def runtimes(model: Any, crashes: list[str] | None = None) -> Iterator[tuple[RunFeeds, str]]:
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
        reference = ReferenceEvaluator(upgrade(model))  # it knows only the newest meaning of some operators
    except Exception:
        return

    def run(feeds: dict[str, Array]) -> dict[str, Array]:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return dict(zip(names, map(np.asarray, reference.run(None, feeds)), strict=True))

    yield run, "onnx.reference"


def begin(run: RunFeeds, interface: Interface) -> Callable[[Sequence[Array]], list[Array]]:
    """Return a function that runs the model. State starts with the file's values; each run continues with the state
    that the previous one left."""
    memory = {s.input.name: s.initial for s in interface.state}

    def run_once(inputs: Sequence[Array]) -> list[Array]:
        made = run({i.name: x for i, x in zip(interface.inputs, inputs, strict=True)} | memory)
        memory.update({s.input.name: made[s.output] for s in interface.state})
        return [made[name] for name in interface.outputs]

    return run_once


def answers(run: RunFeeds, interface: Interface, inputs: Sequence[Array], runs: int) -> tuple[Array, ...]:
    """Return the outputs of several runs."""
    run_once = begin(run, interface)
    return tuple(y for _ in range(runs) for y in run_once(inputs))


def original(model: Any, interface: Interface, graph: Graph, library: str) -> Original:
    """Return the model in the runtime that computed its results."""
    run = next(run for run, name in runtimes(model) if name == library)
    return Original(graph, partial(begin, run, interface))


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
        except Exception:  # it accepts the file and then fails
            continue
        moved = _mover(model, interface, inputs, runs, run, library)
        return Reference(found, runs, moved, inputs, lambda: _exact(model, interface, inputs, runs)), library
    return None


def _exact(model: Any, interface: Interface, inputs: tuple[Array, ...], runs: int) -> tuple[Array, ...] | None:
    """Return the results in double precision, or None if onnx.reference cannot compute them."""
    try:
        return answers(partial(run_in_double, model), interface, inputs, runs)
    except Exception:
        return None


def _mover(
    model: Any, interface: Interface, inputs: tuple[Array, ...], runs: int, run: RunFeeds, library: str
) -> Callable[[int], tuple[Array, ...]]:
    """Return a function from a seed to the runtime's results for slightly changed inputs and constants; seed 0 changes
    nothing."""

    def moved(seed: int) -> tuple[Array, ...]:
        move, other = mover(seed), onnx.ModelProto()
        other.CopyFrom(model)
        for tensor in other.graph.initializer:
            tensor.CopyFrom(tensor_of(move(array_of(tensor)), tensor.name))
        again = next((run for run, name in runtimes(other) if name == library), run)
        return answers(again, interface, tuple(map(move, inputs)), runs)

    return moved


def run_in_double(model: Any, feeds: dict[str, Array]) -> dict[str, Array]:
    """Return the outputs by name, computed by onnx.reference with float64 wherever the model says float32."""
    wide = onnx.ModelProto()
    wide.CopyFrom(upgrade(model))
    _widen(wide.graph)
    given = {name: x.astype(np.float64) if x.dtype == np.float32 else x for name, x in feeds.items()}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        made = ReferenceEvaluator(wide).run(None, given)
    return dict(zip((o.name for o in model.graph.output), map(np.asarray, made), strict=True))


def _widen(graph: Any) -> None:
    for tensor in graph.initializer:
        _widen_tensor(tensor)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                _widen_tensor(attribute.t)
            if attribute.HasField("g"):
                _widen(attribute.g)
            if attribute.name in ("to", "dtype") and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.DOUBLE
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE


def _widen_tensor(tensor: Any) -> None:
    if tensor.data_type == TensorProto.FLOAT:
        tensor.CopyFrom(tensor_of(array_of(tensor).astype(np.float64), tensor.name))
