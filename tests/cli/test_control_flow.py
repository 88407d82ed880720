"""Model files with control flow, which PyTorch traces by the names of modules."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.program import baretorch

COND = """
import torch
from torch import nn

SHIFT = {shift}


def up(x):
    return x + SHIFT


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4, bias=False)
        self.b = nn.Linear(4, 4, bias=False)
        nn.init.eye_(self.a.weight)
        nn.init.constant_(self.b.weight, 0.5)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: up(self.a(x)), lambda x: self.b(x), (x,))
"""
FILE = """
def model():
    return Net()


def inputs():
    return (torch.tensor([[1.0, 2.0, 3.0, 4.0]]),)


def calibration():
    return [(torch.linspace(-4, 4, 4).reshape(1, 4) + i,) for i in (-1, 0, 1, 2)]
"""
LOOP = """
import torch
from torch import nn
from torch._higher_order_ops.while_loop import while_loop

LIMIT = 20


def small(i, x):
    return (i < 8) & (x.sum() < LIMIT)


class Net(nn.Module):
    def forward(self, x):
        return while_loop(small, lambda i, x: (i + 1, x * 2), (torch.tensor(0), x))[1]
"""


def answer(path: Path, *options: str) -> list[float]:
    result = baretorch("run", str(path), "--board", "host", "--json", *options)
    assert result.code == 0, result.err
    (row,) = result.json()["outputs"][0]
    return [float(x) for x in row]


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder / "net.py"


def test_cond(folder: Path) -> None:
    path = write(folder, net=COND.format(shift=1.0) + FILE)
    assert answer(path) == [2, 3, 4, 5]
    assert answer(path, "--int8") == pytest.approx([2, 3, 4, 5], abs=0.15)


def test_a_layer_in_a_branch_stays_float(folder: Path) -> None:
    path = write(folder, net=COND.format(shift=1.0) + FILE)
    result = baretorch("run", str(path), "--board", "host", "--int8", "--keep-float", "a", "--json")
    assert result.code == 0, result.err
    (layer,) = result.json()["float_layers"]
    assert layer.startswith("linear a ")


def test_while_loop(folder: Path) -> None:
    assert answer(write(folder, net=LOOP + FILE)) == [2, 4, 6, 8]


def test_a_class_of_a_neighbour(folder: Path) -> None:
    """Each file has its own neighbour, also if they have the same names, or the neighbour has changed."""
    file = "import torch\nfrom parts import Net\n" + FILE
    one = write(folder / "one", net=file, parts=COND.format(shift=1.0))
    two = write(folder / "two", net=file, parts=COND.format(shift=2.0))
    assert (answer(one), answer(two)) == ([2, 3, 4, 5], [3, 4, 5, 6])
    write(folder / "one", parts=COND.format(shift=10.0))
    assert answer(one) == [11, 12, 13, 14]
