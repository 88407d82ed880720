"""Writes tests/ops/cases/signal.npz: inputs of each case and of a whole front end, and what TensorFlow Lite Micro
computes from them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tests.frontends.signal_files import curve, frames, judge, preprocessor, run_tflm, words
from tests.ops.cases.signal import OPERATORS, write_golden

from baretorch.ir.graph import Array
from baretorch.ops.filter_bank import (
    SignalFilterBank,
    SignalLog,
    SignalPcan,
    SignalSpectralSubtraction,
    SignalSquareRoot,
)
from baretorch.ops.signal import SignalAutoScale, SignalEnergy, SignalOp, SignalRfft, SignalWindow

RUNS = 4  # of an operator with state; the last is kept


def inputs_of(name: str, op: SignalOp, rng: np.random.Generator) -> tuple[Array, ...]:
    """Return inputs that reach what is special."""
    noise = rng.integers(-32768, 32768, 2048).astype(np.int16)
    match op:
        case SignalWindow():
            return noise[:66].reshape(3, 22), np.append(noise[100:110], np.int16(-32768))
        case SignalAutoScale():
            quiet, wraps = noise[:33] >> 5, np.array([7, -32768, -9, 5, -2], np.int16)
            return ({"noise": quiet, "zeros": np.zeros(5, np.int16), "wraps": wraps}[name.split()[1]],)
        case SignalRfft():
            full = np.where(np.arange(op.fft_length) % 3, -32768, 32767).astype(np.int16)
            if "rows" in name:
                return (noise[:60].reshape(2, 30),)
            return (full if "full" in name else noise[:480] if "padded" in name else noise[: op.fft_length],)
        case SignalEnergy():
            return (np.append(noise[:56], np.full(10, -32768, np.int16)),)
        case SignalFilterBank():
            widths = np.array([3, 0, 5, 4, 1], np.int16)
            weights = np.where(np.arange(14) % 4 < 1, 0, rng.integers(0, 32768, (2, 14))).astype(np.int16)
            at = (np.cumsum(widths) - widths).astype(np.int16)
            return words(rng, 20), *weights, np.array([0, 3, 4, 16, 19], np.int16), at, widths
        case SignalSquareRoot():
            numbers = words(rng, 40, 64) if "32" not in name else words(rng, 40).view(np.uint32).astype(np.int64)
            return numbers, np.array(3, np.int32)
        case SignalSpectralSubtraction() | SignalPcan() | SignalLog():
            gains = curve() if op == SignalPcan(6) else rng.integers(-32768, 32768, 125).astype(np.int16)
            small = rng.integers(0, 3000, 21).astype(np.int32)
            x = np.append(small, words(rng, 20))
            return (x, words(rng, x.size), gains)[: {SignalLog: 1, SignalSpectralSubtraction: 2}.get(type(op), 3)]
    raise AssertionError(op)


def runs_of(name: str, op: SignalOp, rng: np.random.Generator, count: int) -> list[Sequence[Array]]:
    """Return inputs of consecutive runs; noise is that of the run before."""
    runs = [list(inputs_of(name, op, rng)) for _ in range(count)]
    for before, run in zip([None, *runs[:-1]], runs, strict=True):
        if isinstance(op, SignalSpectralSubtraction):
            run[1] = np.zeros_like(run[1]) if before is None else op.reference(*before)[1]
    return [[np.asarray(a, runs[0][i].dtype) for i, a in enumerate(run)] for run in runs]


def main() -> None:
    rng = np.random.default_rng(0)
    golden = {}
    for name, (op, activations) in OPERATORS.items():
        runs = runs_of(name, op, rng, RUNS if isinstance(op, SignalSpectralSubtraction) else 1)
        results = judge(op, runs, activations)
        for run, want in zip(runs, results, strict=True):
            for y, expected in zip(op.reference(*run), want, strict=True):
                np.testing.assert_array_equal(y, expected, name)
        golden[name] = (runs[-1], results[-1])
    heard = frames(24)
    golden["preprocessor"] = ([heard], run_tflm(preprocessor(), heard))
    write_golden(golden)


if __name__ == "__main__":
    main()
