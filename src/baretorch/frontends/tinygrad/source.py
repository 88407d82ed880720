"""Converts a callable of tinygrad to a Source. tinygrad is imported when it is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.source import Original, Source, one_of
from baretorch.frontends.tinygrad.hook import watch_tinygrad
from baretorch.frontends.tinygrad.table import TABLE, to_graph
from baretorch.frontends.tinygrad.trace import (
    TinygradCall,
    Trace,
    calls_to_text,
    is_tinygrad_tensor,
    raised_at,
    tensors,
)
from baretorch.frontends.user_code import describe_error
from baretorch.ir.graph import Array, Graph
from baretorch.ir.io import as_array, index_inputs, need_inside
from baretorch.passes.equivalence import Reference, mover


def from_callable(model: Any, methods: Mapping[str, tuple[Any, ...]], name: str, method: str | None = None) -> Source:
    """Make a Source of a callable of tinygrad, with example inputs for each of its methods; `forward` is the callable
    itself."""
    method = one_of(methods, method)
    with watch_tinygrad():
        functions = {m: _TracedFunction(_function(model, m), _arrays(x, m)) for m, x in methods.items()}
        read = {m: a.graph(model, name) for m, a in functions.items()}
        graphs = {m: graph for m, (graph, _) in read.items()}
        for m, a in functions.items():
            _need_answers(graphs[m], a.inputs, _who(m))
        references = {m: a.reference() for m, a in functions.items()}
    examples = references[method].inputs
    return Source(
        name,
        graphs,
        examples,
        references[method].answers,
        references[method].answers,
        library="tinygrad",
        method=method,
        references=references,
        eager=lambda: Original(graphs[method], lambda: functions[method].answers),
        texts={"tinygrad": lambda: calls_to_text(read[method][1])},
        calls=len(read[method][1]),
        calls_are="tinygrad call",
    )


def _function(model: Any, method: str) -> Any:
    return model if method == "forward" else getattr(model, method)


def _arrays(inputs: Sequence[Any], method: str) -> tuple[Array, ...]:
    who = _who(method)
    arrays = tuple(as_array(x) for x in inputs)
    for x, array in zip(inputs, arrays, strict=True):
        if array.dtype.kind not in "fiub":
            raise CompileError(
                f"{who} does not give tensors", have=type(x).__name__, need="a tuple of arrays of NumPy or Tensors"
            )
        if array.dtype == np.float64:
            raise CompileError(
                f"{who} gives float64, which is not supported", need="float32", try_="np.float32 in inputs()"
            )
    return arrays


def _who(method: str) -> str:
    return "inputs()" if method == "forward" else f"methods() of {method!r}"


def _need_answers(graph: Graph, inputs: Sequence[Array], who: str) -> None:
    """Raise CompileError for inputs without a defined result in tinygrad: results for NaN depend on its device, and
    out-of-range indices read zeros."""
    if any(x.dtype.kind == "f" and np.isnan(x).any() for x in inputs):
        raise CompileError(f"{who} has NaN, for which tinygrad has no defined result", need="numbers")
    for i, size, layer in index_inputs(graph):
        need_inside(inputs[i], range(size), who, layer)


class _TracedFunction:
    """A function of Tensors, and its inputs."""

    def __init__(self, function: Any, inputs: tuple[Array, ...]) -> None:
        self.function, self.inputs = function, inputs

    def graph(self, model: Any, name: str) -> tuple[Graph, list[TinygradCall]]:
        """Return the graph of the function for the inputs, and the calls that it was read from."""
        from tinygrad import Tensor

        trace = Trace(TABLE, [Tensor(x).realize() for x in self.inputs])
        before = {path: t.uop for path, t in _parameters(_holder(model)).items()}
        outputs = _outputs(_run(trace.run, self.function))
        held = _parameters(_holder(model))
        used = {u for t in outputs for u in t.uop.toposort()}
        kept = [path for path, u in before.items() if u in used and path in held and trace.depends(held[path])]
        if kept:
            raise _remembers(f"in {', '.join(kept)}")
        return to_graph(trace, outputs, held, name), trace.calls

    def answers(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Return tinygrad's outputs for inputs."""
        from tinygrad import Tensor

        made = _outputs(_run(self.function, *(Tensor(x) for x in inputs)))
        return tuple(np.array(t.numpy()) for t in made)

    def reference(self) -> Reference:
        """Return tinygrad's outputs, also for inputs that are changed in their last bits. Called again, it must return
        the same; this is checked only if another result differs."""
        first = self.answers(self.inputs)

        def moved(seed: int) -> tuple[Array, ...]:
            found = self.answers(list(map(mover(seed), self.inputs)))
            if seed == 0 and not all(map(np.array_equal, found, first, repeat(True))):
                raise _remembers("its results change from call to call")
            return found

        return Reference(first, 1, moved, self.inputs)


def _remembers(how: str) -> CompileError:
    return CompileError(
        f"the model remembers something from one run to the next: {how}",
        need="a function of its inputs",
        try_="pass state as an input, and return it as an output",
    )


def _run(function: Any, *args: Any) -> Any:
    """Call the user's model, and report what it raises as the user's error."""
    try:
        return function(*args)
    except (CompileError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise CompileError(f"the model failed: {describe_error(error)}", at=raised_at(error)) from error


def _outputs(result: Any) -> list[Any]:
    given = [*tensors(result)]
    if not given or not (is_tinygrad_tensor(result) or isinstance(result, (tuple, list))):
        raise CompileError(
            "the model returns no tensors", have=type(result).__name__, need="a Tensor, or a tuple of Tensors"
        )
    return given


def _parameters(holder: Any) -> dict[str, Any]:
    """Return the Tensors that an object holds, by their paths: in its attributes, and in lists and dicts among them."""
    found: dict[str, Any] = {}
    known = set[int]()

    def look(value: Any, path: str) -> None:
        if is_tinygrad_tensor(value):
            found.setdefault(path, value)
        elif id(value) not in known and not isinstance(value, (type, ModuleType, FunctionType)):
            known.add(id(value))
            inside = dict(enumerate(value)) if isinstance(value, (list, tuple)) else value
            inside = inside if isinstance(inside, dict) else getattr(value, "__dict__", {})
            for name, item in inside.items():
                look(item, f"{path}.{name}" if path else str(name))

    look(holder, "")
    return found


def _holder(model: Any) -> Any:
    """Return the object that holds a callable's parameters, or the variables of a function."""
    function = getattr(model, "fxn", model)
    function = getattr(function, "__self__", function)
    cells = getattr(function, "__closure__", None)
    return (
        dict(zip(function.__code__.co_freevars, (c.cell_contents for c in cells), strict=True)) if cells else function
    )
