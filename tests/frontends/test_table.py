"""The table of ATen operators."""

from __future__ import annotations

import sys

from baretorch.explore.support import aten_names
from baretorch.frontends.aten.table import BROUGHT, TABLE
from baretorch.ops import OPS

MODULES = [m for name, m in sys.modules.items() if name.startswith("baretorch.frontends.aten.") and hasattr(m, "ROWS")]


def test_every_row_stands_in_one_place() -> None:
    rows = [target for module in MODULES for target in module.ROWS]
    assert len(MODULES) > 15 and set(rows) < {*TABLE, *BROUGHT}
    assert sorted(rows) == sorted(set(rows))


def test_rows_make_operators_of_the_table() -> None:
    known = {row.op for row in OPS}
    assert {op for row in TABLE.values() for op in row.makes} < known


def test_what_is_refused_is_not_listed() -> None:
    refused = {target.removeprefix("aten::") for target, row in TABLE.items() if row.refused}
    assert "as_strided" in refused and refused.isdisjoint(aten_names())
    assert not any(row.makes for row in TABLE.values() if row.refused)
