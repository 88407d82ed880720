"""Checks of the shape rules. Each raises an error that the user can act on."""

from __future__ import annotations

from collections.abc import Sequence

from baretorch.errors import CompileError
from baretorch.ir.graph import DType, Op, Tensor


def list_tensors(tensors: Sequence[Tensor]) -> str:
    """Return `x float32[1, 8], weight float32[4, 8]`, for the `have` line."""
    return ", ".join(map(str, tensors))


def need(condition: bool, op: Op, what: str, inputs: Sequence[Tensor], wanted: str, try_: str | None = None) -> None:
    """Raise unless `condition` holds."""
    if not condition:
        raise CompileError(f"{op.name}: {what}", have=list_tensors(inputs), need=wanted, try_=try_)


def need_float32(op: Op, inputs: Sequence[Tensor]) -> None:
    for t in inputs:
        need(
            t.dtype is DType.FLOAT32,
            op,
            f"{t.dtype.label} is not supported",
            inputs,
            "float32 everywhere",
            "cast the tensor to float32 in the model",
        )


def need_axes(op: Op, axes: Sequence[int], x: Tensor) -> None:
    """Raise unless the axes are distinct and count from the front."""
    rank = len(x.shape)
    need(
        all(0 <= a < rank for a in axes) and len(set(axes)) == len(axes),
        op,
        f"axes {tuple(axes)} are not those of a tensor of rank {rank}",
        [x],
        f"distinct axes from 0 to {rank - 1}",
    )


def need_channels(op: Op, inputs: Sequence[Tensor], groups: int) -> None:
    """Raise unless these are inputs of a convolution: x[N, H, W, C], weight[O, KH, KW, C / groups], and bias[O] if
    any."""
    x, weight = inputs[:2]
    need(
        len(x.shape) == len(weight.shape) == 4,
        op,
        "input and weight must have four dimensions",
        inputs,
        "x[N, H, W, C] and weight[O, KH, KW, C / groups]",
    )
    out, _, _, depth = weight.shape
    need(
        groups > 0 and x.shape[3] == depth * groups and out % groups == 0,
        op,
        f"{x.shape[3]} input and {out} output channels do not fit groups of {groups}",
        inputs,
        "weight[O, KH, KW, C / groups], with O a multiple of groups",
    )
    valid = all(t.shape == (out,) for t in inputs[2:])
    need(valid, op, "the bias does not have one value per output channel", inputs, f"bias[{out}]")
