"""PyTorch's rules for operands of different types: their common type, and the conversions to it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.lowering import Lowering, Scalar
from baretorch.ir.graph import DType
from baretorch.ops.logic import Cast

_KINDS = "biuf"  # of NumPy types: a float wins over integers, they over truth values
_NUMBERS = {bool: DType.BOOL, int: DType.INT64, float: DType.FLOAT32}


def common_type(g: Lowering, operands: Sequence[str | Scalar]) -> DType:
    """Return the common type: tensors decide, then tensors without dimensions, then numbers, the later ones only by
    their kind."""
    tensors = [g[x] for x in operands if isinstance(x, str)]
    groups = (
        [t.dtype for t in tensors if t.shape],
        [t.dtype for t in tensors if not t.shape],
        [_NUMBERS[type(x)] for x in operands if not isinstance(x, str)],
    )
    found: DType | None = None
    for types in groups:
        if types:
            best = reduce(_wider, types)
            found = best if found is None or _kind(best) > _kind(found) else found
    assert found is not None, "an operator has operands"
    return found


def cast(g: Lowering, x: str, dtype: DType) -> str:
    t = g[x]
    if t.dtype is dtype:
        return x
    if dtype not in Cast.types or t.dtype not in Cast.types:
        raise CompileError(f"a cast from {t.dtype.label} to {dtype.label} is not supported", have=str(t))
    if t.data is not None:
        return g.b.const(x, Cast(dtype.label).reference(t.data)[0])
    return g.b.add(Cast(dtype.label), x)


def operand(g: Lowering, x: str | Scalar, dtype: DType) -> str:
    """Return a tensor or a Python number as a tensor of this type."""
    if isinstance(x, str):
        return cast(g, x, dtype)
    if dtype.numpy.kind in "iu" and not np.iinfo(dtype.numpy).min <= x <= np.iinfo(dtype.numpy).max:
        raise CompileError(f"the number {x} does not fit into {dtype.label}", try_="cast the tensors in the model")
    with np.errstate(over="ignore"):  # 1e39 is infinity in PyTorch too
        return g.b.const("scalar", np.array(x, dtype.numpy))


def promote(g: Lowering, *operands: str | Scalar) -> tuple[str, ...]:
    """Return all operands as tensors of one type."""
    dtype = common_type(g, operands)
    return tuple(operand(g, x, dtype) for x in operands)


def to_float(g: Lowering, *operands: str | Scalar) -> tuple[str, ...]:
    """Return all operands as float32, for functions without integer results."""
    return tuple(operand(g, x, DType.FLOAT32) for x in operands)


def to_bool(g: Lowering, *operands: str) -> tuple[str, ...]:
    """Return all operands as booleans: whether they are not 0."""
    return tuple(cast(g, x, DType.BOOL) for x in operands)


def _kind(dtype: DType) -> int:
    kind = dtype.numpy.kind
    return _KINDS.index("i" if kind == "u" else kind)


def _wider(a: DType, b: DType) -> DType:
    if _kind(a) != _kind(b):
        return max(a, b, key=_kind)
    found = DType.of(np.promote_types(a.numpy, b.numpy).name)
    assert found is not None, "two types of one kind have a wider one"
    return found
