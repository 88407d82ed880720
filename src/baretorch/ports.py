"""What a Graph's caller gives and gets: tensors or arrays of any library in, arrays out, as their shapes are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from baretorch.errors import CompileError
from baretorch.ir import Array, Graph

Answer: TypeAlias = Array | tuple[Array, ...]


class Runner(Protocol):
    """Something that runs a model: calling it gives the answer to one set of inputs."""

    def __call__(self, *inputs: Any) -> Answer: ...

    def reset(self) -> None:
        """Let the model forget what it remembers between runs."""


def arranged(graph: Graph, inputs: Sequence[Any]) -> list[Array]:
    """The caller's tensors or arrays, checked, in the memory order of the C interface."""
    if len(inputs) != len(graph.inputs):
        raise CompileError(f"run() takes {len(graph.inputs)} input(s), {len(inputs)} were given")
    arrays = []
    for x, port in zip(inputs, graph.takes(), strict=True):
        array = np.asarray(x.detach().numpy() if hasattr(x, "detach") else x)
        if array.shape != port.shape or array.dtype != port.dtype.numpy:
            raise CompileError(
                f"input {port.tensor.name} has the wrong shape or type",
                have=f"{array.dtype}{list(array.shape)}",
                need=f"{port.dtype.label}{list(port.shape)}",
            )
        arrays.append(port.to_memory(array))
    return arrays


def restored(graph: Graph, outputs: Sequence[Array]) -> Answer:
    """Outputs of the C interface as the caller has them, its own to change; of one output just that."""
    made = tuple(np.array(port.from_memory(y)) for y, port in zip(outputs, graph.gives(), strict=True))
    return made[0] if len(made) == 1 else made
