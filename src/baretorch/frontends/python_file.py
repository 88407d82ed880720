"""Converts a Python model file to a Source. The file is code, and runs. The result of model() determines the library:
PyTorch, tinygrad, or that of another file, which it names. A library is imported only if it is needed."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from baretorch.frontends.model_file import (
    as_inputs,
    is_module,
    is_tinygrad,
    is_trainable,
    load_model_file,
    no_model,
)
from baretorch.frontends.source import Asked, Source
from baretorch.frontends.tinygrad.source import from_methods as from_tinygrad
from baretorch.frontends.torch.source import from_methods as from_torch
from baretorch.stopwatch import timed


def load_python(asked: Asked, load_named: Callable[[Asked], Source]) -> Source:
    """Load a Python file with model() and inputs(); `load_named` reads the file that model() may name."""
    if "torch" in _imports(asked.file):
        with timed("import"):
            import baretorch.frontends.torch.export  # noqa: F401
    with timed("model"):
        model, methods, calibration = load_model_file(asked.file, asked.arguments)
    if isinstance(model, Path):
        source = load_named(replace(asked, file=model, inputs=methods.get("forward")))
        return replace(source, named=model, calibration=calibration)
    asked.need_fixed("a model in Python")
    with timed("export"):
        return replace(_from_methods(model)(model, methods, asked.name, asked.method), calibration=calibration)


def from_object(model: Any, inputs: Any, name: str) -> Source:
    """Make a Source of an nn.Module or a callable of tinygrad, with example inputs; a trainable model may use its own
    instead of `inputs`."""
    if not is_module(model) and not is_tinygrad(model):
        raise no_model(model, "compile() is given")
    methods = {} if inputs is None else {"forward": as_inputs(inputs, model, who="compile()")}
    return _from_methods(model)(model, methods, name)


def _from_methods(model: Any) -> Callable[..., Source]:
    if is_trainable(model):
        return type(model).as_source  # type: ignore[no-any-return]
    return from_tinygrad if is_tinygrad(model) else from_torch


def _imports(file: Path) -> set[str]:
    """Return the packages that a file imports; none if it is not valid Python."""
    try:
        nodes = list(ast.walk(ast.parse(file.read_bytes())))
    except (SyntaxError, ValueError):
        return set()
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return {name.partition(".")[0] for name in names}
