"""The audio front end of TensorFlow Lite Micro, compared with its own interpreter, bit for bit."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from flatbuffers import flexbuffers  # type: ignore[import-untyped]
from tests.frontends.signal_files import NOISE, curve, frames, judge, preprocessor, run_tflm, words
from tests.frontends.tflite_files import Q, SubgraphWriter, TfliteWriter
from tests.ops.cases.signal import FAST, read_golden

import baretorch
from baretorch.errors import CompileError
from baretorch.frontends.flexbuffer import read_integers
from baretorch.frontends.tflite.source import CUSTOM, read_tflite
from baretorch.ir.graph import Array, interpret
from baretorch.ops.filter_bank import (
    SignalFilterBank,
    SignalLog,
    SignalPcan,
    SignalSpectralSubtraction,
    SignalSquareRoot,
)
from baretorch.ops.signal import SignalAutoScale, SignalEnergy, SignalOp, SignalRfft, SignalWindow
from baretorch.passes.order import lower_graph

MANY = 10_000
Inputs = Callable[[np.random.Generator], tuple[Array, ...]]


def written(build: Callable[[SubgraphWriter], None]) -> bytes:
    writer = TfliteWriter()
    build(writer.main)
    return writer.bytes()


def interpreted(model: bytes, inputs: Array) -> Array:
    """Return the first output of consecutive runs in NumPy."""
    graph = lower_graph(read_tflite(model, "model").graph)
    memory: dict[str, Array] = {}
    return np.stack([interpret(graph, (x,), memory=memory)[graph.outputs[0]] for x in inputs])


def run_image(model: bytes, inputs: Array, folder: Path, board: str) -> Array:
    """Return the only output of consecutive runs of an image."""
    file = folder / "model.tflite"
    file.write_bytes(model)
    compiled = baretorch.compile(file, board=board)
    assert compiled.warnings == (CUSTOM,)
    return np.stack([compiled.run(x) for x in inputs])


def test_features_are_those_of_tflm() -> None:
    (heard,), (want,) = read_golden("preprocessor")
    assert len(np.unique(want)) > 60
    np.testing.assert_array_equal(interpreted(preprocessor(), heard), want)


@pytest.mark.parametrize("board", ["host", "mps2-an386"])
def test_images_compute_features_too(board: str, tmp_path: Path) -> None:
    (heard,), (want,) = read_golden("preprocessor")
    np.testing.assert_array_equal(run_image(preprocessor(), heard, tmp_path, board), want)


def delay(g: SubgraphWriter) -> None:
    y = g.tensor("late", (2, 5), "int16")
    g.add("SignalDelay", [g.input((2, 5), "int16")], [y], custom=True, attributes={"delay_length": 7})
    g.output(y)


def framer(g: SubgraphWriter) -> None:
    """Write frames of 5 samples, 2 apart."""
    made = [g.tensor("frames", (2, 3, 5), "int16"), g.tensor("valid", (), "bool")]
    attributes = {"frame_size": 5, "frame_step": 2, "prefill": True}
    g.add("SignalFramer", [g.input((2, 6), "int16")], made, custom=True, attributes=attributes)
    g.output(*made)


def test_a_delay_keeps_samples() -> None:
    x = np.arange(40, dtype=np.int16).reshape(4, 2, 5)
    rows = x.swapaxes(0, 1).reshape(2, -1)
    late = np.concatenate([np.zeros((2, 7), np.int16), rows], axis=1)[:, :20]
    np.testing.assert_array_equal(interpreted(written(delay), x), late.reshape(2, 4, 5).swapaxes(0, 1))


def test_frames_overlap_from_run_to_run() -> None:
    x = np.arange(1, 37, dtype=np.int16).reshape(3, 2, 6)
    y = interpreted(written(framer), x)
    assert y[0, 0].tolist() == [[0, 0, 0, 1, 2], [0, 1, 2, 3, 4], [2, 3, 4, 5, 6]]
    assert y[1, 1].tolist() == [[10, 11, 12, 19, 20], [12, 19, 20, 21, 22], [20, 21, 22, 23, 24]]


# --- attributes -----------------------------------------------------------------------------------------------


def test_attributes_of_all_widths() -> None:
    for value in (0, 1, -1, 200, -200, 70_000, -70_000, 1 << 40, -(1 << 40)):
        found = read_integers(bytes(flexbuffers.Dumps({"a": value, "on": True, "text": "x", "z_last": 3})), ".tflite")
        assert found == {"a": value, "on": 1, "z_last": 3}


def test_damaged_attributes_are_refused() -> None:
    sound = bytes(flexbuffers.Dumps({f"attribute_{i}": 3**i for i in range(9)}))
    rng, refused = random.Random(0), 0
    for _ in range(5000):
        data = bytearray(sound[: rng.randrange(len(sound))] if rng.random() < 0.2 else sound)
        for _ in range(rng.randint(0, 4) if data else 0):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            read_integers(bytes(data), ".tflite")
        except CompileError:
            refused += 1
    assert 1000 < refused < 5000


def test_many_attributes_are_refused() -> None:
    """Their number costs five bytes each, and their names could be the same long one."""
    count = 1 << 16
    numbers = [4, 1, count]  # the offset of the names, their width, and how many there are
    data = b"".join(n.to_bytes(4, "little") for n in (*numbers, *[0] * count)) + bytes(count)
    root = len(data) - 4 * len(numbers)
    with pytest.raises(CompileError, match="65536 attributes"):
        read_integers(data + root.to_bytes(4, "little") + b"\x26\x04", ".tflite")


def test_no_attributes() -> None:
    assert read_integers(bytes(flexbuffers.Dumps({})), ".tflite") == {}


# --- many frames ----------------------------------------------------------------------------------------------


def runs_of(name: str) -> list[tuple[Array, ...]]:
    """Return inputs of many runs. Constants, and noise that TFLM keeps, follow from the first."""
    op, inputs, activations = OPERATORS[name]
    rng = np.random.default_rng(1)
    first = inputs(rng)
    runs, noise = [], np.zeros_like(first[-1])
    for _ in range(MANY):
        run = (*inputs(rng)[:activations], *first[activations:])
        if isinstance(op, SignalSpectralSubtraction):
            run = (run[0], noise)
            noise = op.reference(*run)[1]
        runs.append(run)
    return runs


def heard(length: int) -> Inputs:
    """Return inputs that are frames of audio, one after the other."""
    left: list[Array] = []

    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        if not left:
            left.extend(frames(MANY + 1, length, seed=length)[:, 0])
        return (left.pop(),)

    return build


def windowed(rng: np.random.Generator) -> tuple[Array, ...]:
    window = 4096 * np.sin(np.pi * (np.arange(480) + 0.5) / 480) ** 2
    return *FRAME(rng), np.rint(window).astype(np.int16)


def features(rng: np.random.Generator) -> Array:
    return words(rng, 40) if rng.random() < 0.5 else rng.integers(0, 3000, 40).astype(np.int32)


def bank(rng: np.random.Generator) -> tuple[Array, ...]:
    widths = rng.integers(0, 12, 41).astype(np.int16)
    at = (np.cumsum(widths) - widths).astype(np.int16)
    starts = np.array([rng.integers(0, 258 - w) for w in widths], np.int16)
    weights = rng.integers(0, 32768, (2, int(widths.sum()))).astype(np.int16)
    return words(rng, 257), weights[0], weights[1], starts, at, widths


FRAME = heard(480)
OPERATORS: dict[str, tuple[SignalOp, Inputs, int]] = {
    "window": (SignalWindow(12), windowed, 1),
    "auto_scale": (SignalAutoScale(), heard(480), 1),
    **{f"rfft {n}": (SignalRfft(n), heard(m), 1) for n, m in ((512, 480), (256, 256), (1024, 1000), (64, 64), (4, 4))},
    "energy": (SignalEnergy(5, 241), heard(514), 1),
    "filter_bank": (SignalFilterBank(), bank, 1),
    "square_root": (SignalSquareRoot(), lambda rng: (words(rng, 40, 64), np.array(rng.integers(16), np.int32)), 2),
    "noise": (NOISE, lambda rng: (features(rng), features(rng)), 1),
    "noise, clamping": (FAST, lambda rng: (features(rng), features(rng)), 1),
    "pcan": (SignalPcan(6), lambda rng: (features(rng), features(rng), curve()), 2),
    "pcan steep": (SignalPcan(9), lambda rng: (*(words(rng, 40) for _ in "xn"), words(rng, 125).astype("i2")), 2),
    "log": (SignalLog(64, 3), lambda rng: (features(rng),), 1),
    "log large": (SignalLog(1600, 0), lambda rng: (words(rng, 40),), 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_is_tflms(name: str) -> None:
    op, _, activations = OPERATORS[name]
    runs = runs_of(name)
    for run, want in zip(runs, judge(op, runs, activations), strict=True):
        for y, expected in zip(op.reference(*run), want, strict=True):
            np.testing.assert_array_equal(y, expected)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(480, 512, 40), (200, 256, 17), (512, 512, 32), (1000, 1024, 40)])
def test_many_features_are_tflms(sizes: tuple[int, int, int], tmp_path: Path) -> None:
    model, inputs = preprocessor(*sizes), frames(MANY, sizes[0], seed=3)
    (want,) = run_tflm(model, inputs)
    np.testing.assert_array_equal(run_image(model, inputs, tmp_path, "host"), want)
    np.testing.assert_array_equal(interpreted(model, inputs[:1000]), want[:1000])


@pytest.mark.slow
@pytest.mark.parametrize("build", [delay, framer])
def test_state_of_samples_is_tflms(build: Callable[[SubgraphWriter], None]) -> None:
    shape = (2, 5) if build is delay else (2, 6)
    x = np.random.default_rng(0).integers(-32768, 32768, (1000, *shape)).astype(np.int16)
    model = written(build)
    want = run_tflm(model, x, outputs=1 if build is delay else 2)
    np.testing.assert_array_equal(interpreted(model, x), want[0])
    assert all(valid.all() for valid in want[1:])


# --- from samples to a class ----------------------------------------------------------------------------------

FRAMES, CHANNELS, STRIDE = 49, 40, 320  # a second, as micro_speech hears it


def classifier(g: SubgraphWriter) -> None:
    """Write a layer of the sizes of micro_speech's last one, and softmax."""
    rng = np.random.default_rng(0)
    x, w, y = Q(0.1, -128), Q(0.002), Q(0.1, 0)
    weight = g.const(rng.normal(0, 0.08, (4, FRAMES * CHANNELS)), w)
    bias = g.const(np.zeros(4, np.float32), Q(0.1 * 0.002, 0, "int32"))
    scores = g.op(
        "FULLY_CONNECTED", [g.input((1, FRAMES * CHANNELS), x), weight, bias], (1, 4), y, "FullyConnectedOptions"
    )
    g.output(g.op("SOFTMAX", [scores], (1, 4), Q(1 / 256, -128), "SoftmaxOptions", beta=1.0))


def utterance(seed: int) -> Array:
    """Return a second of audio: two syllables, which are a glide of harmonics each, and some noise."""
    rng, t = np.random.default_rng(seed), np.arange(16000) / 16000
    sound = rng.normal(0, 40, t.size)
    for begin in (0.2, 0.55):
        low, high = rng.integers(90, 400, 2)
        shape = np.clip(1 - np.abs(t - begin - 0.12) / 0.12, 0, 1)
        phase = 2 * np.pi * np.cumsum(low + (high - low) * (t - begin)) / 16000
        sound += sum(shape * 9000 / h * np.sin(h * phase) for h in rng.integers(1, 20, 6))
    return np.clip(sound, -32768, 32767).astype(np.int16)


@pytest.mark.slow
def test_from_samples_to_a_class(tmp_path: Path) -> None:
    listen, decide = preprocessor(), written(classifier)
    file = tmp_path / "classifier.tflite"
    file.write_bytes(decide)
    judged = baretorch.compile(file, board="mps2-an386")
    classes = set()
    for seed in range(6):
        sound = utterance(seed)
        heard = np.stack([sound[None, i * STRIDE : i * STRIDE + 480] for i in range(FRAMES)])
        (want,) = run_tflm(listen, heard)
        found = run_image(listen, heard, tmp_path, "mps2-an386")
        np.testing.assert_array_equal(found, want)
        ((scores,),) = run_tflm(decide, want.reshape(1, 1, -1))
        own = judged.run(found.reshape(1, -1))
        np.testing.assert_allclose(own * 256 - 128, scores, atol=1)
        assert own.argmax() == scores.argmax()
        classes.add(int(own.argmax()))
    assert len(classes) > 1
