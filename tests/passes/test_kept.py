"""The next value of a state is read after the run, so no pass may change it, like an output."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from baretorch.frontends import from_module
from baretorch.frontends.torch.export import run_module
from baretorch.ir.graph import Builder, DType, State, interpret
from baretorch.ir.io import arrange_inputs
from baretorch.ir.verify import verify
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.functions import Tanh
from baretorch.ops.pool import MaxPool2d
from baretorch.passes.fuse import fuse_pool
from baretorch.pipeline import lower
from tests.models import int8_model

SHAPE = (1, 4, 6, 6)


class Remembering(nn.Module):
    """State becomes the result of a layer; the output is what a pass would fuse with that layer."""

    def __init__(self, layer: nn.Module, then: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> None:
        super().__init__()
        self.layer, self.then = layer, then
        self.register_buffer("state", torch.zeros_like(layer(x)))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        before = self.state * 1.0
        after = self.layer(x)
        self.state.copy_(after)
        return self.then(after), before


def norm(channels: int) -> nn.Module:
    made = nn.BatchNorm2d(channels)
    made.running_mean.uniform_(-1, 1)
    made.running_var.uniform_(1, 4)
    return made.eval()


def layers() -> dict[str, tuple[nn.Module, Callable[[torch.Tensor], torch.Tensor], tuple[int, ...]]]:
    torch.manual_seed(0)
    conv = nn.Conv2d(4, 8, 3, padding=1)
    return {
        "fuse_clamp": (nn.Linear(6, 8), torch.relu, (1, 4, 6)),
        "fuse_clamp of an image": (conv, torch.relu, SHAPE),
        "fuse_pool": (conv, lambda x: F.max_pool2d(x, 2), SHAPE),
        "fold_affine": (nn.Linear(6, 8), lambda x: x * torch.arange(1.0, 9.0) + 1, (1, 4, 6)),
        "fold_affine of an image": (conv, norm(8), SHAPE),
        "split_linear": (nn.Linear(6, 9), lambda x: x[..., :3] * x[..., 3:6] + x[..., 6:], (1, 4, 6)),
        "split_linear behind views": (
            nn.Linear(6, 8),
            lambda x: x.reshape(1, 4, 2, 4).permute(2, 0, 1, 3)[0] + x.reshape(1, 4, 2, 4).permute(2, 0, 1, 3)[1],
            (1, 4, 6),
        ),
        "layout": (nn.Sequential(conv, nn.Flatten()), nn.Linear(8 * 36, 3), SHAPE),
        "views": (conv, lambda x: x.permute(0, 2, 3, 1).reshape(1, -1), SHAPE),
    }


@pytest.mark.parametrize("name", list(layers()))
@pytest.mark.parametrize("int8", [False, True], ids=["float", "int8"])
def test_what_state_becomes_stays(name: str, int8: bool) -> None:
    layer, then, shape = layers()[name]
    net = Remembering(layer, then, torch.randn(shape)).eval()
    calls = [(torch.randn(shape),) for _ in range(3)]
    source = from_module(net, calls[0], "kept")
    graph = (int8_model(source, calls) if int8 else lower(source)).graph
    memory: dict[str, np.ndarray] = {}
    for inputs in calls:
        want = run_module(net, inputs, [port.order for port in graph.gives()])
        found = interpret(graph, arrange_inputs(graph, inputs), memory=memory)
        for output, right in zip(graph.outputs, want, strict=True):
            near = 0.05 if int8 else 1e-5
            np.testing.assert_allclose(found[output], right, atol=near * max(1.0, float(np.abs(right).max())))


def test_a_pool_of_what_state_becomes_is_not_fused() -> None:
    b = Builder("kept")
    x, state = b.input("x", (1, 4, 4, 1), DType.FLOAT32), b.input("s", (1, 4, 4, 2), DType.FLOAT32)
    y = b.add(Conv2d(), x, b.const("w", np.ones((2, 1, 1, 1), np.float32)))
    pooled = b.add(MaxPool2d((2, 2), (2, 2)), y)
    graph = b.graph([x], [pooled, b.add(Tanh(), state)], [State(state, y, np.zeros((1, 4, 4, 2), np.float32))])
    after = verify(fuse_pool(verify(graph)))
    assert [node.op.name for node in after.nodes] == [node.op.name for node in graph.nodes]
