"""The same digits, the same weights, in tinygrad: the model is three lines."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from data import images_and_labels
from tinygrad import Tensor, nn


def weights() -> dict[str, Tensor]:
    with np.load(Path(__file__).with_name("weights.npz")) as stored:
        return {name: Tensor(stored[name].astype(np.float32)) for name in stored}


def model() -> Callable[[Tensor], Tensor]:
    layers = [nn.Linear(784, 400), Tensor.relu, nn.Linear(400, 10)]
    nn.state.load_state_dict(layers, weights(), verbose=False)
    return lambda x: x.sequential(layers)


def inputs() -> tuple[np.ndarray, ...]:
    return (images_and_labels("t10k", 1)[0],)


def calibration() -> list[tuple[np.ndarray, ...]]:
    """Training images: the test images are for the test."""
    return [(image[None],) for image in images_and_labels("train", 64)[0]]


def evaluate(run: Callable[..., Any], samples: int = 200) -> dict[str, float]:
    """The share of test images whose digit is named rightly."""
    images, digits = images_and_labels("t10k", samples)
    right = [int(run(image[None]).argmax()) == digit for image, digit in zip(images, digits, strict=True)]
    return {"accuracy": float(np.mean(right))}
