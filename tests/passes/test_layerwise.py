"""The comparison of each layer with the file's own runtime: it must see what is wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from baretorch.frontends import load
from baretorch.passes.layerwise import RecordedLayer, compare_layers

FILE = Path(__file__).parents[1] / "frontends" / "data" / "lstm_int8.tflite"


def layers() -> list[RecordedLayer]:
    source = load(str(FILE))
    assert source.layers is not None
    return list(source.layers())


def test_a_wrong_number_is_counted() -> None:
    *_, last = layers()
    assert compare_layers("LiteRT", [last]).words == "all 6 numbers are LiteRT's"
    wrong = last.outputs[0].copy()
    wrong.reshape(-1)[:2] += np.array([1, -3], np.int8)
    beside = compare_layers("LiteRT", [replace(last, outputs=(wrong,))])
    assert (beside.elements, beside.differ, beside.largest) == (6, 2, 3)
    assert beside.words == "2 of 6 numbers differ from LiteRT's, by 3 steps at most"
    assert beside.to_json()["max_lsb"] == 3


def test_every_layer_is_there_with_its_name() -> None:
    found = compare_layers("LiteRT", layers()).layers
    assert [d.operator for d in found].count("UNIDIRECTIONAL_SEQUENCE_LSTM") == 2
    assert found[-1].name == "StatefulPartitionedCall:0" and found[-1].quantized


def test_layers_get_the_runtime_s_own_inputs() -> None:
    first, second, *_ = layers()
    assert np.array_equal(first.outputs[0], second.inputs[0])
