"""The case table: per operator the shapes that are easy to get wrong. Every rung runs all of it."""

from __future__ import annotations

from tests.ops.case import Case
from tests.ops.cases import eights, elementwise, index, int8, layers, layout, pools, reductions, sequence, upsample

TABLE: tuple[Case, ...] = (
    *layers.CASES,
    *eights.CASES,
    *sequence.CASES,
    *pools.CASES,
    *upsample.CASES,
    *reductions.CASES,
    *elementwise.CASES,
    *layout.CASES,
    *index.CASES,
    *int8.CASES,
)
