"""Kernels of int8 recurrent layers, and the layout of their weights (kernels/qrecurrent/)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from baretorch.ir.graph import Array, DType
from baretorch.ops.helpers.kernel import Call, Kernel, Packed, Params, fields_of, has_constants, pack_inputs
from baretorch.ops.int8.gates import sigmoid_table
from baretorch.ops.recurrent import STATES, extents
from baretorch.targets.features import ANY_CPU, DSP


def _params(call: Call[Any]) -> Params:
    op = call.op
    return Params(
        "bt_qrecurrent",
        (
            *extents(call.x, call.inputs[-2].shape[1], op.batch_first),
            *fields_of(op, "reverse", "shift", "y_shift", "multiplier", "zero"),
        ),
    )


def _pack(call: Call[Any]) -> tuple[Packed, ...]:
    return (*pack_inputs(call, "weight_ih", "weight_hh", "rows", first=-3), Packed("sigmoid", sigmoid_table()))


def _pack_units(call: Call[Any]) -> tuple[Packed, ...]:
    """Return halfwords of some units together, with all their gates; see kernels/qrecurrent/."""
    op, (w_ih, w_hh, rows, sigmoid) = call.op, (p.data for p in _pack(call))
    units: int = op.together
    hidden = w_hh.shape[1]
    order = np.arange(op.gates * hidden).reshape(op.gates, -1, units).transpose(1, 2, 0).reshape(-1, op.gates * units)
    factors = rows[:, 2].astype(np.int64)
    ih = _in_words(w_ih * (factors >> 8)[:, None], in_fours=call.x.dtype is DType.INT8)
    hh = _in_words(w_hh * (factors & 255)[:, None])
    words = []
    for group in order:
        begin, later = rows[group, :2].sum(axis=1), rows[group[:0], 1]
        if op.separate is not None:
            apart = np.arange(op.gates * units) % op.gates == op.separate
            begin, later = np.where(apart, rows[group, 0], begin), rows[group[apart], 1]
        words += [begin, ih[group].T.reshape(-1), later, hh[group].T.reshape(-1), rows[group, 3]]
    return (Packed("weights", np.concatenate(words).astype(np.int32)), Packed("sigmoid", sigmoid))


def _in_words(weights: Array, in_fours: bool = False) -> Array:
    """Reorder [rows, n] to [rows, words]: pairs of halfwords, or of each four 0 and 2, 1 and 3."""
    rows, count = weights.shape
    padded = np.pad(weights, ((0, 0), (0, -count % (4 if in_fours else 2))))
    if in_fours:
        padded = padded.reshape(rows, -1, 2, 2).transpose(0, 1, 3, 2).reshape(rows, -1)
    words = np.ascontiguousarray(padded.astype("<i2")).view("<i4")
    return np.asarray(words[:, : _words(count, in_fours)])


def _words(count: int, in_fours: bool = False) -> int:
    return 2 * (count // 4) + min(count % 4, 2) if in_fours else -(-count // 2)


def _fits_units(call: Call[Any]) -> bool:
    """Return whether units can be computed together, no sum is shifted, and an int8 output has no shift either."""
    op = call.op
    apart = call.inputs[-2].shape[1] % op.together
    return not (apart or op.shift or (op.y_shift and call.x.dtype is DType.INT8))


def _scratch(call: Call[Any]) -> int:
    """Return the bytes of gates of 16 bits."""
    gates: int = call.op.gates
    return 2 * gates * call.inputs[-2].shape[1]


def _scratch_units(call: Call[Any]) -> int:
    """Return the bytes of input and hidden state as halfwords."""
    return 4 * (_words(call.x.shape[-1], call.x.dtype is DType.INT8) + _words(call.inputs[-2].shape[1]))


def kernels(name: str, dtype: DType, states: int) -> tuple[Kernel[Any], ...]:
    """Return the kernels with states given and with states of zeros, for cores with the DSP extension and for all."""

    def constant(call: Call[Any]) -> bool:
        return call.x.dtype is dtype and has_constants(call, -3)

    def given(call: Call[Any]) -> bool:
        return constant(call) and len(call.inputs) > 4

    dsp = Kernel(
        f"bt_{name}_dsp",
        "qrecurrent/units_dsp.c",
        _params,
        needs=DSP,
        fits=lambda call: given(call) and _fits_units(call),
        pack=_pack_units,
        as_they_are=1 + states,
        scratch=_scratch_units,
        renews=STATES,
    )
    ref = replace(
        dsp,
        symbol=f"bt_{name}_ref",
        source="qrecurrent/ref.c",
        needs=ANY_CPU,
        fits=given,
        pack=_pack,
        scratch=_scratch,
    )
    zero_dsp = replace(dsp, symbol=f"bt_{name}_zero_dsp", fits=lambda call: constant(call) and _fits_units(call))
    zero_ref = replace(ref, symbol=f"bt_{name}_zero_ref", fits=constant)
    return (dsp, replace(zero_dsp, as_they_are=1, renews=()), ref, replace(zero_ref, as_they_are=1, renews=()))
