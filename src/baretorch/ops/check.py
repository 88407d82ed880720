"""What the shape rules share: refusing what does not fit, in words the user can act on."""

from __future__ import annotations

from collections.abc import Sequence

from baretorch.errors import CompileError
from baretorch.ir import DType, Op, Tensor


def listed(tensors: Sequence[Tensor]) -> str:
    """`x float32[1, 8], weight float32[4, 8]`, for the `have` line."""
    return ", ".join(map(str, tensors))


def need(condition: bool, op: Op, what: str, inputs: Sequence[Tensor], wanted: str, try_: str | None = None) -> None:
    """Raise unless `condition` holds."""
    if not condition:
        raise CompileError(f"{op.name}: {what}", have=listed(inputs), need=wanted, try_=try_)


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
    """Axes must be distinct and count from the front."""
    rank = len(x.shape)
    need(
        all(0 <= a < rank for a in axes) and len(set(axes)) == len(axes),
        op,
        f"axes {tuple(axes)} are not those of a tensor of rank {rank}",
        [x],
        f"distinct axes from 0 to {rank - 1}",
    )
