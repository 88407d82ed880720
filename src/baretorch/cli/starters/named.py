"""A model from another file, with example inputs. Try: baretorch run FILE --board pico2w"""

from typing import Any

import numpy as np


def model() -> str:
    """Return the path of the model to compile, relative to the folder of this file."""
    return "MODEL"


def inputs() -> tuple[Any, ...]:
    """Return one example of each input. Its result is compared with that of the model's own runtime."""
    rng = np.random.default_rng(0)
    return (
        rng.standard_normal((1, 1), np.float32),  # NAME
    )


# For --int8: a few dozen real inputs, each a tuple as inputs() returns.
# def calibration():
#     yield …
#
# For `baretorch evaluate`: metrics by name. run(*inputs) returns the model's outputs.
# def evaluate(run):
#     return {"accuracy": …}
