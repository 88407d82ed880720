"""Fourier transforms and complex numbers as models write them, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from baretorch.errors import CompileError
from baretorch.frontends import from_module
from baretorch.ir.graph import Array, interpret
from baretorch.passes.order import lower_graph


class Model(nn.Module):
    """Functions side by side: an export takes long however little it exports."""

    def __init__(self, *functions: Callable[..., Tensor]) -> None:
        super().__init__()
        self.functions = functions
        self.register_buffer("window", torch.hann_window(24))
        self.register_buffer("turn", torch.polar(torch.ones(9), torch.arange(9.0)))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return tuple(function(self, x) for function in self.functions)


def stft(m: Model, x: Tensor, **options: bool) -> Tensor:
    return torch.stft(x, 32, 8, 24, m.window, return_complex=True, **options)


def spectrum(x: Tensor) -> Tensor:
    return torch.fft.rfft(x)


real = torch.view_as_real
FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "rfft": lambda m, x: real(torch.fft.rfft(x)),
    "rfft, padded": lambda m, x: real(torch.fft.rfft(x, 32, norm="ortho")),
    "rfft, cut": lambda m, x: real(torch.fft.rfft(x, 10, norm="forward")),
    "rfft of another axis": lambda m, x: real(torch.fft.rfft(x, dim=0)),
    "rfft2": lambda m, x: real(torch.fft.rfft2(x)),
    "fft of real numbers": lambda m, x: real(torch.fft.fft(x)),
    "fft of an odd length": lambda m, x: real(torch.fft.fft(x[:, :15])),
    "fft2": lambda m, x: real(torch.fft.fft2(x)),
    "fft of complex numbers": lambda m, x: real(torch.fft.fft(torch.complex(x, x + 1))),
    "ifft": lambda m, x: real(torch.fft.ifft(torch.complex(x, x + 1), norm="ortho")),
    "irfft": lambda m, x: torch.fft.irfft(spectrum(x)),
    "irfft, odd": lambda m, x: torch.fft.irfft(spectrum(x), 15),
    "irfft, longer": lambda m, x: torch.fft.irfft(spectrum(x), 24, norm="ortho"),
    "irfft2": lambda m, x: torch.fft.irfft2(torch.fft.rfft2(x), x.shape),
    "hfft": lambda m, x: torch.fft.hfft(spectrum(x)),
    "abs": lambda m, x: spectrum(x).abs(),
    "angle": lambda m, x: spectrum(x).angle(),
    "angle of real numbers": lambda m, x: x.angle() + torch.tensor([-0.0, 0.0]).angle().sum(),
    "power": lambda m, x: spectrum(x).abs() ** 2,
    "power of the parts": lambda m, x: spectrum(x).real ** 2 + spectrum(x).imag ** 2,
    "power by the last axis": lambda m, x: real(spectrum(x)).pow(2).sum(-1),
    "power by the conjugate": lambda m, x: (spectrum(x) * spectrum(x).conj()).real,
    "sums": lambda m, x: real(spectrum(x) + x[:, :9] - 2 * spectrum(x) - 1j),
    "a number less": lambda m, x: real(1.5 - spectrum(x)),
    "products": lambda m, x: real(spectrum(x) * m.turn * x[:, :9] * 0.5 * (1 + 2j)),
    "quotients": lambda m, x: real(spectrum(x) / (m.turn + 3) / 2 / (x[:, :9] ** 2 + 1)),
    "square and cube": lambda m, x: real(spectrum(x) ** 2 + spectrum(x).pow(3) - spectrum(x).square()),
    "negative": lambda m, x: real(-spectrum(x)),
    "complex times real weight": lambda m, x: real(m.turn * x[:, :9]),
    "shapes": lambda m, x: real(spectrum(x).unsqueeze(-1).transpose(-1, 0).squeeze(0).reshape(3, -1)[1:, ::2]),
    "joined": lambda m, x: real(torch.cat([spectrum(x), spectrum(x).mT.reshape(4, -1)], -1).permute(1, 0)),
    "stacked": lambda m, x: real(torch.stack([spectrum(x)[0], spectrum(x)[-1]], dim=-1)),
    "taken apart": lambda m, x: real(spectrum(x).unbind(-1)[3]),
    "sum and mean": lambda m, x: real(spectrum(x).sum(-1) + spectrum(x).mean(dim=1) + spectrum(x).mean()),
    "polar": lambda m, x: real(torch.polar(x.abs(), x)),
    "view_as_complex": lambda m, x: torch.view_as_complex(x.reshape(4, 8, 2)).abs(),
    "magnitude, phase and back": lambda m, x: torch.fft.irfft(spectrum(x) * (spectrum(x).abs() + 1)),
    "stft": lambda m, x: stft(m, x.flatten()).abs(),
    "stft, not centred": lambda m, x: real(stft(m, x, center=False)),
    "stft, normalized": lambda m, x: stft(m, x.flatten(), normalized=True).abs().pow(2),
    "stft, both sides": lambda m, x: stft(m, x.flatten(), onesided=False).real,
    "istft": lambda m, x: torch.istft(stft(m, x.flatten()), 32, 8, 24, m.window),
}


@cache
def answers(columns: int) -> dict[str, tuple[Array, Array]]:
    """Return the results of the Graph and of PyTorch, by function."""
    names = [name for name in FUNCTIONS if ("stft" in name) == (columns == 40)]
    x = torch.randn(4, columns, generator=torch.Generator().manual_seed(1))
    source = from_module(Model(*(FUNCTIONS[name] for name in names)).eval(), (x,), "m")
    graph = lower_graph(source.graph)
    made = interpret(graph, source.examples)
    assert source.expected is not None
    return {n: (made[y], want) for n, y, want in zip(names, graph.outputs, source.expected, strict=True)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_is_what_pytorch_computes(name: str) -> None:
    have, want = answers(40 if "stft" in name else 16)[name]
    assert have.shape == want.shape
    np.testing.assert_allclose(have, want, rtol=2e-5, atol=2e-5)


REFUSED: dict[str, tuple[Callable[..., Tensor], str]] = {
    "a product of matrices": (lambda m, x: (spectrum(x) @ spectrum(x).mT).abs(), "matmul of complex numbers is not"),
    "a complex output": (lambda m, x: spectrum(x), "is complex"),
    "a power": (lambda m, x: (spectrum(x) ** 0.5).abs(), "complex numbers to the power 0.5"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_supported_is_named(name: str) -> None:
    function, what = REFUSED[name]
    with pytest.raises(CompileError, match=what) as raised:
        _ = from_module(Model(function).eval(), (torch.randn(4, 16),), "m").graph
    assert raised.value.need
