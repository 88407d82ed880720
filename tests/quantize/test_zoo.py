"""Every model of the zoo in int8: no layer but those of a spectrum stays float, the answer is near PyTorch's, and C
gives the graph's bits."""

from __future__ import annotations

from math import log10
from pathlib import Path

import numpy as np
import pytest

from baretorch import pipeline
from baretorch.ir.graph import Array, interpret
from baretorch.ir.io import store_inputs
from baretorch.measure.facts import compare
from baretorch.passes.to_int8 import explain_float, float_layers
from baretorch.targets.boards import load_board
from tests.models import compile_model, int8_file
from tests.zoo.zoo import MODELS, ZOO

# The least signal to quantization noise of the answer, in dB: as measured, less one or two. Weights are
# random but for some small models, so this says how exact int8 is, not how good a trained model would be. It is one
# answer: scales a thousandth larger make 22 to 29 dB of vit_tiny's. docs/reference/quantizer.md has many answers.
LEAST = {
    "ad": 16, "cnn1d": 35, "decoder": 37, "encoder": 30, "gru": 52, "ic": 36, "kws": 34, "kws_raw": 19,
    "kws_stream": 34, "lenet5": 25, "lstm": 41, "mnist_mlp": 34, "mobilenet_v2": 14, "mobilenet_v2_block": 31,
    "sine": 33, "softmax": 35, "squeeze_excite": 27, "squeezenet_like": 9, "streaming_gru": 29, "tcn": 37,
    "tinyrps": 27, "unet_small": 30, "vit_tiny": 20, "vww": 26,
}  # fmt: skip
SPECTRUM = ["mul", "rfft", "magnitude", "linear", "log"]  # of sound; what comes after it is int8
FLOAT = {"kws_raw": SPECTRUM, "kws_stream": SPECTRUM}
# In `make test`; the others, which take long or are like one of these, in `make test-all`.
FEW = {"kws", "mnist_mlp", "sine", "squeeze_excite", "streaming_gru", "tinyrps", "unet_small", "vit_tiny"}


def sqnr(have: Array, exact: Array) -> float:
    """Signal to quantization noise, in dB."""
    noise = float(((have.astype(np.float64) - exact) ** 2).sum())
    return 10 * log10(float((exact.astype(np.float64) ** 2).sum()) / max(noise, 1e-30))


def models() -> list[object]:
    return [pytest.param(name, marks=() if name in FEW else pytest.mark.slow) for name in LEAST]


def test_no_model_is_left_out() -> None:
    assert set(MODELS) - set(LEAST) == {"rfft512"}, "which is nothing but a spectrum"


@pytest.mark.parametrize("name", models())
def test_model(name: str, tmp_path: Path) -> None:
    model = int8_file(str(ZOO / f"{name}.py"))
    compiled = compile_model(model, load_board("host"))
    layers = [layer.split()[0] for layer in float_layers(compiled.graph)]
    assert layers == FLOAT.get(name, []), explain_float(compiled.graph)
    image = pipeline.build_image(compiled, tmp_path)
    facts = compare(compiled, image, pipeline.run_image(compiled, image))
    want = interpret(compiled.graph, store_inputs(compiled.graph, model.source.examples)).values()
    for have, need in zip(facts.run.first, want, strict=True):
        assert np.array_equal(have, need), "the same bits"
    assert model.source.expected is not None and model.int8_answers is not None
    for have, exact in zip(facts.run.first, model.source.expected, strict=True):
        assert sqnr(have, exact) >= LEAST[name]
