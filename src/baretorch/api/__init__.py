"""Provide the Python interface: the functions of the command line as objects.

model = baretorch.compile(net, (example,), board="pico2w")
model.flash, model.ram, model.time_ms, model.accuracy
outputs = model.run(x)
model.profile()
int8 = baretorch.compile(net, (example,), board="pico2w", calibration=samples)
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, Unpack

from baretorch import frontends, pipeline
from baretorch.api.errors import short_errors
from baretorch.api.model import Accuracy, Memory, Model
from baretorch.api.summary import Summary
from baretorch.errors import CompileError
from baretorch.escape import line, quote
from baretorch.frontends.inputs import is_trainable
from baretorch.options import OPTIONS, CompileOptions, read_options
from baretorch.report.terminal.progress import notebook_progress
from baretorch.targets.boards import load_board

__all__ = ["Accuracy", "Memory", "Model", "Summary", "compile", "trainable"]

TRAINABLE = {"keep_float", "config", "shape", "state", "fix", "trust"}  # the options of trainable()


@short_errors
def compile(
    model: Any,
    inputs: Any = None,
    *,
    board: str,
    name: str = "model",
    calibration: Iterable[Any] | str | Path | None = None,
    **options: Unpack[CompileOptions],
) -> Model:
    """Compile a model for a board.

    `model` is an nn.Module, a tinygrad callable, a module of `trainable`, or the path of a model file (.py, .pt2, .pte,
    .onnx, .tflite). A .py file is executed; other files are data, and nothing in them runs unless `trust` is set.
    `inputs` are example inputs: a tuple of tensors, a single tensor, or a dict by parameter names. Model files and
    modules of `trainable` have their own. `calibration` is an iterable of such inputs, or the path of an .npz file, and
    quantizes the model to int8. All other options have the names and values of the command line; `keep_float` is a
    list of layers, and `place` a dict from layers to banks. Warnings are Python warnings."""
    given: dict[str, object] = {**options, **({"int8": True} if calibration is not None else {})}
    if isinstance(calibration, (str, Path)):
        given["calibration"] = str(calibration)
        calibration = None
    asked = read_options(given)
    frontends.check_name(name)
    if not isinstance(board, (str, Path)):
        raise CompileError(f"compile(): board is {quote(board)}", need="the name of a board, or the path of a .toml")
    target = load_board(str(board))  # first: it fails faster
    with notebook_progress() as show:
        show("read the model", 0, 0)
        if isinstance(model, (str, Path)):
            source = pipeline.read(str(model), options=asked)
        elif inputs is None and not is_trainable(model):
            raise CompileError("compile() needs example inputs for a model", need="a tuple of example tensors")
        elif chosen := pipeline.arguments_of(asked):
            wrong = f"config: {' and '.join(chosen)} can be chosen of a model file only"
            raise CompileError(wrong, need="the path of one")
        else:
            source = frontends.from_object(model, inputs, name)
        if calibration is not None:
            source = replace(source, calibration=calibration)
        show("quantize" if asked.int8 else "optimize", 0, 0)
        lowered = pipeline.lower(source, asked)
        show("compile to C", 0, 0)
        compiled = pipeline.compile_lowered(lowered, target, asked)
    for text in lowered.warnings:
        warnings.warn(line(text), stacklevel=3)
    return Model(compiled, asked)


@short_errors
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
