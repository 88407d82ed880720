"""An ONNX file -> Source."""

from __future__ import annotations

from dataclasses import replace

from baretorch.errors import CompileError
from baretorch.frontends.source import Asked, Source, random_inputs
from baretorch.stopwatch import timed


def load_onnx(asked: Asked) -> Source:
    """A file of ONNX."""
    with timed("import"):
        try:
            import onnx  # noqa: F401
        except ImportError as error:
            raise CompileError(
                "the onnx package is needed to read .onnx files and is not installed",
                have=str(error),
                try_='pip install "baretorch[onnx]"',
            ) from error
        from baretorch.frontends.onnx.interface import interface_of
        from baretorch.frontends.onnx.reader import read_model
        from baretorch.frontends.onnx.runtime import reference_of
        from baretorch.frontends.onnx.table import to_graph
    with timed("model"):
        model = read_model(asked.file)
        interface = interface_of(model, {}, {})
        graph, notes = to_graph(model, interface, asked.name)
        examples = random_inputs((i.shape, i.dtype) for i in interface.inputs)
        source = Source(
            asked.name,
            {"forward": graph},
            examples,
            notes=(*interface.notes, *notes),
            calls=len(model.graph.node),
            library="nobody",
        )
        asked_runtime = reference_of(model, interface, examples)
        if asked_runtime is None:
            return source
        reference, library = asked_runtime
        count = len(interface.outputs)
        return replace(
            source,
            expected=reference.answers[:count],
            expected_again=reference.answers[-count:],
            references={"forward": reference},
            library=library,
        )
