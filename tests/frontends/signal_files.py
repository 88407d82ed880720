"""Files with the operators of TensorFlow Lite Micro's audio front end, and their results in its own interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from tests.frontends.environments import TFLM, convert
from tests.frontends.tflite_files import TfliteWriter

from baretorch.ir.graph import Array
from baretorch.ops.filter_bank import (
    GAINS,
    SignalFilterBank,
    SignalLog,
    SignalPcan,
    SignalSpectralSubtraction,
    SignalSquareRoot,
)
from baretorch.ops.signal import SignalAutoScale, SignalEnergy, SignalOp, SignalRfft, SignalWindow

NAMES: dict[type[SignalOp], str] = {
    SignalWindow: "SignalWindow",
    SignalAutoScale: "SignalFftAutoScale",
    SignalRfft: "SignalRfft",
    SignalEnergy: "SignalEnergy",
    SignalFilterBank: "SignalFilterBank",
    SignalSquareRoot: "SignalFilterBankSquareRoot",
    SignalSpectralSubtraction: "SignalFilterBankSpectralSubtraction",
    SignalPcan: "SignalPCAN",
    SignalLog: "SignalFilterBankLog",
}
INT16 = 7  # TensorFlow Lite's number of the type
UNSIGNED = {"int32": "uint32", "int64": "uint64"}
SIGNED = {u: s for s, u in UNSIGNED.items()}
NOISE = SignalSpectralSubtraction(409, 15975, 983, 15401, 819, 10, 14, 0)  # as in micro_speech


def attributes_of(op: SignalOp, channels: int) -> dict[str, int]:
    """Return the attributes of the file's operator. Its names are in alphabetical order, as TFLM expects them."""
    name = NAMES[type(op)]
    found = {f.name: getattr(op, f.name) for f in fields(op)}
    if name in ("SignalFilterBank", "SignalFilterBankSpectralSubtraction"):
        found["num_channels"] = channels
    return {**found, "T": INT16} if name == "SignalRfft" else found


def without_sign(a: Array) -> Array:
    """Return numbers as the file has them: all that are stored as int32 or int64 have no sign, except bits."""
    return a.view(UNSIGNED.get(a.dtype.name, a.dtype.name)) if a.ndim else a


def one_operator(op: SignalOp, arrays: Sequence[Array], activations: int) -> bytes:
    """Return a file with this operator, whose first inputs are those of the model."""
    writer = TfliteWriter()
    g = writer.main
    inputs = []
    for i, a in enumerate(map(without_sign, arrays)):
        if i == 0 or not isinstance(op, SignalSpectralSubtraction):  # TFLM keeps the noise inside
            inputs.append(g.input(a.shape, a.dtype.name) if i < activations else g.const(a))
    made = [without_sign(y) for y in op.reference(*arrays)]
    outputs = [g.tensor(f"y{i}", y.shape, y.dtype.name) for i, y in enumerate(made)]
    g.add(NAMES[type(op)], inputs, outputs, custom=True, attributes=attributes_of(op, made[0].size))
    g.output(*outputs)
    return writer.bytes()


def run_tflm(model: bytes, *inputs: Array, outputs: int = 1) -> tuple[Array, ...]:
    """Return the outputs of consecutive runs in TFLM; the first axis of inputs and outputs counts the runs."""
    with TemporaryDirectory() as folder:
        file, given, made = (str(Path(folder) / name) for name in ("model.tflite", "given.npz", "made.npz"))
        Path(file).write_bytes(model)
        np.savez(given, *inputs)
        convert("tflm.py", TFLM, file, given, made, str(outputs))
        with np.load(made) as arrays:
            return tuple(arrays[name] for name in arrays.files)


def judge(op: SignalOp, runs: Sequence[Sequence[Array]], activations: int) -> list[tuple[Array, ...]]:
    """Return the results of TFLM for consecutive runs of one operator, as Baretorch stores them. The noise that an
    operator keeps must be that of the run before, and 0 in the first run."""
    count = len(op.reference(*runs[0]))
    taken = 1 if isinstance(op, SignalSpectralSubtraction) else activations
    inputs = [np.stack([without_sign(run[i]) for run in runs]) for i in range(taken)]
    columns = run_tflm(one_operator(op, runs[0], activations), *inputs, outputs=count)
    if isinstance(op, SignalEnergy):  # TFLM does not write the others
        columns[0][:, : op.start_index] = columns[0][:, op.end_index :] = 0
    signed = [c.view(SIGNED.get(c.dtype.name, c.dtype.name)) for c in columns]
    return list(zip(*signed, strict=True))


def preprocessor(length: int = 480, n: int = 512, channels: int = 40, gains: Array | None = None) -> bytes:
    """Return a front end like that of TFLM's micro_speech: from samples to one int8 feature per channel. Channels are
    triangles over frequencies from `first` on, evenly spaced in their square roots."""
    writer = TfliteWriter()
    g = writer.main
    half, first, last = n // 2 + 1, n // 100, n // 2 - n // 32
    window = np.rint(4096 * np.sin(np.pi * (np.arange(length) + 0.5) / length) ** 2).astype(np.int16)
    edges = np.rint(np.linspace(first**0.5, last**0.5, channels + 2) ** 2).astype(np.int16)
    widths = np.diff(edges)
    rise = np.concatenate([np.rint(4096 * (np.arange(w) + 0.5) / w) for w in widths]).astype(np.int16)
    if gains is None:
        gains = curve()

    def custom(name: str, inputs: Sequence[int], *made: tuple[Sequence[int], str], **attributes: int) -> list[int]:
        outputs = [g.tensor(f"{name}/{i}", shape, type) for i, (shape, type) in enumerate(made)]
        g.add(name, inputs, outputs, custom=True, attributes=attributes)
        return outputs

    def number(value: int) -> int:
        return g.const(np.array(value, np.int32))

    (x,) = custom("SignalWindow", [g.input((1, length), "int16"), g.const(window)], ((1, length), "int16"), shift=12)
    x = g.op("RESHAPE", [x, g.const(np.array([-1], np.int32))], (length,), "int16", "ReshapeOptions")
    x, bits = custom("SignalFftAutoScale", [x], ((length,), "int16"), ((), "int32"))
    (x,) = custom("SignalRfft", [x], ((2 * half,), "int16"), T=INT16, fft_length=n)
    (x,) = custom("SignalEnergy", [x], ((half,), "uint32"), start_index=first, end_index=last)
    x = g.op("CAST", [x], (half,), "int32", "CastOptions")
    ends = [g.const(np.array([v], np.int32)) for v in (first, last, 1)]
    x = g.op("STRIDED_SLICE", [x, *ends], (last - first,), "int32", "StridedSliceOptions")
    around = [g.const(np.zeros(v, np.int32)) for v in (first, half - last)]
    x = g.op("CONCATENATION", [around[0], x, around[1]], (half,), "int32", "ConcatenationOptions")
    x = g.op("CAST", [x], (half,), "uint32", "CastOptions")
    bands = [g.const(a.astype(np.int16)) for a in (rise, 4096 - rise, edges[:-1], np.cumsum(widths) - widths, widths)]
    (x,) = custom("SignalFilterBank", [x, *bands], ((channels,), "uint64"), num_channels=channels)
    (x,) = custom("SignalFilterBankSquareRoot", [x, bits], ((channels,), "uint32"))
    x, noise = custom(
        "SignalFilterBankSpectralSubtraction",
        [x],
        *[((channels,), "uint32")] * 2,
        **attributes_of(NOISE, channels),
    )
    (x,) = custom("SignalPCAN", [x, noise, g.const(gains)], ((channels,), "uint32"), snr_shift=6)
    (x,) = custom("SignalFilterBankLog", [x], ((channels,), "int16"), input_correction_bits=3, output_scale=64)
    x = g.op("CAST", [x], (channels,), "int32", "CastOptions")
    for name, value in (("MUL", 256), ("ADD", 333), ("DIV", 666), ("ADD", -128)):
        x = g.op(name, [x, number(value)], (channels,), "int32", f"{name.title()}Options")
    for name, value in (("MINIMUM", 127), ("MAXIMUM", -128)):
        x = g.op(name, [x, number(value)], (channels,), "int32", "MaximumMinimumOptions")
    g.output(g.op("CAST", [x], (channels,), "int8", "CastOptions"))
    return writer.bytes()


def curve() -> Array:
    """Return gains that fall with the noise: for 0 and 1, and for each power of two a start, a slope, a bend and
    nothing."""
    gains = [32000, 32000]
    for power in range(1, 32):
        start, stop = (32000 / (1 + 2.0 ** (p - 16)) for p in (power, power + 1))
        gains += [round(start), round(stop - start), 0, 0]
    return np.array(gains[:GAINS], np.int16)


def frames(count: int, length: int = 480, seed: int = 0) -> Array:
    """Return int16[count, 1, length]: silence, tones, sweeps, noise, steps, impulses and full scale in turns."""
    rng, k = np.random.default_rng(seed), np.arange(length)
    kinds = (
        lambda: np.zeros(length),
        lambda: np.full(length, rng.choice([-32768, 32767, 1, -1, 1000])),
        lambda: rng.choice([-32768, 32767], length),
        lambda: rng.integers(-32768, 32768, length),
        lambda: rng.integers(1, 32768) * np.sin(rng.random() * np.pi * k + rng.random() * 6),
        lambda: rng.integers(1, 32768) * np.sin(k * k * rng.random() * np.pi / length),
        lambda: rng.standard_normal(length) * 2.0 ** rng.integers(0, 15),
        lambda: np.where(k == rng.integers(length), rng.choice([-32768, 32767, 1, -1]), 0),
        lambda: np.where(rng.random(length) < 0.01, -32768, rng.integers(-300, 300, length)),
        lambda: 32767 * np.sign(np.sin(k * rng.random() * np.pi + 0.1)),
    )
    found: list[Array] = []
    while len(found) < count:
        kind = kinds[rng.integers(len(kinds))]
        found += [kind() for _ in range(rng.integers(1, 15))]
    return np.clip(np.rint(np.stack(found[:count])), -32768, 32767).astype(np.int16)[:, None]


def words(rng: np.random.Generator, count: int, bits: int = 32) -> Array:
    """Return numbers without sign of all magnitudes, as int32 or int64: squares and their neighbours among them."""
    a = rng.integers(0, 1 << 63, count, dtype=np.uint64) * np.uint64(2) + rng.integers(0, 2, count, dtype=np.uint64)
    a >>= (64 - bits + rng.integers(0, bits, count)).astype(np.uint64)
    roots = rng.integers(0, 1 << bits // 2, count).astype(np.uint64)
    near = roots * roots + roots * rng.integers(0, 2, count).astype(np.uint64) + rng.integers(0, 2, count).astype("u8")
    top = np.uint64((1 << bits) - 1) - rng.integers(0, 3, count).astype(np.uint64)
    limits = rng.choice(np.array([0, 1, 2, 3, 0xFFFE0001, 0xFFFEFFFF, 0xFFFF0000, 0xFFFFFFFF], np.uint64), count)
    chosen = np.choose(rng.choice(4, count, p=[0.6, 0.2, 0.1, 0.1]), [a, near, top, limits])
    return chosen.astype(f"u{bits // 8}").view(f"i{bits // 8}")
