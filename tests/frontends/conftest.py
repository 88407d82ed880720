"""While the frontend's tests run, every row of the ATen table must make what it declares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from typing import Any

import pytest

from baretorch.frontends.aten.rows import AtenRow
from baretorch.frontends.aten.table import TABLE
from baretorch.frontends.lowering import Lowering, Result
from baretorch.ops.logic import Cast


@pytest.fixture(autouse=True, scope="session")
def rows_make_what_they_declare() -> Iterator[None]:
    rows = dict(TABLE)
    TABLE.update({target: replace(row, build=checked(target, row)) for target, row in rows.items()})
    yield
    TABLE.update(rows)


def checked(target: str, row: AtenRow) -> Callable[..., Result]:
    @wraps(row.build)  # the number of arguments is checked, too
    def build(g: Lowering, *args: Any) -> Result:
        before = len(g.b.nodes)
        result = row.build(g, *args)
        constant = {t.name for t in g.b.tensors.values() if t.data is not None}
        for node in g.b.nodes:
            if constant.issuperset(node.inputs):
                constant.update(node.outputs)
        for node in g.b.nodes[before:] if "complex64" not in args else ():  # rows tell of real tensors
            moves = not node.op.computes or isinstance(node.op, Cast)
            declared = moves or constant.issuperset(node.outputs) or isinstance(node.op, row.makes)
            assert declared, f"{target} does not declare {node.op.name}"
        return result

    return build
