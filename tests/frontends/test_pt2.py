"""Sound `.pt2` files: read without trust as torch.export.load reads them, from the command line and from Python."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from pt2_files import Pt2, Tiny, tiny
from tests.cli.program import baretorch as command
from torch._higher_order_ops.while_loop import while_loop

import baretorch
from baretorch import frontends
from baretorch.errors import CompileError
from baretorch.ir.text import to_text
from baretorch.options import Options


def test_the_same_program_as_torch_gives(tmp_path: Path) -> None:
    path = str(tiny().write(tmp_path / "tiny.pt2"))
    ours, theirs = frontends.load(path), frontends.load(path, options=Options(trust=True))
    assert ours.texts["aten"]() == theirs.texts["aten"]()
    assert to_text(ours.graph) == to_text(theirs.graph)  # the constants, too
    assert ours.expected is not None and theirs.expected is not None
    for a, b in zip(ours.expected, theirs.expected, strict=True):
        np.testing.assert_array_equal(a, b)


class Tied(torch.nn.Module):
    """One parameter under two names, one that is a slice, an empty one, and inputs in a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.second = torch.nn.Linear(4, 4)
        self.second.weight = self.first.weight
        whole = torch.arange(8.0)
        self.register_buffer("even", whole[::2])
        self.register_buffer("none", torch.zeros(0, 4))

    def forward(self, pair: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.cat([self.second(self.first(pair["a"])) * self.even + pair["b"], self.none])


@pytest.mark.filterwarnings("ignore:No complete tensor")  # torch about the slice
def test_shared_and_strided_weights(tmp_path: Path) -> None:
    torch.manual_seed(0)
    example = {"a": torch.randn(1, 4), "b": torch.randn(1, 4)}
    module = Tied().eval()
    torch.export.save(torch.export.export(module, (example,)), tmp_path / "tied.pt2")
    source = frontends.load(str(tmp_path / "tied.pt2"))
    with torch.no_grad():
        expected = module(example).numpy()
    assert source.expected is not None
    np.testing.assert_allclose(source.expected[0], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(source.graph["even"].data, [0, 2, 4, 6])


def test_a_quantized_file_in_a_fresh_process(tmp_path: Path) -> None:
    """Its operators are not torch's own: they are there without an import by the user."""
    import torch.ao.quantization.fx._decomposed

    class Rounded(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q = torch.ops.quantized_decomposed
            int8 = q.quantize_per_tensor(x, 0.5, 0, -128, 127, torch.int8)
            return torch.relu(q.dequantize_per_tensor(int8, 0.5, 0, -128, 127, torch.int8))

    torch.export.save(torch.export.export(Rounded(), (torch.ones(1, 4),)), tmp_path / "rounded.pt2")
    script = "import sys; from baretorch import frontends; print(frontends.load(sys.argv[1]).graph.is_quantized)"
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "rounded.pt2")], capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr


class Flow(torch.nn.Module):
    """Programs inside of the program."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.cond(x.sum() > 0, lambda x: (x.sin(), x + 1), lambda x: (x.cos(), x - 1), (x,))
        turns, z = while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, z * 2), (torch.tensor(0), y[0]))
        with torch.no_grad():
            return y[1] * 2, z + turns


def test_control_flow(tmp_path: Path) -> None:
    """The file is read unchanged, but refused if the size of any value in a branch or loop is wrong."""
    x = torch.arange(4.0)
    path = tmp_path / "flow.pt2"
    torch.export.save(torch.export.export(Flow(), (x,)), path)
    source = frontends.load(str(path))
    assert source.expected is not None
    for got, want in zip(source.expected, Flow()(x), strict=True):
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-6)
    file = Pt2.read(path)
    arguments = [a["arg"] for node in file.graph["nodes"] for a in node["inputs"]]
    graphs = [a["as_graph"]["graph"] for a in arguments if "as_graph" in a]
    values = [meta for graph in graphs for meta in graph["tensor_values"].values()]
    assert len(graphs) == 5 and len(values) > 15
    for meta in values:
        told, meta["sizes"] = meta["sizes"], [{"as_int": 3}]
        meta["strides"], strides = [{"as_int": 1}], meta["strides"]
        with pytest.raises(CompileError, match="is said to be"):
            frontends.load(str(file.write(tmp_path / "lie.pt2")))
        meta["sizes"], meta["strides"] = told, strides
    frontends.load(str(file.write(tmp_path / "truth.pt2")))


def test_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tiny()
    file.constants["config"]["offset"]["use_pickle"] = True
    constant = torch.tensor([1.0, 2.0, 3.0])
    constant.note = Fraction(1, 2)  # type: ignore[attr-defined]  # which only a pickle can hold
    torch.save(constant, "constant.pt")
    file.members["data/constants/tensor_0"] = Path("constant.pt").read_bytes()
    file.write(Path("own.pt2"))
    with pytest.raises(CompileError, match="offset are not plain tensors: reading them could run code"):
        baretorch.compile("own.pt2", board="host")
    model = baretorch.compile("own.pt2", board="host", trust=True)
    assert model.memory.weights > 0
    refused = command("compile", "own.pt2", "--board", "pico", "--out", "c")
    assert refused.code == 1 and "--trust" in refused.err
    done = command("compile", "own.pt2", "--board", "pico", "--out", "c", "--trust", "--json")
    assert done.code == 0 and json.loads(done.out)["model"] == "own"


def test_the_tiny_model_is_what_it_declares() -> None:
    assert set(Tiny().state_dict()) == {"layer.weight", "layer.bias", "count"}
