"""Models without inputs, or without outputs: an error for each kind of file, unless state makes them useful."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from tests.cli.program import baretorch, check_golden
from tests.frontends.tflite_files import TfliteWriter
from torch import nn

from baretorch import pipeline
from baretorch.errors import CompileError
from baretorch.frontends import from_methods, load
from baretorch.measure.facts import compare
from baretorch.targets.boards import load_board

BOARDS = ("host", "mps2-an386", "cluster8")


def write_onnx(folder: Path, inputs: bool, outputs: bool) -> Path:
    weight = numpy_helper.from_array(np.ones(3, np.float32), "w")
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy")
    node = helper.make_node("Mul", ["x" if inputs else "w", "w"], ["y"])
    graph = helper.make_graph([node], "g", [x] * inputs, [y] * outputs, [weight])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "net.onnx")
    return folder / "net.onnx"


def write_tflite(folder: Path, inputs: bool, outputs: bool) -> Path:
    writer = TfliteWriter()
    g = writer.main
    y = g.op("ABS", [g.input((3,)) if inputs else g.const(np.ones(3, np.float32))], (3,))
    if outputs:
        g.output(y)
    (folder / "net.tflite").write_bytes(writer.bytes())
    return folder / "net.tflite"


@pytest.mark.parametrize("ports", ["inputs", "outputs", "neither"])
@pytest.mark.parametrize("write", [write_onnx, write_tflite], ids=["onnx", "tflite"])
def test_a_file_needs_both(write: object, ports: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, ports == "inputs", ports == "outputs")  # type: ignore[operator]
    for verb in ("compile", "run"):
        result = baretorch(verb, path.name, "--board", "mps2-an386", "--out", "c")
        assert (result.code, result.out) == (1, ""), result.err
        check_golden(f"error_only_{ports}_{path.suffix[1:]}", result.err)


class Kept(nn.Module):
    """A sum that one method adds to, another halves, and a third reads."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("sum", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.sum.add_(x)
        return self.sum * 2

    def halve(self) -> tuple[()]:
        self.sum.mul_(0.5)
        return ()

    def tick(self) -> torch.Tensor:
        self.sum.add_(1)
        return self.sum * 1.0


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("method", ["forward", "halve", "tick"])
def test_methods_with_state_need_neither(method: str, board: str, tmp_path: Path) -> None:
    """One without both is a C function without parameters but the arena."""
    inputs = {"forward": (torch.ones(3),), "halve": (), "tick": ()}
    source = from_methods(Kept(), inputs, "kept", method)
    compiled = pipeline.compile_source(source, load_board(board))
    assert "void kept_halve_run_in(void *arena);" in compiled.c.files["model.h"]
    assert "void kept_halve_run(void);" in compiled.c.files["model.h"]
    image = pipeline.build_image(compiled, tmp_path)
    assert compare(compiled, image, pipeline.run_image(compiled, image)).max_error == 0


def test_every_method_is_checked(tmp_path: Path) -> None:
    class Net(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

        def same(self) -> torch.Tensor:
            return torch.ones(3)

    source = from_methods(Net(), {"forward": (torch.ones(3),), "same": ()}, "net")
    with pytest.raises(CompileError, match="the model has no inputs") as error:
        pipeline.compile_source(source, load_board("pico"))
    assert error.value.at == ("same",)
    assert load(str(write_onnx(tmp_path, True, True))).graph.inputs
