"""The net: a step that changes what a model computes is an error with its name, and rounding is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from baretorch import pipeline
from baretorch.errors import InternalError
from baretorch.frontends import from_module
from baretorch.frontends.torch import export as torch_export
from baretorch.frontends.torch.plain import attribute
from baretorch.ir.graph import Array, Graph
from baretorch.options import Options
from baretorch.passes.equivalence import TOLERANCE, Reference, WrongStep, difference
from tests.models import seeded
from tests.pte import write_pte

X = torch.randn(1, 3, 6, 6, generator=torch.Generator().manual_seed(0))


def net() -> nn.Module:
    return seeded(
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 8), nn.ReLU())
    )


class Counting(nn.Module):
    """Wrong state shows in the second run only."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("sum", torch.zeros(1, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + self.sum
        self.sum.add_(x)
        return y


# --- passes --------------------------------------------------------------------------------------------------


def doubling(graph: Graph) -> Graph:
    """A pass that doubles the largest constant: what a fold that went wrong does."""
    large = max(graph.constants(), key=lambda t: t.bytes)
    assert large.data is not None
    return replace(graph, tensors={**graph.tensors, large.name: replace(large, data=large.data * 2)})


def forgetting(graph: Graph) -> Graph:
    """A pass that lets state be as it was."""
    return replace(graph, state=tuple(replace(s, next=s.name) for s in graph.state))


@pytest.mark.parametrize("int8", [False, True])
def test_a_wrong_pass_is_named(int8: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    source = from_module(net(), (X,), "net")
    source, options = replace(source, calibration=[(X,)]), Options(int8=int8)
    pipeline.lower(source, options)
    monkeypatch.setattr(pipeline, "FLOAT_PASSES", (*pipeline.FLOAT_PASSES[:5], doubling, *pipeline.FLOAT_PASSES[5:]))
    with pytest.raises(WrongStep, match="the pass doubling changed what the model computes: output 0") as caught:
        pipeline.lower(source, options)
    assert isinstance(caught.value, InternalError) and caught.value.step == "the pass doubling"


def test_of_a_float_model_the_last_pass_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "FINAL_PASSES", (*pipeline.FINAL_PASSES, doubling))
    with pytest.raises(WrongStep, match="the pass doubling"):
        pipeline.lower(from_module(net(), (X,), "net"))


def test_wrong_state_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    source = from_module(Counting(), (torch.ones(1, 4),), "counting")
    pipeline.lower(source)
    monkeypatch.setattr(pipeline, "FLOAT_PASSES", (*pipeline.FLOAT_PASSES[:3], forgetting, *pipeline.FLOAT_PASSES[3:]))
    with pytest.raises(WrongStep, match="the pass forgetting"):
        pipeline.lower(source)


def test_without_pytorch_the_graph_is_its_own_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    source = replace(from_module(net(), (X,), "net"), references={})
    pipeline.lower(source)
    monkeypatch.setattr(pipeline, "FLOAT_PASSES", (*pipeline.FLOAT_PASSES[:5], doubling, *pipeline.FLOAT_PASSES[5:]))
    with pytest.raises(WrongStep, match="the pass doubling"):
        pipeline.lower(source)


# --- steps in torch's program --------------------------------------------------------------------------------


def spoil(program: torch.fx.GraphModule) -> None:
    node = next(n for n in program.graph.find_nodes(op="get_attr") if n.meta["val"].dim() > 1)
    attribute(program, str(node.target)).data.mul_(2)


def test_a_wrong_step_before_reading_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(torch_export.STEPS, "products as linear layers", lambda program, changing: spoil(program))
    with pytest.raises(WrongStep, match="products as linear layers changed"):
        from_module(net(), (X,), "net")


def wrong(*modules: object, **options: object) -> tuple[str, ...]:
    spoil(modules[0][0])  # type: ignore[index]
    return ("norm",)


def test_a_wrong_fold_is_no_pte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("baretorch.frontends.torch.norms.fold_norms", wrong)
    with pytest.raises(WrongStep, match="the folding of BatchNorm changed"):
        write_pte(net(), (X,), tmp_path / "net.pte")
    assert list(tmp_path.iterdir()) == []


# --- what is rounding ----------------------------------------------------------------------------------------


def reference(answer: Array, *moved: Array) -> Reference:
    return Reference((answer,), 1, lambda seed: (moved[seed % len(moved)],) if moved and seed else (answer,))


ONE = np.array([100.0, 1.0, 0.0], np.float32)


@pytest.mark.parametrize(
    ("have", "right"),
    [
        (ONE + np.float32(0.5 * TOLERANCE * 100), True),
        (ONE + np.float32(2 * TOLERANCE * 100), False),
        (np.array([100.0, 1.0, np.nan], np.float32), False),
        (np.array([100.0, 1.0, np.inf], np.float32), False),
        (ONE[:2], False),
    ],
)
def test_floats_may_differ_by_rounding(have: Array, right: bool) -> None:
    assert (difference((have,), reference(ONE)) is None) is right


def test_nan_must_be_in_the_same_places() -> None:
    odd = np.array([np.nan, np.inf, 1.0], np.float32)
    assert difference((odd.copy(),), reference(odd)) is None
    assert difference((odd[::-1],), reference(odd)) is not None


def test_integers_are_equal_unless_the_model_itself_wavers() -> None:
    index = np.array([3, 5])
    assert difference((index,), reference(index)) is None
    assert difference((np.array([3, 4]),), reference(index)) is not None
    assert difference((np.array([3, 4]),), reference(index, index, np.array([3, 4]))) is None
    assert difference((np.array([2, 4]),), reference(index, np.array([3, 4]))) is not None, "the first does not"


def test_an_argmax_between_equals_is_rounding() -> None:
    """The columns differ in their last bits, so which is the largest depends on the order of additions."""

    class Ties(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            column = torch.randn(64, generator=torch.Generator().manual_seed(0))
            self.weight = nn.Parameter(torch.stack([column, column.flip(0)]))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x @ self.weight.T).argmax(-1)

    x = torch.randn(20, 32, generator=torch.Generator().manual_seed(1))
    source = from_module(Ties(), (torch.cat([x, x.flip(1)], 1),), "ties")
    (answer,) = source.references["forward"].answers
    flipped = 1 - answer
    assert difference((flipped,), source.references["forward"]) is None
    assert difference((flipped + 2,), source.references["forward"]) is not None


def test_a_model_may_return_its_state() -> None:
    """The answer to the first run is not what the second makes of the very same tensor."""

    class Sums(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.total.copy_(self.total + x)
            return self.total

    source = from_module(Sums(), (torch.ones(2),), "sums")
    assert source.expected is not None and source.expected_again is not None
    assert [float(y[0][0]) for y in (source.expected, source.expected_again)] == [1, 2]


# --- more than float32 can hold ------------------------------------------------------------------------------


class Applied(nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], Any], gain: float = 1.0) -> None:
        super().__init__()
        self.function, self.gain = function, nn.Parameter(torch.full((16,), gain))

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x) * self.gain[0]


HUGE: dict[str, Callable[[torch.Tensor], Any]] = {
    "layer_norm": lambda x: F.layer_norm(x, (16,)),
    "group_norm": lambda x: F.group_norm(x, 2),
    "instance_norm": F.instance_norm,
    "rms_norm": lambda x: F.rms_norm(x, (16,)),
    "var": lambda x: x.var(-1),
    "std": lambda x: x.std(-1),
    "norm": lambda x: x.norm(dim=-1),
    "normalize": lambda x: F.normalize(x, dim=-1),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(1),
    "logsumexp": lambda x: x.logsumexp(-1),
    "cosine_similarity": lambda x: F.cosine_similarity(x[:, :1], x[:, 1:], -1),
    "cdist": lambda x: torch.cdist(x, x),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x),
    "hardswish": F.hardswish,
}


@pytest.mark.parametrize("scale", [1e20, 3e37, 1e-30, 1e-42])
@pytest.mark.parametrize("name", HUGE)
def test_what_overflows_in_pytorch_is_no_fault_of_ours(name: str, scale: float) -> None:
    """Squares of 1e20 are infinite in PyTorch's float32, and our references compute in float64."""
    x = torch.randn(2, 4, 16, generator=torch.Generator().manual_seed(0)) * scale
    pipeline.lower(from_module(Applied(HUGE[name]), (x,), "net"))


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "normalize"])
def test_a_wrong_pass_is_found_also_where_pytorch_overflows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(2, 4, 16, generator=torch.Generator().manual_seed(0)) * 1e20
    source = from_module(Applied(HUGE[name], 3.0), (x,), "net")
    monkeypatch.setattr(pipeline, "FLOAT_PASSES", (doubling, *pipeline.FLOAT_PASSES))
    with pytest.raises(WrongStep, match="the pass doubling"):
        pipeline.lower(source)


def test_double_precision_excuses_no_other_number() -> None:
    """Only a number that is the one of float32 or of float64 is right."""
    want, exact = np.array([0.0, 1.0], np.float32), np.array([2.5, 1.0])
    own = replace(reference(want), exact=lambda: (exact,))
    for have, right in (([0.0, 1.0], True), ([2.5, 1.0], True), ([1.2, 1.0], False), ([2.5, 1.1], False)):
        assert (difference((np.array(have, np.float32),), own) is None) is right
    large = replace(reference(np.array([np.nan], np.float32)), exact=lambda: (np.array([1e40]),))
    assert difference((np.array([np.inf], np.float32),), large) is None
    assert difference((np.array([1.0], np.float32),), large) is not None
