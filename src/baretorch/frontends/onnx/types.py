"""Helpers of the ONNX table's rows: small integers that are computed as int32, required types, and limits for computed
tables, which a few bytes of a file could make arbitrarily large."""

from __future__ import annotations

from math import prod

from baretorch.errors import CompileError
from baretorch.frontends.aten.promotion import cast
from baretorch.frontends.lowering import Lowering
from baretorch.frontends.untrusted import ROOM, too_large
from baretorch.ir.graph import DType, Op

SMALL = (DType.INT8, DType.UINT8, DType.INT16)


def wide(g: Lowering, x: str) -> str:
    """Return bytes and shorts as int32, for operators without kernels of their size; others unchanged."""
    return cast(g, x, DType.INT32) if g[x].dtype in SMALL else x


def widened(g: Lowering, op: Op, *operands: str) -> str:
    """Apply an operator that wraps, in int32 if necessary, and convert back to the operands' type."""
    return cast(g, g.b.add(op, *(wide(g, x) for x in operands)), g[operands[0]].dtype)


def is_float(g: Lowering, x: str) -> bool:
    return g[x].dtype is DType.FLOAT32


def need_float(g: Lowering, op: str, *operands: str) -> None:
    for x in operands:
        if not is_float(g, x):
            raise CompileError(
                f"{op}: {g[x].dtype.label} is not supported", have=str(g[x]), need="float32", try_="a Cast before it"
            )


def need_room(op: str, *counts: int) -> None:
    """Raise CompileError if a table with these dimensions is unreasonably large."""
    if 4 * prod(counts) > ROOM:
        raise too_large(f"{op} needs a table of {' x '.join(f'{n:,}' for n in counts)} numbers")
