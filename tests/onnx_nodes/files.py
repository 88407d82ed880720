"""The .onnx files that the packages onnx and onnxruntime contain: each is read and compared with its own outputs, or
with onnxruntime's if it has none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

from baretorch.errors import CompileError
from baretorch.frontends.onnx.classic_model import as_numbers
from baretorch.frontends.onnx.halves import widen_halves
from baretorch.frontends.onnx.interface import interface_of
from baretorch.frontends.onnx.reader import read_model
from baretorch.frontends.onnx.table import to_graph
from baretorch.frontends.source import random_inputs
from baretorch.ir.graph import HALVES, Array, interpret
from baretorch.ir.io import real_outputs, store_inputs
from baretorch.passes.equivalence import TOLERANCES
from baretorch.passes.order import lower_graph
from tests.onnx_nodes.cases import Kind, Outcome

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
EXAMPLES = Path(onnxruntime.__file__).parent / "datasets"
LARGE = "onnx: light"
FOLDERS = {
    "onnx: simple": DATA / "simple",
    "onnx: pytorch-operator": DATA / "pytorch-operator",
    "onnx: pytorch-converted": DATA / "pytorch-converted",
    LARGE: DATA / "light",
    "onnxruntime: datasets": EXAMPLES,
}


def files() -> Iterator[tuple[str, Path]]:
    """Yield the name of each file's folder, and the file."""
    for folder, path in FOLDERS.items():
        yield from ((folder, file) for file in sorted(path.rglob("*.onnx")))


def outcomes_by_folder(large: bool = True) -> dict[str, list[Outcome]]:
    """Return the outcome of each file, perhaps without those of large networks."""
    found: dict[str, list[Outcome]] = {folder: [] for folder in FOLDERS if large or folder != LARGE}
    for folder, file in files():
        if folder in found:
            found[folder].append(read_file(file))
    return found


def name_of(file: Path) -> str:
    return (file.parent.name if file.stem == "model" else file.stem).removeprefix("test_").removeprefix("operator_")


def read_file(file: Path) -> Outcome:
    """Read a file, and compare the interpreted graph's outputs."""
    name = name_of(file)
    try:
        model, _, halves = widen_halves(as_numbers(read_model(file))[0])
        graph, _ = to_graph(model, interface_of(model, _shapes(model, file), {}), "m", halves=halves)
        graph = lower_graph(graph)
    except CompileError as error:
        return Outcome(name, "", Kind.REFUSED, reason=error.what)
    except Exception as error:
        return Outcome(name, "", Kind.CRASHED, reason=f"{type(error).__name__}: {error}")
    inputs, want = _expected(model, file, graph)
    made = interpret(graph, store_inputs(graph, inputs))
    have = real_outputs(graph, [made[o] for o in graph.outputs])
    for o, h, w in zip(graph.outputs, have, want, strict=True):
        most = float(np.abs(w).max(initial=0)) if w.dtype.kind == "f" else 0.0
        limit = max(1e-5, TOLERANCES.get(graph[o].dtype, 0.0) * most)
        if (h.shape, h.dtype) != (w.shape, w.dtype) or not np.allclose(h, w, 1e-3, limit, equal_nan=True):
            return Outcome(name, "", Kind.WRONG, reason=f"{h.ravel()[:4]}, not {w.ravel()[:4]}")
    return Outcome(name, "", Kind.PASSED)


def _shapes(model: Any, file: Path) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the data that the file is tested with."""
    constants = {t.name for t in model.graph.initializer}
    names = [i.name for i in model.graph.input if i.name not in constants]
    return {n: x.shape for n, x in zip(names, _data(file, "input"), strict=False)}


def _data(file: Path, kind: str) -> list[Array]:
    found = sorted((file.parent / "test_data_set_0").glob(f"{kind}_*.pb"))
    data = [np.asarray(numpy_helper.to_array(onnx.TensorProto.FromString(f.read_bytes()))) for f in found]
    return [x.astype(np.float32) if x.dtype.name in HALVES else x for x in data]


def _expected(model: Any, file: Path, graph: Any) -> tuple[list[Array], list[Array]]:
    inputs, want = _data(file, "input"), _data(file, "output")
    if inputs and want:
        return inputs, want
    given = list(random_inputs((t.shape, t.dtype) for t in graph.of(graph.inputs)))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return given, list(session.run(None, dict(zip(graph.inputs, given, strict=True))))
