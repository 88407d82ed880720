"""The camera's firmware runs this model: the small convolutional network of examples/mnist, with probabilities as its
output."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "mnist"))
import cnn


def model() -> nn.Module:
    return nn.Sequential(cnn.model(), nn.Softmax(1)).eval()


inputs, calibration = cnn.inputs, cnn.calibration


def evaluate(run: Callable[..., np.ndarray], samples: int = cnn.TESTS) -> dict[str, float]:
    return cnn.evaluate(run, samples)
