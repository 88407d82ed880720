"""Discrete Fourier transforms along the last axis. Complex numbers are a last dimension of 2: real, imaginary part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from baretorch.ir.graph import Array, DType, Op, Signature, Tensor
from baretorch.ops.helpers import overlap
from baretorch.ops.helpers.check import need, need_float32
from baretorch.ops.helpers.kernel import Call, Kernel, Packed, Params

LARGEST = 1 << 14  # complex numbers that the passes of kernels/fft/passes.c take


@dataclass(frozen=True)
class Rfft(Op, name="rfft"):
    """x[..., n] -> y[..., n / 2 + 1, 2], the first half of the spectrum times `scale`; the other half mirrors it."""

    scale: float = 1.0

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need_float32(self, inputs)
        need(len(inputs[0].shape) > 0 and inputs[0].shape[-1] > 0, self, "nothing to transform", inputs, "x[..., n]")
        *rows, n = inputs[0].shape
        return (Signature((*rows, n // 2 + 1, 2), DType.FLOAT32),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (_parts(np.fft.rfft(inputs[0].astype(np.float64)) * self.scale),)


@dataclass(frozen=True)
class Irfft(Op, name="irfft"):
    """x[..., n / 2 + 1, 2] -> y[..., n], the real signal of which x is half the spectrum, times n `scale`."""

    n: int
    scale: float = 1.0

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need_float32(self, inputs)
        half = (self.n // 2 + 1, 2)
        need(
            self.n > 0 and inputs[0].shape[-2:] == half, self, f"not half of {self.n}", inputs, f"x[..., {half[0]}, 2]"
        )
        return (Signature((*inputs[0].shape[:-2], self.n), DType.FLOAT32),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (np.asarray(np.fft.irfft(_complex(inputs[0]), self.n) * (self.n * self.scale), np.float32),)


@dataclass(frozen=True)
class Fft(Op, name="fft"):
    """x[..., n, 2] -> y[..., n, 2], its spectrum times `scale`; if `inverse`, the signal whose spectrum is x / n."""

    inverse: bool = False
    scale: float = 1.0

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need_float32(self, inputs)
        shape = inputs[0].shape
        need(len(shape) > 1 and shape[-1] == 2 and shape[-2] > 0, self, "not complex", inputs, "x[..., n, 2]")
        return (Signature(shape, DType.FLOAT32),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x = _complex(inputs[0])
        y = np.fft.ifft(x) * x.shape[-1] if self.inverse else np.fft.fft(x)
        return (_parts(y * self.scale),)


@dataclass(frozen=True)
class Magnitude(Op, name="magnitude"):
    """x[..., 2] -> y[...], the absolute value of each complex number, or its square."""

    squared: bool = False

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need_float32(self, inputs)
        need(inputs[0].shape[-1:] == (2,), self, "not complex", inputs, "x[..., 2]")
        return (Signature(inputs[0].shape[:-1], DType.FLOAT32),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        size = np.abs(_complex(inputs[0]))
        with np.errstate(over="ignore"):
            return (np.asarray(size * size if self.squared else size, np.float32),)


def _complex(x: Array) -> Array:
    return np.asarray(x[..., 0].astype(np.float64) + 1j * x[..., 1].astype(np.float64))


def _parts(z: Array) -> Array:
    return np.stack([z.real, z.imag], axis=-1).astype(np.float32)


# --- any length -----------------------------------------------------------------------------------------------


def row_length(call: Call[Any]) -> int:
    """Return the length of a row in numbers, real or complex."""
    return (
        call.x.shape[-2] if isinstance(call.op, Fft) else (call.y if isinstance(call.op, Irfft) else call.x).shape[-1]
    )


def _count(call: Call[Any]) -> int:
    return prod(call.x.shape[: -1 if isinstance(call.op, Rfft) else -2])


def _params(call: Call[Any]) -> Params:
    inverse = int(getattr(call.op, "inverse", False))
    fields = (("count", _count(call)), ("n", row_length(call)), ("inverse", inverse), ("scale", call.op.scale))
    return Params("bt_fft_f32", fields)


def roots_of_one(turns: Array) -> Array:
    """Return e^(-2 pi i t) for each t, as pairs of float32."""
    return _parts(np.exp(-2j * np.pi * turns))


def _roots(call: Call[Any]) -> tuple[Packed, ...]:
    return (Packed("roots", roots_of_one(np.arange(row_length(call)) / row_length(call))),)


def _rows(call: Call[Any]) -> int:
    """Return the distance of a kernel that reads a row completely before it writes it."""
    return _distance(call, 0)


def _apart(call: Call[Any]) -> int:
    """Return the distance of a kernel that reads a row while it writes it."""
    return _distance(call, 1)


def _distance(call: Call[Any], together: int) -> int:
    row = np.arange(_count(call))
    reads, writes = (t.count // max(_count(call), 1) * t.dtype.size for t in (call.x, call.y))
    return overlap.distance(row * reads, (row + 1) * writes, together)


def _any_length(symbol: str) -> Kernel[Any]:
    return Kernel(
        symbol,
        "fft/ref.c",
        _params,
        pack=_roots,
        scratch=lambda call: 16 * row_length(call),
        overlap=overlap.first_only(_rows),
    )


# --- powers of two: the passes of kernels/fft/passes.c ---------------------------------------------------------


@dataclass(frozen=True)
class Passes:
    """The radices of the passes over n complex numbers, the last of which is 4."""

    first: int
    eights: int
    fours: int

    @property
    def middle(self) -> tuple[int, ...]:
        return (8,) * self.eights + (4,) * self.fours


def passes_of(n: int) -> Passes:
    """Return the passes for n = 16, 32, 64 …"""
    left = n.bit_length() - 3  # doublings that the last pass leaves to the others
    first = 8 if left % 2 or left % 3 == 0 else 4
    left -= first.bit_length() - 1
    fours = next(f for f in range(3) if (left - 2 * f) % 3 == 0 and left >= 2 * f)
    return Passes(first, (left - 2 * fours) // 3, fours)


def _complex_n(call: Call[Any]) -> int:
    return row_length(call) if isinstance(call.op, Fft) else row_length(call) // 2


def _fits(call: Call[Any]) -> bool:
    n = row_length(call)
    return n & (n - 1) == 0 and 16 <= _complex_n(call) <= LARGEST


def _pass_params(call: Call[Any]) -> Params:
    p = passes_of(_complex_n(call))
    inverse = int(getattr(call.op, "inverse", False))
    fields = (
        ("count", _count(call)),
        ("n", _complex_n(call)),
        ("inverse", inverse),
        ("first", p.first),
        ("eights", p.eights),
        ("fours", p.fours),
        ("scale", call.op.scale),
    )
    return Params("bt_fft_passes_f32", fields)


def order_of(n: int) -> Array:
    """Return where the numbers of each group of the first pass begin, in floats: the group's digits in reverse
    order."""
    p = passes_of(n)
    order = np.zeros(1, np.int64)
    step = 1
    for radix in (4, *reversed(p.middle)):  # the last pass separates numbers that are neighbours in x
        order = (order[:, None] + step * np.arange(radix)).reshape(-1)
        step *= radix
    return (2 * order).astype(np.int16)


def _middle_roots(n: int) -> list[Array]:
    p = passes_of(n)
    tables, span = [], p.first
    for radix in p.middle:
        k, j = np.arange(1, span)[:, None], np.arange(1, radix)
        tables.append(roots_of_one(j * k / (radix * span)))
        span *= radix
    return tables


def _join(*tables: Array) -> Array:
    return np.concatenate([t.reshape(-1) for t in tables]).astype(np.float32)


def _last_roots(n: int) -> Array:
    k, j = np.arange(1, n // 4)[:, None], np.arange(1, 4)
    return roots_of_one(j * k / n)


def _pack_fft(call: Call[Fft]) -> tuple[Packed, ...]:
    n = _complex_n(call)
    return (Packed("order", order_of(n)), Packed("roots", _join(*_middle_roots(n), _last_roots(n))))


def _pack_rfft(call: Call[Rfft]) -> tuple[Packed, ...]:
    n = _complex_n(call)
    k, j = np.arange(1, n // 8 + 1)[:, None], np.arange(1, 4)
    scaled = roots_of_one(j * k / n) * (call.op.scale / 2)
    turned = roots_of_one((k + np.array([0, n // 4])) / (2 * n) + 0.25)
    last = np.concatenate([scaled, turned], axis=1)
    return (Packed("order", order_of(n)), Packed("roots", _join(*_middle_roots(n), last)))


def _pack_irfft(call: Call[Irfft]) -> tuple[Packed, ...]:
    n = _complex_n(call)
    before = roots_of_one(np.arange(1, n // 2) / (2 * n))
    return (Packed("order", order_of(n)), Packed("roots", _join(before, *_middle_roots(n), _last_roots(n))))


def _passes(symbol: str, pack: Callable[[Call[Any]], tuple[Packed, ...]]) -> Kernel[Any]:
    """Return a kernel for powers of two that reads a row while it writes it."""
    return Kernel(symbol, "fft/passes.c", _pass_params, fits=_fits, pack=pack, overlap=overlap.first_only(_apart))


_IRFFT = _passes("bt_irfft_f32_passes", _pack_irfft)
RFFT = (_passes("bt_rfft_f32_passes", _pack_rfft), _any_length("bt_rfft_f32_ref"))
IRFFT = (
    replace(_IRFFT, scratch=lambda call: 4 * call.op.n, overlap=overlap.first_only(_rows)),
    _any_length("bt_irfft_f32_ref"),
)
FFT = (_passes("bt_fft_f32_passes", _pack_fft), _any_length("bt_fft_f32_ref"))
MAGNITUDE: tuple[Kernel[Magnitude], ...] = (
    Kernel(
        "bt_magnitude_f32_ref",
        "magnitude/ref.c",
        lambda call: Params("bt_magnitude_f32", (("count", call.y.count), ("squared", int(call.op.squared)))),
        overlap=overlap.first_only(overlap.in_place),
    ),
)
