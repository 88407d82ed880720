"""A module through the frontend and every pass, compared with PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tests.graph_text import parse
from torch import Tensor, nn

from baretorch.frontends import from_module
from baretorch.ir.graph import Graph, interpret
from baretorch.ir.text import to_text
from baretorch.passes.order import PASSES, lower_graph
from baretorch.pipeline import verify


class Function(nn.Module):
    """A function of tensors as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


def check_module(
    module: nn.Module | Callable[..., Any], *inputs: Tensor, tolerance: tuple[float, float] = (1e-4, 1e-5)
) -> Graph:
    """Lower the module; before the first pass and after each, the Graph is sound and means what PyTorch computes, and
    its text parses back. Gives the Graph after the last."""
    model = module if isinstance(module, nn.Module) else Function(module)
    source = from_module(model.eval(), inputs, "m")
    assert source.expected is not None
    rtol, atol = tolerance
    graph = source.graph
    for rewrite in (verify, *PASSES):
        graph = verify(rewrite(graph))
        made = interpret(graph, source.examples)
        for name, want in zip(graph.outputs, source.expected, strict=True):
            assert (made[name].shape, made[name].dtype) == (want.shape, want.dtype)
            np.testing.assert_allclose(made[name], want, rtol=rtol, atol=atol)
        text = to_text(graph)
        assert to_text(parse(text)) == text
    assert to_text(graph) == to_text(lower_graph(source.graph))
    return graph


def names(graph: Graph) -> list[str]:
    """The operators of a Graph, in order."""
    return [node.op.name for node in graph.nodes]
