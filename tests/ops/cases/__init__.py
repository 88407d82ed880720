"""The case table: per operator the shapes that are easy to get wrong. Every rung runs all of it."""

from __future__ import annotations

from tests.ops.case import Case
from tests.ops.cases import (
    activations,
    depth,
    eights,
    elementwise,
    fft,
    functions,
    index,
    int8,
    int8_more,
    int8_recurrent,
    int8_sixteens,
    int8_small,
    layers,
    layout,
    logic,
    pools,
    reductions,
    sequence,
    solve,
    special,
    upsample,
)

TABLE: tuple[Case, ...] = (
    *layers.CASES,
    *eights.CASES,
    *sequence.CASES,
    *solve.CASES,
    *depth.CASES,
    *pools.CASES,
    *upsample.CASES,
    *reductions.CASES,
    *fft.CASES,
    *elementwise.CASES,
    *functions.CASES,
    *special.CASES,
    *activations.CASES,
    *logic.CASES,
    *layout.CASES,
    *index.CASES,
    *int8.CASES,
    *int8_sixteens.CASES,
    *int8_small.CASES,
    *int8_more.CASES,
    *int8_recurrent.CASES,
)
