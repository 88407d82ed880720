"""One encoder block of a transformer, PyTorch's own: 33,472 parameters, 557,056 MACs.

Sixteen tokens of 64 numbers, four heads: the building block of small language, audio and sensor models. Self-attention
and two linear layers with GELU, each with a shortcut around it and a LayerNorm before it.
"""

import torch
from common import samples, seeded, values
from torch import nn


def encoder() -> nn.Module:
    return nn.TransformerEncoderLayer(
        64, 4, dim_feedforward=128, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
    )


def model() -> nn.Module:
    return seeded(encoder)


def inputs() -> tuple[torch.Tensor, ...]:
    return (values(1, 16, 64),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    return samples(lambda seed: values(1, 16, 64, seed=seed))
