"""Converts an ONNX file to a Source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from baretorch.errors import CompileError
from baretorch.files.read import read_toml
from baretorch.frontends.calibration import examples_of
from baretorch.frontends.source import LoadRequest, Source, example_inputs, one_of
from baretorch.ir.graph import Shape
from baretorch.ir.io import as_array
from baretorch.stopwatch import timed

METHOD = "forward"  # the only one
NOBODY = "neither onnxruntime nor onnx.reference can run this model, so there is no result to compare with"


def load_onnx(request: LoadRequest) -> Source:
    """Load an ONNX file."""
    with timed("import"):
        try:
            import onnx  # noqa: F401
        except ImportError as error:
            raise CompileError(
                "the onnx package is needed to read .onnx files and is not installed",
                have=str(error),
                try_='pip install "baretorch[onnx]"',
            ) from error
        from baretorch.frontends.onnx.fixed import fix_inputs
        from baretorch.frontends.onnx.interface import interface_of
        from baretorch.frontends.onnx.proto import model_to_text
        from baretorch.frontends.onnx.reader import read_model
        from baretorch.frontends.onnx.runtime import original, reference_of
        from baretorch.frontends.onnx.table import to_graph
    one_of({METHOD: None}, request.method)
    with timed("model"):
        model = read_model(request.file)
        state = request.state or _read_state_file(request.file)
        fix_inputs(model, request.fix, state)
        shapes = {**_given_shapes(model, state, request.inputs or ()), **request.shapes}
        interface = interface_of(model, shapes, state)
        graph, notes = to_graph(model, interface, request.name)
        notes_of_inputs: list[str] = []
        if request.inputs is None:
            found = examples_of(request.file, graph, notes_of_inputs, request.calibration)
            request = replace(request, inputs=found)
        source = Source(
            request.name,
            {METHOD: graph},
            example_inputs(request, graph),
            notes=(*interface.notes, *notes, *notes_of_inputs),
            texts={"onnx": lambda: model_to_text(model)},
            calls=len(model.graph.node),
            calls_are="ONNX node",
        )
        crashes: list[str] = []
        answered = reference_of(model, interface, source.examples, crashes)
        source = replace(source, notes=(*source.notes, *crashes))
        if answered is None:
            return replace(source, notes=(*source.notes, NOBODY))
        reference, library = answered
        count = len(interface.outputs)
        return replace(
            source,
            expected=reference.answers[:count],
            expected_again=reference.answers[-count:],
            references={} if graph.is_quantized else {METHOD: reference},  # passes are compared before rounding
            eager=lambda: original(model, interface, graph, library),
            library=library,
        )


def _given_shapes(model: Any, state: Mapping[str, str], inputs: Sequence[Any]) -> Mapping[str, Shape]:
    """Return the shapes that a Python file's inputs() defines for inputs with an open shape. State is not among
    them."""
    others = {t.name for t in model.graph.initializer} | set(state)
    taken = [i for i in model.graph.input if i.name not in others]
    return {i.name: as_array(x).shape for i, x in zip(taken, inputs, strict=False) if not _is_fixed(i)}


def _is_fixed(value: Any) -> bool:
    declared = value.type.tensor_type
    return declared.HasField("shape") and all(d.HasField("dim_value") for d in declared.shape.dim)


def _read_state_file(file: Path) -> Mapping[str, str]:
    """Read NAME.state.toml next to NAME.onnx: for each input that is state, the output with its next value."""
    state_file = file.with_suffix(".state.toml")
    if not state_file.is_file():
        return {}
    try:
        stated = read_toml(state_file)
    except (OSError, ValueError) as error:
        raise CompileError(f"cannot read {state_file}", have=str(error)[:200]) from error
    if not all(isinstance(output, str) for output in stated.values()):
        raise CompileError(f"{state_file} does not map inputs to outputs", need='lines like h = "h_next"')
    return stated
