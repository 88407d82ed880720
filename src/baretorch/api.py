"""Provide the Python interface: the functions of the command line as objects.

model = baretorch.compile(net, (example,), board="pico2w")
model.memory.arena, model.c_files["model.c"]
image = model.build("build/net")
outputs = model.run(x)
int8 = baretorch.compile(net, (example,), board="pico2w", calibration=samples)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

from baretorch import frontends, pipeline
from baretorch.errors import CompileError
from baretorch.escape import line, quote
from baretorch.files.write import scratch_of
from baretorch.firmware.app import need_server
from baretorch.firmware.types import Image
from baretorch.frontends.inputs import flat_like, is_trainable
from baretorch.ir.io import Answer, Runner
from baretorch.machines import open_machine
from baretorch.machines.session import Session
from baretorch.measure.facts import warnings_of
from baretorch.options import OPTIONS, read_options
from baretorch.targets.boards import load_board

TRAINABLE = {"keep_float", "config", "shape", "state", "fix", "trust"}  # the options of trainable()


@dataclass(frozen=True)
class Memory:
    """The bytes of the model itself, without runtime and stack."""

    arena: int
    lower_bound: int
    weights: int


@dataclass(repr=False)
class Model:
    """A model compiled for a board. It is built and run on demand, once."""

    compiled: pipeline.Compiled
    _image: Image | None = None
    _session: Session | None = None
    _remove: Callable[[], object] | None = None  # removes the temporary folder

    def __repr__(self) -> str:
        graph, memory = self.compiled.graph, self.memory
        dtype = "int8" if graph.is_int8 else "float32"
        sizes = f"arena {memory.arena:,} bytes, weights {memory.weights:,} bytes"
        return f"Model({graph.name} {dtype} for {self.compiled.board.name}: {sizes})"

    @property
    def c_files(self) -> dict[str, str]:
        """The generated C by file name."""
        return dict(self.compiled.c.files)

    @property
    def memory(self) -> Memory:
        plan = self.compiled.plan
        return Memory(plan.arena, plan.layout.lower_bound, plan.weight_bytes())

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons to distrust the results, such as unsuitable calibration data and layers that stay in float."""
        return (*warnings_of(self.compiled), *self.compiled.source.notes)

    def build(self, folder: str | Path | None = None) -> Image:
        """Build the image for the board, in `folder` or in a temporary one."""
        if self._image is None or folder is not None:
            if folder is None:
                folder, self._remove = scratch_of(self)
            self._stop()
            self._image = pipeline.build_image(self.compiled, Path(folder))
        return self._image

    def run(self, *inputs: Any, **named: Any) -> Answer:
        """Run on the emulated chip, which stays up between calls. Takes tensors or arrays, one by one, by name, or in
        the structure that compile() was given, such as a dict; returns arrays. Where the image stores int8 or int16
        with a scale, float32 holds real numbers, which are quantized, and an array of the stored type holds stored
        values, which are used unchanged. Outputs are real numbers."""
        return self._running()(*flat_like(self.compiled.source, inputs, named))

    def reset(self) -> None:
        """Reset the state that a model keeps between runs."""
        self._running().reset()

    def evaluate(self, metrics: Callable[[Runner], Mapping[str, float]]) -> dict[str, float]:
        """Return the result of `metrics(run)`, where `run` uses the emulated chip; evaluate() of a model file fits."""
        return dict(metrics(self._running()))

    def report(self, path: str | Path) -> None:
        """Write one HTML page about memory, time and accuracy, measured on the emulated chip with the examples."""
        from baretorch.explore.advice import advise
        from baretorch.measure.run import measure_model
        from baretorch.report.findings import Report
        from baretorch.report.page.write import write_page

        found = measure_model(self.compiled, self.build())
        write_page(Report(found.facts, found.profile, advise(found.facts, found.profile)), Path(path))
        if found.facts.mismatch:
            warnings.warn(line(found.facts.warnings[-1]), stacklevel=2)

    @property
    def instructions(self) -> int | None:
        """The number of instructions of the last run() on the chip; None before it, and if the emulator does not count
        them."""
        counts = self._session.machine.instructions() if self._session else ()
        return counts[-1] if counts else None

    def close(self) -> None:
        """End the emulation, and remove the temporary folder that build() made. A later run() builds the image
        again."""
        self._stop()
        if self._remove is not None:
            self._remove()
            self._remove = self._image = None

    def _stop(self) -> None:
        if self._session is not None:
            self._session.close()
        self._session = None

    def _running(self) -> Session:
        if self._session is None:
            need_server(self.compiled.options.app)
            machine = open_machine(self.build(), self.compiled.c.run, self.compiled.options.emulator)
            self._session = Session(machine, self.compiled.graph)
        return self._session


def compile(
    model: Any,
    inputs: Any = None,
    *,
    board: str,
    name: str = "model",
    calibration: Iterable[Any] | str | Path | None = None,
    **options: Any,
) -> Model:
    """Compile a model for a board.

    `model` is an nn.Module, a tinygrad callable, a module of `trainable`, or the path of a model file (.py, .pt2, .pte,
    .onnx, .tflite). A .py file is executed; other files are data, and nothing in them runs unless `trust` is set.
    `inputs` are example inputs: a tuple of tensors, a single tensor, or a dict by parameter names. Model files and
    modules of `trainable` have their own. `calibration` is an iterable of such inputs, or the path of an .npz file, and
    quantizes the model to int8. All other options have the names and values of the command line; `keep_float` is a
    list of layers, and `place` a dict from layers to banks. Warnings are Python warnings."""
    if calibration is not None:
        options |= {"int8": True}
    if isinstance(calibration, (str, Path)):
        options |= {"calibration": str(calibration)}
        calibration = None
    asked = read_options(options)
    frontends.check_name(name)
    if not isinstance(board, (str, Path)):
        raise CompileError(f"compile(): board is {quote(board)}", need="the name of a board, or the path of a .toml")
    target = load_board(str(board))  # first: it fails faster
    if isinstance(model, (str, Path)):
        source = pipeline.read(str(model), options=asked)
    elif inputs is None and not is_trainable(model):
        raise CompileError("compile() needs example inputs for a model", need="a tuple of example tensors")
    elif chosen := pipeline.arguments_of(asked):
        raise CompileError(f"config: {' and '.join(chosen)} can be chosen of a model file only", need="the path of one")
    else:
        source = frontends.from_object(model, inputs, name)
    if calibration is not None:
        source = replace(source, calibration=calibration)
    lowered = pipeline.lower(source, asked)
    for text in lowered.warnings:
        warnings.warn(line(text), stacklevel=2)
    return Model(pipeline.compile_lowered(lowered, target, asked))


def trainable(model: Any, inputs: Any = None, *, name: str = "model", **options: Any) -> Any:
    """Return a torch.nn.Module that computes what the model computes in int8, so that it learns with this rounding.

    `model` is an nn.Module or a callable of tinygrad with example inputs, or a model file. The parameters of the module
    are the model's weights, by their names. It accepts batches: a multiple of the example inputs along the first
    dimension. Train it with any optimizer and loss; then give it to `compile`, or return it from model() of a model
    file. It is the model in evaluation mode: BatchNorm is folded into layers, and dropout does nothing. In training
    mode, each batch moves the ranges of activations. `state_dict()` has weights and ranges.
    Options: keep_float, config, shape, state and trust."""
    if others := sorted(set(options) - TRAINABLE):
        raise CompileError(f"trainable() has no option {others[0]!r}", have=", ".join(sorted(TRAINABLE)))
    asked = read_options({**options, "int8": True})
    if isinstance(model, (str, Path)):
        source = pipeline.read(str(model), options=asked)
    elif inputs is None:
        raise CompileError("trainable() needs example inputs for a model", need="a tuple of example tensors")
    else:
        source = frontends.from_object(model, inputs, name)
    return pipeline.make_trainable(source, asked)


def _document_options(function: Any) -> None:
    """Show help() and editors the options that compile() takes."""
    own = signature(function)
    taken = [p for p in own.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
    options = [
        Parameter(o.name, Parameter.KEYWORD_ONLY, default=o.plain_default)
        for o in OPTIONS.values()
        if o.name not in own.parameters
    ]
    function.__signature__ = own.replace(parameters=[*taken, *options])
    helps = (f"    {o.name}: {o.python_help}" for o in OPTIONS.values())
    function.__doc__ = "\n".join([function.__doc__ or "", "", *helps])


_document_options(compile)
