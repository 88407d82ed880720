"""Runs the model in PyTorch itself, call by call like an image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from baretorch.frontends.torch.export import run_module
from baretorch.frontends.torch.snapshot import copied_module
from baretorch.ir.graph import Graph
from baretorch.ir.io import Answer, arranged, restored


class InPyTorch:
    """Runs a method of the nn.Module eagerly, once per call; state starts with the module's values. `inputs` are
    example inputs with the structure of the method's arguments; `graph` describes its inputs and outputs. With
    `ordered`, equal elements are ordered by their index."""

    def __init__(self, module: Any, method: str, inputs: Sequence[Any], graph: Graph, ordered: bool = False) -> None:
        self._module, self._method, self._inputs, self._graph = module, method, tuple(inputs), graph
        self._ordered = ordered
        self.reset()

    def __call__(self, *inputs: Any) -> Answer:
        arranged(self._graph, inputs)  # checks them
        given = iter(inputs)
        arguments = torch.utils._pytree.tree_map(
            lambda x: torch.as_tensor(next(given)).clone() if isinstance(x, torch.Tensor) else x, self._inputs
        )
        orders = [port.order for port in self._graph.gives()]
        return restored(self._graph, run_module(self._own, arguments, orders, self._ordered, self._method))

    def reset(self) -> None:
        self._own = copied_module(self._module) if self._graph.state else self._module
