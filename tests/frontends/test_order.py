"""Elements chosen by order, distances, bags of embeddings, reductions by indices, as users write them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tests.frontends.lower import Function, check_module, names
from torch import Tensor, nn

from baretorch.errors import CompileError
from baretorch.frontends import from_module

X = (torch.arange(24) * 7 % 24 - 9.0).reshape(2, 3, 4)  # no number twice
I = (torch.arange(12) * 5 % 4).reshape(3, 4)


def test_chosen_by_order() -> None:
    check_module(
        lambda x: (
            x.median(),
            *x.median(1),
            *x.median(-1, keepdim=True),
            x.nanmedian(),
            *x.kthvalue(2, 0),
            *x.kthvalue(3, keepdim=True),
            x.long().median(0).values,
        ),
        X,
    )
    check_module(lambda i: (*i.mode(), *i.mode(0, keepdim=True), i.float().mode(0).values), I)


def test_distances() -> None:
    check_module(lambda x: (torch.cdist(x, x[:1] + 1), torch.cdist(x[0], x[1], p=1.0), torch.cdist(x, x, p=3)), X)
    graph = check_module(lambda x: torch.cdist(x, 2 * x), torch.linspace(-3, 3, 60).sin().reshape(30, 2))
    assert names(graph).count("cdist") == 1, "without a matrix product, which loses digits"


class Bags(nn.Module):
    """Bags of one size, of several sizes, of none, with weights, and with indices that do not count."""

    def __init__(self) -> None:
        super().__init__()
        table = torch.linspace(-2, 2, 18).sin().reshape(6, 3)
        self.bags = nn.ModuleList(nn.EmbeddingBag.from_pretrained(table, mode=m) for m in ("sum", "mean", "max"))
        self.padded = nn.ModuleList(
            nn.EmbeddingBag.from_pretrained(table, mode=m, padding_idx=0) for m in ("sum", "mean", "max")
        )
        self.register_buffer("offsets", torch.tensor([0, 2, 2, 7]))

    def forward(self, index: Tensor, weights: Tensor) -> Any:
        flat = index.reshape(-1)
        return (
            *(bag(index) for bag in (*self.bags, *self.padded)),
            *(bag(flat, self.offsets) for bag in self.bags),
            self.bags[0](index, per_sample_weights=weights),
            self.padded[1](flat, self.offsets),
        )


def test_embedding_bags() -> None:
    check_module(Bags(), I, torch.linspace(0, 1, 12).reshape(3, 4))


@pytest.mark.parametrize("seed", range(12))
def test_bags_by_computed_offsets(seed: int) -> None:
    """Random bags, some of them empty, of indices some of which do not count; offsets are inputs or constants."""
    random, generator = Random(seed), torch.Generator().manual_seed(seed)
    mode, last, count = ("sum", "mean", "max")[seed % 3], seed % 2 == 1, random.randint(0, 9)
    table = torch.rand((4, 3), generator=generator) - 0.5
    index = torch.randint(0, 4, (count,), generator=generator)
    starts = [0, *sorted(random.randint(0, count) for _ in range(3)), *[count] * last]
    kind = random.choice((torch.int32, torch.int64))
    offsets, padding = torch.tensor(starts).to(kind), random.choice((None, 0, -1, 2))
    weights = torch.rand(count, generator=generator) if mode == "sum" and random.random() < 0.6 else None

    def bags(index: Tensor, offsets: Tensor) -> Tensor:
        settings = {"per_sample_weights": weights, "include_last_offset": last, "padding_idx": padding}
        return F.embedding_bag(index, table, offsets, mode=mode, **settings)

    check_module(bags, index.to(kind), offsets)
    check_module(lambda index: bags(index, offsets), index.to(kind))
    if not last:
        first = torch.tensor([-1.0, *(1.0 for n in starts[1:])])
        check_module(lambda i, x: bags(i, (x > 0).to(kind) * (count // 2)), index.to(kind), first)


def test_scatter_reduce() -> None:
    source = torch.linspace(-2, 2, 16).cos().reshape(4, 4)

    def scattered(x: Tensor, i: Tensor, s: Tensor) -> Any:
        kinds = ("sum", "prod", "mean", "amax", "amin")
        return [x.scatter_reduce(1, i, s, kind, include_self=own) for kind in kinds for own in (True, False)]

    check_module(scattered, source.sin().repeat(1, 2), I, source)
    check_module(lambda x, i: x.scatter_reduce(0, i.long(), x, "amax", include_self=False), I.int()[0], I.int()[1])


def test_grid_sample() -> None:
    image = torch.linspace(-9, 9, 2 * 3 * 5 * 6).sin().reshape(2, 3, 5, 6)
    angle = torch.tensor([[[0.8, -0.6, 0.1], [0.6, 0.8, -0.2]]]).repeat(2, 1, 1)

    def turned(x: Tensor, angle: Tensor) -> Any:
        grid = F.affine_grid(angle, [2, 3, 4, 7], align_corners=False)
        modes = (("bilinear", "zeros", False), ("nearest", "border", True), ("bicubic", "reflection", False))
        return [F.grid_sample(x, grid, mode, padding, align) for mode, padding, align in modes]

    assert names(check_module(turned, image, angle)).count("grid_sample2d") == 3


def refused(function: Callable[..., Any], *inputs: Tensor) -> str:
    with pytest.raises(CompileError) as caught:
        _ = from_module(Function(function), inputs, "m").graph
    return caught.value.render()


def test_refusals() -> None:
    text = refused(lambda i: i.scatter_reduce(1, i.long(), i, "mean"), I.int())
    assert "scatter_reduce: the mean of int32 is not supported" in text
    text = refused(lambda i: i.scatter_reduce(1, i, i, "amax"), I)
    assert "scatter_reduce: int64 is not supported" in text and "float32 or int32" in text
