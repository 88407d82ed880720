"""A model file is Python with plain functions: model(), inputs(), and optionally calibration() and evaluate()."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from baretorch.errors import CompileError

Evaluate: TypeAlias = Callable[[Callable[..., Any]], dict[str, float]]


def import_file(path: Path) -> ModuleType:
    """The file as a module. What the user's code raises is shown with its line."""
    spec = importlib.util.spec_from_file_location(f"baretorch_user_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        with _beside(path):
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise _user_error(path, "the file", error) from error
    return module


def load_model_file(path: Path) -> tuple[Any, dict[str, tuple[Any, ...]], Iterable[Any] | None]:
    """What model() returns; example inputs for each of its methods: those of methods(), or inputs() for forward; and
    what calibration() gives, if there is one."""
    with _beside(path):  # also for what these functions import
        file = import_file(path)
        module = _call(path, file, "model")
        methods = _call(path, file, "methods") if hasattr(file, "methods") else {"forward": _call(path, file, "inputs")}
    for name in methods:
        if not callable(getattr(module, name, None)):
            raise CompileError(
                f"methods() names {name!r}, which the model does not have", at=path.name, need="names of its methods"
            )
    calibration = _call(path, file, "calibration") if hasattr(file, "calibration") else None
    return module, {n: tuple(x) if isinstance(x, (tuple, list)) else (x,) for n, x in methods.items()}, calibration


def load_evaluate(path: str, samples: int | None = None) -> Evaluate:
    """The file's evaluate(run), which may take `samples` as well, to be called any number of times."""
    file = Path(path)
    if file.suffix != ".py":
        raise CompileError(f"{path} has no evaluate()", need="a Python model file")
    with _beside(file):
        module = import_file(file)
    function = getattr(module, "evaluate", None)
    if not callable(function):
        raise CompileError(
            f"{path} has no function evaluate()",
            need="evaluate(run) returning named numbers, where run(*inputs) gives the model's answer",
            try_='def evaluate(run): return {"accuracy": …}',
        )
    limits = {} if samples is None else {"samples": samples}
    if limits and "samples" not in inspect.signature(function).parameters:
        raise CompileError(f"evaluate() of {path} takes no number of samples", need="evaluate(run, samples=None)")

    def evaluate(run: Callable[..., Any]) -> dict[str, float]:
        try:
            with _beside(file):
                found = function(run, **limits)
        except (Exception, SystemExit) as error:
            raise _user_error(file, "evaluate()", error) from error
        if not isinstance(found, dict) or not found:
            raise CompileError(
                "evaluate() returns no metrics", at=path, have=repr(found), need="named numbers in a dict"
            )
        return {str(name): float(value) for name, value in found.items()}

    return evaluate


@contextmanager
def _beside(path: Path) -> Iterator[None]:
    """Let the file import modules from its own folder, and forget them afterwards: another model file may have a
    neighbour of the same name."""
    folder = str(path.resolve().parent)
    known = set(sys.modules)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
        new = {name: sys.modules[name] for name in set(sys.modules) - known}
        own = {name for name, m in new.items() if "." not in name and _home(m) == folder}
        for name in new:
            if name.partition(".")[0] in own:
                del sys.modules[name]


def _home(module: ModuleType) -> str:
    """The folder in which a top-level module or package was found."""
    file = getattr(module, "__file__", None)
    if not file:
        return ""
    return str(Path(file).parent.parent if hasattr(module, "__path__") else Path(file).parent)


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
