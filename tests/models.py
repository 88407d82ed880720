"""Small PyTorch models that several tests compile, and how tests quantize and compile models."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from baretorch.frontends import Source
from baretorch.options import DEFAULT, Options
from baretorch.pipeline import Compiled, LoweredModel, compile_lowered, compile_source, lower, lower_file
from baretorch.targets.types import Board


def seeded(module: nn.Module) -> nn.Module:
    """Random weights and BatchNorm statistics that are not the identity."""
    torch.manual_seed(0)
    for m in module.modules():
        if isinstance(m, (nn.Linear, nn.Conv2d)):
            m.reset_parameters()
        if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d)):
            nn.init.normal_(m.weight)
            nn.init.normal_(m.bias)
            m.running_mean.normal_()
            m.running_var.uniform_(0.5, 2.0)
    return module.eval()


def mlp() -> nn.Module:
    return seeded(nn.Sequential(nn.Linear(4, 10), nn.ReLU(), nn.Linear(10, 3)))


class Cnn(nn.Module):
    """Padding, BatchNorm, depthwise, residual, pools, several outputs: every pass has work here."""

    def __init__(self) -> None:
        super().__init__()
        self.pad = nn.ZeroPad2d((1, 2, 0, 3))
        self.c1 = nn.Conv2d(3, 8, 3, stride=2)
        self.b1 = nn.BatchNorm2d(8)
        self.dw = nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False)
        self.b2 = nn.BatchNorm2d(8)
        self.c3 = nn.Conv2d(8, 8, 1)
        self.c4 = nn.Conv2d(8, 4, 3, padding=1)
        self.fc = nn.Linear(4 * 4 * 4, 10)
        self.bn = nn.BatchNorm1d(10)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = nn.functional.relu6(self.b1(self.c1(self.pad(x))))
        y = self.c3(torch.relu(self.b2(self.dw(x))))
        z = torch.relu(x + y)
        w = nn.functional.max_pool2d(torch.relu(self.c4(z)), 2)
        mean = nn.functional.adaptive_avg_pool2d(w, 1).flatten(1)
        scores = torch.softmax(torch.relu(self.bn(self.fc(w.flatten(1)))), -1)
        return scores, mean, torch.sigmoid(w).mean((2, 3)), torch.tanh(w) * 2 - 1


def cnn() -> nn.Module:
    return seeded(Cnn())


def cnn_input(batch: int = 1) -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(batch, 3, 15, 14)


def int8_model(source: Source, samples: Iterable[Any] | None = None, **options: Any) -> LoweredModel:
    """Quantize a model with these samples; without any, with random data."""
    return lower(replace(source, calibration=samples), Options(int8=True, **options))


def int8_file(path: Path | str, **options: Any) -> LoweredModel:
    """Read a model file and quantize the model with the file's calibration data."""
    return lower_file(str(path), Options(int8=True, **options))


def compile_model(model: Source | LoweredModel, board: Board, options: Options = DEFAULT) -> Compiled:
    """Compile a model as it was read, or one that is lowered already."""
    if isinstance(model, LoweredModel):
        return compile_lowered(model.with_io(options.io), board, options)
    return compile_source(model, board, options)
