"""Cases of the audio front end of TensorFlow Lite Micro. The torch side returns results that TFLM's own interpreter
computed once: `python -m tests.frontends.signal_golden` writes signal.npz again, with the package tflite-micro in an
environment of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from baretorch.ir.graph import Array
from baretorch.ops.filter_bank import (
    SignalFilterBank,
    SignalLog,
    SignalPcan,
    SignalSpectralSubtraction,
    SignalSquareRoot,
)
from baretorch.ops.signal import SignalAutoScale, SignalEnergy, SignalOp, SignalRfft, SignalWindow
from tests.ops.case import Case

GOLDEN = Path(__file__).parent / "signal.npz"
FAST = SignalSpectralSubtraction(-5, 2**31 - 1, 77777, -(2**31), 12345, 3, 17, 1)

# The operator of each case, and how many of its inputs are activations.
OPERATORS: dict[str, tuple[SignalOp, int]] = {
    "window rows": (SignalWindow(12), 1),
    "window limits": (SignalWindow(3), 1),
    "auto_scale noise": (SignalAutoScale(), 1),
    "auto_scale zeros": (SignalAutoScale(), 1),
    "auto_scale wraps": (SignalAutoScale(), 1),
    "rfft of 512, padded": (SignalRfft(512), 1),
    "rfft of 256, full scale": (SignalRfft(256), 1),
    "rfft rows of 32, padded": (SignalRfft(32), 1),
    **{f"rfft of {n}": (SignalRfft(n), 1) for n in (4, 8, 16, 64, 128)},
    "energy": (SignalEnergy(3, 20), 1),
    "filter_bank": (SignalFilterBank(), 1),
    "square_root": (SignalSquareRoot(), 2),
    "square_root of 32 bits": (SignalSquareRoot(), 2),
    "spectral_subtraction": (SignalSpectralSubtraction(409, 15975, 983, 15401, 819, 10, 14, 0), 2),
    "spectral_subtraction clamping": (FAST, 2),
    "pcan": (SignalPcan(6), 2),
    "pcan steep": (SignalPcan(17), 2),
    "log": (SignalLog(64, 3), 1),
    "log large": (SignalLog(1600, 0), 1),
}


def read_golden(name: str) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Return the inputs and the results of a case."""
    with np.load(GOLDEN) as arrays:
        x, y = ([arrays[n] for n in arrays.files if n.startswith(f"{name}/{kind}")] for kind in "xy")
    return tuple(x), tuple(y)


def case(name: str, op: SignalOp, activations: int) -> Case:
    inputs, results = read_golden(name)

    def computed(*_: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(torch.from_numpy(y) for y in results)

    return Case(f"signal_{name}", op, lambda rng: inputs, computed, activations)


def write_golden(made: dict[str, tuple[Sequence[Array], Sequence[Array]]]) -> None:
    arrays = {}
    for name, sides in made.items():
        for kind, values in zip("xy", sides, strict=True):
            arrays |= {f"{name}/{kind}{i}": value for i, value in enumerate(values)}
    np.savez_compressed(GOLDEN, allow_pickle=False, **arrays)


# The module that writes the results imports this one before there are any.
CASES = tuple(case(name, *operator) for name, operator in OPERATORS.items()) if GOLDEN.exists() else ()
