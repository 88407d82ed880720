"""Imports and calls the user's Python. Whatever it raises becomes an error with the line of the user's file."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

from baretorch.errors import CompileError
from baretorch.frontends.tinygrad.hook import watch_tinygrad

EXTRAS = ("onnx", "tflite", "tinygrad", "torch")  # packages that come with an extra of their name

_imported: ContextVar[dict[Path, ModuleType] | None] = ContextVar("imported", default=None)


@contextmanager
def import_once() -> Iterator[None]:
    """Import each model file only once in this block, however many of its functions are loaded."""
    token = _imported.set({})
    try:
        yield
    finally:
        _imported.reset(token)


def import_file(path: Path) -> ModuleType:
    """Import the file as a module. An error of the user's code is reported with its line."""
    known = _imported.get()
    if known is None or path not in known:
        module = _import(path)
        if known is None:
            return module
        known[path] = module
    return known[path]


def _import(path: Path) -> ModuleType:
    name = f"baretorch_user_{path.stem}".replace(".", "_")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with user_code(path, "the file"), import_neighbours(path), watch_tinygrad():
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        finally:
            _rename(name)
    return module


def show_value(value: Any) -> str:
    """Return a value for an error: its text, if that is short, and its type."""
    text, kind = repr(value), type(value).__name__
    if len(text) > 60 or "\n" in text:
        return kind
    return text if value is None or isinstance(value, (dict, list, tuple)) else f"{kind} {text}"


@contextmanager
def user_code(path: Path, what: str) -> Iterator[None]:
    """Report whatever the user's code raises, or exits with, as the user's error."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _user_error(path, what, error) from error


@contextmanager
def import_neighbours(path: Path) -> Iterator[None]:
    """Let the file import modules from its own folder, and forget them afterwards: another model file may have a
    neighbour with the same name."""
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
                _rename(name)


_numbers = count(1)


def _rename(name: str) -> None:
    """Register a module under a unique name instead of its own: Dynamo, which torch.cond uses, looks modules up by
    their `__name__` when the model runs, and caches them forever."""
    module = sys.modules.pop(name)
    module.__name__ = f"baretorch_user_{next(_numbers)}_{name.replace('.', '_')}"
    sys.modules[module.__name__] = module


def _home(module: ModuleType) -> str:
    """Return the folder in which a top-level module or package was found."""
    file = getattr(module, "__file__", None)
    if not file:
        return ""
    return str(Path(file).parent.parent if hasattr(module, "__path__") else Path(file).parent)


def _user_error(path: Path, what: str, error: BaseException) -> CompileError:
    """Return the error for the user's own exception: its type and text, at the deepest line of the user's file."""
    if isinstance(error, CompileError):
        return error
    line = None
    if isinstance(error, SyntaxError):
        line = error.lineno
    for frame in traceback.extract_tb(error.__traceback__):
        if Path(frame.filename).resolve() == path.resolve():
            line = frame.lineno
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    return CompileError(
        f"{what} failed: {describe_error(error)}",
        at=f"{path.name}:{line}" if line else str(path),
        try_=_install(missing) if missing else _remedy(error),
    )


def _install(module: str) -> str:
    """Return the command that installs a missing module for the Python that runs Baretorch."""
    if module in EXTRAS:
        return f'pip install "baretorch[{module}]"'
    return f"{shlex.quote(sys.executable)} -m pip install {module.partition('.')[0]}"


# What to do about an exception of torch in the user's functions: a pattern for its text, and remedies.
REMEDIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Weights only load failed|Can't get attribute .* on <module '__main__'",
        (
            "save weights, not the module: torch.save(net.state_dict(), 'net.pt')",
            "in model(): net = Net(); net.load_state_dict(torch.load('net.pt')); return net",
            "torch.load(path, weights_only=False) runs code from the file: only if you made it yourself",
        ),
    ),
    (
        "Attempting to deserialize object on a CUDA device|Torch not compiled with CUDA|Found no NVIDIA driver",
        ("torch.load(path, map_location='cpu')", "leave out .cuda() and .to('cuda'): the model is compiled on the CPU"),
    ),
)


def _remedy(error: BaseException) -> tuple[str, ...] | None:
    return next((remedies for pattern, remedies in REMEDIES if re.search(pattern, str(error))), None)


def describe_error(error: BaseException) -> str:
    """Return an exception's type and the first line of its text."""
    line = first_line(error)
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


def first_line(error: BaseException) -> str:
    """Return the first line of an exception's text; nothing if it has none."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))  # torch writes in bold
    return next((line.strip()[:200] for line in text.splitlines() if line.strip()), "")
