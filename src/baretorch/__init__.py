"""Compile trained models for bare-metal microcontrollers.

import baretorch
model = baretorch.compile(net, (example,), board="pico2w")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from baretorch.version import __version__

if TYPE_CHECKING:
    from baretorch.api import Accuracy, Memory, Model, Summary, compile, trainable
    from baretorch.errors import CompileError, InternalError

_ERRORS = ("CompileError", "InternalError")
_API = ("Accuracy", "Memory", "Model", "Summary", "compile", "trainable")

__all__ = [
    "Accuracy",
    "CompileError",
    "InternalError",
    "Memory",
    "Model",
    "Summary",
    "__version__",
    "compile",
    "trainable",
]


def __getattr__(name: str) -> object:
    """Load a part of the interface when it is first asked for: the command line starts faster."""
    from importlib import import_module

    if name in _ERRORS:
        return getattr(import_module("baretorch.errors"), name)
    if name in _API:
        return getattr(import_module("baretorch.api"), name)
    raise AttributeError(f"module 'baretorch' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, also those that are not loaded yet."""
    return sorted(__all__)
