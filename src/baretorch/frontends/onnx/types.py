"""What rows of the ONNX table share: small integers that are computed as int32, and operands that must be there."""

from __future__ import annotations

from baretorch.errors import CompileError
from baretorch.frontends.aten.promotion import cast
from baretorch.frontends.lowering import Lowering
from baretorch.ir import DType, Op

SMALL = (DType.INT8, DType.UINT8, DType.INT16)


def wide(g: Lowering, x: str) -> str:
    """Bytes and shorts as int32, for operators that have no kernels of their size; others as they are."""
    return cast(g, x, DType.INT32) if g[x].dtype in SMALL else x


def widened(g: Lowering, op: Op, *operands: str) -> str:
    """An operator that wraps, computed in int32 where it must be, and given back in the operands' type."""
    return cast(g, g.b.add(op, *(wide(g, x) for x in operands)), g[operands[0]].dtype)


def is_float(g: Lowering, x: str) -> bool:
    return g[x].dtype is DType.FLOAT32


def need_float(g: Lowering, op: str, *operands: str) -> None:
    for x in operands:
        if not is_float(g, x):
            raise CompileError(
                f"{op}: {g[x].dtype.label} is not supported", have=str(g[x]), need="float32", try_="a Cast before it"
            )
