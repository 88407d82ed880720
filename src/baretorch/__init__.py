"""PyTorch models on bare-metal microcontrollers.

import baretorch
model = baretorch.compile(net, (example,), board="pico2w")
"""

__version__ = "0.1.0"

from baretorch.api import Memory, Model, compile  # noqa: E402  (the version is read by what is imported here)
from baretorch.errors import CompileError, InternalError  # noqa: E402

__all__ = ["CompileError", "InternalError", "Memory", "Model", "__version__", "compile"]
