"""Converts an ONNX file to a Source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.files.read import read_toml
from baretorch.frontends.calibration import example_samples, examples_of
from baretorch.frontends.lowering import note_halves
from baretorch.frontends.source import LoadRequest, Original, Source, example_inputs, one_of
from baretorch.ir.graph import Builder, DType, Shape
from baretorch.ir.io import arrange_inputs, as_array
from baretorch.stopwatch import timed

if TYPE_CHECKING:
    from baretorch.frontends.onnx.integer import Range
    from baretorch.frontends.onnx.interface import Interface

METHOD = "forward"  # the only one
NOBODY = "neither onnxruntime nor onnx.reference can run this model, so there is no result to compare with"


DEFINED = "no runtime has the operators of integer networks: images are compared with the operators' definitions"


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
        from baretorch.frontends.onnx.classic_model import as_numbers
        from baretorch.frontends.onnx.fixed import fix_inputs
        from baretorch.frontends.onnx.halves import answers_in_halves, widen_halves
        from baretorch.frontends.onnx.integer import describe, is_integer
        from baretorch.frontends.onnx.interface import interface_of
        from baretorch.frontends.onnx.proto import model_to_text
        from baretorch.frontends.onnx.reader import read_model
        from baretorch.frontends.onnx.runtime import begin, original, reference_of
        from baretorch.frontends.onnx.table import to_graph
    one_of({METHOD: None}, request.method)
    with timed("model"):
        model, rewritten = as_numbers(read_model(request.file))
        state = request.state or _read_state_file(request.file)
        fix_inputs(model, request.fix, state)
        declared = model
        model, arithmetic, halves = widen_halves(declared)
        shapes = {**_given_shapes(model, state, request.inputs or ()), **request.shapes}
        interface = interface_of(model, shapes, state)
        notes_of_inputs: list[str] = []
        ranges = None
        if is_integer(model):
            request, ranges = _with_ranges(request, interface, notes_of_inputs)
        graph, notes = to_graph(model, interface, request.name, ranges, halves if ranges is None else {})
        if request.inputs is None:
            found = examples_of(request.file, graph, notes_of_inputs, request.calibration)
            request = replace(request, inputs=found)
        source = Source(
            request.name,
            {METHOD: graph},
            example_inputs(request, graph),
            notes=(
                *interface.notes,
                *rewritten,
                *notes,
                *note_halves({arithmetic.label, *(t.label for t in halves.values())}),
                *notes_of_inputs,
            ),
            texts={"onnx": lambda: model_to_text(declared)},
            calls=len(model.graph.node),
            calls_are="ONNX node",
        )
        if ranges is not None:
            return replace(source, notes=(*source.notes, describe(ranges), DEFINED))
        crashes: list[str] = []
        answered = reference_of(model, interface, source.examples, crashes)
        source = replace(source, notes=(*source.notes, *crashes))
        if answered is None:
            return replace(source, notes=(*source.notes, NOBODY))
        reference, library = answered
        count = len(interface.outputs)
        source = replace(
            source,
            expected=reference.answers[:count],
            expected_again=reference.answers[-count:],
            references={} if graph.is_quantized else {METHOD: reference},  # passes are compared before rounding
            eager=lambda: original(model, interface, graph, library),
            library=library,
        )
        if model is declared:
            return source
        own = answers_in_halves(declared, interface, source.examples)
        if own is None:
            note = f"no runtime computes this model in {arithmetic.label}, so it is compared in float32"
            return replace(source, notes=(*source.notes, note))
        found, run, library = own
        return replace(
            source,
            expected=found[:count],
            expected_again=found[-count:],
            eager=lambda: Original(graph, lambda: begin(run, interface)),
            library=library,
            arithmetic=arithmetic,
        )


def _with_ranges(request: LoadRequest, interface: Interface, notes: list[str]) -> tuple[LoadRequest, dict[str, Range]]:
    """Return the ranges of an integer network's inputs, and the request with example inputs of their types. Add `notes`
    about these."""
    from baretorch.frontends.onnx.integer import ranges_of

    if interface.state:
        raise CompileError(f"--state is not supported for integer networks: {interface.state[0].input.name}")
    b = Builder(request.name)
    ports = b.graph([b.input(i.name, i.shape, i.dtype) for i in interface.inputs], ())
    if request.inputs is not None:
        first = tuple(arrange_inputs(ports, request.inputs, "inputs()"))
        ranges = ranges_of(interface.inputs, [(x,) for x in first])
    else:
        samples = example_samples(request.file, ports, request.calibration)
        ranges = ranges_of(interface.inputs, None if samples is None else list(zip(*samples.parts, strict=True)))
        if samples is None:
            return request, ranges
        notes += samples.notes
        first = next(iter(samples))
    inputs = []
    for i, x in zip(interface.inputs, first, strict=True):
        wide = i.name in ranges and ranges[i.name].zero is None
        numbers = i.dtype in (DType.FLOAT32, DType.INT32)  # real ones, if they are stored as bytes
        inputs.append(x.astype(np.int32 if wide else np.float32) if numbers else x)
    return replace(request, inputs=tuple(inputs)), ranges


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
