"""Constants begin at addresses that kernels can read words from, whatever a compiler does with arrays of bytes."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from baretorch.emit import emit
from baretorch.emit.names import make_names
from baretorch.ir.graph import Builder, DType, Graph
from baretorch.ops.move import Cat
from baretorch.options import Optimize
from baretorch.plan import make_plan
from baretorch.targets.boards import load_board


def joined() -> Graph:
    """An int8 input and an int8 constant one after the other: the constant is moved in words."""
    b = Builder("bytes")
    x = b.input("x", (8,), DType.INT8)
    return b.graph([x], [b.add(Cat(0), x, b.const("c", np.arange(8, dtype=np.int8)), name="y")])


@pytest.mark.parametrize("optimize", list(Optimize))
def test_int8_constants_are_aligned_to_words(optimize: Optimize) -> None:
    """Clang lets an array of bytes begin anywhere, and gcc does with -Os; a Cortex-M faults on such a word."""
    files = emit("bytes", {"forward": make_plan(joined(), load_board("host"))}, optimize).files
    assert re.search(r"aligned\(4\)\)\) const int8_t bytes_c\[8\]", files["weights.c"])


def test_equal_constants_keep_the_largest_alignment() -> None:
    """Methods share constants; the first to name one must not decide where it begins."""
    plan = make_plan(joined(), load_board("host"))
    wide = replace(
        plan, layout=replace(plan.layout, constants=tuple(replace(c, align=16) for c in plan.layout.constants))
    )
    for plans in ({"a": plan, "b": wide}, {"a": wide, "b": plan}):
        assert [c.align for c in make_names("m", plans).constants.values()] == [16]
