"""Zoo models written by torch.onnx give the Graphs that PyTorch gives, and onnxruntime's answers.

An ONNX file has no memory order: what is compared with it takes and gives contiguous tensors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnxruntime.quantization import QuantFormat
from tests.frontends.onnx.exporters import exported
from tests.frontends.onnx.quantizer import quantized_file
from tests.models import compile_model, int8_file

from baretorch import frontends
from baretorch.frontends.model_file import load_model_file
from baretorch.ir.graph import Graph, interpret
from baretorch.options import Io, Options
from baretorch.passes.to_int8 import float_layers
from baretorch.pipeline import build_image, lower, run_image
from baretorch.targets.boards import load_board

ZOO = Path(__file__).parents[3] / "zoo"
STATE = ("streaming_gru", "kws_stream")  # neither exporter keeps it
NOT_OLD = ("encoder", "kws_raw", "rfft512")  # what the older exporter refuses
MODELS = sorted(p.stem for p in ZOO.glob("*.py") if p.stem != "common" and p.stem not in STATE)
QUICK = ("sine", "cnn1d")


def zoo(name: str) -> tuple[Any, tuple[Any, ...]]:
    module, methods, _ = load_model_file(ZOO / f"{name}.py")
    return module.eval(), tuple(x.contiguous() for x in methods["forward"])


def same(name: str, folder: Path, dynamo: bool) -> tuple[Graph, Graph]:
    """The optimized graphs of a model from PyTorch and from ONNX; the second has onnxruntime's answers."""
    module, inputs = zoo(name)
    wanted = frontends.from_module(module, inputs, name)
    source = frontends.load(str(exported(module, inputs, folder / f"{name}.onnx", dynamo)))
    assert source.library == "onnxruntime" and source.expected is not None
    graph = lower(source).graph
    have = interpret(graph, source.examples)
    for output, want in zip(graph.outputs, source.expected, strict=True):
        np.testing.assert_allclose(have[output], want, rtol=1e-4, atol=1e-4 * max(1e-3, float(np.abs(want).max())))
    own = lower(wanted).graph
    assert graph.macs() == own.macs()
    return own, graph


@pytest.mark.parametrize("dynamo", [True, False])
@pytest.mark.parametrize("name", QUICK)
def test_a_few_zoo_models(name: str, dynamo: bool, tmp_path: Path) -> None:
    own, graph = same(name, tmp_path, dynamo)
    computing = [[n.op.name for n in g.nodes if n.op.name != "reshape"] for g in (own, graph)]
    assert computing[0] == computing[1]


@pytest.mark.slow
@pytest.mark.parametrize("dynamo", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_all_zoo_models(name: str, dynamo: bool, tmp_path: Path) -> None:
    """MACs are the same, and instructions within 2 %."""
    if not dynamo and name in NOT_OLD:
        with pytest.raises(Exception, match=r"not supported|attention|is_causal|[Uu]nsupported|fft"):
            exported(*zoo(name), tmp_path / "net.onnx", dynamo)
        return
    own, graph = same(name, tmp_path, dynamo)
    if [n.op for n in own.nodes] == [n.op for n in graph.nodes]:
        return  # the same operators on the same shapes
    board, counts = load_board("mps2-an386"), []
    module, inputs = zoo(name)
    for i, source in enumerate(
        (frontends.from_module(module, inputs, name), frontends.load(str(tmp_path / f"{name}.onnx")))
    ):
        compiled = compile_model(source, board)
        run = run_image(compiled, build_image(compiled, tmp_path / str(i)))
        assert run.instructions is not None
        counts.append(run.instructions)
    assert abs(counts[1] / counts[0] - 1) <= 0.02, counts


@pytest.mark.slow
@pytest.mark.parametrize("form", [QuantFormat.QDQ, QuantFormat.QOperator])
@pytest.mark.parametrize("name", ["kws", "ic", "vww"])
def test_quantized_zoo_models(name: str, form: QuantFormat, tmp_path: Path) -> None:
    """Models are int8 without a float layer, within 1 step of onnxruntime's last scale, and their instructions within 3
    % of those of Baretorch's own int8 models."""
    board, options = load_board("mps2-an386"), Options(io=Io.INT8)
    module, inputs = zoo(name)
    file = quantized_file(tmp_path, exported(module, inputs, tmp_path / f"{name}.onnx", True), form)
    theirs = frontends.load(str(file))
    ours = int8_file(str(ZOO / f"{name}.py"))
    counts = []
    for i, source in enumerate((ours, theirs)):
        compiled = compile_model(source, board, options)
        assert float_layers(compiled.graph) == []
        run = run_image(compiled, build_image(compiled, tmp_path / str(i)))
        assert run.instructions is not None
        counts.append(run.instructions)
        if source is theirs:
            assert theirs.expected is not None
            quant = compiled.graph.gives()[0].tensor.quant
            assert quant is not None
            real = (run.outputs[0].astype(np.float64) - quant.zero_point[0]) * quant.scale[0]
            assert np.abs(real - theirs.expected[0]).max() <= 1.001 * quant.scale[0]
    assert abs(counts[1] / counts[0] - 1) <= 0.03, counts
