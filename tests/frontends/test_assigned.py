"""Buffers that `forward` assigns, `self.hidden = new`: results are those of PyTorch, in modules of any depth."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import baretorch
from baretorch import frontends, pipeline
from baretorch.ir.graph import interpret
from baretorch.ir.io import arrange_inputs

X = torch.linspace(-1, 1, 4).reshape(1, 4)
CALLS = 10


class Net(nn.Module):
    """Has a layer, a state of one row, another one, and a queue of eight rows."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a = nn.Linear(4, 4)
        self.register_buffer("h", torch.zeros(1, 4))
        self.register_buffer("p", torch.ones(1, 4))
        self.register_buffer("q", torch.zeros(8, 4))


class Average(Net):
    def forward(self, x: Any) -> Any:
        self.h = 0.5 * self.h + x
        return self.h


class Parameter(Net):
    """The state is a parameter after the first call, which no call changes."""

    def forward(self, x: Any) -> Any:
        y = self.h + x
        self.h = self.a.bias[None]
        return y


class InTable(Net):
    def forward(self, x: Any) -> Any:
        self._buffers["h"] = self.h * 0.5 + self.a(x)
        return self.h + 0


class RegisteredAgain(Net):
    def forward(self, x: Any) -> Any:
        self.register_buffer("h", self.h * 0.5 + self.a(x))
        return self.h + 0


class Swapped(Net):
    def forward(self, x: Any) -> Any:
        y = self.a(x) + self.h - 2 * self.p
        self.h, self.p = self.p, self.h + y
        return y


class Moved(Net):
    def forward(self, x: Any) -> Any:
        old = self.p
        self.p = self.h
        self.h = self.a(x)
        return old


class Difference(Net):
    """Keeps its input."""

    def forward(self, x: Any) -> Any:
        d = x - self.p
        self.p = x
        return d


class Delay(Net):
    def forward(self, x: Any) -> Any:
        old = self.h
        self.h = self.a(x)
        return old


class OldAndNew(Net):
    def forward(self, x: Any) -> Any:
        old = self.h.view(2, 2)
        self.h = self.a(x)
        return old.T, old + 1, self.h, old, self.h[:, 1:], old


class Queue(Net):
    def forward(self, x: Any) -> Any:
        oldest = self.q[0:1]
        self.q = torch.cat([self.q[1:], self.a(x)])
        return oldest


class Ring(Net):
    """Assigns, and changes in place what it assigned."""

    def forward(self, x: Any) -> Any:
        last = self.q[-1:]
        self.q = torch.roll(self.q, 1, 0)
        self.q[0] = self.a(x)[0]
        return last, self.q[:2]


class InPlace(Net):
    """A view sees changes in place, before and after them."""

    def forward(self, x: Any) -> Any:
        view = self.h.view(4)
        self.h.mul_(0.5)
        self.h += self.a(x)
        return view, self.h[0, 1:]


class Both(Net):
    """The old tensor is changed in place and then replaced."""

    def forward(self, x: Any) -> Any:
        old = self.h
        old.add_(x)
        self.h = self.h * 0.5
        old.mul_(3)
        return old - self.h


class Shared(Net):
    """One tensor under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("same", self.h)

    def forward(self, x: Any) -> Any:
        self.h.add_(self.a(x))
        return self.same * 2


class Lstm(Net):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 4)

    def forward(self, x: Any) -> Any:
        y, (self.h, self.p) = self.lstm(x, (self.h, self.p))
        return y


class Twice(nn.Module):
    """Calls a module with state twice, under two names."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.first = self.second = inner
        self.own = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return self.second(self.own(self.first(x)))


class Reset(nn.Module):
    """Writes the state of another module."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Average()

    def forward(self, x: Any) -> Any:
        y = self.inner(x)
        self.inner.h = self.inner.h * 0.25 + x
        return y


class Frozen(Net):
    def forward(self, x: Any) -> Any:
        with torch.no_grad():
            self.h = (self.h * 0.5 + self.a(x)).detach()
        return self.h


NETS = [
    *(
        Average(),
        Parameter(),
        InTable(),
        RegisteredAgain(),
        Swapped(),
        Moved(),
        Difference(),
        Delay(),
        OldAndNew(),
        Queue(),
        Ring(),
    ),
    *(InPlace(), Both(), Lstm(), Frozen(), Twice(Average()), Twice(Delay()), Twice(Both()), Reset(), Shared()),
]


@pytest.mark.parametrize("deep", [False, True], ids=["top", "deep"])
@pytest.mark.parametrize("net", NETS, ids=lambda net: type(net).__name__)
def test_results_are_those_of_pytorch(net: nn.Module, deep: bool) -> None:
    net = nn.Sequential(nn.Sequential(nn.Linear(4, 4)), nn.Sequential(net)) if deep else net
    before = _state(net)
    source = frontends.from_module(net, (X,), "net")
    assert _state(net) == before
    graph = pipeline.lower(source).graph
    own, memory = deepcopy(net).eval(), dict[str, Any]()
    for call in range(CALLS):
        x = X * (call - 3)
        with torch.no_grad():
            want = torch.utils._pytree.tree_leaves(own(x.clone()))
        found = interpret(graph, arrange_inputs(graph, (x,)), memory=memory)
        for have, right in zip(graph.outputs, want, strict=True):
            np.testing.assert_allclose(found[have].reshape(right.shape), right, rtol=1e-5, atol=1e-5)


def _state(net: nn.Module) -> dict[str, Any]:
    """The buffers of a module: which tensors they are, and their values."""
    return {name: (id(t), t.tolist()) for name, t in net.named_buffers(remove_duplicate=False)}


def test_a_module_is_compiled_twice_from_the_same_state() -> None:
    net = nn.Sequential(Average(), Queue())
    before = _state(net)
    for _ in range(2):
        model, own = baretorch.compile(net, (X,), board="host"), deepcopy(net).eval()
        for factor in (1, 2, 3):
            with torch.no_grad():
                np.testing.assert_allclose(model.run(factor * X), own(factor * X), rtol=1e-5, atol=1e-5)
        model.close()
        assert _state(net) == before


class Methods(Net):
    def put(self, x: Any) -> Any:
        self.h = self.a(x)
        return x

    def take(self, x: Any) -> Any:
        old = self.h
        self.h = self.h * 0.5
        return old + x


def test_several_methods() -> None:
    net = nn.Sequential(Methods())[0]
    source = frontends.from_methods(net, {"put": (X,), "take": (X,)}, "net")
    graphs, memory = pipeline.lower(source).graphs, dict[str, Any]()
    for name in ("put", "take", "take", "put", "take"):
        with torch.no_grad():
            want = getattr(net, name)(X)
        found = interpret(graphs[name], arrange_inputs(graphs[name], (X,)), memory=memory)
        np.testing.assert_allclose(found[graphs[name].outputs[0]], want, atol=1e-5)


def test_hooks_of_the_top_module_are_part_of_it() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    net.register_forward_pre_hook(lambda module, inputs: (inputs[0] / 255,))
    net.register_forward_hook(lambda module, inputs, output: output.softmax(-1))
    model = baretorch.compile(net, (100 * X,), board="host")
    with torch.no_grad():
        np.testing.assert_allclose(model.run(50 * X), net(50 * X), atol=1e-5)
    model.close()
