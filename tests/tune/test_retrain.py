"""A graph as an nn.Module gives the original's answers, and learns."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from baretorch.frontends import from_module
from baretorch.ir.graph import Graph, interpret
from baretorch.ops.int8.groups_of_inputs import round_in_groups
from baretorch.passes.order import FLOAT_PASSES, run_passes
from baretorch.passes.prune import channels, drop_channels
from baretorch.quantize.observers import per_channel
from baretorch.tune.refine import Grid, find_obstacle, retrain


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
    return run_passes(from_module(net, inputs, "net").graph, FLOAT_PASSES)[-1][1]


def test_it_takes_and_gives_what_the_original_does_also_in_batches() -> None:
    net, batch = network(), torch.randn(5, 2, 12, 12)
    graph = read(net, batch[:1])
    assert find_obstacle(graph) is None
    seen = []
    same = retrain(graph, {}, lambda model: seen.append(model(batch)))
    with torch.no_grad():
        torch.testing.assert_close(seen[0], net(batch), rtol=1e-4, atol=1e-4)
    for t in graph.constants():
        np.testing.assert_array_equal(t.data, same[t.name].data)


def test_what_is_left_learns_and_its_weights_are_rounded_meanwhile() -> None:
    graph = read(network(), torch.randn(1, 2, 12, 12))
    small = drop_channels(graph, {channels(graph)[0].name: [1, 2, 5]})
    layer = next(n for n in small.nodes if len(n.inputs) == 3)
    values = []

    def train(model: nn.Module) -> None:
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.ones(3, 2, 12, 12)).square().sum().backward()
            optimizer.step()
            values.append(model(torch.ones(1, 2, 12, 12)).square().sum().item())

    after = retrain(small, {layer.outputs[0]: Grid(4)}, train)
    assert values[-1] < values[0]
    assert after[layer.inputs[1]].shape[0] == 5
    before, now = (g[layer.inputs[1]].data for g in (small, after))
    assert before is not None and now is not None and not np.array_equal(before, now)
    answer = interpret(after, [np.ones(after[after.inputs[0]].shape, np.float32)])
    assert all(np.isfinite(y).all() for y in answer.values())


def test_weights_are_rounded_to_the_grid_that_the_image_has() -> None:
    """The weights are int4 with a factor for each 32 inputs, and those of one group are much smaller than the
    others."""
    graph = read(nn.Sequential(nn.Linear(70, 3, bias=False)), torch.randn(1, 70))
    (layer,) = graph.nodes
    weight = graph[layer.inputs[1]].data
    assert weight is not None
    weight[:, 32:64] /= 16
    seen: list[torch.Tensor] = []

    def train(model: nn.Module) -> None:
        seen.append(model(torch.eye(70)).detach().reshape(70, 3).T)

    retrain(graph, {layer.outputs[0]: Grid(4, 32)}, train)
    scales = np.array(per_channel(weight, 4, 32).scale)
    stored = round_in_groups(weight.astype(np.float64), scales) * scales[:, None]
    off = np.abs(seen[0].numpy() - weight).max(axis=0), np.abs(stored - weight).max(axis=0)
    assert max(off[0][32:64]) <= 1.2 * max(off[1][32:64]), "steps of their own"
    assert len(np.unique(seen[0].numpy()[0, :32])) <= 15, "and of 4 bits"


def test_what_cannot_be_trained() -> None:
    class Best(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x).topk(2).values

    strange = read(Best(), torch.randn(1, 4))
    assert find_obstacle(strange) == "topk has no gradient, so layers before it cannot be trained"
    mixed = read(nn.Linear(4, 4), torch.randn(3, 4))
    assert find_obstacle(mixed) == (
        "train(model) does not support a model whose inputs and outputs do not have a batch first"
    )


def test_weights_that_are_left_out_stay_so() -> None:
    graph = read(nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 2)), torch.randn(1, 8))
    layer = graph.nodes[0]
    mask = np.ones((6, 8), np.float32)
    mask[2:, :4] = 0

    def train(model: nn.Module) -> None:
        optimizer = torch.optim.Adam(model.parameters(), 0.05, weight_decay=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.ones(3, 8)).square().sum().backward()
            optimizer.step()

    after = retrain(graph, {layer.outputs[0]: Grid(8)}, train, {layer.inputs[1]: mask})[layer.inputs[1]].data
    before = graph[layer.inputs[1]].data
    assert before is not None and after is not None
    assert (after[mask == 0] == 0).all() and (after[mask == 1] != before[mask == 1]).all()
