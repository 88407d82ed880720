"""int8 layers that compute four outputs at a time with sums of 24 bits; see kernels/fours_avr.h."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from baretorch.ops.conv2d import pixel_distances
from baretorch.ops.helpers import overlap
from baretorch.ops.helpers.kernel import Call, Kernel, Packed, data_of
from baretorch.ops.packing.layer import CONVOLUTION, LINEAR
from baretorch.ops.packing.triples import small_outputs
from baretorch.targets.features import AVR

OUTPUTS = 255  # they are counted in a byte


def _pack(call: Call[Any]) -> tuple[Packed, ...]:
    """Return for each four rows the weights of one input after the other, with 128 added, then bias and multiplier of
    each row. The bias subtracts what 128 more per input would add."""
    weight, bias, multiplier = (data_of(call.inputs, i).astype(np.int64) for i in (1, 2, 3))
    rows = weight.reshape(weight.shape[0], -1)
    terms = np.stack([bias - 128 * rows.sum(axis=1), multiplier << call.op.shift], axis=1).astype("<i8")
    bytes_ = terms.view(np.uint8).reshape(-1, 2, 8)
    ends = np.concatenate([bytes_[:, 0, :3], bytes_[:, 1, :4]], axis=1)  # [out, 7]
    fours = -(-len(rows) // 4)
    padded = np.full((4 * fours, rows.shape[1]), 128, np.uint8)
    padded[: len(rows)] = rows + 128
    groups = padded.reshape(fours, 4, -1).transpose(0, 2, 1).reshape(fours, -1)
    last = np.zeros((4 * fours, 7), np.uint8)
    last[: len(rows)] = ends
    whole = np.concatenate([groups, last.reshape(fours, -1)], axis=1)
    missing = 7 * (4 * fours - len(rows))  # of rows that are not there
    return (Packed("weight", whole.reshape(-1)[: whole.size - missing]),)


def _fits(call: Call[Any]) -> bool:
    """Return whether sums with their bias fit into 24 bits, and outputs into 16, for all inputs."""
    if not small_outputs(call) or call.y.shape[-1] > OUTPUTS:
        return False
    weight, bias = (data_of(call.inputs, i).astype(np.int64) for i in (1, 2))
    largest = np.abs(weight.reshape(weight.shape[0], -1)).sum(axis=1) * 128 + np.abs(bias)
    return int(largest.max()) < 1 << 23


CONVOLUTIONS: tuple[Kernel[Any], ...] = (
    CONVOLUTION.for_cpu(
        "avr",
        AVR,
        fits=lambda call: call.op.groups == 1 and call.op.pool == (1, 1) and _fits(call),
        pack=_pack,
        scratch=lambda call: prod(call.inputs[1].shape[1:]),
        overlap=pixel_distances(0),
    ),
)
LINEARS: tuple[Kernel[Any], ...] = (
    LINEAR.for_cpu(
        "avr",
        AVR,
        fits=_fits,
        pack=_pack,
        overlap=overlap.rows(1),
    ),
)
