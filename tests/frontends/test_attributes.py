"""Attributes that `forward` changes: an error that names them and the line, unless no later call can tell."""

from __future__ import annotations

import random
from collections import deque
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

import baretorch
from baretorch import frontends
from baretorch.errors import CompileError
from baretorch.frontends.torch.notices import SUPPRESSED

X = torch.linspace(-1, 1, 4).reshape(1, 4)


class Net(nn.Module):
    """Has a layer, and what the tests need."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__()
        self.a = nn.Linear(4, 4)
        for name, value in attributes.items():
            setattr(self, name, value)


class Tensor(Net):
    def forward(self, x: Any) -> Any:
        self.h = self.h * 0.9 + self.a(x)  # changed
        return self.h


class NoneAtFirst(Net):
    def forward(self, x: Any) -> Any:
        y = self.a(x) if self.h is None else self.a(x) + self.h
        self.h = y  # changed
        return y


class Missing(Net):
    def forward(self, x: Any) -> Any:
        y = self.a(x) + getattr(self, "h", 0)
        self.h = y  # changed
        return y


class Pair(Net):
    def forward(self, x: Any) -> Any:
        first, second = self.h
        self.h = (second, self.a(x))  # changed
        return first + second


class Counter(Net):
    def forward(self, x: Any) -> Any:
        self.h += 1  # changed
        return self.a(x) * self.h


class LateCounter(Net):
    """Three calls cannot tell."""

    def forward(self, x: Any) -> Any:
        self.h += 1  # changed
        return self.a(x) if self.h < 100 else x


class Append(Net):
    def forward(self, x: Any) -> Any:
        self.h.append(self.a(x))  # changed
        return sum(list(self.h)[-2:])


class Entry(Net):
    def forward(self, x: Any) -> Any:
        y = self.a(x) + self.h["y"]
        self.h["y"] = y  # changed
        return y


class InPlace(Net):
    def forward(self, x: Any) -> Any:
        self.h.mul_(0.9)  # changed
        return self.a(x) + self.h


class Element(Net):
    def forward(self, x: Any) -> Any:
        self.h[0] = self.a(x)[0]  # changed
        return self.h.sum() + x


class OutOfSight(Net):
    """The version of the tensor stays."""

    def forward(self, x: Any) -> Any:
        self.h.data.add_(1)  # changed
        return self.a(x) + self.h


class SetAttr(Net):
    def forward(self, x: Any) -> Any:
        y = self.a(x) + self.h
        setattr(self, "h", y)  # changed  # noqa: B010
        return y


class InDict(Net):
    def forward(self, x: Any) -> Any:
        y = self.a(x) + self.h
        self.__dict__["h"] = y  # changed
        return y


class InObject(Net):
    def forward(self, x: Any) -> Any:
        self.h.n = self.h.n + 1  # changed
        return self.a(x) * self.h.n


class OfClass(Net):
    h = 0

    def forward(self, x: Any) -> Any:
        type(self).h += 1  # changed
        return self.a(x) * self.h


class Helped(Net):
    def forward(self, x: Any) -> Any:
        return self.helper(x)

    def helper(self, x: Any) -> Any:
        y = self.a(x)
        self.h = self.h + y  # changed
        return self.h


class Parameter(Net):
    def forward(self, x: Any) -> Any:
        y = self.a(x)
        self.a.bias.mul_(0.5)  # changed
        return y


class NoneBuffer(Net):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("h", None)

    def forward(self, x: Any) -> Any:
        y = self.a(x) if self.h is None else self.a(x) + self.h
        self.h = y  # changed
        return y


class GrowingBuffer(Net):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("h", torch.zeros(1, 4))

    def forward(self, x: Any) -> Any:
        self.h = torch.cat([self.h, self.a(x)])  # changed
        return self.h.sum(0)


class CachedInput(Net):
    """Written once, and not the same for all inputs."""

    def forward(self, x: Any) -> Any:
        if self.h is None:
            self.h = x  # changed
        return self.a(x) - self.h


BAD = [
    (Tensor(h=torch.zeros(1, 4)), "h", 'self.register_buffer("h", torch.zeros(1, 4))'),
    (NoneAtFirst(h=None), "h", 'self.register_buffer("h", torch.zeros(1, 4))'),
    (Missing(), "h", 'self.register_buffer("h", torch.zeros(1, 4))'),
    (Pair(h=(X, X)), "h", 'self.register_buffer("h_0", torch.zeros(1, 4)), self.register_buffer("h_1"'),
    (Counter(h=0), "h", 'self.register_buffer("h", torch.tensor(0))'),
    (LateCounter(h=0), "h", 'self.register_buffer("h", torch.tensor(0))'),
    (Append(h=[]), "h", "self.register_buffer("),
    (Append(h=deque(maxlen=3)), "h", "self.register_buffer("),
    (Entry(h={"y": X}), "h['y']", "self.register_buffer("),
    (InPlace(h=torch.zeros(1, 4)), "h", 'self.register_buffer("h", torch.zeros(1, 4))'),
    (Element(h=torch.zeros(2, 4)), "h", 'self.register_buffer("h", torch.zeros(2, 4))'),
    (OutOfSight(h=torch.zeros(1, 4)), "h", 'self.register_buffer("h", torch.zeros(1, 4))'),
    (SetAttr(h=torch.zeros(1, 4)), "h", 'self.register_buffer("h", torch.zeros(1, 4))'),
    (InDict(h=torch.zeros(1, 4)), "h", 'self.register_buffer("h", torch.zeros(1, 4))'),
    (InObject(h=SimpleNamespace(n=0)), "h.n", "self.register_buffer("),
    (OfClass(), "OfClass.h", 'self.register_buffer("h", torch.tensor(0))'),
    (Helped(h=torch.zeros(1, 4)), "h", 'self.register_buffer("h", torch.zeros(1, 4))'),
    (Parameter(), "a.bias", "self.register_buffer("),
    (NoneBuffer(), "h", 'self.register_buffer("h", torch.zeros(1, 4))'),
    (GrowingBuffer(), "h", "self.register_buffer("),
    (CachedInput(h=None), "h", 'self.register_buffer("h", torch.zeros(1, 4))'),
    (nn.Sequential(nn.ReLU(), nn.Sequential(Tensor(h=torch.zeros(1, 4)))), "1.0.h", "self.register_buffer("),
]


@pytest.mark.parametrize(("net", "path", "hint"), BAD, ids=lambda v: type(v).__name__ if isinstance(v, Net) else "")
def test_changes_that_would_be_lost(net: nn.Module, path: str, hint: str) -> None:
    before = _state(net)
    with pytest.raises(CompileError, match=r"^forward\(\) changes ") as caught:
        frontends.from_module(net, (X,), "net")
    (at,) = caught.value.at
    assert f"self.{path}, " in str(caught.value) or f"{path}, " in str(caught.value)
    assert at.startswith(f"{path}  (test_attributes.py:") and "# changed" in _source_line(at)
    assert any(hint in text for text in caught.value.try_), caught.value.try_
    assert _state(net) == before and net.training


def _source_line(at: str) -> str:
    with open(__file__) as file:
        return file.read().splitlines()[int(at.rpartition(":")[2].rstrip(")")) - 1]


def _state(net: nn.Module) -> str:
    """Everything that a small module holds, as text."""
    attributes = {n: {k: v for k, v in vars(m).items() if not k.startswith("_")} for n, m in net.named_modules()}
    held = (dict(net.state_dict()), attributes, getattr(type(net), "h", None))
    return str(torch.utils._pytree.tree_map(lambda v: v.tolist() if isinstance(v, torch.Tensor) else v, held))


class LastAttention(Net):
    def forward(self, x: Any) -> Any:
        self.weights = self.a(x).softmax(1)
        self.size = x.shape
        return x * self.weights + self.size[1]


class Table(Net):
    """Made by the first call, read by the others."""

    def forward(self, x: Any) -> Any:
        if getattr(self, "table", None) is None or self.table.shape[1] < x.shape[1]:
            self.table = torch.arange(x.shape[1]).float()[None]
        return self.a(x) + self.table


class Memo(Net):
    def forward(self, x: Any) -> Any:
        key = x.shape[1]
        if key not in self.masks:
            self.masks[key] = torch.ones(1, key).tril()
        return self.a(x) * self.masks[key]


class Same(Net):
    def forward(self, x: Any) -> Any:
        self.scale = self.scale.to(x.dtype)
        self.window = self.window[:]
        self.shape = list(x.shape)
        return self.a(x) * self.scale * self.window


class Hooked(Net):
    """A hook keeps what a layer gave."""

    def __init__(self) -> None:
        super().__init__()
        self.a.register_forward_hook(self.keep)

    def keep(self, module: nn.Module, inputs: Any, output: Any) -> None:
        self.kept = output

    def forward(self, x: Any) -> Any:
        return self.a(x).relu()


class Streaming(Net):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("h", torch.zeros(1, 4))

    def forward(self, x: Any) -> Any:
        self.h = self.h * 0.9 + self.a(x)
        return self.h


GOOD = [
    LastAttention(),
    Table(),
    Table(table=None),
    Memo(masks={}),
    Same(scale=torch.ones(1), window=torch.ones(4)),
    Hooked(),
    Streaming(),
    nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(), nn.Linear(4, 2)),
    nn.Sequential(parametrizations.weight_norm(nn.Linear(4, 4)), parametrizations.spectral_norm(nn.Linear(4, 4))),
    nn.Sequential(nn.Linear(4, 6), nn.Unflatten(1, (2, 3)), nn.LSTM(3, 4, batch_first=True)),
    nn.Sequential(nn.Unflatten(1, (1, 4)), nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)),
]


@pytest.mark.parametrize("net", GOOD, ids=lambda net: type(net).__name__)
def test_changes_that_no_call_can_see(net: nn.Module) -> None:
    before = _state(net)
    source = frontends.from_module(net, (X,), "net")
    assert source.warnings == ()
    assert _state(net) == before and net.training
    assert source.eager is not None
    source.eager()(X)
    assert _state(net) == before and net.training


def test_old_weight_norm() -> None:
    with pytest.warns(FutureWarning):
        net = nn.Sequential(nn.utils.weight_norm(nn.Linear(4, 4)))
    assert frontends.from_module(net, (X,), "net").warnings == ()


COUNT = [0]


class Global(Net):
    def forward(self, x: Any) -> Any:
        COUNT[0] += 1
        return self.a(x) * COUNT[0]


class Random(Net):
    def forward(self, x: Any) -> Any:
        return self.a(x) * random.random()


@pytest.mark.parametrize("net", [Global(), Random()], ids=lambda net: type(net).__name__)
def test_what_is_remembered_elsewhere(net: nn.Module) -> None:
    with pytest.raises(CompileError, match=r"^forward\(\) gives another result when it is called again"):
        frontends.from_module(net, (X,), "net")


class Coder(Net):
    def encode(self, x: Any) -> Any:
        self.code = self.a(x)  # changed
        return self.code

    def decode(self, x: Any) -> Any:
        return x + self.code


def test_what_one_method_leaves_to_another() -> None:
    net = Coder(code=torch.zeros(1, 4))
    with pytest.raises(CompileError, match=r"^encode\(\) changes self.code, ") as caught:
        frontends.from_methods(net, {"encode": (X,), "decode": (X,)}, "net")
    assert "# changed" in _source_line(caught.value.at[0])
    assert frontends.from_methods(net, {"encode": (X,)}, "net").method == "encode"


def test_the_python_interface() -> None:
    net = Counter(h=5)
    with pytest.raises(CompileError, match=r"^forward\(\) changes self.h, "):
        baretorch.compile(net, (X,), board="host")
    assert net.h == 5 and net.training


class Registered(Net):
    """What the errors say, done: tensors, numbers and the pair of an LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 4)
        self.register_buffer("h", torch.zeros(1, 4))
        self.register_buffer("n", torch.tensor(0))
        self.register_buffer("hidden_0", torch.zeros(1, 4))
        self.register_buffer("hidden_1", torch.zeros(1, 4))

    def forward(self, x: Any) -> Any:
        self.h = self.h * 0.9 + self.a(x)
        self.n += 1
        y, (self.hidden_0, self.hidden_1) = self.lstm(x, (self.hidden_0, self.hidden_1))
        return self.h * self.n + y


def test_registered_buffers_work() -> None:
    net = Registered()
    model = baretorch.compile(net, (X,), board="host")
    own = deepcopy(net).eval()
    for factor in (1.0, 0.5, -2.0):
        with torch.no_grad():
            want = own(factor * X).numpy()
        assert abs(model.run(factor * X) - want).max() < 1e-5
    model.close()


class Warns(Net):
    def forward(self, x: Any) -> Any:
        return torch.range(0, 3) + self.a(x)


def test_other_warnings_of_torch_reach_the_user() -> None:
    (warning,) = frontends.from_module(Warns(), (X,), "net").warnings
    assert "torch.range is deprecated" in warning and "\n" not in warning


def test_every_suppressed_warning_has_a_reason() -> None:
    assert all(pattern and reason for pattern, reason in SUPPRESSED)
