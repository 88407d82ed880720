"""Masks of attention in int8: minus infinity, and numbers that mean it, leave keys out and scales alone."""

from __future__ import annotations

from collections.abc import Callable
from math import log10

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import baretorch
from baretorch.frontends import from_module
from baretorch.ir.graph import interpret
from baretorch.ir.io import store_inputs
from baretorch.passes.to_int8 import explain_float, float_layers
from tests.models import int8_model, seeded

PADDED = torch.arange(8) >= 6  # the last two keys are none
INF = torch.inf


def signals(count: int = 8) -> list[torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    return [torch.randn(1, 8, 16, generator=draw) for _ in range(count)]


class Heads(nn.Module):
    def __init__(self, weights: bool) -> None:
        super().__init__()
        self.a, self.weights = nn.MultiheadAttention(16, 2, batch_first=True), weights

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.a(x, x, x, key_padding_mask=mask, need_weights=self.weights)[0]
        return y


class Scores(nn.Module):
    """Attention written out, with this way to mask scores."""

    def __init__(self, hide: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.q, self.hide = nn.Linear(16, 16), hide

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        scores = self.q(x) @ x.transpose(-1, -2)
        return torch.softmax(self.hide(scores, mask), -1) @ x


class Whole(nn.Module):
    """Attention as one operator, with this mask made of truth values."""

    def __init__(self, made: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.q, self.made = nn.Linear(16, 16), made

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(self.q(x), x, x, attn_mask=self.made(mask))


BOOL = PADDED.reshape(1, 8)
FLOAT = torch.zeros(1, 8).masked_fill(BOOL, -INF)
LATER = torch.triu(torch.ones(8, 8, dtype=torch.bool), 1)  # a causal mask


def twice(first: float, second: float) -> nn.Module:
    """Attention with a causal mask and a mask of keys."""
    return Scores(lambda s, m: s.masked_fill(LATER, first).masked_fill(m, second))


CASES: dict[str, tuple[nn.Module, torch.Tensor]] = {
    "heads": (Heads(False), BOOL),
    "heads that give weights": (Heads(True), BOOL),
    "masked_fill": (Scores(lambda s, m: s.masked_fill(m, -INF)), BOOL),
    "masked_fill with a large number": (Scores(lambda s, m: s.masked_fill(m, -1e9)), BOOL),
    "where": (Scores(lambda s, m: torch.where(m, -INF, s)), BOOL),
    "where of a tensor": (Scores(lambda s, m: torch.where(m, torch.tensor(-INF), s)), BOOL),
    "sum": (Scores(lambda s, m: s + m), FLOAT),
    "sum of the least number": (Scores(lambda s, m: s + m * torch.finfo(torch.float32).max), -1.0 * BOOL),
    "sum of a constant": (Scores(lambda s, m: s * m + FLOAT), torch.ones(1, 8)),
    "two masks of -1e4": (twice(-1e4, -1e4), BOOL),
    "two masks of -1e8": (twice(-1e8, -1e8), BOOL),
    "two masks of -inf": (twice(-INF, -INF), BOOL),
    "two masks of different numbers": (twice(-INF, -1e4), BOOL),
    "three masks": (Scores(lambda s, m: s.masked_fill(LATER, -1e9).masked_fill(m, -1e9).masked_fill(m, -INF)), BOOL),
    "sum, then masked_fill": (
        Scores(lambda s, m: (s + torch.zeros(8, 8).masked_fill(LATER, -INF)).masked_fill(m, -INF)),
        BOOL,
    ),
    "whole, truth": (Whole(lambda m: ~m), BOOL),
    "whole, given": (Whole(lambda m: m), FLOAT),
    "whole, made": (Whole(lambda m: torch.zeros(1, 8).masked_fill(m, -INF).expand(8, 8)), BOOL),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_masked_takes_no_part(name: str) -> None:
    net, mask = CASES[name]
    samples = [(x, mask) for x in signals()]
    graph = int8_model(from_module(seeded(net), samples[0], "m"), samples).graph
    assert not float_layers(graph), explain_float(graph)
    x, other = samples[0][0].numpy(), samples[0][0].numpy().copy()
    other[:, PADDED.numpy()] = samples[1][0].numpy()[:, PADDED.numpy()]
    kept = ~PADDED.numpy()
    (have,), (again,) = (interpret(graph, store_inputs(graph, (v, mask.numpy()))).values() for v in (x, other))
    assert np.array_equal(have[:, kept], again[:, kept]), "what stands behind the mask is not seen"
    want = net(torch.from_numpy(x), mask).detach().numpy()
    assert 10 * log10(np.square(want).sum() / np.square(want - have).sum()) > 28


class Followed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads, self.out = Heads(False), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.out(self.heads(x, mask))
        return y


def test_heads_may_stay_float() -> None:
    net, mask = seeded(Followed()), BOOL
    samples = [(x, mask) for x in signals()]
    model = baretorch.compile(net, samples[0], board="host", int8=True, calibration=samples, keep_float=["heads.a"])
    have, want = model.run(*samples[0]), net(*samples[0]).detach().numpy()
    model.close()
    assert model.warnings == (), "nobody is warned of what they asked for"
    assert float_layers(model.compiled.graph), "it is told all the same"
    assert 10 * log10(np.square(want).sum() / np.square(want - have).sum()) > 35
