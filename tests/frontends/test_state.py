"""State that PyTorch keeps in buffers is compared with that of the exported program. A lost change is an error."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from tests.frontends.test_assigned import Average, Net, Queue, X
from torch import nn

from baretorch import frontends, pipeline
from baretorch.errors import CompileError
from baretorch.frontends.torch import exportable
from baretorch.ir.graph import interpret
from baretorch.passes.equivalence import WrongStep


class Data(Net):
    def forward(self, x: Any) -> Any:
        self.h.data = self.h * 0.5 + self.a(x)  # changed
        return self.h + 0


class Unread(Net):
    """No result shows that the change is lost."""

    def forward(self, x: Any) -> Any:
        self.h.data = self.h + 1  # changed
        return self.a(x)


class SecondCall(Net):
    """The first call changes nothing."""

    def forward(self, x: Any) -> Any:
        self.p.data = torch.where(self.h > 0, self.p + 1, self.p)  # changed
        self.h = self.h + 1
        return self.a(x)


@pytest.mark.parametrize("deep", [False, True], ids=["top", "deep"])
@pytest.mark.parametrize(("net", "name"), [(Data(), "h"), (Unread(), "h"), (SecondCall(), "p")])
def test_a_change_that_is_lost_is_an_error(net: nn.Module, name: str, deep: bool) -> None:
    net, path = (nn.Sequential(net), f"0.{name}") if deep else (net, name)
    before = {n: t.clone() for n, t in net.named_buffers()}
    with pytest.raises(CompileError, match=rf"^forward\(\) changes the buffer self\.{path} in a way") as caught:
        frontends.from_module(net, (X,), "net")
    (at,) = caught.value.at
    assert at.startswith(f"{path}  (test_state.py:")
    with open(__file__) as file:
        assert "# changed" in file.read().splitlines()[int(at.rpartition(":")[2].rstrip(")")) - 1]
    assert f"self.{path}.copy_(new) or self.{path} = new" in caught.value.try_
    assert all(torch.equal(t, before[n]) for n, t in net.named_buffers())


class Aliases(Net):
    """A model in which both buffers are one tensor from the second call on."""

    def forward(self, x: Any) -> Any:
        self.p.mul_(0.5)
        y = self.h + self.p
        self.h = self.p = self.a(x)
        return y


class Turning(Net):
    """A filter with complex state."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("z", torch.zeros(1, 4, dtype=torch.complex64))

    def forward(self, x: Any) -> Any:
        self.z = self.z * 0.5j + x
        return self.a(self.z.real)


def test_complex_state() -> None:
    with pytest.raises(CompileError, match=r"^the state z has type complex64") as caught:
        pipeline.lower(frontends.from_module(Turning(), (X,), "net"))
    assert "torch.view_as_real(z)" in str(caught.value.try_)


def test_buffers_that_become_one() -> None:
    with pytest.raises(CompileError, match=r"^self\.h and self\.p share memory"):
        frontends.from_module(Aliases(), (X,), "net")


class Halves(Net):
    """Two buffers are parts of one tensor after each call, and no call changes them in place."""

    def forward(self, x: Any) -> Any:
        y = self.h + 2 * self.p
        self.h, self.p = torch.cat([self.a(x) + self.p, self.a(x) * 0.5], 0).chunk(2)
        return y


class Copied(Net):
    """A buffer keeps what another one was in the call before; torch.export alone refuses that."""

    def forward(self, x: Any) -> Any:
        self.h[:, :2] = x[:, 2:]
        y = self.a(x) + self.p
        self.p.copy_(self.h)
        return y


class Converted(Net):
    """Buffers keep a column for all columns, and an integer part; torch.export alone loses both conversions."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("n", torch.zeros(1, 4, dtype=torch.int32))

    def forward(self, x: Any) -> Any:
        y = self.a(x) + self.p + self.n
        self.p.copy_(self.h[:, :1])
        self.h.add_(y)
        self.n.add_(1).copy_(5 * y)
        return y


@pytest.mark.parametrize("net", [Halves(), Copied(), Converted()], ids=["parts", "copied", "converted"])
def test_buffers_that_take_over_one_tensor(net: nn.Module) -> None:
    graph = frontends.from_module(net, (X,), "net").graph
    memory: dict[str, Any] = {}
    for turn in range(3):
        x = X + turn
        (y,) = interpret(graph, [x.numpy()], memory=memory).values()
        np.testing.assert_allclose(y, net(x).detach().numpy(), rtol=1e-5)


@pytest.mark.parametrize("net", [nn.Sequential(Average()), Queue()], ids=["lost", "early"])
def test_what_torch_export_did_is_noticed(net: nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    """If exportable.py is disabled, the state is lost, or a delay of eight calls becomes one of seven. Four calls show
    it."""
    monkeypatch.setattr(exportable, "_slots", lambda module: ())
    monkeypatch.setattr(exportable, "_without_torchs_hooks", nullcontext)
    with pytest.raises(
        (CompileError, WrongStep), match=r"in a way that torch\.export loses|torch\.export changed what"
    ):
        frontends.from_module(net, (X,), "net")
