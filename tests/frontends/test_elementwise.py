"""Elementwise operators as users write them: overloads, Python numbers, and PyTorch's rules for types."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tests.frontends.lower import Function, check_module, names
from torch import Tensor, nn

from baretorch.errors import CompileError
from baretorch.frontends import from_module

X = torch.tensor([[0.3, -1.7, 2.5, 0.0], [4.0, -0.5, 6.25, 1.0]])
Y = torch.tensor([[1.5, 2.0, -0.7, 0.5], [0.1, 3.0, -2.0, 1.0]])
I = torch.tensor([[7, -7, 0, 3], [5, 1, -2, 9]])
ODD = torch.tensor([0.0, nan, inf, -inf, 1.0])

FLOATS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: (x + y, x + 1, 2.5 + y, torch.add(x, y, alpha=3)),
    "sub": lambda x, y: (x - y, x - 1, 2.5 - y, torch.sub(x, y, alpha=3), torch.rsub(x, y), torch.rsub(x, 2, alpha=3)),
    "mul": lambda x, y: (x * y, x * 3, -2.5 * y),
    "div": lambda x, y: (x / y, x / 3, 2.5 / y, x / 1e39, x / 1e-45),
    "rounding": lambda x, y: (x // y, x // 2, torch.div(x, y, rounding_mode="trunc"), x % y, torch.fmod(x, y), x % 0.7),
    "decimals": lambda x, y: (x.round(decimals=1), (1000 * y).round(decimals=-2)),
    "pow": lambda x, y: (x**2, x**3, x**1, y.abs() ** 0.5, y**-1, y.abs() ** -0.5, y.abs() ** 1.7, 2**x, y.abs() ** x),
    "limits": lambda x, y: (
        torch.minimum(x, y),
        torch.maximum(x, y),
        x.clamp(0, 1),
        x.clamp(min=y),
        x.clamp(max=y),
        x.clamp(y - 1, y),
        x.clamp_min(0.5),
        x.clamp_max(y),
        torch.max(x, y),
    ),
    "functions": lambda x, y: (
        -x,
        x.abs(),
        x.exp(),
        x.expm1(),
        x.sin(),
        x.cos(),
        x.tan(),
        x.tanh(),
        x.sigmoid(),
        x.erf(),
    ),
    "special functions": lambda x, y: (
        x.atan(),
        torch.atan2(x, y),
        x.sinh(),
        x.cosh(),
        x.asinh(),
        (x / 7).asin(),
        (x / 7).acos(),
        (x / 7).atanh(),
        (x / 7).erfinv(),
        (x.abs() + 1).acosh(),
        x.erfc(),
        torch.special.erfcx(x),
        torch.special.ndtr(x),
        torch.special.log_ndtr(x),
        torch.special.expit(x),
        torch.xlogy(x, y.abs()),
        torch.sinc(x),
        torch.logit(x, 0.1),
        torch.logit(x / 20 + 0.5),
        torch.hypot(x, y),
        x.exp2(),
    ),
    "positive": lambda x, y: (
        y.abs().log(),
        y.abs().log2(),
        y.abs().log10(),
        y.abs().log1p(),
        y.abs().sqrt(),
        y.square(),
    ),
    "reciprocals": lambda x, y: (y.reciprocal(), y.abs().rsqrt(), x.exp2()),
    "roundings": lambda x, y: (x.floor(), x.ceil(), x.round(), x.trunc(), x.sign(), x.frac()),
    "compare": lambda x, y: (x == y, x != 0.3, x < y, x <= 1, x > y, x >= 0.5),
    "logic": lambda x, y: (
        (x > 0) & (y > 0) | ~(x < y),
        (x > 0) ^ (y > 0),
        torch.logical_and(x, y),
        torch.logical_or(x > 0, y),
        torch.logical_xor(x, y),
        torch.logical_not(x),
        (x > 0) * (y > 0),
        (x > 0) + (y > 0),
    ),
    "where": lambda x, y: (torch.where(x > y, x, y), torch.where(x > 0, x, 0.0), torch.where(x > 0, 1.0, y)),
    "masked_fill": lambda x, y: (x.masked_fill(x > y, -1e9), x.masked_fill(x > y, torch.tensor(2.0))),
    "casts": lambda x, y: (x.int(), x.long(), x.bool(), x.to(torch.int8), (x > 0).float(), (x > 0) * y, x.float()),
    "type_as": lambda x, y: (x.long().type_as(y), x.int().to(y), (x > 0).to(torch.uint8)),
    "shrink": lambda x, y: (
        F.hardshrink(x),
        F.softshrink(x, 0.2),
        F.tanhshrink(x),
        F.threshold(x, 0.1, 20.0),
        F.softsign(x),
    ),
    "relu": lambda x, y: (F.relu(x), F.relu6(x), F.hardtanh(x), F.leaky_relu(x), F.rrelu(x), F.leaky_relu(x, 0.3)),
    "elu": lambda x, y: (F.elu(x), F.elu(x, 0.7), F.celu(x, 1.3), F.selu(x)),
    "gates": lambda x, y: (F.silu(x), F.mish(x), F.gelu(x), F.gelu(x, approximate="tanh"), F.glu(x)),
    "hard": lambda x, y: (F.hardsigmoid(x), F.hardswish(x)),
    "soft": lambda x, y: (F.softplus(x), F.softplus(x, 2, 5), F.logsigmoid(x)),
    "lerp": lambda x, y: (torch.lerp(x, y, 0.3), torch.addcmul(x, x, y, value=2), torch.addcdiv(x, x, y)),
}


@pytest.mark.parametrize("function", FLOATS.values(), ids=FLOATS)
def test_floats(function: Callable[..., Any]) -> None:
    check_module(function, X, Y, tolerance=(2e-6, 1e-6))


INTEGERS: dict[str, Callable[..., Any]] = {
    "arithmetic": lambda i, x: (
        i + 2,
        3 - i,
        i * i,
        i // 2,
        i % 3,
        torch.div(i, 2, rounding_mode="trunc"),
        torch.fmod(i, 3),
    ),
    "bits": lambda i, x: (
        i & 3,
        i | i.int(),
        5 ^ i,
        ~i,
        ~i.to(torch.uint8),
        i << 2,
        i.int() >> 1,
        i.to(torch.int8) & (x > 0),
    ),
    "true division": lambda i, x: (i / 2, i / (i * i + 1)),
    "promoted": lambda i, x: (
        i + x,
        i + 1.5,
        i.int() + i,
        i * (x > 0),
        (x > 0) + 1,
        i + torch.tensor(1.5),
        i.int() + 7,
    ),
    "functions": lambda i, x: (-i, i.abs(), i.sign(), i**2, i.floor(), i.sqrt(), i.sigmoid(), torch.relu(i)),
    "limits": lambda i, x: (i.clamp(0, 5), i.clamp(min=1), torch.maximum(i, i * 2), i.clamp(max=2.5)),
    "compare": lambda i, x: (i == 3, i > 2, i >= x, i != i.int(), i < 2.5, i.to(torch.int8) > 3, i.isnan()),
    "where": lambda i, x: (
        torch.where(i > 0, i, 0),
        torch.where(i > 0, i, x),
        torch.where(i > 0, i.int(), i.int() + 1),
    ),
}


@pytest.mark.parametrize("function", INTEGERS.values(), ids=INTEGERS)
def test_integers(function: Callable[..., Any]) -> None:
    check_module(function, I, X, tolerance=(2e-6, 1e-6))


def test_what_is_not_a_number() -> None:
    check_module(lambda x: (x.isnan(), x.isinf(), x.isfinite(), x.sign(), x != x), ODD)


def test_prelu_has_a_slope_per_channel() -> None:
    per_channel = nn.PReLU(3)
    per_channel.weight.data = torch.tensor([0.1, -0.5, 2.0])
    check_module(per_channel, torch.randn(2, 3, 4, 5))
    check_module(per_channel, torch.randn(2, 3))
    check_module(nn.PReLU(), torch.randn(2, 3, 4))


def test_cheap_ways_are_taken() -> None:
    """Squares are products, roots are roots, a division by a constant is a product, a constant is added."""
    assert names(check_module(lambda x: x**2, X)) == ["mul"]
    assert names(check_module(lambda x: x.abs() ** 0.5, X)) == ["abs", "sqrt"]
    assert names(check_module(lambda x: x / 3, X)) == ["mul"]
    assert names(check_module(lambda x: x - 3, X)) == ["add"]
    assert names(check_module(lambda x, y: F.relu(x / y), X, Y)) == ["div"]
    assert names(check_module(lambda x: x.isnan(), X)) == ["ne"]


class Gated(nn.Module):
    """An image, a gate and a mask between convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(2, 4, 3)
        self.second = nn.Conv2d(4, 2, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        y = torch.where(y > 0.1, F.silu(y), F.gelu(y) * torch.sin(y)).pow(2) / (y.abs() + 1)
        return self.second(torch.maximum(F.mish(y), y.floor().int().float()))


def test_no_transposition_between_convolutions() -> None:
    x = torch.randn(1, 2, 8, 8)
    graph = check_module(Gated(), x)
    assert names(graph).count("permute") <= 2  # of the input and of the output


def refused(function: Callable[..., Any], *inputs: Tensor) -> str:
    with pytest.raises(CompileError) as caught:
        _ = from_module(Function(function), inputs, "m").graph
    return caught.value.render()


def test_refusals() -> None:
    assert "a cast from float32 to float64 is not supported" in refused(lambda x: x.double() * 2, X)
    assert "bit_and: int16 is not supported" in refused(lambda i: i & 3, I.short())
    assert "integers to the power 5 are not supported" in refused(lambda i: i**5, I)
    assert "add: int8 is not supported" in refused(lambda i: i.to(torch.int8) + i.to(torch.int8), I)
