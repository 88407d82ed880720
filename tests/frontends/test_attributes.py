"""Attributes that `forward` changes are an error with their names and the line, unless no later call depends on
them."""

from __future__ import annotations

import itertools
import random
from collections import deque
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
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
    """A counter that has no effect in the first three calls."""

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


@dataclass(slots=True)
class Slots:
    n: int = 0


class Plain:
    n = 0


class Caller:
    def __init__(self) -> None:
        self.n = 0

    def __call__(self, x: Any) -> Any:
        self.n += 1  # changed
        return x if self.n < 60 else -x


class Config(dict[str, Any]):
    n = 0


class Items(list[Any]):
    n = 0


def enclosing() -> Any:
    n = 0

    def later(x: Any) -> Any:
        nonlocal n
        n += 1  # changed
        return x if n < 60 else -x

    return later


class InHeld(Net):
    """A counter in something that the module holds: slots, or attributes of a class of a list or dict."""

    def forward(self, x: Any) -> Any:
        self.h.n += 1  # changed
        return self.a(x) if self.h.n < 60 else x


class OfHeldClass(Net):
    def forward(self, x: Any) -> Any:
        type(self.h).n += 1  # changed
        return self.a(x) if self.h.n < 60 else x


class OfTensor(Net):
    def forward(self, x: Any) -> Any:
        w: Any = self.a.weight
        w.n = getattr(w, "n", 0) + 1  # changed
        return self.a(x) if w.n < 60 else x


class Called(Net):
    def forward(self, x: Any) -> Any:
        return self.h(self.a(x))


class InPartial(Net):
    def forward(self, x: Any) -> Any:
        self.h.keywords["n"][0] += 1  # changed
        return self.a(x) if self.h.keywords["n"][0] < 60 else x


class Next(Net):
    def forward(self, x: Any) -> Any:
        n = next(self.h)  # changed
        return self.a(x) * (1 if n < 60 else 2)


class OfMethod(Net):
    def forward(self, x: Any) -> Any:
        own: Any = type(self).forward
        own.n = getattr(own, "n", 0) + 1  # changed
        return self.a(x) if own.n < 60 else x


class PastModule(Net):
    def forward(self, x: Any) -> Any:
        n = object.__getattribute__(self, "h")
        object.__setattr__(self, "h", n + 1)  # changed
        return self.a(x) if n < 60 else x


class CachedInObject(Net):
    """Written once, and not the same for all inputs."""

    def forward(self, x: Any) -> Any:
        if self.h.n is None:
            self.h.n = x.max()  # changed
        return self.a(x) + self.h.n


class CachedMask(Net):
    """Written once, with a value that happens to be the same for all inputs that are tried."""

    def forward(self, x: Any) -> Any:
        if self.h is None:
            mask = torch.zeros(2, 4)
            mask[1:] = x > 2.5
            self.h = mask[1]  # changed
        return self.a(x) + self.h


class CachedNumber(Net):
    def forward(self, x: Any) -> Any:
        if self.h is None:
            self.h = max(3.0, x.max().item())  # changed
        return self.a(x) / self.h


class InList(Net):
    """A layer that only a list holds: torch.export loses the changes of its buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.h = [nn.Module()]
        self.h[0].register_buffer("k", torch.zeros(1, 4))

    def forward(self, x: Any) -> Any:
        self.h[0].k = self.h[0].k * 0.5 + x  # changed
        return self.a(self.h[0].k)


class HookCounts(Net):
    def __init__(self) -> None:
        super().__init__()
        n = [0]

        def hook(module: nn.Module, inputs: Any, output: Any) -> Any:
            n[0] += 1  # changed
            return output if n[0] < 60 else -output

        self.a.register_forward_hook(hook)

    def forward(self, x: Any) -> Any:
        return self.a(x)


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
    (InHeld(h=Slots()), "h.n", "in forward: self.h_n instead of self.h.n"),
    (InHeld(h=Config()), "h.n", "self.register_buffer("),
    (InHeld(h=Items()), "h.n", "self.register_buffer("),
    (OfHeldClass(h=Plain()), "Plain.n", "self.register_buffer("),
    (OfTensor(), "a.weight.n", "self.register_buffer("),
    (Called(h=Caller()), "h.n", "self.register_buffer("),
    (Called(h=enclosing()), "h.n", "self.register_buffer("),
    (InPartial(h=partial(print, n=[0])), "h.keywords['n']", "self.register_buffer("),
    (Next(h=itertools.count()), "h", "torch.tensor(0)) for the position"),
    (Next(h=itertools.cycle([1.0, 2.0, 3.0])), "h", "self.register_buffer("),
    (Next(h=iter(range(100))), "h", "self.register_buffer("),
    (OfMethod(), "OfMethod.forward.n", "self.register_buffer("),
    (PastModule(h=0), "h", "self.register_buffer("),
    (CachedInObject(h=SimpleNamespace(n=None)), "h.n", "self.register_buffer("),
    (CachedMask(h=None), "h", "self.register_buffer("),
    (CachedNumber(h=None), "h", "self.register_buffer("),
    (InList(), "h[0].k", "in forward: self.h_0_k instead of self.h[0].k"),
    (HookCounts(), "a._forward_hooks[", "self.register_buffer("),
    (nn.Sequential(nn.ReLU(), nn.Sequential(Tensor(h=torch.zeros(1, 4)))), "1.0.h", "self.register_buffer("),
]


@pytest.mark.parametrize(("net", "path", "hint"), BAD, ids=lambda v: type(v).__name__ if isinstance(v, Net) else "")
def test_changes_that_would_be_lost(net: nn.Module, path: str, hint: str) -> None:
    before = _state(net)
    with pytest.raises(CompileError, match=r"^forward\(\) changes ") as caught:
        frontends.from_module(net, (X,), "net")
    (at,) = caught.value.at
    assert f"{path}, " in str(caught.value) or path.endswith("[")
    assert at.startswith(path) and "  (test_attributes.py:" in at and "# changed" in _source_line(at)
    assert any(hint in text for text in caught.value.try_), caught.value.try_
    assert net.training and (_state(net) == before or isinstance(net, Next))  # iterators cannot be put back


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


class LikeInput(Net):
    """A cache of the shape and type of the input, in a model with control flow."""

    def forward(self, x: Any) -> Any:
        if self.h is None:
            self.h = torch.full_like(x, 2.0) + x.new_ones(4) + torch.zeros_like(x).index_fill_(1, torch.tensor([1]), 3)
        return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (self.a(x) + self.h,))


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
    LikeInput(h=None),
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


REMEMBERED = {"h": torch.zeros(1, 4)}


class GlobalSelection(Net):
    """Depends on earlier calls for other inputs only."""

    def forward(self, x: Any) -> Any:
        REMEMBERED["h"] = torch.where(x > 99, x, REMEMBERED["h"])
        return self.a(x) + REMEMBERED["h"]


class Periodic(Net):
    """Comes round with every third call."""

    def forward(self, x: Any) -> Any:
        COUNT[0] = (COUNT[0] + 1) % 3
        return self.a(x) * COUNT[0]


class Random(Net):
    def forward(self, x: Any) -> Any:
        return self.a(x) * random.random()


@pytest.mark.parametrize("net", [Global(), GlobalSelection(), Periodic(), Random()], ids=lambda net: type(net).__name__)
def test_what_is_remembered_elsewhere(net: nn.Module) -> None:
    with pytest.raises(CompileError, match=r"^forward\(\) returns another result when it is called again"):
        frontends.from_module(net, (X,), "net")


class Toggled(Net):
    def forward(self, x: Any) -> Any:
        self.training = not self.training
        return self.a(x) * (2.0 if self.training else 1.0)


def test_a_mode_that_changes() -> None:
    with pytest.raises(CompileError, match=r"^forward\(\) changes self\.0\.training, "):
        frontends.from_module(nn.Sequential(Toggled()), (X,), "net")


class Coder(Net):
    def encode(self, x: Any) -> Any:
        self.code = self.a(x)  # changed
        return self.code

    def decode(self, x: Any) -> Any:
        return x + self.code


class GlobalOfSecond(Net):
    def encode(self, x: Any) -> Any:
        return self.a(x)

    def decode(self, x: Any) -> Any:
        last, REMEMBERED["code"] = REMEMBERED.get("code", x), x
        return self.a(last)


def test_what_the_second_method_remembers_elsewhere() -> None:
    with pytest.raises(CompileError, match=r"^decode\(\) returns another result when it is called again"):
        frontends.from_methods(GlobalOfSecond(), {"encode": (X,), "decode": (X,)}, "net")


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
    """A model that follows the advice of the errors: tensors, numbers and the pair of an LSTM are buffers."""

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
