"""The operators of TensorFlow Lite Micro's audio front end, bit for bit, up to the energies of a spectrum; the others
are in filter_bank.py. See docs/arithmetic.md.

All compute in integers. Numbers without sign are stored as int32 or int64 with the same bits, because a Graph has no
types for them; only these operators, and those that move numbers, read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from math import prod
from typing import Any, ClassVar

import numpy as np

from baretorch.ir.graph import Array, DType, Op, Signature, Tensor
from baretorch.ops.helpers import overlap
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.kernel import Call, Kernel, Packed, Params, data_of, fields_of

LONGEST = 1 << 15  # of a transform: places of its numbers are int16


@dataclass(frozen=True)
class SignalOp(Op):
    """An operator of the audio front end. Its inputs have the types `takes`; those from number `first_constant` on are
    constants. `most` lists attributes that must be between 0 and a limit."""

    takes: ClassVar[tuple[DType, ...]] = ()
    wants: ClassVar[str] = ""
    first_constant: ClassVar[int] = 9
    most: ClassVar[tuple[tuple[str, int], ...]] = ()

    def outputs(self, inputs: Sequence[Tensor]) -> Iterable[Signature] | None:
        """Return the outputs, or None if shapes and constants do not fit together. The types are right already."""
        raise NotImplementedError

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        for name, most in self.most:
            value = getattr(self, name)
            need(0 <= value <= most, self, f"{name} {value} is not supported", inputs, f"{name} from 0 to {most}")
        constant = all(t.data is not None for t in inputs[self.first_constant :])
        typed = tuple(t.dtype for t in inputs) == self.takes
        outputs = self.outputs(inputs) if typed and constant else None
        need(outputs is not None, self, "the inputs do not fit together", inputs, self.wants)
        return tuple(outputs or ())


I16, I32, I64 = DType.INT16, DType.INT32, DType.INT64


def vectors(inputs: Sequence[Tensor], dtype: DType, *more: Signature) -> Iterable[Signature] | None:
    """Return an output of this type and further ones if all inputs are vectors of one length."""
    shapes = {t.shape for t in inputs}
    return (Signature(inputs[0].shape, dtype), *more) if len(shapes) == 1 and len(inputs[0].shape) == 1 else None


def without_sign(x: Array) -> Array:
    """Return the numbers without sign, in 64 bits."""
    return np.ascontiguousarray(x).view(f"u{x.dtype.name}").astype(np.uint64)


def as_stored_bits(x: Array) -> Array:
    """Return the lower 32 bits as a Graph stores them."""
    return x.astype(np.uint64).astype(np.uint32).view(np.int32)


@dataclass(frozen=True)
class SignalWindow(
    SignalOp,
    name="signal_window",
    takes=(I16, I16),
    wants="x int16[..., k n], a constant window int16[n]",
    first_constant=1,
    most=(("shift", 31),),
):
    """x int16[..., k n] times the window int16[n], shifted to the right and limited to int16."""

    shift: int

    def outputs(self, inputs: Sequence[Tensor]) -> Iterable[Signature] | None:
        x, window = inputs
        fits = len(window.shape) == 1 and len(x.shape) > 0 and window.count > 0 and x.shape[-1] % window.count == 0
        return [Signature(x.shape, I16)] if fits else None

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x, window = (i.astype(np.int64) for i in inputs)
        y = (x.reshape(-1, len(window)) * window) >> self.shift
        return (np.clip(y, -32768, 32767).astype(np.int16).reshape(x.shape),)


@dataclass(frozen=True)
class SignalAutoScale(SignalOp, name="signal_auto_scale", takes=(I16,), wants="x int16[n]"):
    """x int16[n] -> y int16[n], x times 2^bits, and bits int32[], as many as the largest absolute value leaves unused.

    The absolute value of -32768 wraps to itself, so that any later number counts as larger."""

    def outputs(self, inputs: Sequence[Tensor]) -> Iterable[Signature] | None:
        return vectors(inputs, I16, Signature((), I32))

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x, largest = inputs[0], 0
        for v in map(int, x):
            if max(v, -v) > largest:
                largest = v if v > largest or v == -32768 else -v
        bits = 15 - largest.bit_length() if largest > 0 else 0
        return (x << np.int16(bits), np.array(bits, np.int32))


@dataclass(frozen=True)
class SignalRfft(SignalOp, name="signal_rfft", takes=(I16,), wants="x int16[..., m], m at most n"):
    """x int16[..., m], followed by zeros up to n = fft_length numbers -> y int16[..., n + 2], the first half of the
    spectrum divided by n, as pairs of real and imaginary part.

    Each pass divides by its radix, and rounds each product; radix 4 everywhere, with one pass of radix 2 before them if
    n / 2 is not a power of 4. All results wrap to 16 bits."""

    fft_length: int

    def outputs(self, inputs: Sequence[Tensor]) -> Iterable[Signature] | None:
        valid = 4 <= self.fft_length <= LONGEST and self.fft_length & (self.fft_length - 1) == 0
        need(valid, self, f"fft_length {self.fft_length} is not supported", inputs, f"a power of 2 from 4 to {LONGEST}")
        *rows, length = inputs[0].shape or (self.fft_length + 1,)
        return [Signature((*rows, self.fft_length + 2), I16)] if length <= self.fft_length else None

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        n, rows = self.fft_length // 2, inputs[0].reshape(-1, inputs[0].shape[-1])
        x = np.zeros((len(rows), self.fft_length), np.int16)
        x[:, : rows.shape[1]] = rows
        z = x.reshape(-1, n, 2)[:, order_of(n)]
        span, roots = 1, roots_of(n)
        for radix in reversed(_radices(n)):
            parts = _product(z.reshape(-1, radix, span, 2), np.int64(32767 // radix))
            turns = np.outer(np.arange(radix), np.arange(span)) * (n // (radix * span))
            a, *others = (p if i == 0 else _turn(p, roots[turns[i]]) for i, p in enumerate(parts.swapaxes(0, 1)))
            if radix == 2:
                made = [a + others[0], a - others[0]]
            else:
                b, c, d = others
                across = (b - d)[..., ::-1] * np.array([1, -1], np.int16)
                made = [a + c + b + d, a - c + across, a + c - (b + d), a - c - across]
            z = np.stack(made, 1).reshape(-1, n, 2)
            span *= radix
        half = _product(z, np.int64(16383))
        zero = half[:, 0]
        y = np.zeros((len(rows), n + 1, 2), np.int16)
        y[:, 0, 0], y[:, n, 0] = zero[:, 0] + zero[:, 1], zero[:, 0] - zero[:, 1]
        k, conjugate = np.arange(1, n // 2 + 1), np.array([1, -1], np.int16)
        mirrored = _product(z[:, n - k] * conjugate, np.int64(16383))
        both = (half[:, k] + mirrored).astype(np.int64)
        turned = _turn(half[:, k] - mirrored, half_turns_of(n)).astype(np.int64)
        y[:, k] = (both + turned) >> 1
        y[:, n - k] = (both - turned) * conjugate >> 1
        return (y.reshape(*inputs[0].shape[:-1], self.fft_length + 2),)


def _radices(n: int) -> list[int]:
    """Return the radices of the passes over n complex numbers, the last pass first."""
    bits = n.bit_length() - 1
    return [4] * (bits // 2) + [2] * (bits % 2)


def order_of(n: int) -> Array:
    """Return which complex number of the input is at each place before the first pass."""
    return np.arange(n).reshape(_radices(n)[::-1]).transpose().reshape(-1).astype(np.int16)


def _unit_circle(phase: Array) -> Array:
    return np.floor(0.5 + 32767 * np.stack([np.cos(phase), np.sin(phase)], axis=-1)).astype(np.int16)


def roots_of(n: int) -> Array:
    """Return e^(-2 pi i k / n) with 15 fractional bits."""
    return _unit_circle(-2 * np.pi * np.arange(n) / n)


def half_turns_of(n: int) -> Array:
    """Return the factors that convert the spectrum of n complex numbers to the spectrum of 2 n real numbers."""
    return _unit_circle(-np.pi * (np.arange(1, n // 2 + 1) / n + 0.5))


def _product(a: Array, b: Array | np.int64) -> Array:
    return ((a.astype(np.int64) * b + 16384) >> 15).astype(np.int16)


def _turn(a: Array, root: Array) -> Array:
    """Return the products of complex int16 numbers with roots of unity in Q15, rounded."""
    (re, im), (c, s) = (np.moveaxis(v.astype(np.int64), -1, 0) for v in (a, root))
    return ((np.stack([re * c - im * s, re * s + im * c], axis=-1) + 16384) >> 15).astype(np.int16)


@dataclass(frozen=True)
class SignalEnergy(
    SignalOp, name="signal_energy", takes=(I16,), wants="x int16[2 n], and start_index <= end_index <= n"
):
    """x int16[2 n], pairs of real and imaginary part -> y uint32[n], squares of absolute values from start_index
    to before end_index, and 0 elsewhere."""

    start_index: int
    end_index: int

    def outputs(self, inputs: Sequence[Tensor]) -> Iterable[Signature] | None:
        shape = inputs[0].shape
        fits = len(shape) == 1 and shape[0] % 2 == 0 and 0 <= self.start_index <= self.end_index <= shape[0] // 2
        return [Signature((shape[0] // 2,), I32)] if fits else None

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        y = (inputs[0].astype(np.int64).reshape(-1, 2) ** 2).sum(axis=1)
        y[: self.start_index] = y[self.end_index :] = 0
        return (as_stored_bits(y),)


# --- kernels --------------------------------------------------------------------------------------------------


def portable(name: str, **changes: Any) -> tuple[Kernel[Any], ...]:
    """Return the portable kernel, whose parameters are a count and the operator's attributes."""

    def params(call: Call[Any]) -> Params:
        attributes = fields_of(call.op, *(f.name for f in fields(call.op)))
        return Params(f"bt_signal_{name}", (("count", call.y.count), *attributes))

    return (Kernel(f"bt_signal_{name}_ref", "signal/ref.c", params, **changes),)


def _rfft_params(call: Call[SignalRfft]) -> Params:
    rows, length, n = prod(call.x.shape[:-1]), call.x.shape[-1], call.op.fft_length // 2
    return Params("bt_signal_rfft", (("count", rows), ("length", length), ("n", n), ("first", _radices(n)[-1])))


def _pack_rfft(call: Call[SignalRfft]) -> tuple[Packed, ...]:
    n = call.op.fft_length // 2
    return (Packed("order", order_of(n)), Packed("roots", roots_of(n)), Packed("turns", half_turns_of(n)))


def _window_params(call: Call[SignalWindow]) -> Params:
    values = (("count", call.y.count), ("n", call.inputs[1].count), ("shift", call.op.shift))
    return Params("bt_signal_window", values)


WINDOW: tuple[Kernel[SignalWindow], ...] = (
    Kernel(
        "bt_signal_window_ref",
        "signal/ref.c",
        _window_params,
        pack=lambda call: (Packed("window", data_of(call.inputs, 1)),),
        overlap=overlap.elementwise,
    ),
)
AUTO_SCALE = portable("auto_scale", renews=((0, 0),))
RFFT: tuple[Kernel[SignalRfft], ...] = (Kernel("bt_signal_rfft_ref", "signal/ref.c", _rfft_params, pack=_pack_rfft),)
ENERGY = portable("energy")
