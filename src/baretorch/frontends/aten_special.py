"""Rows of the ATen table: functions that few models need, of one and of two numbers."""

from __future__ import annotations

from collections.abc import Callable

from baretorch.frontends.lowering import Lowering, Result, Scalar
from baretorch.frontends.promotion import floating
from baretorch.ops.elementwise import Elementwise
from baretorch.ops.special import (
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atan2,
    Atanh,
    Cosh,
    Erfc,
    Erfcx,
    Erfinv,
    Exp2,
    Hypot,
    Log10,
    Sinh,
)


def function(op: Elementwise) -> Callable[..., Result]:
    """The row of a function of floats that an operator computes."""

    def row(g: Lowering, *operands: str | Scalar) -> str:
        return g.b.add(op, *floating(g, *operands))

    return row


ROWS: dict[str, Callable[..., Result]] = {
    "aten::exp2": function(Exp2()),
    "aten::log10": function(Log10()),
    "aten::asin": function(Asin()),
    "aten::acos": function(Acos()),
    "aten::atan": function(Atan()),
    "aten::sinh": function(Sinh()),
    "aten::cosh": function(Cosh()),
    "aten::asinh": function(Asinh()),
    "aten::acosh": function(Acosh()),
    "aten::atanh": function(Atanh()),
    "aten::erfc": function(Erfc()),
    "aten::special_erfcx": function(Erfcx()),
    "aten::erfinv": function(Erfinv()),
    "aten::atan2": function(Atan2()),
    "aten::hypot": function(Hypot()),
}
