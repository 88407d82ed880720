"""baretorch evaluate: three columns of the task's metrics, and what can be wrong with calibration() and evaluate()."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from baretorch.errors import CompileError
from baretorch.ir.graph import Builder, DType, Graph
from baretorch.machines.session import Answer, Checker, Recorder
from baretorch.machines.types import DeviceFault
from baretorch.ops.elementwise import Add
from baretorch.ops.scan import ArgMax
from tests.cli.program import MODELS, baretorch, check_golden, copy_model


def test_int8_on_the_target(folder: Path) -> None:
    model = copy_model("judged", folder)
    result = baretorch("evaluate", model, "--board", "pico2w", "--target-samples", "10", "--json")
    assert result.code == 0, result.err
    data = result.json()
    assert (data["dtype"], data["samples"], data["target_samples"], data["where"]) == ("int8", 40, 10, "unicorn")
    assert data["metrics"]["pytorch"] == {"accuracy": 1.0}
    assert data["metrics"]["host"] == data["metrics"]["target"]
    assert data["metrics"]["target"]["accuracy"] >= 0.95
    assert all(seconds >= 0 for seconds in data["seconds"].values())


def test_the_target_runs_as_many_samples_as_requested(folder: Path) -> None:
    model = copy_model("judged", folder)
    samples = ("--board", "host", "--float", "--samples", "19", "--target-samples", "10", "--json")
    assert baretorch("evaluate", model, *samples).json()["target_samples"] == 10


def test_fp32_in_a_table(folder: Path) -> None:
    model = copy_model("judged", folder)
    result = baretorch("evaluate", model, "--board", "mps2-an386", "--float", "--samples", "5")
    assert result.code == 0, result.err
    for words in (
        "PyTorch fp32",
        "fp32 on the host",
        "fp32 on mps2-an386",
        "5 inputs, all of them on mps2-an386 (qemu)",
    ):
        assert words in result.out
    (row,) = (line for line in result.out.splitlines() if line.startswith("accuracy"))
    assert row.split() == ["accuracy", "1.0000", "1.0000", "1.0000"]


REMEMBERS = """
import torch
from torch import nn

class Sum(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("sum", torch.zeros(1, 2))

    def forward(self, x):
        self.sum.copy_(self.sum + x)
        return self.sum * 1.0

def model(): return Sum()
def inputs(): return (torch.ones(1, 2),)

def evaluate(run):
    first = [run(torch.ones(1, 2)) for _ in range(3)][-1].max()
    run.reset()
    return {"third": first, "after reset": run(torch.ones(1, 2)).max()}
"""


def test_a_model_that_remembers(folder: Path) -> None:
    (folder / "sum.py").write_text(REMEMBERS)
    result = baretorch("evaluate", "sum.py", "--board", "mps2-an386", "--float", "--target-samples", "1", "--json")
    assert result.code == 0, result.err
    data = result.json()
    assert all(found == {"third": 3.0, "after reset": 1.0} for found in data["metrics"].values())
    assert data["target_samples"] == 4, "it would remember something else if it missed one"


def check_error(name: str, *arguments: str) -> None:
    result = baretorch(*arguments)
    assert (result.code, result.out) == (1, ""), result.err
    assert "Traceback" not in result.err
    check_golden(f"error_{name}", result.err)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("evaluate_none", ""),
        ("evaluate_samples", "def evaluate(run): return {'a': 1.0}"),
        ("evaluate_empty", "def evaluate(run, samples=1): return {}"),
        ("evaluate_raises", "def evaluate(run, samples=1): return {'a': 1 / 0}"),
        ("evaluate_shape", "def evaluate(run, samples=1): return {'a': run(torch.zeros(2, 4)).max()}"),
    ],
)
def test_tasks_that_cannot_be(name: str, text: str, folder: Path) -> None:
    model = (MODELS / "judged.py").read_text().partition("def evaluate")[0]
    (folder / "net.py").write_text(model + text + "\n")
    check_error(name, "evaluate", "net.py", "--board", "pico2w", "--samples", "3")


def test_a_file_without_functions(folder: Path) -> None:
    (folder / "cnn.pte").touch()
    check_error("evaluate_file", "evaluate", "cnn.pte", "--board", "pico2w")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("calibration_empty", "[]"),
        ("calibration_shape", "[(torch.zeros(1, 5),)]"),
        ("calibration_labels", "[(torch.zeros(1, 4), torch.tensor([1]))]"),
        ("calibration_nan", "[(torch.full((1, 4), torch.nan),)]"),
        ("calibration_overflow", "[(torch.full((1, 4), 3e38),), (torch.randn(1, 4),)]"),
    ],
)
def test_calibration_that_cannot_be(name: str, text: str, folder: Path) -> None:
    model = (MODELS / "judged.py").read_text().replace("torch.eye(4)", "torch.ones(4, 4)")
    (folder / "net.py").write_text(f"{model}\ndef calibration():\n    return {text}\n")
    check_error(name, "run", "net.py", "--board", "pico2w", "--int8")


def doubling() -> Graph:
    b = Builder()
    x = b.input("x", (2,), DType.FLOAT32)
    return b.graph([x], [b.add(Add(), x, x)])


TWICE = doubling()


class Twice:
    """Runs a model that doubles; with `wrong` its answer to that number is another."""

    def __init__(self, wrong: float | None = None) -> None:
        self.wrong, self.ran = wrong, 0

    def __call__(self, *inputs: Any) -> Answer:
        self.ran += 1
        x = np.asarray(inputs[0])
        return 2 * x + (1e-3 if float(x[0]) == self.wrong else 0)

    def reset(self) -> None: ...


def recorded(count: int) -> Recorder:
    recorder = Recorder(Twice())
    for i in range(count):
        recorder(np.array([i, 1000.0]))
    return recorder


def test_chosen_inputs_run_and_the_rest_is_replayed() -> None:
    target = Twice()
    checker = Checker(target, recorded(10), {0, 3, 6}, True, "the board", TWICE)
    assert [checker(np.array([i, 1000.0])).tolist() for i in range(10)] == [[2 * i, 2000.0] for i in range(10)]
    assert (checker.count, checker.ran, target.ran) == (10, 3, 3)


def test_an_answer_that_differs_is_an_error() -> None:
    exact = Checker(Twice(wrong=3.0), recorded(5), range(5), True, "the board", TWICE)
    nearly = Checker(Twice(wrong=3.0), recorded(5), range(5), False, "the board", TWICE)
    for i in range(3):
        exact(np.array([i, 1000.0]))
    with pytest.raises(DeviceFault, match="the board and the host return different results for input 3 of evaluate"):
        exact(np.array([3, 1000.0]))
    for i in range(5):
        nearly(np.array([i, 1000.0]))
    assert nearly.ran == 5, "fp32 may differ by a thousandth of the largest value"


class Places:
    """Runs a model that always returns the given index of the largest number."""

    def __init__(self, index: int) -> None:
        self.index = index

    def __call__(self, *inputs: Any) -> Answer:
        return np.array(self.index)

    def reset(self) -> None: ...


def test_an_index_may_be_that_of_an_equal_number() -> None:
    """On another machine, two numbers that differ in their last bits may change places, and no others. An index is not
    compared with a relative tolerance, however long the row is."""
    b = Builder()
    graph = b.graph([b.input("x", (5000,), DType.FLOAT32)], [b.add(ArgMax(0, False), "x")])
    x = np.zeros(5000, np.float32)
    x[[4000, 4001]] = 1.0, 1.0 + 1e-6
    recorder = Recorder(Places(4001))
    recorder(x)
    assert Checker(Places(4000), recorder, range(1), False, "the board", graph)(x) == 4000
    for wrong in (4002, 3999, 0, -1, 5000):
        with pytest.raises(
            DeviceFault, match="the board and the host return different results for input 0 of evaluate"
        ):
            Checker(Places(wrong), recorder, range(1), False, "the board", graph)(x)


def test_other_inputs_than_before_are_an_error() -> None:
    checker = Checker(Twice(), recorded(2), range(2), True, "the board", TWICE)
    with pytest.raises(CompileError, match="sends other inputs when it is called again, from number 0 on"):
        checker(np.array([7.0, 7.0]))


def test_run_lists_what_each_layer_loses(folder: Path) -> None:
    model = copy_model("judged", folder)
    data = baretorch("run", model, "--board", "pico2w", "--int8", "--json").json()
    (layer,) = data["layers"]
    assert layer["op"] == "qlinear" and 30 < layer["sqnr_db"] == layer["alone_db"] < 60
    assert data["max_lsb"] <= 1 and data["float_layers"] == []
    result = baretorch("run", model, "--board", "pico2w", "--int8")
    assert "signal to quantization noise, against float" in result.out
    assert f"{layer['sqnr_db']:g}" in result.out
    plain = baretorch("run", model, "--board", "pico2w", "--json").json()
    assert plain["layers"] == [] and plain["max_lsb"] is None


def test_inspect_shows_the_int8_graph(folder: Path) -> None:
    model = copy_model("judged", folder)
    for io, first in (("float", "float32"), ("int8", "int8")):
        data = baretorch("inspect", model, "--int8", "--io", io, "--json").json()
        assert "qlinear" in [row["op"] for row in data["operators"]]
        assert data["inputs"][0]["dtype"] == first


OUTLIER = """
import torch
from torch import nn

def model(): return nn.Linear(4096, 4)
def inputs(): return (torch.ones(1, 4096),)

def calibration():
    torch.manual_seed(0)
    for i in range(256):
        x = 2 * torch.rand(1, 4096) - 1
        x[0, 0] = 2 if i == 0 else 0
        yield (x,)
"""


def test_the_observer_decides_about_outliers(folder: Path) -> None:
    """One value of a million is 2, the others are between -1 and 1. The header says what a step is."""
    (folder / "outlier.py").write_text(OUTLIER)
    steps = {}
    for observer in ("histogram", "minmax"):
        options = ("--int8", "--io", "int8", "--observer", observer)
        (x,) = baretorch("inspect", "outlier.py", *options, "--json").json()["inputs"]
        steps[observer] = x["scale"]
        result = baretorch("compile", "outlier.py", "--board", "pico2w", *options, "--out", observer)
        assert result.code == 0, result.err
        header = (folder / observer / "model.h").read_text()
        (scale,) = re.findall(r"INPUT_SCALE ([-+\d.e]+)f", header)
        (zero,) = re.findall(r"INPUT_ZERO_POINT \((-?\d+)\)", header)
        assert float(scale) == pytest.approx(x["scale"], rel=1e-6) and int(zero) == x["zero_point"]
    assert steps["histogram"] == pytest.approx(2 / 255, rel=0.05)
    assert steps["minmax"] == pytest.approx(3 / 255, rel=1e-3)


@pytest.mark.parametrize("option", [("--keep-float", "0"), ("--observer", "minmax")], ids=lambda option: option[0])
def test_options_of_int8_go_with_it(folder: Path, option: tuple[str, str]) -> None:
    (folder / "outlier.py").write_text(OUTLIER)
    result = baretorch("build", "outlier.py", "--board", "pico2w", *option)
    assert result.code == 2
    assert "--keep-float, --observer and --calibration go with --int8" in result.err


@pytest.mark.parametrize("option", ["--int8", "--keep-float 0", "--observer minmax", "--io int8"])
def test_float_takes_nothing_of_int8(folder: Path, option: str) -> None:
    result = baretorch("evaluate", copy_model("judged", folder), "--board", "host", "--float", *option.split())
    assert result.code == 2
    assert "--float excludes --int8, --keep-float, --config, --observer minmax and --io int8" in " ".join(
        result.err.split()
    )
