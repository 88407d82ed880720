"""Rows of the ATen table: rarely used functions of one and of two numbers."""

from __future__ import annotations

from baretorch.frontends.aten.promotion import floating
from baretorch.frontends.aten.rows import AtenRow
from baretorch.ops.functions import (
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

ROWS: dict[str, AtenRow] = {
    "aten::exp2": AtenRow(lambda g, x: g.b.add(Exp2(), *floating(g, x)), (Exp2,)),
    "aten::log10": AtenRow(lambda g, x: g.b.add(Log10(), *floating(g, x)), (Log10,)),
    "aten::asin": AtenRow(lambda g, x: g.b.add(Asin(), *floating(g, x)), (Asin,)),
    "aten::acos": AtenRow(lambda g, x: g.b.add(Acos(), *floating(g, x)), (Acos,)),
    "aten::atan": AtenRow(lambda g, x: g.b.add(Atan(), *floating(g, x)), (Atan,)),
    "aten::sinh": AtenRow(lambda g, x: g.b.add(Sinh(), *floating(g, x)), (Sinh,)),
    "aten::cosh": AtenRow(lambda g, x: g.b.add(Cosh(), *floating(g, x)), (Cosh,)),
    "aten::asinh": AtenRow(lambda g, x: g.b.add(Asinh(), *floating(g, x)), (Asinh,)),
    "aten::acosh": AtenRow(lambda g, x: g.b.add(Acosh(), *floating(g, x)), (Acosh,)),
    "aten::atanh": AtenRow(lambda g, x: g.b.add(Atanh(), *floating(g, x)), (Atanh,)),
    "aten::erfc": AtenRow(lambda g, x: g.b.add(Erfc(), *floating(g, x)), (Erfc,)),
    "aten::special_erfcx": AtenRow(lambda g, x: g.b.add(Erfcx(), *floating(g, x)), (Erfcx,)),
    "aten::erfinv": AtenRow(lambda g, x: g.b.add(Erfinv(), *floating(g, x)), (Erfinv,)),
    "aten::atan2": AtenRow(lambda g, x, y: g.b.add(Atan2(), *floating(g, x, y)), (Atan2,)),
    "aten::hypot": AtenRow(lambda g, x, y: g.b.add(Hypot(), *floating(g, x, y)), (Hypot,)),
}
