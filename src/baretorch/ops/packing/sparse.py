"""Layers with few weights other than zero: kernels of qlinear and of qconv2d without windows, and their weights.

A row's weights are grouped in fours of inputs; fours of zeros are neither stored nor multiplied. A four costs a byte
and some instructions more than in a dense layer, so these kernels take a layer only if that makes it smaller and
faster: the cost of both is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from baretorch.ir.graph import Array
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.kernel import Call, Kernel, Packed, has_constants, pack_inputs
from baretorch.ops.packing.layer import LINEAR, weight_rows
from baretorch.targets.features import ANY_CPU, DSP, Feature, Needs, needs

V6M, V7M, RV32 = needs(Feature.V6M), needs(Feature.V7M), needs(Feature.RV32)
FOUR = 4
LARGEST = 255  # that a step can be
MOST = (1 << 15) - 1  # fours of a row, limited by the type of the count
TOGETHER = 4  # BT_SPARSE_ROWS


@dataclass(frozen=True)
class Cost:
    """Instructions per row of inputs: for each four that is stored, for each row of weights in addition to a dense
    kernel, and for each product of the dense kernel."""

    four: float
    row: float
    product: float


# Measured on mps2-an386, pico, mps2-an385 and virt-rv32; of layers of one row of inputs, and of many.
COSTS: Mapping[Needs, tuple[Cost, Cost]] = {
    DSP: (Cost(11.4, 15.0, 1.09), Cost(7.4, 4.0, 0.73)),
    V6M: (Cost(31.0, 0.0, 3.5), Cost(31.4, 10.0, 1.93)),
    V7M: (Cost(17.0, 0.0, 3.5), Cost(17.4, 0.0, 3.2)),
    RV32: (Cost(22.0, 0.0, 4.4), Cost(22.4, 0.0, 2.43)),
    ANY_CPU: (Cost(31.0, 0.0, 3.5), Cost(31.4, 10.0, 1.93)),
}
PORTABLE = (V6M, V7M, RV32)


@dataclass(frozen=True)
class Fours:
    """The fours of all rows that are stored, the steps between them, and the number of fours in each row."""

    weight: Array
    steps: Array
    counts: Array


def fours(rows: Array) -> Fours:
    """Return the fours of a matrix int8[out, in]."""
    out, in_ = rows.shape
    blocks = rows.reshape(out, in_ // FOUR, FOUR)
    steps, places, counts = list[int](), list[int](), list[int]()
    for row, used in enumerate(np.asarray(blocks.any(axis=2))):
        before, first = 0, len(steps)
        for block in np.flatnonzero(used):
            while block - before > LARGEST:
                before += LARGEST
                steps.append(LARGEST)
                places.append(row * (in_ // FOUR) + before)
            steps.append(int(block) - before)
            places.append(row * (in_ // FOUR) + int(block))
            before = int(block)
        counts.append(len(steps) - first)
    kept = blocks.reshape(-1, FOUR)[places]
    return Fours(np.ascontiguousarray(kept).reshape(-1), np.array(steps, np.uint8), np.array(counts, np.int16))


def wins(rows: Array, cost: Cost) -> bool:
    """Return whether a matrix of weights takes fewer bytes and fewer instructions in fours that are not zero."""
    out, in_ = rows.shape
    if in_ % FOUR or in_ // FOUR > MOST or not rows.size:
        return False
    used = int(rows.reshape(out, -1, FOUR).any(axis=2).sum())
    if cost.four * used + cost.row * out >= cost.product * rows.size:  # the steps between make it only more
        return False
    found = fours(rows)
    bytes_ = found.weight.nbytes + found.steps.nbytes + found.counts.nbytes
    return bytes_ < rows.nbytes and cost.four * found.steps.size + cost.row * out < cost.product * rows.size


def linears(*cpus: Needs) -> tuple[Kernel[Any], ...]:
    """Return the rows of qlinear for CPUs, and for few rows of inputs."""

    def row(cpu: Needs, cost: Cost) -> Kernel[Any]:
        return replace(
            _kernel(cpu),
            fits=lambda call: _fits(call) and wins(weight_rows(call), cost),
            splits=cut.rows_or_channels(1),
        )

    return tuple(row(cpu, COSTS[cpu][0]) for cpu in cpus)


def convolutions(*cpus: Needs) -> tuple[Kernel[Any], ...]:
    """Return the rows of qconv2d for CPUs."""

    def row(cpu: Needs, cost: Cost) -> Kernel[Any]:
        return replace(
            _kernel(cpu),
            fits=lambda call: _fits(call) and _is_plain(call) and wins(weight_rows(call), cost),
            splits=cut.rows,
        )

    return tuple(row(cpu, COSTS[cpu][1]) for cpu in cpus)


def _fits(call: Call[Any]) -> bool:
    return call.op.bits == 8 and not call.pitch and has_constants(call)


def _is_plain(call: Call[Any]) -> bool:
    """Return whether each output pixel depends on the input pixel at its place only."""
    op, taps = call.op, call.inputs[1].shape[1:3]
    return taps == op.stride == op.pool == (1, 1) and op.groups == 1 and not any(op.padding)


def _pack(call: Call[Any]) -> tuple[Packed, ...]:
    found = fours(weight_rows(call))
    fours_ = (Packed("weight", found.weight), Packed("steps", found.steps), Packed("counts", found.counts))
    return (*fours_, *pack_inputs(call, "bias", "multiplier", first=2))


def _kernel(cpu: Needs) -> Kernel[Any]:
    variant = "sparse_dsp" if cpu == DSP else "sparse_ref"
    return LINEAR.for_cpu(variant, cpu, pack=_pack, overlap=overlap.rows(TOGETHER))
