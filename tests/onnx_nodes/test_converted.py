"""Models that PyTorch's first exporter wrote, which the `onnx` package brings with inputs and outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, version_converter

from baretorch.errors import CompileError
from baretorch.frontends.onnx.interface import interface_of
from baretorch.frontends.onnx.reader import parse
from baretorch.frontends.onnx.table import to_graph
from baretorch.ir.graph import Array, interpret
from baretorch.pipeline import optimize

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
FILES = sorted(f for kind in ("pytorch-converted", "pytorch-operator") for f in DATA.glob(f"{kind}/*/model.onnx"))
REFUSED = {
    "the type double": "add_broadcast add_size1_broadcast add_size1_right_broadcast add_size1_singleton_broadcast "
    "addconstant",
    "the shapes do not broadcast": "PReLU_1d_multiparam PReLU_2d_multiparam PReLU_3d_multiparam",  # as of opset 6
    "ONNX's checker": "ConstantPad2d ReflectionPad2d ReplicationPad2d ZeroPad2d pad",  # version_converter leaves pads
}


def _array(file: Path) -> Array:
    tensor = onnx.TensorProto()
    tensor.ParseFromString(file.read_bytes())
    return np.asarray(numpy_helper.to_array(tensor))


def _answer(model: Any, inputs: list[Array]) -> Array:
    read = parse(model.SerializeToString())
    graph, _ = to_graph(read, interface_of(read, {}, {}), "m")
    graph = optimize(graph)
    return interpret(graph, inputs)[graph.outputs[0]]


@pytest.mark.slow
def test_models_of_the_first_exporter() -> None:
    refused = {name: why for why, names in REFUSED.items() for name in names.split()}
    assert len(FILES) > 100
    for file in FILES:
        model = version_converter.convert_version(onnx.load(file), 18)
        data = file.parent / "test_data_set_0"
        inputs = [_array(f) for f in sorted(data.glob("input_*.pb"))]
        name = file.parent.name.removeprefix("test_").removeprefix("operator_")
        if name in refused:
            with pytest.raises(CompileError, match=refused[name]):
                _answer(model, inputs)
            continue
        want = _array(data / "output_0.pb")
        np.testing.assert_allclose(_answer(model, inputs), want, rtol=1e-3, atol=1e-5, err_msg=name)
