"""Scales: the size of a signal does not matter, nor the last bit of what was observed; nothing that is 0 does harm."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from baretorch.frontends import Source, from_module
from baretorch.ir.graph import Array, Graph, Quant, interpret
from baretorch.ir.io import store_inputs
from baretorch.ops.int8.qbinary import quotient_of
from baretorch.options import Observer
from baretorch.passes.to_int8 import explain_float, float_layers
from baretorch.quantize.observers import BITS, DEAD, Histogram, MinMax, affine_quant, least_loss, per_channel
from tests.models import int8_model, seeded


def normal(shape: tuple[int, ...], count: int = 8) -> list[tuple[torch.Tensor, ...]]:
    draw = torch.Generator().manual_seed(0)
    return [(torch.randn(shape, generator=draw),) for _ in range(count)]


def int8_of(
    net: nn.Module, samples: Sequence[tuple[torch.Tensor, ...]], observer: Observer = Observer.HISTOGRAM
) -> tuple[Source, Graph]:
    model = int8_model(from_module(net, samples[0], "m"), samples, observer=observer)
    return model.source, model.graph


def sqnr(source: Source, graph: Graph) -> float:
    """Return the signal to noise ratio of the result for the example, in dB."""
    assert source.expected is not None
    (have,) = interpret(graph, store_inputs(graph, source.examples)).values()
    (want,) = source.expected
    return 10 * log10(float(np.square(want).sum()) / max(float(np.square(want - have).sum()), 1e-300))


def bytes_of(source: Source, graph: Graph) -> list[Array]:
    values = interpret(graph, store_inputs(graph, source.examples), keep=True)
    return [values[n] for n, t in graph.tensors.items() if t.dtype.label == "int8"]


def test_a_signal_is_as_good_however_small() -> None:
    """If the gain is a power of two, every stored byte is the same."""
    first: list[Array] | None = None
    for power in (0, -20, 20, -60):
        net = seeded(nn.Linear(16, 16))
        with torch.no_grad():
            net.weight.mul_(2.0**power)
            net.bias.mul_(2.0**power)
        source, graph = int8_of(net, normal((4, 16)))
        assert not float_layers(graph) and sqnr(source, graph) > 35
        first = first or bytes_of(source, graph)
        assert all(np.array_equal(a, b) for a, b in zip(first, bytes_of(source, graph), strict=True))


def test_weights_of_nothing_leave_their_bias_alone() -> None:
    """A row of zeros, of tiny weights, and of a bias far outside of what the rest of the layer gives."""
    net = nn.Sequential(seeded(nn.Linear(8, 4)), nn.ReLU())
    with torch.no_grad():
        net[0].weight[0] = 0
        net[0].weight[1] *= 1e-12
        net[0].weight[3] = 0
        net[0].bias.copy_(torch.tensor([0.7, 0.5, 0.1, -1e9]))
    source, graph = int8_of(net, normal((2, 8)), Observer.MINMAX)
    assert not float_layers(graph)
    (have,) = interpret(graph, store_inputs(graph, source.examples)).values()
    np.testing.assert_allclose(have[:, [0, 1, 3]], [[0.7, 0.5, 0.0]] * 2, atol=0.01)
    assert sqnr(source, graph) > 35


def test_what_is_always_0_is_no_trouble() -> None:
    class Dead(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.a(x) + torch.relu(self.b(x) - 100) * self.a(x)

    source, graph = int8_of(seeded(Dead()), normal((2, 8)))
    assert not float_layers(graph) and sqnr(source, graph) > 33


def test_a_result_finer_than_its_sums_stays_float() -> None:
    """Two columns that cancel but for the rounding of float32: int8 could say nothing of the rest."""
    net = nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[1.0, -1.0]]))
    near = [(torch.tensor([[1 + k / 10, 1 + k / 10 + 1e-7 * k]]),) for k in range(1, 9)]
    _, graph = int8_of(net, near)
    assert [layer.split()[0] for layer in float_layers(graph)] == ["linear"]
    ((_, why),) = explain_float(graph)
    assert why.startswith("its output's scale is ") and why.endswith(" times finer than its accumulator's")


def test_scales_have_few_bits_and_clip_nothing() -> None:
    for x in (np.array([-0.3, 1.7]), np.array([1e-7, 3e-7]), np.array([-5e8, 1.0])):
        quant = watched(MinMax(), x).quant()
        (scale,), (zero,) = quant.scale, quant.zero_point
        mantissa, _ = np.frexp(scale)
        assert float(mantissa * 2 ** (BITS + 1)).is_integer()
        span = max(x.max(), 0) - min(x.min(), 0)
        assert span / 255 * (1 - 1e-6) <= scale <= span / 255 * (1 + 2**-BITS)
        assert -128 <= zero <= 127
    exact = np.array([3.0 / 128, 7.0], np.float32) * 127
    assert per_channel(np.stack([exact, -exact], 1)).scale == (3.0 / 128, 7.0), "what has few bits already stays"


def watched(observer: MinMax, *arrays: Array) -> MinMax:
    for x in arrays:
        observer.watch(x.astype(np.float32))
    return observer


@pytest.mark.parametrize("kind", [MinMax, Histogram])
def test_the_last_bit_moves_no_scale(kind: type[MinMax]) -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        x = rng.standard_normal(500).astype(np.float32)
        found = [watched(kind(), y).quant() for y in (x, np.nextafter(x, 2 * x), np.nextafter(x, 0 * x))]
        assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("kind", [MinMax, Histogram])
def test_a_tensor_of_zeros_has_the_scale_of_ordinary_numbers(kind: type[MinMax]) -> None:
    for x in (np.zeros(9), np.full(9, 1e-40), np.zeros(0)):
        assert watched(kind(), x).quant() == Quant((DEAD,), (0,))


def test_the_order_of_samples_does_not_matter_to_a_histogram() -> None:
    rng = np.random.default_rng(0)
    parts = [10.0**power * rng.standard_normal(200) for power in (-6, 3, 0, -2, 1)]
    found = [watched(Histogram(), *(parts[i] for i in rng.permutation(5))) for _ in range(6)]
    for other in found[1:]:
        assert other.quant() == found[0].quant() and isinstance(other, Histogram) and isinstance(found[0], Histogram)
        assert np.array_equal(np.trim_zeros(other.counts), np.trim_zeros(found[0].counts))


def test_a_histogram_is_cut_where_that_loses_least() -> None:
    tails = np.zeros(2048)
    tails[900:1100] = 10_000
    tails[[0, 2047]] = 1
    first, last = least_loss(tails, 256)
    assert 890 <= first <= 910 and 1090 <= last <= 1110
    assert least_loss(np.ones(2048), 256)[1] > 2000, "nothing to cut"
    alone = np.zeros(2048)
    alone[0], alone[-1] = 1e6, 9
    assert least_loss(alone, 256) == (0, 2047), "all but nothing is 0, and the rest far away"
    many = np.random.default_rng(0).uniform(0, 1, 500_000)
    assert watched(Histogram(), many, np.array([2.0])).quant().scale[0] < 1.1 / 255
    assert watched(Histogram(), many).quant() == affine_quant(0.0, float(np.float32(many.max()))), "nothing to cut"


class Zeros(nn.Module):
    """Results that are 0, or at their highest."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x.flip(-1).flip(-1)
        certain = torch.cat([x, x.amax(-1, keepdim=True) + 40], -1)
        return x - x, x - y, torch.relu(x - 100) + 0 * x, torch.log_softmax(certain, -1), torch.relu(x) * torch.relu(-x)


def test_zero_stays_zero() -> None:
    source, graph = int8_of(Zeros(), normal((3, 7)))
    alike, flipped, dead, certain, product = interpret(graph, store_inputs(graph, source.examples)).values()
    assert not alike.any() and not flipped.any() and not dead.any() and not product.any()
    assert not certain[:, -1].any() and (certain[:, :-1] < 0).all()


class Unit(nn.Module):
    """Rows of length 1. Where a row is 0, only the epsilon under the division keeps it from 0 / 0."""

    def __init__(self, gain: float) -> None:
        super().__init__()
        self.gain = gain

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.normalize(self.gain * x, dim=-1)


@pytest.mark.parametrize("gain", [0.0, 1e-11, 1.0])
def test_rows_of_nothing_have_no_direction(gain: float) -> None:
    """A row of zeros stays 0 in int8, however small its divisor is: compared with the other rows, the divisor is 0 in
    int8, and 0 / 0 is 0."""
    samples = normal((4, 16))
    for (x,) in samples:
        x[0] = 0
    source, graph = int8_of(Unit(gain), samples)
    (have,) = interpret(graph, store_inputs(graph, source.examples)).values()
    assert (have[0] == 0).all()
    assert source.expected is not None
    np.testing.assert_allclose(have, source.expected[0], atol=0.02)
    assert [n for n in graph.nodes if n.op.name == "qdiv"]


def test_a_quotient_beyond_every_shift_is_at_its_limits() -> None:
    a, b, y = Quant((1.0,), (0,)), Quant((1e-9,), (0,)), Quant((1.0,), (0,))
    numerators, divisors = np.array([-1, 0, 1, 0, 1], np.int8), np.array([127, 127, 127, 0, 0], np.int8)
    (have,) = quotient_of(a, b, y).reference(numerators, divisors)
    assert have.tolist() == [-128, 0, 127, 0, 127]


def test_a_softmax_of_large_numbers_distinguishes_the_largest() -> None:
    """Their range is 210, but only what is near the largest of a row matters."""
    net = nn.Sequential(nn.Linear(1, 10, bias=False), nn.Softmax(-1))
    with torch.no_grad():
        net[0].weight.copy_(torch.linspace(-200, -100, 10)[:, None])
        net[0].weight[:2] = torch.tensor([[10.0], [10.8]])
    draw = torch.Generator().manual_seed(0)
    source, graph = int8_of(net, [(torch.rand(4, 1, generator=draw) / 2 + 0.5,) for _ in range(16)])
    assert not float_layers(graph) and source.expected is not None
    (have,) = interpret(graph, store_inputs(graph, source.examples)).values()
    np.testing.assert_allclose(have, source.expected[0], atol=0.03)
    assert not have[:, 2:].any()


class Block(nn.Module):
    """A block of a small language model: RMSNorm, rotary attention and SwiGLU, with the small activations of such
    models."""

    def __init__(self, width: int = 32, heads: int = 4, length: int = 8) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)
        half = width // heads // 2
        angles = torch.arange(length)[:, None] / 100.0 ** (torch.arange(half) / half)
        self.register_buffer("cos", torch.cat([angles.cos()] * 2, -1))
        self.register_buffer("sin", torch.cat([angles.sin()] * 2, -1))

    def turn(self, x: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, -1)
        return x * self.cos + torch.cat([-b, a], -1) * self.sin

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.before(x)).reshape(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        seen = F.scaled_dot_product_attention(self.turn(q), self.turn(k), v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        normal = self.between(x)
        return x + self.down(F.silu(self.gate(normal)) * self.up(normal))


def test_a_small_language_model_keeps_its_signal() -> None:
    net = seeded(nn.Sequential(Block(), Block()))
    with torch.no_grad():
        for p in net.parameters():
            if p.dim() > 1:
                p.mul_(0.05)
    samples = [(0.002 * x,) for (x,) in normal((1, 8, 32))]
    source, graph = int8_of(net, samples)
    assert not float_layers(graph), explain_float(graph)
    assert sqnr(source, graph) > 33, "24 with a floor of 2^-12 under scales"


def test_scales_may_be_shared_along_two_ways() -> None:
    """Found by tests/fuzz: a value may meet another that was made of it."""

    class Net(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            less = torch.minimum(x, x.flip(1))
            return torch.maximum(less, x)

    class Again(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            same = torch.minimum(x, x)
            return torch.maximum(same, x) + same

    for net in (Net(), Again()):
        source, graph = int8_of(net, normal((2, 8)))
        assert not float_layers(graph)
        assert sqnr(source, graph) > 30


def test_a_constant_written_into_a_part_fits_its_scale() -> None:
    """Found by tests/fuzz: 0.5 written into values from -1 to 0 became 0."""

    class Net(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = -torch.exp(-torch.abs(x))
            y[:, :1] = 0.5
            return y

    source, graph = int8_of(Net(), normal((2, 8)))
    assert not float_layers(graph)
    assert sqnr(source, graph) > 30
