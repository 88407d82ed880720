"""A graph as an nn.Module gives the original's answers, and learns."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from baretorch.frontends import from_module
from baretorch.ir import Graph, interpret
from baretorch.passes.order import FLOAT, stages
from baretorch.passes.prune import channels, without
from baretorch.tune.retrain import can_be_trained, trained


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(2, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, groups=8),
        nn.ReLU6(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(32, 4),
    ).eval()


def read(net: nn.Module, *inputs: torch.Tensor) -> Graph:
    return stages(from_module(net, inputs, "net").graph, FLOAT)[-1][1]


def test_it_takes_and_gives_what_the_original_does_also_in_batches() -> None:
    net, batch = network(), torch.randn(5, 2, 12, 12)
    graph = read(net, batch[:1])
    assert can_be_trained(graph)
    seen = []
    same = trained(graph, {}, lambda model: seen.append(model(batch)))
    with torch.no_grad():
        torch.testing.assert_close(seen[0], net(batch), rtol=1e-4, atol=1e-4)
    for t in graph.constants():
        np.testing.assert_array_equal(t.data, same[t.name].data)


def test_what_is_left_learns_and_its_weights_are_rounded_meanwhile() -> None:
    graph = read(network(), torch.randn(1, 2, 12, 12))
    small = without(graph, {channels(graph)[0].name: [1, 2, 5]})
    layer = next(n for n in small.nodes if len(n.inputs) == 3)
    values = []

    def train(model: nn.Module) -> None:
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.ones(3, 2, 12, 12)).square().sum().backward()
            optimizer.step()
            values.append(model(torch.ones(1, 2, 12, 12)).square().sum().item())

    after = trained(small, {layer.outputs[0]: 4}, train)
    assert values[-1] < values[0]
    assert after[layer.inputs[1]].shape[0] == 5
    before, now = (g[layer.inputs[1]].data for g in (small, after))
    assert before is not None and now is not None and not np.array_equal(before, now)
    answer = interpret(after, [np.ones(after[after.inputs[0]].shape, np.float32)])
    assert all(np.isfinite(y).all() for y in answer.values())


def test_what_cannot_be_trained() -> None:
    assert not can_be_trained(read(nn.Sequential(nn.Linear(4, 4), nn.GELU()), torch.randn(1, 4)))
    assert not can_be_trained(read(nn.Linear(4, 4), torch.randn(3, 4)))
