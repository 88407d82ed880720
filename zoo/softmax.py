"""A softmax over ten scores and nothing else: 0 parameters, 0 MACs.

The last layer of most classifiers on its own. It shows what one operator with an exponential in it costs on a chip
without a mathematics library.
"""

import torch
from common import samples, values
from torch import nn


def model() -> nn.Module:
    return nn.Softmax(dim=-1).eval()


def inputs() -> tuple[torch.Tensor, ...]:
    return (3 * values(1, 10),)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    return samples(lambda seed: 3 * values(1, 10, seed=seed))
