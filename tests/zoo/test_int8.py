"""int8 models of the zoo give the same bits on every core."""

from __future__ import annotations

from pathlib import Path

import pytest

from baretorch.ir.graph import interpret
from baretorch.ir.io import store_inputs
from baretorch.passes.to_int8 import float_layers
from tests.zoo.zoo import run

MODELS = ("kws", "vww", "ic", "ad", "tinyrps", "mnist_mlp", "sine")
BOARDS = ("mps2-an385", "mps2-an386", "mps2-an505", "mps3-an547", "mps2-an385-v6m", "virt-rv32", "host")
QUICK = ("sine", "kws")


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("name", [m if m in QUICK else pytest.param(m, marks=pytest.mark.slow) for m in MODELS])
def test_the_same_bits_everywhere(name: str, board: str, tmp_path: Path) -> None:
    facts = run(name, board, "gcc", tmp_path, int8=True)
    graph = facts.compiled.graph
    assert not float_layers(graph)
    want = interpret(graph, store_inputs(graph, facts.compiled.source.examples))
    for output, have in zip(graph.outputs, facts.run.outputs, strict=True):
        assert have.tobytes() == want[output].tobytes()
