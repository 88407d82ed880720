"""Rows of the ATen table: bits of integers. Of truth values they are the logical operators."""

from __future__ import annotations

from collections.abc import Callable

from baretorch.errors import CompileError
from baretorch.frontends.lowering import Lowering, Result, Scalar
from baretorch.frontends.promotion import common_type, promoted
from baretorch.ir import DType
from baretorch.ops.bits import BitAnd, BitOr, Bitwise, BitXor, ShiftLeft, ShiftRight
from baretorch.ops.elementwise import Elementwise
from baretorch.ops.logic import LogicalAnd, LogicalNot, LogicalOr, Ne

Operand = str | Scalar


def bitwise(g: Lowering, integers: Bitwise, truths: Elementwise | None, *operands: Operand) -> str:
    dtype = common_type(g, operands)
    if dtype is DType.BOOL and truths is not None:
        return g.b.add(truths, *promoted(g, *operands))
    if dtype not in integers.types:
        raise CompileError(
            f"{integers.name}: {dtype.label} is not supported",
            have=", ".join(str(g[x]) for x in operands if isinstance(x, str)),
            need=" or ".join(t.label for t in integers.types),
            try_="cast the tensors to torch.int32 in the model",
        )
    return g.b.add(integers, *promoted(g, *operands))


def invert(g: Lowering, x: str) -> str:
    if g[x].dtype is DType.BOOL:
        return g.b.add(LogicalNot(), x)
    return bitwise(g, BitXor(), None, x, 255 if g[x].dtype is DType.UINT8 else -1)


ROWS: dict[str, Callable[..., Result]] = {
    "aten::bitwise_and": lambda g, x, y: bitwise(g, BitAnd(), LogicalAnd(), x, y),
    "aten::bitwise_or": lambda g, x, y: bitwise(g, BitOr(), LogicalOr(), x, y),
    "aten::bitwise_xor": lambda g, x, y: bitwise(g, BitXor(), Ne(), x, y),
    "aten::bitwise_not": invert,
    "aten::bitwise_left_shift": lambda g, x, y: bitwise(g, ShiftLeft(), None, x, y),
    "aten::bitwise_right_shift": lambda g, x, y: bitwise(g, ShiftRight(), None, x, y),
    "aten::__and__": lambda g, x, y: bitwise(g, BitAnd(), LogicalAnd(), x, y),
    "aten::__or__": lambda g, x, y: bitwise(g, BitOr(), LogicalOr(), x, y),
    "aten::__xor__": lambda g, x, y: bitwise(g, BitXor(), Ne(), x, y),
    "aten::__lshift__": lambda g, x, y: bitwise(g, ShiftLeft(), None, x, y),
    "aten::__rshift__": lambda g, x, y: bitwise(g, ShiftRight(), None, x, y),
}
