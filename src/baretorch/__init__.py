"""Compile trained models for bare-metal microcontrollers.

import baretorch
model = baretorch.compile(net, (example,), board="pico2w")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from baretorch.version import __version__

if TYPE_CHECKING:
    from baretorch.api import Memory, Model, compile, trainable
    from baretorch.errors import CompileError, InternalError

__all__ = ["CompileError", "InternalError", "Memory", "Model", "__version__", "compile", "trainable"]


def __getattr__(name: str) -> object:
    """Load a part of the interface when it is first asked for: the command line starts faster."""
    from importlib import import_module

    if name in ("CompileError", "InternalError"):
        return getattr(import_module("baretorch.errors"), name)
    if name in ("Memory", "Model", "compile", "trainable"):
        return getattr(import_module("baretorch.api"), name)
    raise AttributeError(f"module 'baretorch' has no attribute {name!r}")
