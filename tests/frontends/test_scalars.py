"""Numbers and words among the example inputs: constants of the image, and a note says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import baretorch
from baretorch import frontends
from baretorch.errors import CompileError


class Scaled(torch.nn.Module):
    def forward(self, x: torch.Tensor, k: Any = 2.0, twice: bool = False, kind: str | None = None) -> torch.Tensor:
        y = x * k if kind != "sum" else x + k
        return y + y if twice else y


X = torch.tensor([1.0, -2.0])


@pytest.mark.parametrize(
    ("inputs", "expected", "notes"),
    [
        ((X, 3.0), [3, -6], ["k is float 3.0"]),
        ((X, 3), [3, -6], ["k is int 3"]),
        ((X, 3, True), [6, -12], ["k is int 3", "twice is bool True"]),
        ((X, 0.5, False, None), [0.5, -1], ["k is float 0.5", "twice is bool False", "kind is None"]),
        ((X, 1.0, False, "sum"), [2, -1], ["k is float 1.0", "twice is bool False", "kind is str 'sum'"]),
    ],
    ids=["float", "int", "bool", "none", "str"],
)
def test_bound(inputs: tuple[Any, ...], expected: list[float], notes: list[str]) -> None:
    source = frontends.from_module(Scaled(), inputs, "scaled")
    assert source.graph.inputs == ("x",)
    assert list(source.notes) == [f"input {n} for ever: only tensors stay inputs" for n in notes]
    assert source.expected is not None
    np.testing.assert_array_equal(source.expected[0], expected)
    assert source.eager is not None
    np.testing.assert_array_equal(np.asarray(source.eager()(X)), expected)


def test_on_the_host_and_from_a_file(tmp_path: Path) -> None:
    model = baretorch.compile(Scaled(), (X, 3.0), board="host")
    assert any("k is float 3.0" in warning for warning in model.warnings)
    np.testing.assert_array_equal(np.asarray(model.run(X)), [3, -6])
    model.close()
    torch.export.save(torch.export.export(Scaled(), (X, 3.0)), tmp_path / "scaled.pt2")
    source = frontends.load(str(tmp_path / "scaled.pt2"))
    assert source.expected is not None
    np.testing.assert_array_equal(source.expected[0], [3, -6])


@pytest.mark.filterwarnings("ignore:calibration")
@pytest.mark.parametrize("calibration", [[(X, 3.0)], None], ids=["own", "random"])
def test_int8(calibration: list[Any] | None) -> None:
    model = baretorch.compile(Scaled(), (X, 3.0), board="host", int8=True, calibration=calibration)
    np.testing.assert_allclose(np.asarray(model.run(X)), [3, -6], atol=0.1)
    model.close()


def test_some_tensor_must_be_there() -> None:
    with pytest.raises(CompileError, match="not a tensor"):
        frontends.from_module(Scaled(), (3.0,), "scaled")


def test_a_number_of_the_data_is_no_constant() -> None:
    class Full(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + (torch.full((2,), x.sum().item()) + 1)

    source = frontends.from_module(Full(), (X,), "full")
    with pytest.raises(CompileError, match="not supported: item"):
        _ = source.graph
