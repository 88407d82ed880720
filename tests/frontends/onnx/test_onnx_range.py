"""Squares that overflow float32 in onnxruntime are not reported as our error; a wrong pass still is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.passes.test_equivalence import doubling

from baretorch import pipeline
from baretorch.frontends import Source
from baretorch.passes.equivalence import WrongStep

GAIN = numpy_helper.from_array(np.full(16, 3.0, np.float32), "gain")
NODES: dict[str, list[Any]] = {
    "layer_norm": [helper.make_node("LayerNormalization", ["x", "gain"], ["y"], axis=-1)],
    "l2": [
        helper.make_node("LpNormalization", ["x"], ["z"], axis=-1, p=2),
        helper.make_node("Mul", ["z", "gain"], ["y"]),
    ],
    "decomposed": [
        helper.make_node("Mul", ["x", "x"], ["square"]),
        helper.make_node("ReduceMean", ["square"], ["mean"], axes=[-1]),
        helper.make_node("Sqrt", ["mean"], ["root"]),
        helper.make_node("Div", ["x", "root"], ["z"]),
        helper.make_node("Mul", ["z", "gain"], ["y"]),
    ],
}


def source_of(name: str, folder: Path) -> Source:
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [4, 16]) for n in "xy")
    graph = helper.make_graph(NODES[name], "g", [x], [y], [GAIN])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "net.onnx")
    (folder / "net.py").write_text(
        "import numpy as np\ndef model(): return 'net.onnx'\n"
        "def inputs(): return ((np.random.default_rng(0).standard_normal((4, 16)) * 1e20).astype('float32'),)\n"
    )
    return pipeline.read(str(folder / "net.py"))


@pytest.mark.parametrize("name", NODES)
def test_squares_may_overflow(name: str, tmp_path: Path) -> None:
    pipeline.lower(source_of(name, tmp_path))


@pytest.mark.parametrize("name", ["layer_norm", "l2"])
def test_a_wrong_pass_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "FLOAT_PASSES", (doubling, *pipeline.FLOAT_PASSES))
    with pytest.raises(WrongStep, match="the pass doubling"):
        pipeline.lower(source_of(name, tmp_path))
