"""PyTorch models on bare-metal microcontrollers.

import baretorch
model = baretorch.compile(net, (example,), board="pico2w")
"""

__version__ = "0.1.0"  # above the imports: what they import reads it

from baretorch.api import Memory, Model, compile
from baretorch.errors import CompileError, InternalError

__all__ = ["CompileError", "InternalError", "Memory", "Model", "__version__", "compile"]
