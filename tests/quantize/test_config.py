"""A configuration is data: whatever it says, it ends in an error that can be read, and takes no room to speak of."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from baretorch.errors import CompileError
from baretorch.frontends import from_module
from baretorch.ir.graph import Builder, DType, Graph, Quant
from baretorch.ops.index import IndexSelect
from baretorch.ops.linear import Linear
from baretorch.quantize.config import Config, apply_config, read_config
from baretorch.quantize.precisions import Precision, set_precisions
from tests.models import int8_model

DIGITS, BITS = "9" * 5000, "0x" + "f" * 5000


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (f"width = {'9' * 400}\n[layers]\n", "width = 999"),
        (f"width = {DIGITS}\n[layers]\n", "have  a number of thousands of digits"),
        (f"x = {'[' * 5000}", "arrays or tables in each other, too deep to read"),
        (f"width = {BITS}\n[layers]\n", "width = a number of thousands of digits"),
        (f"[layers]\na = {BITS}\n", "'a' = a number of thousands of digits: no such precision"),
        (f"weights = {BITS}\n[layers]\n", "weights = a number of thousands of digits"),
        (f'weights = "{"a" * 9000}.npy"\n[layers]\n', "weights = 'aaa"),
        (f"[layers]\n[removed]\na = {BITS}\n", "these are not valid channels"),
        (f"{'a' * 9000} = 3\n[layers]\n", "it has no list of layers"),
        (f'[layers]\n"{"a" * 9000}" = "{"b" * 9000}"\n', "no such precision"),
        (f'[layers]\n[removed]\na = "{"0-1000000, " * 9000}1"\n', "these are not valid channels"),
        ("[layers]\n[removed]\n" + "".join(f'a{i} = "0-1000000"\n' for i in range(9)), "these are not valid channels"),
    ],
)
def test_what_a_file_declares_is_checked(text: str, what: str, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(CompileError) as error:
        read_config(str(tmp_path / "c.toml"))
    assert what in error.value.render()
    assert len(error.value.render()) < 1000


def layer() -> Graph:
    b = Builder()
    x = b.input("x", (3,), DType.FLOAT32)
    rows = b.add(
        IndexSelect(0), b.const("table", np.zeros((5, 3), np.float32)), b.const("places", np.zeros(2, np.int32))
    )
    return b.graph([x], [b.add(Linear(), rows, b.const("w", np.ones((4, 3), np.float32)))])


def test_other_files_than_arrays_in_an_npz(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "w.npz", "w") as file:
        file.writestr("w.npy", "import os")
    with pytest.raises(CompileError, match=r"cannot read the weights w\.npz"):
        apply_config(layer(), Config(weights=tmp_path / "w.npz"))


def test_indices_are_the_models_own(tmp_path: Path) -> None:
    """Only weights come from a file."""
    np.savez(tmp_path / "w.npz", places=np.array([4, 1 << 30], np.int32))
    with pytest.raises(CompileError, match="are not this model's"):
        apply_config(layer(), Config(weights=tmp_path / "w.npz"))


@pytest.mark.parametrize(
    "data", [[1e-300, 0], [1e300, 0], [np.nan, 0], [1.0, np.nan], [1.0, 0.5], [1.0, 128], [-1.0, 0]]
)
def test_scales_that_no_calibration_finds(data: list[float], tmp_path: Path) -> None:
    np.savez(tmp_path / "w.npz", **{"scale of x": np.array(data)})
    with pytest.raises(CompileError, match="are not this model's"):
        apply_config(layer(), Config(weights=tmp_path / "w.npz"))


def test_a_layer_has_one_precision() -> None:
    graph = layer()
    (y,) = graph.outputs
    quants = {
        "w": Quant((0.1,) * 4, (0,) * 4, 0),
        y: Quant((0.1,), (0,)),
        graph.nodes[-1].inputs[0]: Quant((1.0,), (0,)),
    }
    noted = {n: replace(t, quant=quants.get(n)) for n, t in graph.tensors.items()}
    graph = replace(graph, tensors=noted)
    with pytest.raises(CompileError, match="'one' = 'int4' and 'other' = 'int16' are the same layer"):
        set_precisions(graph, {"one": (Precision.INT4, {y}), "other": (Precision.INT16, {y})})
    alike = set_precisions(graph, {"one": (Precision.INT4, {y}), "other": (Precision.INT4, {y})})
    assert alike.nodes[-1].inputs[1].startswith("w_int4")


class Tied(nn.Module):
    """Two layers of one weight, whose answers go on together."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)
        self.b.weight = self.a.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.a(x), self.b(x)], 1)


def test_a_layer_in_float_stays_so_where_its_weight_is_int8_elsewhere() -> None:
    source = from_module(Tied(), (torch.randn(1, 8),), "tied")
    for kept in ("a", "b"):
        made = int8_model(source, list(torch.randn(8, 1, 8)), keep_float=(kept,))
        names = [n.op.name for n in made.graph.nodes]
        assert names.count("linear") == 1 and names.count("qlinear") == 1, (kept, names)
