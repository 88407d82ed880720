"""Converts a `.tflite` file to a Source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.calibration import examples_of
from baretorch.frontends.runtimes.process import Refusal
from baretorch.frontends.source import LoadRequest, Original, Source, example_inputs, one_of, random_inputs
from baretorch.frontends.tflite import litert
from baretorch.frontends.tflite.lowering import is_kept, layer_name, stored_as
from baretorch.frontends.tflite.schema import Subgraph, TfModel, TfTensor, read_model
from baretorch.frontends.tflite.state import VARIABLES
from baretorch.frontends.tflite.table import check_sizes, known_ahead, layer_graph, to_graph
from baretorch.ir.graph import Array, Graph
from baretorch.ir.io import as_real, real_outputs, store_inputs
from baretorch.passes.equivalence import Reference, own_reference
from baretorch.passes.layerwise import RecordedLayer
from baretorch.stopwatch import timed

METHOD = "forward"
HYBRID = (
    ": float, though its weights are int8; LiteRT quantizes inputs at run time, so there is no result to compare with"
)
MICRO = ": LiteRT for microcontrollers computes it, but LiteRT does not, so there is no result to compare with"
CUSTOM = "LiteRT does not know TensorFlow Lite Micro's own operators, so there is no result to compare with"
MISSING = 'LiteRT is not installed, so there is no result to compare with: pip install "baretorch[tflite]"'


@dataclass(frozen=True, eq=False)
class Read:
    """A file, its selected subgraph and its Graph, notes for users, and why LiteRT has no result to compare with."""

    model: TfModel
    index: int
    graph: Graph
    notes: tuple[str, ...]
    incomparable: str

    @property
    def subgraph(self) -> Subgraph:
        return self.model.subgraphs[self.index]


def read_tflite(data: bytes, name: str, method: str | None = None, trust: bool = False) -> Read:
    """Read a file. Nothing in it runs, and nothing much larger than the file is allocated, unless the user trusts it.
    Of several signatures, the one called `method`, or the first, is selected."""
    model = read_model(data)
    methods = dict(model.signatures) if len(set(model.signatures.values())) > 1 else {METHOD: 0}
    chosen = one_of(methods, method)
    subgraph = model.subgraphs[methods[chosen]]
    if not trust:
        check_sizes(model, subgraph)
    made = to_graph(model, subgraph, name)
    others = [m for m in methods if m != chosen]
    left = (f"only signature {chosen} is read, not {', '.join(others)}",) if others else ()
    notes = (*_misstated_axes(subgraph), *made.notes, *left)
    layers, why = (made.hybrid, HYBRID) if made.hybrid else (made.micro, MICRO)
    many = f" and {len(layers) - 1} more" if len(layers) > 1 else ""
    return Read(model, methods[chosen], made.graph, notes, f"{layers[0]}{many}{why}" if layers else "")


def _misstated_axes(subgraph: Subgraph) -> tuple[str, ...]:
    """Return a note if scales are stated for a dimension that their tensors do not have."""
    found = [(t, t.misstated.number) for t in subgraph.tensors if t.misstated is not None]
    if not found:
        return ()
    (first, number), many = found[0], f" and {len(found) - 1} more" if len(found) > 1 else ""
    return (f"{first}{many}: the file states scales of dimension {number}, and they are read as those of dimension 0",)


def load_tflite(request: LoadRequest) -> Source:
    """Load a TensorFlow Lite file. If LiteRT is installed, it computes the model's own results."""
    request.need_fixed("a .tflite")
    with timed("model"):
        data = request.file.read_bytes()
        read = read_tflite(data, request.name, request.method, request.trust)
        graph, subgraph = read.graph, read.subgraph
        notes: list[str] = []
        if request.inputs is None:
            request = replace(request, inputs=examples_of(request.file, graph, notes, request.calibration))
        examples = _examples(graph) if request.inputs is None else example_inputs(request, graph)
        source = Source(
            request.name,
            {METHOD: graph},
            examples,
            notes=(*read.notes, *notes),
            calls=len(subgraph.operators),
            calls_are="TFLite operator",
            texts={"tflite": lambda: text(subgraph)},
        )
    if not litert.is_installed():
        return replace(source, notes=(*source.notes, MISSING))
    if any(o.custom for o in subgraph.operators):
        return replace(source, notes=(*source.notes, CUSTOM))
    if read.incomparable:
        return replace(source, notes=(*source.notes, read.incomparable))
    if read.index:
        return source
    with timed("LiteRT"):
        try:
            return _with_answers(source, _Runtime(read.model.corrected(), read.model, subgraph, graph))
        except CompileError as error:
            error.at = error.at or (str(request.file),)
            raise


@dataclass(frozen=True)
class _Runtime:
    """LiteRT with real numbers as inputs and outputs."""

    data: bytes
    model: TfModel
    subgraph: Subgraph
    graph: Graph

    def answers(self, inputs: Sequence[Array], runs: int) -> list[tuple[Array, ...]]:
        """Return the outputs of several runs as real numbers."""
        interpreter = self.interpreter()
        return [self.run(interpreter, inputs) for _ in range(runs)]

    def run(self, interpreter: litert.LiteRt, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Return the outputs of one run as real numbers."""
        outputs = self.subgraph.outputs
        made = interpreter.run(self.given(inputs), outputs)
        return real_outputs(self.graph, [_from_file(self.subgraph.tensors[i], made[i]) for i in outputs])

    def interpreter(self) -> litert.LiteRt:
        return litert.LiteRt(self.data, [o.name for o in self.subgraph.operators])

    def given(self, inputs: Sequence[Array]) -> dict[int, Array]:
        tensors = self.subgraph.tensors
        values = store_inputs(self.graph, inputs)
        return {i: _for_file(tensors[i], x) for i, x in zip(self.subgraph.inputs, values, strict=True)}

    def layers(self, inputs: Sequence[Array]) -> Iterator[RecordedLayer]:
        """Yield every operator that computes a part of the result, with LiteRT's own inputs and outputs. Values known
        ahead of the run, such as sizes, are constants of each layer too."""
        tensors, known = self.subgraph.tensors, known_ahead(self.subgraph)
        operators = [o for o in self.subgraph.operators if o.name not in VARIABLES and not known.issuperset(o.outputs)]
        wanted = sorted({i for o in operators for i in (*o.inputs, *o.outputs) if i >= 0 and not is_kept(tensors[i])})
        values = self.interpreter().run(self.given(inputs), wanted)
        made = {i: memoryview(values[i].tobytes()) for i in known.intersection(wanted) if tensors[i].data is None}
        tensors = tuple(replace(t, data=made[t.index]) if t.index in made else t for t in tensors)
        for operator in operators:
            graph = layer_graph(self.model, replace(self.subgraph, tensors=tensors), operator)
            read = [
                i
                for i in dict.fromkeys(operator.inputs)
                if i >= 0 and tensors[i].data is None and not is_kept(tensors[i])
            ]
            yield RecordedLayer(
                layer_name(tensors[operator.outputs[0]]),
                operator.name,
                graph,
                tuple(_from_file(tensors[i], values[i]) for i in read),
                tuple(_from_file(tensors[i], values[i]) for i in operator.outputs),
            )


def _with_answers(source: Source, runtime: _Runtime) -> Source:
    """Return the source with LiteRT's results; for a float model, every pass is compared with them."""
    try:
        first, again = runtime.answers(source.examples, 2)
    except Refusal as refusal:  # a crash is an error, because LiteRT decides whether a file is valid
        why = ", ".join((refusal.what, *refusal.have))
        return replace(source, notes=(*source.notes, f"no result to compare with: {why}"))
    graph = runtime.graph
    references: Mapping[str, Reference] = {}
    if not graph.is_quantized:
        own = own_reference(graph, source.examples)
        runs = own.runs
        references = {METHOD: Reference(first if runs == 1 else (*first, *again), runs, own.moved, source.examples)}
    return replace(
        source,
        expected=first,
        expected_again=again,
        library=litert.LIBRARY,
        references=references,
        layers=lambda: runtime.layers(source.examples),
        eager=lambda: Original(graph, lambda: partial(runtime.run, runtime.interpreter())),
    )


def _examples(graph: Graph) -> tuple[Array, ...]:
    """Return seeded inputs as real numbers; int8 ones cover their whole range."""
    rng = np.random.default_rng(0)
    found = []
    for t, x in zip(
        graph.of(graph.inputs), random_inputs((t.shape, t.dtype) for t in graph.of(graph.inputs)), strict=True
    ):
        if t.is_quantized:
            limits = np.iinfo(t.dtype.numpy)
            x = as_real(t, rng.integers(limits.min, limits.max + 1, t.shape).astype(t.dtype.numpy))
        found.append(x)
    return tuple(found)


def _for_file(t: TfTensor, x: Array) -> Array:
    """Convert a value of the Graph to the file's form, which is uint8 for some int8."""
    if stored_as(t) is not None and t.type == "uint8":
        return (x.astype(np.int16) + 128).astype(np.uint8)
    return x.astype(t.type)


def _from_file(t: TfTensor, x: Array) -> Array:
    """Convert a value of the file to the Graph's form: uint8 to int8, float16 to float32."""
    if stored_as(t) is not None and t.type == "uint8":
        return (x.astype(np.int16) - 128).astype(np.int8)
    return x.astype(np.float32) if x.dtype == np.float16 else x


def text(subgraph: Subgraph) -> str:
    """Print the operators of the file, one line each."""
    tensors = subgraph.tensors
    lines = []
    for o in subgraph.operators:
        inputs = ", ".join(str(tensors[i]) if i >= 0 else "none" for i in o.inputs)
        lines.append(f"{', '.join(str(tensors[i]) for i in o.outputs)} = {o.name}({inputs})")
    return "\n".join(lines) + "\n"
