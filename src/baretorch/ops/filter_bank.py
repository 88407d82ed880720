"""The operators of TensorFlow Lite Micro's audio front end from energies of a spectrum to features. See signal.py."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from baretorch.ir.graph import Array, Signature, Tensor
from baretorch.ops.helpers import overlap
from baretorch.ops.helpers.kernel import Call, Packed, data_of
from baretorch.ops.signal import I16, I32, I64, SignalOp, as_stored_bits, portable, vectors, without_sign

GAINS = 125  # for 0 and 1; then of each power of two the start, slope and bend of a curve, and an unused number
LOG_STEPS = 128  # of a power of two
LOG_OF_TWO = 45426  # with 16 fractional bits


def _bit_lengths(x: Array) -> Array:
    return np.frexp(x.astype(np.float64))[1].astype(np.int64)


@dataclass(frozen=True)
class SignalFilterBank(
    SignalOp,
    name="signal_filter_bank",
    takes=(I32, I16, I16, I16, I16, I16),
    wants="x uint32[n], and constants: weights int16[w], unweights int16[w], not negative; and for c + 1 bands "
    "frequency_starts, weight_starts and widths int16[c + 1], within x and the weights",
    first_constant=1,
):
    """x uint32[n] -> y uint64[c]: channel i is the sum of band i times `unweights` and of band i + 1 times
    `weights`."""

    def outputs(self, inputs: Sequence[Tensor]) -> Iterable[Signature] | None:
        x, weights, unweights, starts, *others = inputs
        if vectors([weights, unweights], I16) is None or vectors([starts, *others], I16) is None or len(x.shape) != 1:
            return None
        low, at, width = (data_of(inputs, i).astype(np.int64) for i in (3, 4, 5))
        inside = (low + width <= x.count) & (at + width <= weights.count)
        values = (low, at, width, data_of(inputs, 1), data_of(inputs, 2))
        fits = starts.count > 1 and weights.count > 0 and inside.all() and all((v >= 0).all() for v in values)
        return [Signature((starts.count - 1,), I64)] if fits else None

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x, weights, unweights = (without_sign(i) for i in inputs[:3])
        up, down = [], []
        for low, at, width in np.stack(inputs[3:], axis=1).astype(np.int64):
            band = x[low : low + width]
            up.append((band * weights[at : at + width]).sum(dtype=np.uint64))
            down.append((band * unweights[at : at + width]).sum(dtype=np.uint64))
        return ((np.array(up[1:]) + np.array(down[:-1])).view(np.int64),)


@dataclass(frozen=True)
class SignalSquareRoot(
    SignalOp, name="signal_square_root", takes=(I64, I32), wants="x uint64[n], the bits to shift by int32[]"
):
    """x uint64[n], bits int32[] -> y uint32[n], square roots, shifted to the right by the bits modulo 32. They are
    rounded, to at most 2^16 - 1 for numbers below 2^32, and to at most 2^32 - 1."""

    def outputs(self, inputs: Sequence[Tensor]) -> Iterable[Signature] | None:
        return vectors(inputs[:1], I32) if inputs[1].shape == () else None

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x = without_sign(inputs[0])
        root = np.minimum(np.sqrt(x.astype(np.float64)), float(0xFFFFFFFF)).astype(np.uint64)
        root -= root * root > x
        root += x - root * root > root + root
        most = np.where(x >> np.uint64(32) > 0, np.uint64(0xFFFFFFFF), np.uint64(0xFFFF))
        root += (x - root * root > root) & (root != most)
        return (as_stored_bits(root >> np.uint64(int(inputs[1]) & 31)),)


@dataclass(frozen=True)
class SignalSpectralSubtraction(
    SignalOp,
    name="signal_spectral_subtraction",
    takes=(I32, I32),
    wants="x and noise uint32[n]",
    most=(("smoothing_bits", 31), ("spectral_subtraction_bits", 63), ("clamping", 1)),
):
    """x uint32[n], noise uint32[n] -> y uint32[n], noise uint32[n]: the noise follows x times 2^smoothing_bits, and is
    subtracted from it. Channels take turns with the two pairs of factors, which have
    spectral_subtraction_bits fractional bits."""

    smoothing: int
    one_minus_smoothing: int
    alternate_smoothing: int
    alternate_one_minus_smoothing: int
    min_signal_remaining: int
    smoothing_bits: int
    spectral_subtraction_bits: int
    clamping: int

    def outputs(self, inputs: Sequence[Tensor]) -> Iterable[Signature] | None:
        return vectors(inputs, I32, Signature(inputs[0].shape, I32))

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x, noise = (without_sign(i) for i in inputs)
        new, kept, least = (
            without_sign(np.resize(np.array(pair, np.int32), x.size))
            for pair in (
                (self.smoothing, self.alternate_smoothing),
                (self.one_minus_smoothing, self.alternate_one_minus_smoothing),
                (self.min_signal_remaining,),
            )
        )
        scaled = (x << np.uint64(self.smoothing_bits)) & np.uint64(0xFFFFFFFF)
        noise = ((scaled * new + noise * kept) >> np.uint64(self.spectral_subtraction_bits)) & np.uint64(0xFFFFFFFF)
        taken = np.minimum(noise, scaled)
        floor = ((x * least) >> np.uint64(self.spectral_subtraction_bits)) & np.uint64(0xFFFFFFFF)
        y = np.maximum((scaled - taken) >> np.uint64(self.smoothing_bits), floor)
        return (as_stored_bits(y), as_stored_bits(taken if self.clamping else noise))


@dataclass(frozen=True)
class SignalPcan(
    SignalOp,
    name="signal_pcan",
    takes=(I32, I32, I16),
    wants=f"x and noise uint32[n], constant gains int16[{GAINS}]",
    first_constant=2,
    most=(("snr_shift", 63),),
):
    """x uint32[n], noise uint32[n], gains int16[125] -> y uint32[n]: x times the gain for its noise, shifted to the
    right to 12 fractional bits; then v^2 / 4 for v < 2 and v - 1 above, with 6 fractional bits."""

    snr_shift: int

    def outputs(self, inputs: Sequence[Tensor]) -> Iterable[Signature] | None:
        return vectors(inputs[:2], I32) if inputs[2].shape == (GAINS,) else None

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x, noise, gains = without_sign(inputs[0]), without_sign(inputs[1]).astype(np.int64), inputs[2].astype(np.int64)
        length = _bit_lengths(noise)
        at = np.maximum(4 * length - 6, 0)
        part = np.where(length < 11, noise << np.maximum(11 - length, 0), noise >> np.maximum(length - 11, 0)) & 1023
        curve = (((gains[at + 2] * part) >> 5) + (gains[at + 1] << 5)) * part
        gain = np.where(noise <= 2, gains[np.minimum(noise, 2)], gains[at] + ((curve + 16384) >> 15))
        product = x * without_sign(gain.astype(np.int16).astype(np.int32))
        v = (product >> np.uint64(self.snr_shift)) & np.uint64(0xFFFFFFFF)
        return (as_stored_bits(np.where(v < 8192, v * v >> np.uint64(20), (v >> np.uint64(6)) - np.uint64(64))),)


@dataclass(frozen=True)
class SignalLog(
    SignalOp,
    name="signal_log",
    takes=(I32,),
    wants="x uint32[n]",
    most=(("output_scale", (1 << 31) - 1), ("input_correction_bits", 31)),
):
    """x uint32[n] -> y int16[n], the natural logarithm of x times 2^input_correction_bits, times output_scale, at most
    32767; 0 for numbers up to 1."""

    output_scale: int
    input_correction_bits: int

    def outputs(self, inputs: Sequence[Tensor]) -> Iterable[Signature] | None:
        return vectors(inputs, I16)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x = ((without_sign(inputs[0]) << np.uint64(self.input_correction_bits)) & np.uint64(0xFFFFFFFF)).astype(
            np.int64
        )
        whole = np.maximum(_bit_lengths(x) - 1, 0)
        table = log_table().astype(np.int64)
        part = np.where(whole < 16, (x << np.maximum(16 - whole, 0)), x >> np.maximum(whole - 16, 0)) & 0xFFFF
        low, high = table[part >> 9], table[(part >> 9) + 1]
        log2 = (whole << 16) + part + low + ((high - low) * (part & 511) >> 16)
        log = (LOG_OF_TWO * log2 + 32768) >> 16
        scaled = ((log * self.output_scale + 32768) & 0xFFFFFFFF) >> 16
        return (np.where(x > 1, np.minimum(scaled, 32767), 0).astype(np.int16),)


def log_table() -> Array:
    """Return log2(1 + f) - f with 16 fractional bits, for f from 0 to 1."""
    f = np.arange(LOG_STEPS + 1) / LOG_STEPS
    return np.rint(65536 * (np.log2(1 + f) - f)).astype(np.int16)


# --- kernels --------------------------------------------------------------------------------------------------


def _pack_bank(call: Call[SignalFilterBank]) -> tuple[Packed, ...]:
    """Return pairs of weights, without zeros at the ends of bands, and of each band the first x and the width."""
    pairs = np.stack([data_of(call.inputs, 1), data_of(call.inputs, 2)], axis=1)
    weights, bands = [pairs[:0]], []
    for low, at, width in np.stack([data_of(call.inputs, i) for i in (3, 4, 5)], axis=1).tolist():
        band = pairs[at : at + width]
        used = np.flatnonzero(band.any(axis=1))
        first, stop = (int(used[0]), int(used[-1]) + 1) if used.size else (0, 0)
        weights.append(band[first:stop])
        bands.append((low + first, stop - first))
    return (Packed("weights", np.concatenate(weights)), Packed("bands", np.array(bands, np.int16)))


FILTER_BANK = portable("filter_bank", pack=_pack_bank)
SQUARE_ROOT = portable("square_root", overlap=overlap.elementwise)
SPECTRAL_SUBTRACTION = portable("spectral_subtraction", renews=((0, 0), (1, 1)))
PCAN = portable("pcan", pack=lambda call: (Packed("gains", data_of(call.inputs, 2)),), overlap=overlap.elementwise)
LOG = portable("log", pack=lambda call: (Packed("table", log_table()),), overlap=overlap.elementwise)
