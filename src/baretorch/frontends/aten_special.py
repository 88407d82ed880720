"""Rows of the ATen table: functions that few models need, of one and of two numbers."""

from __future__ import annotations

from collections.abc import Callable

from baretorch.frontends.lowering import Result
from baretorch.frontends.promotion import floating
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

ROWS: dict[str, Callable[..., Result]] = {
    "aten::exp2": lambda g, x: g.b.add(Exp2(), *floating(g, x)),
    "aten::log10": lambda g, x: g.b.add(Log10(), *floating(g, x)),
    "aten::asin": lambda g, x: g.b.add(Asin(), *floating(g, x)),
    "aten::acos": lambda g, x: g.b.add(Acos(), *floating(g, x)),
    "aten::atan": lambda g, x: g.b.add(Atan(), *floating(g, x)),
    "aten::sinh": lambda g, x: g.b.add(Sinh(), *floating(g, x)),
    "aten::cosh": lambda g, x: g.b.add(Cosh(), *floating(g, x)),
    "aten::asinh": lambda g, x: g.b.add(Asinh(), *floating(g, x)),
    "aten::acosh": lambda g, x: g.b.add(Acosh(), *floating(g, x)),
    "aten::atanh": lambda g, x: g.b.add(Atanh(), *floating(g, x)),
    "aten::erfc": lambda g, x: g.b.add(Erfc(), *floating(g, x)),
    "aten::special_erfcx": lambda g, x: g.b.add(Erfcx(), *floating(g, x)),
    "aten::erfinv": lambda g, x: g.b.add(Erfinv(), *floating(g, x)),
    "aten::atan2": lambda g, x, y: g.b.add(Atan2(), *floating(g, x, y)),
    "aten::hypot": lambda g, x, y: g.b.add(Hypot(), *floating(g, x, y)),
}
