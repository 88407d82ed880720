"""The camera's firmware can also run this model: the 784-400-10 network of examples/mnist, with probabilities as its
output."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "mnist"))
import model as mlp


def model() -> nn.Module:
    return nn.Sequential(mlp.model(), nn.Softmax(1)).eval()


inputs, calibration = mlp.inputs, mlp.calibration


def evaluate(run: Callable[..., np.ndarray], samples: int = mlp.TESTS) -> dict[str, float]:
    return mlp.evaluate(run, samples)
