"""The case table: per operator the shapes that are easy to get wrong. Every rung runs all of it."""

from __future__ import annotations

from tests.ops.case import Case
from tests.ops.cases import elementwise, layers, layout, pools, reductions, upsample

TABLE: tuple[Case, ...] = (
    *layers.CASES,
    *pools.CASES,
    *upsample.CASES,
    *reductions.CASES,
    *elementwise.CASES,
    *layout.CASES,
)
