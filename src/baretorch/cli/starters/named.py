"""A model of another file, with what it needs beside it. Try: baretorch run FILE --board pico2w"""

from typing import Any

import numpy as np


def model() -> str:
    """The model to compile: its path from the folder of this file."""
    return "MODEL"


def inputs() -> tuple[Any, ...]:
    """One example of each input; its answer is compared with that of the model's own runtime."""
    rng = np.random.default_rng(0)
    return (
        rng.standard_normal((1, 1), np.float32),  # NAME
    )


# For --int8, some dozens of real inputs, each a tuple as inputs() returns:
# def calibration():
#     yield …
#
# For `baretorch evaluate`, what counts, by name; run(*inputs) gives the model's answer:
# def evaluate(run):
#     return {"accuracy": …}
