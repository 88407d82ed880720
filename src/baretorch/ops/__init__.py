"""Every operator and its kernels: the tables to read first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from baretorch.errors import InternalError
from baretorch.ir import Op
from baretorch.ops import conv2d, conv_transpose2d, elementwise, layout, linear, move, pool, reduce, softmax, upsample
from baretorch.ops.kernel import Kernel


@dataclass(frozen=True)
class OpRow:
    """An operator and its kernels, the first that fits being the one to use."""

    op: type[Op]
    kernels: tuple[Kernel[Any], ...]


OPS: tuple[OpRow, ...] = (
    OpRow(linear.Linear, linear.KERNELS),
    OpRow(conv2d.Conv2d, conv2d.KERNELS),
    OpRow(conv_transpose2d.ConvTranspose2d, conv_transpose2d.KERNELS),
    OpRow(pool.MaxPool2d, pool.MAX),
    OpRow(pool.AvgPool2d, pool.AVG),
    OpRow(pool.AdaptiveMaxPool2d, pool.ADAPTIVE_MAX),
    OpRow(pool.AdaptiveAvgPool2d, pool.ADAPTIVE_AVG),
    OpRow(upsample.UpsampleNearest2d, upsample.NEAREST),
    OpRow(upsample.UpsampleBilinear2d, upsample.BILINEAR),
    OpRow(reduce.Mean, reduce.KERNELS),
    OpRow(softmax.Softmax, softmax.KERNELS),
    OpRow(elementwise.Add, elementwise.ADD),
    OpRow(elementwise.Mul, elementwise.MUL),
    OpRow(elementwise.Clamp, elementwise.CLAMP),
    OpRow(elementwise.Tanh, elementwise.TANH),
    OpRow(elementwise.Sigmoid, elementwise.SIGMOID),
    OpRow(layout.Permute, layout.PERMUTE),
    OpRow(layout.Reshape, layout.RESHAPE),
    OpRow(layout.Pad, layout.PAD),
    OpRow(move.Slice, move.SLICE_KERNELS),
    OpRow(move.Cat, move.CAT_KERNELS),
    OpRow(move.Copy, move.COPY_KERNELS),
)

# What only plans hold: parts of an operator that takes several steps.
PLAN_OPS: tuple[OpRow, ...] = (OpRow(move.Place, move.PLACE_KERNELS),)

_BY_TYPE = {row.op: row for row in (*OPS, *PLAN_OPS)}
_BY_NAME = {row.op.name: row.op for row in OPS}


def kernels_of(op: Op) -> tuple[Kernel[Any], ...]:
    row = _BY_TYPE.get(type(op))
    if row is None:
        raise InternalError(f"{op.name} is not in the table of operators")
    return row.kernels


def op_named(name: str) -> type[Op] | None:
    return _BY_NAME.get(name)
