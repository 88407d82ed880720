"""Which of four inputs is the largest: a model with calibration data and a task."""

import torch
from torch import nn


def model() -> nn.Module:
    net = nn.Linear(4, 4, bias=False)
    with torch.no_grad():
        net.weight.copy_(torch.eye(4))
    return net


def draw(seed: int, count: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(1, 4, generator=generator) for _ in range(count)]


def inputs() -> tuple[torch.Tensor, ...]:
    return (draw(0, 1)[0],)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    return [(x,) for x in draw(1, 16)]


def evaluate(run, samples: int = 40) -> dict[str, float]:
    right = sum(int(run(x).argmax()) == int(x.argmax()) for x in draw(2, samples))
    return {"accuracy": right / samples}
