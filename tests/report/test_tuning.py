"""The page of a search."""

from __future__ import annotations

import re
from itertools import pairwise

from baretorch.report.tuning import Budget, Candidate, Tuning, front_picture


def candidate(flash: int, accuracy: float, instructions: int) -> Candidate:
    return Candidate(f"of {flash}", "int8", accuracy, flash, 0, instructions, None)


def test_the_front_is_a_line_that_rises() -> None:
    """Also where some are only faster: these are dots beside it."""
    small, quick, best = candidate(1000, 0.97, 90), candidate(2000, 0.96, 10), candidate(3000, 0.985, 80)
    slow = candidate(1000, 0.965, 50)
    whole = candidate(4000, 0.99, 100)
    tuning = Tuning("m", "pico", "accuracy", 0.99, Budget(0.98), whole, (slow, small, quick, best), best)
    assert set(tuning.front) == {slow, small, quick, best, whole}
    picture = str(front_picture(tuning))
    (way,) = re.findall('<path d="M([^"]*)"', picture)
    points = [tuple(map(float, point.split())) for point in way.split(" L")]
    assert len(points) == 3
    assert all(b[0] > a[0] and b[1] < a[1] for a, b in pairwise(points)), "up is less"
    assert picture.count('class="best"') == 5
