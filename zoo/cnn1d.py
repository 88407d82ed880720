"""A convolutional network over time: 8,278 parameters, 358,592 MACs.

Three accelerometer axes, 128 samples, six activities: the usual network for wearables, vibration and ECG. Conv1d,
BatchNorm and max pools along one dimension, then the mean over time.
"""

import torch
from common import samples, seeded, signal, values
from torch import nn


def stage(in_: int, out: int) -> list[nn.Module]:
    return [nn.Conv1d(in_, out, 5, padding=2, bias=False), nn.BatchNorm1d(out), nn.ReLU(), nn.MaxPool1d(2)]


def cnn1d() -> nn.Module:
    return nn.Sequential(
        *stage(3, 16),
        *stage(16, 32),
        *stage(32, 32),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(32, 6),
        nn.Softmax(dim=-1),
    )


def model() -> nn.Module:
    return seeded(cnn1d)


def inputs() -> tuple[torch.Tensor, ...]:
    return (values(1, 3, 128),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    return samples(lambda seed: signal(3, 128, seed))
