"""A model file is Python with plain functions: model() and inputs()."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from baretorch.errors import CompileError


def import_file(path: Path) -> ModuleType:
    """The file as a module. What the user's code raises is shown with its line."""
    spec = importlib.util.spec_from_file_location(f"baretorch_user_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise _user_error(path, "the file", error) from error
    finally:
        sys.path.pop(0)
    return module


def load_model_file(path: Path) -> tuple[Any, tuple[Any, ...]]:
    """What model() and inputs() return; inputs always as a tuple."""
    file = import_file(path)
    module = _call(path, file, "model")
    inputs = _call(path, file, "inputs")
    if not isinstance(inputs, (tuple, list)):
        inputs = (inputs,)
    return module, tuple(inputs)


def _call(path: Path, file: ModuleType, name: str) -> Any:
    function: Callable[[], Any] | None = getattr(file, name, None)
    if not callable(function):
        raise CompileError(
            f"{path} has no function {name}()",
            need="model() returning an nn.Module and inputs() returning a tuple of example tensors",
            try_="`baretorch new my_model.py` writes a model file to start from",
        )
    try:
        return function()
    except (Exception, SystemExit) as error:
        raise _user_error(path, f"{name}()", error) from error


def _user_error(path: Path, what: str, error: BaseException) -> CompileError:
    """The user's own exception: its type and text, at the deepest line of the user's file."""
    if isinstance(error, CompileError):
        return error
    line = None
    if isinstance(error, SyntaxError):
        line = error.lineno
    for frame in traceback.extract_tb(error.__traceback__):
        if Path(frame.filename).resolve() == path.resolve():
            line = frame.lineno
    return CompileError(
        f"{what} failed: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}".rstrip(": "),
        at=f"{path.name}:{line}" if line else str(path),
    )
