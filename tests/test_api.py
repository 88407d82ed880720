"""baretorch.compile(): the options of the command line, and words that are none."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import baretorch
from baretorch.errors import CompileError

X = torch.randn(1, 3, 16, 16, generator=torch.Generator().manual_seed(0)).to(memory_format=torch.channels_last)


def network() -> nn.Module:
    torch.manual_seed(0)
    images = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 3, 2), nn.ReLU())
    return nn.Sequential(images, nn.Flatten(), nn.Linear(196, 2)).eval()


@pytest.mark.parametrize(
    "options",
    [{"input": "rows"}, {"ram": 6000}, {"buffers": "caller"}, {"weights": "ram"}, {"place": {"0.2": "SCRATCH"}}],
    ids=lambda options: next(iter(options)),
)
def test_memory_is_spent_as_asked_and_the_answer_stays(options: dict[str, Any]) -> None:
    whole = baretorch.compile(network(), (X,), board="pico")
    model = baretorch.compile(network(), (X,), board="pico", **options)
    with torch.no_grad():
        expected = network()(X).numpy()
    try:
        np.testing.assert_allclose(np.asarray(model.run(X)), expected, rtol=1e-4, atol=1e-5)
    finally:
        model.close()
    if "weights" in options:
        assert model.build().ram.weights == model.memory.weights
    elif "place" in options:
        assert {bank.name for bank in model.compiled.plan.layout.banks} == {"SRAM", "SCRATCH"}
    else:
        assert model.memory.arena < whole.memory.arena


@pytest.mark.parametrize("option", ["optimize", "observer", "io", "input", "buffers", "weights"])
def test_a_word_that_is_none(option: str) -> None:
    with pytest.raises(CompileError, match=rf"compile\(\): {option} is 'fast'") as caught:
        baretorch.compile(network(), (X,), board="pico", **{option: "fast"})
    assert caught.value.need


@pytest.mark.parametrize("board", [3, None, b"pico"])
def test_a_board_that_is_not_text(board: Any) -> None:
    with pytest.raises(CompileError, match=r"compile\(\): board is "):
        baretorch.compile(network(), (X,), board=board)


class Sums(nn.Module):
    """Remembers what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(1, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.copy_(self.total + x)
        return self.total * 2


def test_reset_clears_the_state_of_a_model() -> None:
    one = torch.ones(1, 2)
    model = baretorch.compile(Sums(), (one,), board="host")

    def twice(run: Any) -> dict[str, float]:
        run.reset()
        return {"first": run(one)[0, 0], "second": run(one)[0, 0]}

    try:
        model.reset()
        assert model.run(one)[0].tolist() == [2, 2]
        assert model.evaluate(twice) == {"first": 2, "second": 4}
        model.reset()
        assert model.run(one)[0].tolist() == [2, 2]
    finally:
        model.close()


def test_answers_are_the_callers_to_change() -> None:
    model = baretorch.compile(network(), (X,), board="host")
    try:
        answer = torch.as_tensor(model.run(X))  # warns of an array that cannot be written
    finally:
        model.close()
    answer += 1
    model.reset()  # without state there is nothing to forget
    model.close()


def test_random_calibration_is_reported() -> None:
    with pytest.warns(UserWarning, match="random data"):
        model = baretorch.compile(network(), (X,), board="pico2w", name="net", int8=True)
    assert any("random data" in text for text in model.warnings)
    memory = model.memory
    assert repr(model) == f"Model(net int8 for pico2w: arena {memory.arena:,} bytes, weights {memory.weights:,} bytes)"


def test_layers_that_stay_float_are_reported() -> None:
    class Ranked(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.median(torch.relu(x), 1).values * 0.5

    model = baretorch.compile(Ranked(), (X,), board="pico2w", calibration=[(X,)])
    assert [text for text in model.warnings if text.startswith("float: ")]


def test_an_error_has_its_remedy_in_python() -> None:
    with pytest.raises(CompileError) as caught:
        baretorch.compile(network(), (X,), board="picow")
    what, *rest = str(caught.value).splitlines()
    assert what == "unknown board 'picow'" and [row.split()[0] for row in rest] == ["need", "try"]


def test_layers_that_the_user_keeps_in_float_are_not_warned_of() -> None:
    model = baretorch.compile(network(), (X,), board="pico2w", calibration=[(X,)], keep_float=["2"])
    assert [node.op.name for node in model.compiled.graph.nodes].count("linear") == 1
    assert model.warnings == ()


def test_what_goes_with_int8_only() -> None:
    with pytest.raises(CompileError, match="--keep-float, --observer and --calibration go with --int8"):
        baretorch.compile(network(), (X,), board="pico", keep_float=["2"])
    with pytest.raises(CompileError, match="nothing in this model is") as caught:
        baretorch.compile(network(), (X,), board="pico", io="int8")
    assert "--int8" in caught.value.try_[0]


def test_close_frees_the_folder() -> None:
    model = baretorch.compile(nn.ReLU(), (torch.ones(4),), board="host")
    first = model.build().elf
    assert first.is_file()
    model.close()
    assert not first.parent.exists()
    np.testing.assert_array_equal(np.asarray(model.run(torch.tensor([-1.0, 0.0, 1.0, 2.0]))), [0, 0, 1, 2])
    again = model.build().elf
    assert again.is_file() and again != first
    del model
    gc.collect()
    assert not again.parent.exists()


def test_close_leaves_the_folder_of_the_caller(tmp_path: Path) -> None:
    model = baretorch.compile(nn.ReLU(), (torch.ones(4),), board="host")
    image = model.build(tmp_path)
    model.close()
    assert image.elf.is_file()
    assert model.build() is image


class Pair(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a - 2 * b


class InDict(nn.Module):
    def forward(self, d: dict[str, torch.Tensor]) -> torch.Tensor:
        return d["a"] - 2 * d["b"]


class InList(nn.Module):
    def forward(self, xs: list[torch.Tensor]) -> torch.Tensor:
        return xs[0] - 2 * xs[1]


A, B = torch.ones(2, 3), torch.linspace(0, 1, 6).reshape(2, 3)


@pytest.mark.parametrize(
    ("net", "inputs", "runs"),
    [
        (Pair(), {"b": B, "a": A}, [((A, B), {}), (({"b": B, "a": A},), {}), (((A, B),), {}), ((A,), {"b": B})]),
        (InDict(), {"b": B, "a": A}, [((B, A), {}), (({"a": A, "b": B},), {}), ((), {"d": {"a": A, "b": B}})]),
        (InList(), ([A, B],), [((A, B), {}), (([A, B],), {}), ((), {"xs": [A, B]}), ((), {"xs_0": A, "xs_1": B})]),
    ],
    ids=["two", "dict", "list"],
)
def test_run_takes_what_compile_takes(net: nn.Module, inputs: Any, runs: Any) -> None:
    model = baretorch.compile(net, inputs, board="host")
    for given, named in runs:
        assert abs(model.run(*given, **named) - (A - 2 * B).numpy()).max() < 1e-6
    with pytest.raises(CompileError, match=r"run\(\)") as caught:
        model.run(a=A, c=B)
    assert caught.value.need[0].endswith("in this order or by these names")
    model.close()


@pytest.mark.parametrize("net", [nn.Linear(3, 2), nn.Sequential(nn.Linear(3, 2))], ids=["linear", "sequential"])
def test_what_torch_compile_returns(net: nn.Module) -> None:
    model = baretorch.compile(torch.compile(net), (A,), board="host")
    assert "_orig_mod" not in str(model.compiled.graph)
    with torch.no_grad():
        assert abs(model.run(A) - net(A).numpy()).max() < 1e-5
    model.close()
