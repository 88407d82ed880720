"""The model in PyTorch itself, called as an image is."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch

from baretorch.emulators.session import Answer, arranged, restored
from baretorch.errors import CompileError
from baretorch.frontends import Source
from baretorch.frontends.torch_export import run_module


class InPyTorch:
    """Calling it runs the nn.Module once, eagerly; state begins as the module has it."""

    def __init__(self, source: Source) -> None:
        if source.module is None:
            raise CompileError(f"{source.name} is not a Python model file, so PyTorch cannot run it")
        self._source = source
        self.reset()

    def __call__(self, *inputs: Any) -> Answer:
        program = self._source.program
        arranged(program, inputs)  # checks them
        given = iter(inputs)
        arguments = torch.utils._pytree.tree_map(
            lambda x: torch.as_tensor(next(given)) if isinstance(x, torch.Tensor) else x, self._source.torch_inputs
        )
        return restored(program, run_module(self._method, arguments, program.output_orders))

    def reset(self) -> None:
        source = self._source
        self._method = getattr(deepcopy(source.module) if source.program.state else source.module, source.method)
