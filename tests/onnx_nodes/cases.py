"""ONNX's own node tests: each is brought to a Graph, interpreted, and judged by its own outputs.

Many cases feed what must be known before an image is built (axes, shapes, weights) as inputs of the graph. Where the
frontend asks for such a constant, the input is frozen: it becomes an initializer with the value of the case's data.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from baretorch.errors import CompileError
from baretorch.frontends.lowering import NotConstant
from baretorch.frontends.onnx.halves import widen_halves
from baretorch.frontends.onnx.interface import interface_of
from baretorch.frontends.onnx.reader import parse
from baretorch.frontends.onnx.table import to_graph
from baretorch.ir.graph import HALVES, Array, Graph, interpret
from baretorch.ops.halves import from_half
from baretorch.passes.equivalence import TOLERANCES
from baretorch.passes.order import lower_graph
from baretorch.plan import make_plan
from baretorch.targets.boards import load_board

ROUNDING = 2.0**-22  # of an output's largest number: two of float32's last bits


class Kind(Enum):
    """The outcome of a case. The last two are bugs."""

    PASSED = "passed"
    REFUSED = "refused"
    WRONG = "wrong"
    CRASHED = "crashed"


@dataclass(frozen=True)
class Outcome:
    """`frozen` names the inputs that were made constants; `reason` says why it did not pass. Of one that did, `graph`
    is what is compiled, with its inputs; it is `rounded` if it passes only because of how float32 rounds."""

    name: str
    op: str
    kind: Kind
    frozen: tuple[str, ...] = ()
    all_frozen: bool = False
    reason: str = ""
    rounded: bool = False
    graph: Graph | None = None
    inputs: tuple[Array, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}: {self.kind.value}: {self.reason}"


@cache
def node_cases() -> dict[str, Any]:
    """Return all cases by name."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {case.name: case for case in load_model_tests(kind="node")}


def outcome(case: Any, plan: bool = True) -> Outcome:
    """Freeze what the frontend asks for, until it asks for nothing more."""
    op = operator(case)
    frozen: dict[str, Array] = {}
    arrays = dict(zip((i.name for i in case.model.graph.input), case.data_sets[0][0], strict=False))
    while True:
        names = tuple(i.name for i in case.model.graph.input if i.name in frozen)
        all_frozen = bool(names) and len(names) == len(arrays)
        try:
            graph, inputs = lowered(case, frozen)
            made = interpret(graph, inputs)
            if plan:
                make_plan(graph, load_board("host"))
        except NotConstant as error:
            asked = error.tensor.name if error.tensor is not None else ""
            more = {asked} if asked in arrays else {n for n, a in arrays.items() if np.asarray(a).dtype.kind in "iub"}
            if more <= set(frozen):
                return Outcome(case.name, op, Kind.REFUSED, names, all_frozen, error.what)
            frozen |= {name: np.asarray(arrays[name]) for name in more}
            continue
        except CompileError as error:
            crashed = error.__cause__ is not None and "cannot be applied" in error.what
            reason = f"{error.what}: {error.__cause__!r}" if crashed else error.what
            return Outcome(case.name, op, Kind.CRASHED if crashed else Kind.REFUSED, names, all_frozen, reason)
        except Exception as error:
            return Outcome(case.name, op, Kind.CRASHED, names, all_frozen, f"{type(error).__name__}: {error}")
        answers = [made[name] for name in graph.outputs]
        reason = difference(case, answers, ROUNDING)
        kind, rounded = Kind.WRONG if reason else Kind.PASSED, not reason and bool(difference(case, answers))
        rounded = rounded and not any(t.dtype.is_half for t in graph.of(graph.outputs))
        return Outcome(case.name, op, kind, names, all_frozen, reason, rounded, graph, inputs)


def lowered(case: Any, frozen: dict[str, Array]) -> tuple[Graph, tuple[Array, ...]]:
    """The Graph of the case's model after all passes, and its inputs."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for name, data in frozen.items():
        model.graph.initializer.append(numpy_helper.from_array(data, name))
    arrays = dict(zip((i.name for i in case.model.graph.input), case.data_sets[0][0], strict=False))
    checked, _, halves = widen_halves(parse(model.SerializeToString()))
    known = {n: as_array(a) for n, a in arrays.items() if isinstance(a, np.ndarray | onnx.TensorProto)}
    shapes = {n: a.shape for n, a in known.items() if n not in frozen}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        interface = interface_of(checked, shapes, {})
        graph, _ = to_graph(checked, interface, "m", halves=halves)
    given = [as_array(arrays[i.name]) for i in interface.inputs]
    return lower_graph(graph), tuple(x.view(np.uint16) if x.dtype.name in HALVES else x for x in given)


def as_array(data: Any) -> Array:
    """Return data of a case, which for casts is a TensorProto."""
    return np.asarray(numpy_helper.to_array(data) if isinstance(data, onnx.TensorProto) else data)


def difference(case: Any, answers: Sequence[Array], rounding: float = 0.0) -> str:
    """Return the first fault of these results, or nothing if shape, type and values are right. Values may differ by the
    case's own tolerance plus `rounding` times the output's largest number; with rounding, halves by the tolerance of
    their type."""
    for output, have, want in zip(case.model.graph.output, answers, case.data_sets[0][1], strict=True):
        want, limit = as_array(want), rounding
        half = HALVES.get(want.dtype.name)
        if half is not None and have.dtype == half.numpy:
            have, want, limit = from_half(have, half), want.astype(np.float32), rounding and TOLERANCES[half]
        if (have.shape, have.dtype) != (want.shape, want.dtype):
            return f"{output.name}: {have.dtype}{have.shape}, not {want.dtype}{want.shape}"
        largest = np.max(np.abs(want[np.isfinite(want)]), initial=0.0) if want.dtype.kind == "f" else 0.0
        if not np.allclose(have, want, case.rtol, max(case.atol, limit * float(largest)), equal_nan=True):
            return f"{output.name}: {have.ravel()[:4]}, not {want.ravel()[:4]}"
    return ""


def operator(case: Any) -> str:
    """Return the operator of the case's only node, or the one in the name of an expanded case."""
    nodes = [n.op_type for n in case.model.graph.node]
    return nodes[0] if len(nodes) == 1 and "_expanded" not in case.name else "expanded"
