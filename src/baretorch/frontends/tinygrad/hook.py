"""Wraps tinygrad's methods when it is imported, and never imports it itself.

A list of layers may hold `Tensor.relu`, so the methods must be watched before the model file runs. The watch costs a
comparison per call while nothing is traced.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from baretorch.frontends.tinygrad.trace import RANDOM, SHOWS, plain_call, record_calls
from baretorch.frontends.tinygrad.zig import choose_device, use_zig

# Operators that have a meaning of their own; the others call a method that has a name.
OPERATORS = ("__getitem__", "__setitem__", "__lt__", "__le__", "__gt__", "__ge__")
LAYERS = ("Embedding", "LSTMCell", "GroupNorm", "InstanceNorm", "LayerNorm", "RMSNorm")
MARK = "_baretorch"


def _watch_tensor(module: ModuleType) -> None:
    tensor = module.Tensor
    for name, method in inspect.getmembers(tensor, inspect.isfunction):
        still = isinstance(inspect.getattr_static(tensor, name), staticmethod)
        if not still and (not name.startswith("_") or name in OPERATORS or name in SHOWS):
            setattr(tensor, name, record_calls(name, method))
    tensor._next_counter = staticmethod(record_calls(RANDOM, tensor._next_counter))
    tensor.einsum = classmethod(record_calls("einsum", inspect.getattr_static(tensor, "einsum").__func__))


def _watch_layers(module: ModuleType) -> None:
    for name in LAYERS:
        layer = getattr(module, name)
        layer.__call__ = record_calls(name, layer.__call__)


def _watch_wrapper(module: ModuleType, name: str) -> None:
    wrapper = getattr(module, name)
    wrapper.__call__ = plain_call(wrapper.__call__)


WATCHES: Mapping[str, Callable[[ModuleType], None]] = {
    "tinygrad.tensor": _watch_tensor,
    "tinygrad.nn": _watch_layers,
    "tinygrad.engine.jit": lambda module: _watch_wrapper(module, "TinyJit"),
    "tinygrad.function": lambda module: _watch_wrapper(module, "_function"),
    "tinygrad.runtime.support.compiler_cpu": use_zig,
}


class _Finder(MetaPathFinder):
    """Finds tinygrad's modules as Python does, and wraps their methods after the import."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "tinygrad":
            choose_device()
        if name not in WATCHES:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Watching(spec.loader)
        return spec


class _Watching(Loader):
    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _watch(module)


def _watch(module: ModuleType) -> None:
    if not hasattr(module, MARK):
        WATCHES[module.__name__](module)
        setattr(module, MARK, True)


_FINDER = _Finder()


@contextmanager
def watch_tinygrad() -> Iterator[None]:
    """Wrap tinygrad's methods in modules that were imported before, in the block, or later."""
    for name in WATCHES:
        module = sys.modules.get(name)
        if module is not None:
            _watch(module)
    first = _FINDER not in sys.meta_path
    if first:
        sys.meta_path.insert(0, _FINDER)
    try:
        yield
    finally:
        if first and sys.modules.get("tinygrad") is None:
            sys.meta_path.remove(_FINDER)
