"""The audio models of the zoo: what they share, and what stays float of them."""

from __future__ import annotations

from contextlib import closing
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

import baretorch
from baretorch import pipeline
from baretorch.measure.facts import compare
from baretorch.options import Compiler, Options
from baretorch.passes.to_int8 import float_layers
from baretorch.targets.boards import load_board
from tests.models import compile_model
from tests.zoo.zoo import ZOO, lowered


@pytest.fixture
def zoo(monkeypatch: pytest.MonkeyPatch) -> tuple[ModuleType, ModuleType]:
    monkeypatch.syspath_prepend(str(ZOO))
    return import_module("kws_raw"), import_module("kws_stream")


def test_piece_by_piece_gives_the_scores_of_the_whole(zoo: tuple[ModuleType, ModuleType]) -> None:
    """After 50 pieces the model remembers 49 frames, of which the first begins in the middle of the first piece."""
    raw, stream = zoo
    sound = raw.sound(50 * stream.HOP, seed=3)
    with closing(baretorch.compile(stream.model(), stream.inputs(), board="host")) as model:
        scores = [model.run(piece) for piece in sound.split(stream.HOP, dim=-1)]
    whole = torch.nn.functional.pad(sound[:, raw.WINDOW - raw.HOP :], (0, raw.WINDOW - raw.HOP))
    with torch.no_grad():
        want = raw.model()(whole).numpy()
    np.testing.assert_allclose(scores[-1], want, atol=1e-5)
    assert np.abs(scores[0] - want).max() > 0.01


@pytest.mark.parametrize("board", ["mps2-an386", pytest.param("pico2w", marks=pytest.mark.slow)])
def test_int8_leaves_the_front_end_in_float_up_to_the_logarithm(board: str, tmp_path: Path) -> None:
    compiled = compile_model(lowered("kws_raw", int8=True), load_board(board), Options(toolchain=Compiler.GCC))
    image = pipeline.build_image(compiled, tmp_path)
    facts = compare(compiled, image, pipeline.run_image(compiled, image))
    names = [layer.split()[0] for layer in float_layers(compiled.graph)]
    assert names.index("rfft") < names.index("linear") < names.index("log")
    assert not {"conv2d", "avg_pool2d", "softmax"} & set(names)
    assert 0 < facts.max_error < 0.05
    (told,) = (warning for warning in facts.warnings if warning.startswith("float:"))
    assert told.endswith(" stay float: the powers of a spectrum differ by more than eight bits can represent")
    assert all(layer in told for layer in float_layers(compiled.graph))
