"""Anomaly detection, an autoencoder of linear layers: 267,928 parameters, 264,192 MACs.

The machine-listening model of MLPerf Tiny: 640 numbers of a spectrogram squeezed through eight and restored. A machine
that sounds unusual is restored badly. Every layer but the last has BatchNorm, which vanishes into the weights.
"""

from itertools import pairwise

import torch
from common import picture, samples, seeded, values
from torch import nn

SIZES = (640, 128, 128, 128, 128, 8, 128, 128, 128, 128)


def autoencoder() -> nn.Module:
    layers: list[nn.Module] = []
    for in_, out in pairwise(SIZES):
        layers += [nn.Linear(in_, out), nn.BatchNorm1d(out), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(SIZES[-1], SIZES[0]))


def model() -> nn.Module:
    return seeded(autoencoder)


def inputs() -> tuple[torch.Tensor, ...]:
    return (values(1, 640),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    """Five frames of 128 spectral bands: they hardly change from one to the next."""
    return samples(lambda seed: picture(1, 5, 128, seed).reshape(1, 640))
