"""Rows of the ATen table: bits of integers. For booleans they are the logical operators."""

from __future__ import annotations

from baretorch.errors import CompileError
from baretorch.frontends.aten.promotion import common_type, promoted
from baretorch.frontends.aten.rows import AtenRow
from baretorch.frontends.lowering import Lowering, Scalar
from baretorch.ir.graph import DType
from baretorch.ops.elementwise import Elementwise
from baretorch.ops.logic import (
    BitAnd,
    BitOr,
    Bitwise,
    BitXor,
    LogicalAnd,
    LogicalNot,
    LogicalOr,
    Ne,
    ShiftLeft,
    ShiftRight,
)

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


ROWS: dict[str, AtenRow] = {
    "aten::bitwise_and": AtenRow(lambda g, x, y: bitwise(g, BitAnd(), LogicalAnd(), x, y), (LogicalAnd, BitAnd)),
    "aten::bitwise_or": AtenRow(lambda g, x, y: bitwise(g, BitOr(), LogicalOr(), x, y), (LogicalOr, BitOr)),
    "aten::bitwise_xor": AtenRow(lambda g, x, y: bitwise(g, BitXor(), Ne(), x, y), (Ne, BitXor)),
    "aten::bitwise_not": AtenRow(invert, (LogicalNot, BitXor)),
    "aten::bitwise_left_shift": AtenRow(lambda g, x, y: bitwise(g, ShiftLeft(), None, x, y), (ShiftLeft,)),
    "aten::bitwise_right_shift": AtenRow(lambda g, x, y: bitwise(g, ShiftRight(), None, x, y), (ShiftRight,)),
    "aten::__and__": AtenRow(lambda g, x, y: bitwise(g, BitAnd(), LogicalAnd(), x, y), (LogicalAnd, BitAnd)),
    "aten::__or__": AtenRow(lambda g, x, y: bitwise(g, BitOr(), LogicalOr(), x, y), (LogicalOr, BitOr)),
    "aten::__xor__": AtenRow(lambda g, x, y: bitwise(g, BitXor(), Ne(), x, y), (Ne, BitXor)),
    "aten::__lshift__": AtenRow(lambda g, x, y: bitwise(g, ShiftLeft(), None, x, y), (ShiftLeft,)),
    "aten::__rshift__": AtenRow(lambda g, x, y: bitwise(g, ShiftRight(), None, x, y), (ShiftRight,)),
}
