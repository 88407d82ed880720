"""--check-inputs: NaN and infinity are refused by name, before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import baretorch
from baretorch.errors import CompileError


class Sums(nn.Module):
    """Remembers what it was given; one input is integers, and one is not used."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(5))

    def forward(self, a: torch.Tensor, n: torch.Tensor, b: torch.Tensor, idle: torch.Tensor) -> torch.Tensor:
        self.total.copy_(self.total + a * n + b)
        return self.total * 2


GIVEN = (torch.arange(5.0), torch.arange(5, dtype=torch.int32), torch.full((5,), 0.5), torch.zeros(3))
WANTED = np.array([1.0, 3.0, 9.0, 19.0, 33.0], np.float32)
LARGEST = float(np.finfo(np.float32).max)


def compiled(**options: Any) -> baretorch.Model:
    return baretorch.compile(Sums(), GIVEN, check_inputs=True, **options)


@pytest.fixture(scope="module", params=["host", "mps2-an386", "caller"])
def model(request: pytest.FixtureRequest) -> Iterator[baretorch.Model]:
    caller = request.param == "caller"
    made = compiled(board="host", buffers="caller") if caller else compiled(board=request.param)
    yield made
    made.close()


def spoiled(which: int, value: float) -> list[torch.Tensor]:
    given = [x.clone() for x in GIVEN]
    given[which][-1] = value
    return given


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize(("which", "name"), [(0, "a"), (2, "b"), (3, "idle")])
def test_what_is_not_finite_is_refused_and_nothing_runs(
    model: baretorch.Model, which: int, name: str, value: float
) -> None:
    model.reset()
    with pytest.raises(CompileError) as caught:
        model.run(*spoiled(which, value))
    assert caught.value.what == f"input {name} has NaN or infinite values"
    assert caught.value.need and caught.value.try_
    np.testing.assert_array_equal(np.asarray(model.run(*GIVEN)), WANTED)  # its memory is as it was


@pytest.mark.parametrize("value", [LARGEST, -LARGEST, 1e-45, -0.0])
def test_all_other_numbers_are_taken(model: baretorch.Model, value: float) -> None:
    model.reset()
    answer = np.asarray(model.run(*spoiled(3, value)))
    np.testing.assert_array_equal(answer, WANTED)


def test_int8_inside_refuses_what_it_cannot_detect() -> None:
    x = torch.linspace(-1, 1, 8).reshape(1, 8)
    torch.manual_seed(0)
    made = baretorch.compile(
        nn.Linear(8, 2).eval(), (x,), board="host", calibration=[(x,), (-x,)], check_inputs=True, optimize="size"
    )
    try:
        with pytest.raises(CompileError, match="input input has NaN"):
            made.run(torch.full((1, 8), torch.nan))
    finally:
        made.close()


def test_it_is_declared_and_costs_nothing_unless_asked_for() -> None:
    files = compiled(board="host").c_files
    declared = "int model_check(const float *a, const int32_t *n, const float *b, const float *idle);"
    assert declared in files["model.h"] and "kernels/finite.h" in files
    plain = baretorch.compile(Sums(), GIVEN, board="host")
    assert "kernels/finite.h" not in plain.c_files
    texts = (*plain.c_files.values(), plain.compiled.c.glue)
    assert not any(word in text for text in texts for word in ("model_check", "wrong_input", "bt_all_finite"))


def test_models_without_float_inputs_have_nothing_to_check() -> None:
    x = torch.linspace(-1, 1, 4).reshape(1, 4)
    with pytest.raises(CompileError, match="has no float inputs") as caught:
        baretorch.compile(
            nn.Embedding(4, 2).eval(), (torch.zeros(1, 3, dtype=torch.int64),), board="host", check_inputs=True
        )
    assert caught.value.have
    with pytest.raises(CompileError, match="has no float inputs"):
        baretorch.compile(
            nn.Linear(4, 2).eval(), (x,), board="host", calibration=[(x,), (-x,)], io="int8", check_inputs=True
        )
