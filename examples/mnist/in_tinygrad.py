"""Read the same digits with the same weights in tinygrad: the model is three lines."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from data import accuracy, images_and_labels, weights
from tinygrad import Tensor, nn

WEIGHTS = Path(__file__).with_name("weights.npz")


def model() -> Callable[[Tensor], Tensor]:
    layers = [nn.Linear(784, 400), Tensor.relu, nn.Linear(400, 10)]
    nn.state.load_state_dict(layers, {name: Tensor(w) for name, w in weights(WEIGHTS).items()}, verbose=False)
    return lambda x: x.sequential(layers)


def inputs() -> tuple[np.ndarray, ...]:
    return (images_and_labels("t10k", 1)[0],)


def calibration() -> list[tuple[np.ndarray, ...]]:
    """Training images: the test images are for the test."""
    return [(image[None],) for image in images_and_labels("train", 64)[0]]


def evaluate(run: Callable[..., Any], samples: int = 200) -> dict[str, float]:
    return accuracy(run, samples, lambda images: images)
