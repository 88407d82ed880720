"""The result of a frontend: a Graph per method, example inputs, and the original model for comparison."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.escape import LONGEST
from baretorch.frontends.choices import Arguments
from baretorch.ir.graph import Array, DType, Graph, Shape
from baretorch.ir.io import Answer, Runner, arrange_inputs, arrange_outputs, real_inputs
from baretorch.ops.halves import from_half, to_half
from baretorch.passes.equivalence import TOLERANCES, Reference
from baretorch.passes.layerwise import RecordedLayer

ODD_INPUTS = "inputs: inputs() has NaN or infinite values, which hide differences between results"
ODD_INT8 = "inputs: inputs() has NaN or infinite values, which int8 cannot represent: its results are not compared"


@dataclass(frozen=True)
class LoadRequest:
    """A request to a loader: this file, whose model is called `name`. Of several methods it is `method`, or the first.
    `trust`: the user allows the file's content to run. `inputs` are example inputs as the caller has them, if a Python
    file refers to this one and supplies some; `example_inputs` checks and arranges them. `shapes` are those of inputs
    that the file leaves open, `state` the outputs that inputs take from the previous run, `fix` the values of inputs
    that become constants. `calibration` is the user's
    path of samples, `arguments` are the arguments of a Python file's model()."""

    file: Path
    name: str
    method: str | None = None
    trust: bool = False
    inputs: tuple[Any, ...] | None = None
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    state: Mapping[str, str] = field(default_factory=dict)
    fix: Mapping[str, str] = field(default_factory=dict)
    calibration: Path | None = None
    arguments: Arguments = field(default_factory=dict)

    def need_fixed(self, what: str) -> None:
        """Raise CompileError if shapes, state or constants are given for a model that defines its own."""
        every = {"--shape": self.shapes, "--state": self.state, "--fix": self.fix}
        given = [flag for flag, value in every.items() if value]
        if given:
            raise CompileError(f"{' and '.join(given)}: {what} defines that itself", need="an .onnx file")


@dataclass(frozen=True)
class Torch:
    """PyTorch's data of a model: the nn.Module, if there is one, and for each method its example inputs, its exported
    and plain programs, and its outputs."""

    module: Any
    inputs: Mapping[str, tuple[Any, ...]]
    exported: Mapping[str, Any]
    plain: Mapping[str, Any]
    references: Mapping[str, Reference]


@dataclass(frozen=True)
class Source:
    """A model as read. `graphs` has a graph per method, over shared weights; `method` is the selected one.
    `examples` are in the memory order of the C interface. `expected` are the original model's outputs for them;
    `expected_again` are the outputs of a second call, which differ if the model has state. Both are None if there is
    no original to run."""

    name: str
    graphs: Mapping[str, Graph]
    examples: tuple[Array, ...]
    expected: tuple[Array, ...] | None = None
    expected_again: tuple[Array, ...] | None = None
    library: str = "nobody"  # which computed the results
    kind: str = "py"  # the ending of the file's name
    method: str = "forward"
    references: Mapping[str, Reference] = field(default_factory=dict)  # of each method, if the model can run
    eager: Callable[[], Runner] | None = None  # starts the original model, which is called like an image
    named: Path | None = None  # the model file that a Python file names
    calibration: Iterable[Any] | None = None  # typical inputs, if the model has some
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # notes of the reader for the user
    texts: Mapping[str, Callable[[], str]] = field(
        default_factory=dict
    )  # the forms of the model before the Graph, for people
    layers: Callable[[], Iterable[RecordedLayer]] | None = None  # the results of each layer in the file's own runtime
    calls: int | None = None  # number of operators in the form before the Graph
    calls_are: str = "operator"  # what these operators are called
    torch: Torch | None = None
    arithmetic: DType = DType.FLOAT32  # the coarsest float type in which the original computes

    def __post_init__(self) -> None:
        check_name(self.name)

    def __repr__(self) -> str:
        return f"Source({self.name}, {self.kind})"

    @property
    def graph(self) -> Graph:
        """Return the graph of the selected method."""
        return self.graphs[self.method]

    @property
    def has_odd_inputs(self) -> bool:
        """Report whether any number of the example inputs is NaN or infinite."""
        return any(x.dtype.kind == "f" and not np.isfinite(x).all() for x in self.examples)

    @property
    def tolerance(self) -> float:
        """Return how far halves may be from the original's, relative to the largest; 0 if it computes in float32."""
        return TOLERANCES.get(self.arithmetic, 0.0)

    @property
    def module(self) -> Any:
        """Return the nn.Module; None if the model does not come from one."""
        return self.torch.module if self.torch else None


class Original:
    """The original model in its own library, called like an image, with the caller's inputs. `begin` returns a function
    from inputs to outputs in memory order, which starts with the model's initial state and keeps it between calls."""

    def __init__(self, graph: Graph, begin: Callable[[], Callable[[Sequence[Array]], Sequence[Array]]]) -> None:
        self._graph, self._begin, self._run = graph, begin, begin()

    def __call__(self, *inputs: Any) -> Answer:
        return arrange_outputs(self._graph, self._run(arrange_inputs(self._graph, inputs)))

    def reset(self) -> None:
        self._run = self._begin()


def check_name(name: str) -> None:
    """Raise CompileError for an invalid model name. It is part of C names and of file names."""
    if not re.fullmatch(r"[A-Za-z]\w*", name, flags=re.ASCII) or len(name) > LONGEST:
        shown = name if len(name) <= 40 else f"{name[:40]}…"
        raise CompileError(
            f"{shown!r} is not a valid model name", need=f"at most {LONGEST} letters, digits and _, the first a letter"
        )


def one_of(methods: Mapping[str, Any], wanted: str | None) -> str:
    """Return the wanted method, or the first."""
    if wanted is None:
        return next(iter(methods))
    if wanted not in methods:
        raise CompileError(f"the model has no method {wanted!r}", have=", ".join(methods))
    return wanted


def example_inputs(request: LoadRequest, graph: Graph) -> tuple[Array, ...]:
    """Return the requested inputs, or random ones: real numbers in the memory order of the C interface."""
    if request.inputs is None:
        return random_inputs((t.shape, t.dtype) for t in graph.of(graph.inputs))
    return real_inputs(graph, arrange_inputs(graph, request.inputs, "inputs()"))


def random_inputs(types: Iterable[tuple[Shape, DType]]) -> tuple[Array, ...]:
    """Return seeded random inputs for a model without examples, as real numbers. Shapes are those in memory."""
    rng = np.random.default_rng(0)
    arrays = []
    for shape, dtype in types:
        if dtype.computed is DType.FLOAT32:
            x = rng.standard_normal(shape).astype(np.float32)
            arrays.append(from_half(to_half(x, dtype), dtype) if dtype.is_half else x)
        else:
            arrays.append(rng.integers(0, 2, shape).astype(dtype.numpy))
    return tuple(arrays)
