"""Mistakes with PyTorch that new users make: exactly these texts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cli.program import GOLDEN, baretorch, check_golden
from tests.cli.test_errors import check_error

HEAD = """import itertools
import numpy
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 4)
        self.h = torch.zeros(1, 4)
        self.n = 0
        self.rnn = nn.LSTM(8, 4)
        self.hidden = None
        self.kept = {{"h": torch.zeros(1, 4)}}
        self.steps = itertools.cycle([1.0, 2.0, 3.0])
        self.register_buffer("b", torch.zeros(1, 4))
        self.register_buffer("c", torch.zeros(1, 4))
        self.register_buffer("d", torch.zeros(1, 4))
        self.register_buffer("part", self.b[0])
    def forward(self, x):
        {}
def model(): return Net()
def inputs(): return (torch.ones(1, 8),)
"""
FORWARD = {
    "state_tensor": "self.h = self.h * 0.9 + self.a(x); return self.h",
    "state_number": "self.n += 1; return self.a(x) * self.n",
    "state_lstm": "y, self.hidden = self.rnn(x, self.hidden); return y",
    "state_in_place": "self.h.mul_(0.9); return self.a(x) + self.h",
    "branch": "return self.a(x) if x.sum() > 0 else self.a(-x)",
    "mask": "return x[x > 0].sum() + self.a(x)",
    "numpy": "return torch.from_numpy(numpy.sin(self.a(x).numpy()))",
    "item": "return self.a(x) * x.max().item()",
    "size": "return x[:, : int(x.argmax())]",
    "numpy_constant": "return self.a(x) * torch.from_numpy(numpy.ones(4))",
    "svd": "return torch.linalg.svd(self.a(x).reshape(2, 2))[1]",
    "cumprod": "return self.a(x).cumprod(1)",
    "random": "return self.a(x + 0.1 * torch.randn_like(x))",
    "dropout": "return nn.functional.dropout(self.a(x))",
    "state_dict_entry": "self.kept['h'] = self.a(x) + self.kept['h']; return self.kept['h']",
    "state_data": "self.c.data = self.c + 1; return self.a(x) + self.c",
    "state_mode": "self.training = not self.training; return self.a(x) * (2 if self.training else 1)",
    "state_cycle": "return self.a(x) * next(self.steps)",
    "shared": "self.b.add_(1); return self.a(x) + self.part",
    "shared_later": "self.c.mul_(0.5); y = self.c + self.d; self.c = self.d = self.a(x); return y",
    "input_method": "x.mul_(2); return self.a(x)",
    "input_operator": "x += 1; return self.a(x)",
    "input_element": "x[:, 0] = 0; return self.a(x)",
    "global_random": "return self.a(x) * numpy.random.rand()",
}


@pytest.mark.parametrize("name", FORWARD)
def test_forward(name: str, folder: Path) -> None:
    (folder / "net.py").write_text(HEAD.format(FORWARD[name]))
    check_error(f"torch_{name}", "compile", "net.py", "--board", "pico", "--out", "c")


FILES = {
    "model_is_a_net": "model = Net()",
    "inputs_is_a_tensor": "inputs = torch.ones(1, 8)",
    "model_number": "def model(): return 3",
    "state_dict": "def model(): return Net().state_dict()",
    "load_module": "torch.save(Net(), 'net.pt')\ndef model(): return torch.load('net.pt')",
    "cuda": "def model(): raise AssertionError('Torch not compiled with CUDA enabled')",
    "load_cuda": "def model(): raise RuntimeError('Attempting to deserialize object on a CUDA device but …')",
    "meta_model": "def model(): return nn.Linear(8, 4, device='meta')",
    "meta_inputs": "def inputs(): return torch.ones(1, 8, device='meta')",
    "lazy": "def model(): return nn.Sequential(nn.LazyLinear(4))",
    "shape": "def model(): return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(100, 4))\n"
    "def inputs(): return torch.ones(1, 3, 16, 16)",
    "channels": "def model(): return nn.Sequential(nn.Conv2d(3, 8, 3))\ndef inputs(): return torch.ones(1, 16, 16, 3)",
    "float64": "def inputs(): return (torch.from_numpy(numpy.ones((1, 8))),)",
    "tokens": "def model(): return nn.Sequential(nn.Embedding(8, 4))",
    "dict_of_nothing": "def inputs(): return {'y': torch.ones(1, 8), 'x': 3}",
    "keyword_only": "class Two(Net):\n    def forward(self, x, *, y): return x + y\n"
    "def model(): return Two()\ndef inputs(): return {'x': torch.ones(1, 8), 'y': torch.ones(1, 8)}",
    "script": "def model(): return nn.Sequential(torch.jit.script(nn.Linear(8, 4)))",
    "nested": "import warnings\nwarnings.simplefilter('ignore')  # a prototype\n"
    "def inputs(): return (torch.nested.nested_tensor([torch.ones(2, 8), torch.ones(3, 8)]),)",
    "dict_of_others": "class Two(Net):\n    def forward(self, x, y): return x + y\n"
    "def model(): return Two()\ndef inputs(): return {'a': torch.ones(1, 8)}",
}


@pytest.mark.parametrize("name", FILES)
def test_files(name: str, folder: Path) -> None:
    (folder / "net.py").write_text(f"{HEAD.format('return self.a(x)')}{FILES[name]}\n")
    check_error(f"torch_{name}", "compile", "net.py", "--board", "pico", "--out", "c")


def test_a_shape_in_the_users_line(folder: Path) -> None:
    (folder / "net.py").write_text(HEAD.format("return self.a(x.reshape(2, 4))"))
    check_error("torch_line", "compile", "net.py", "--board", "pico", "--out", "c")


def test_a_model_on_a_gpu(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    there = SimpleNamespace(device=torch.device("cuda:0"))
    monkeypatch.setattr(torch.nn.Module, "named_parameters", lambda *_, **__: [("a.weight", there)])
    linear = "def model(): return nn.Linear(8, 4)\n"
    (folder / "net.py").write_text(HEAD.format("return self.a(x)") + linear)
    check_error("torch_on_cuda", "compile", "net.py", "--board", "pico", "--out", "c")


def test_a_board_of_an_sdk(folder: Path) -> None:
    check_error("board_esp32", "run", "net.py", "--board", "esp32")


def test_the_project_for_esp32_works(folder: Path) -> None:
    """It is what the error says."""
    (folder / "net.py").write_text(HEAD.format("return self.a(x)"))
    said = (GOLDEN / "error_board_esp32.txt").read_text().partition("`baretorch ")[2].partition("`")[0]
    assert baretorch(*said.replace("MODEL", "net.py").replace("DIR", "esp").split()).code == 0


GOOD = {
    "tensor": ("", "torch.ones(1, 8)"),
    "list": ("", "[torch.ones(1, 8)]"),
    "keywords": ("", "{'x': torch.ones(1, 8)}"),
    "dict": ("x = x['image']; ", "{'image': torch.ones(1, 8)}"),
}


@pytest.mark.parametrize("name", GOOD)
def test_inputs_in_other_forms(name: str, folder: Path) -> None:
    first, given = GOOD[name]
    (folder / "net.py").write_text(HEAD.format(f"{first}return self.a(x)").replace("(torch.ones(1, 8),)", given))
    data = baretorch("run", "net.py", "--board", "host", "--json").json()
    assert data["max_error"] < 1e-5 and [len(row) for row in data["outputs"][0]] == [4]


def test_a_batch_is_noted(folder: Path) -> None:
    (folder / "net.py").write_text(HEAD.format("return self.a(x)").replace("torch.ones(1, 8)", "torch.ones(32, 8)"))
    check_golden("torch_batch", "\n".join(n for n in baretorch("inspect", "net.py").out.splitlines() if "batch" in n))


def test_the_python_interface_takes_tensors() -> None:
    import torch
    from torch import nn

    import baretorch as package
    from baretorch.errors import CompileError

    net, x = nn.Linear(8, 4), torch.ones(1, 8)
    given: list[Any] = [x, (x,), [x], {"input": x}]
    for inputs in given:
        graph = package.compile(net, inputs, board="host").compiled.graph
        assert [t.shape for t in graph.of(graph.inputs)] == [(1, 8)]
    with pytest.raises(CompileError, match="is given a state_dict"):
        package.compile(net.state_dict(), x, board="host")
