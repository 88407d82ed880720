"""Operators without attributes: their classes in ops/ have their names in all formats."""

from __future__ import annotations

from collections.abc import Callable

from baretorch.frontends.aten.elementwise import compared, rounded
from baretorch.frontends.aten.promotion import floating, promoted, truths
from baretorch.ops import OPS
from baretorch.ops.elementwise import FLOAT, Elementwise, FormatNames, Unary
from baretorch.ops.functions import Rounding
from baretorch.ops.logic import BOOL, Comparison


def named(names_in: Callable[[FormatNames], str]) -> dict[str, type[Elementwise]]:
    """Return the operators by their names in a format."""
    elementwise = [row.op for row in OPS if issubclass(row.op, Elementwise)]
    return {name: op for op in elementwise for name in names_in(op.names).split()}


def with_pytorch_types(kind: type[Elementwise]) -> Callable[..., str]:
    """Return the row of an operator whose operands become one type as in PyTorch."""
    op = kind()
    if isinstance(op, Rounding):
        return lambda g, x: rounded(g, op, x)
    if isinstance(op, Comparison):
        return lambda g, x, y: compared(g, op, x, y)
    convert = floating if op.types == FLOAT else truths if op.types == BOOL else promoted
    if isinstance(op, Unary):
        return lambda g, x: g.b.add(op, *convert(g, x))
    return lambda g, x, y: g.b.add(op, *convert(g, x, y))
