"""Return the error of an operator for inputs that do not fit."""

from __future__ import annotations

import pytest

from baretorch.errors import CompileError
from baretorch.ir.graph import DType, Op, Shape, Tensor


def tensors(*shapes: Shape, dtype: DType = DType.FLOAT32) -> list[Tensor]:
    return [Tensor(f"x{i}", s, dtype) for i, s in enumerate(shapes)]


def refusal(op: Op, *shapes: Shape, dtype: DType = DType.FLOAT32) -> str:
    with pytest.raises(CompileError) as caught:
        op.infer(tensors(*shapes, dtype=dtype))
    return caught.value.render()
