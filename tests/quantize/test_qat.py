"""Quantization-aware training: a small model with BatchNorm learns in int8, and compiles to int8 throughout."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import baretorch
from baretorch.errors import CompileError
from baretorch.passes.to_int8 import float_layers
from baretorch.quantize.qat import convert_qat, prepare_qat, train_qat

STEPS = 40


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, padding=1, groups=8),
        nn.BatchNorm2d(8),
        nn.ReLU6(),
        nn.Flatten(),
        nn.Linear(128, 16),
        nn.BatchNorm1d(16),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(16, 3),
    )


def task() -> tuple[torch.Tensor, torch.Tensor]:
    """Noise, noise on a brighter ground, noise with a dark upper half."""
    torch.manual_seed(1)
    x, y = torch.randn(96, 1, 8, 8), torch.arange(96) % 3
    x[y == 1] += 0.7
    x[y == 2, :, :4] -= 1
    return x, y


@pytest.mark.slow
def test_training_in_int8(tmp_path: Path) -> None:
    x, y = task()
    prepared = prepare_qat(network(), (x[:4],))
    optimizer = torch.optim.Adam(prepared.parameters(), 1e-2)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(prepared(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2, "it learns"
    with torch.no_grad():
        trained = (train_qat(prepared, False)(x).argmax(1) == y).float().mean()
    model = baretorch.compile(convert_qat(prepared), (x[:1],), board="host")
    names = [node.op.name for node in model.compiled.graph.nodes]
    assert [n for n in names if n.startswith("q")] == ["quantize", "qconv2d", "qconv2d", "qlinear", "qlinear"]
    assert float_layers(model.compiled.graph) == []
    model.build(tmp_path)
    right = sum(int(model.run(image.unsqueeze(0)).argmax()) == digit for image, digit in zip(x, y, strict=True))
    model.close()
    assert right / len(y) >= trained - 0.02 and trained > 0.9


@pytest.mark.slow
def test_a_layer_can_stay_float() -> None:
    x, _ = task()
    model = baretorch.compile(convert_qat(prepare_qat(network(), (x[:4],), ["12"])), (x[:1],), board="host")
    assert [name.split()[0] for name in float_layers(model.compiled.graph)] == ["linear"]


def test_a_batch_is_needed() -> None:
    with pytest.raises(CompileError) as caught:
        prepare_qat(network(), (task()[0][:1],))
    assert caught.value.what == "prepare_qat() needs a batch as example"
