"""The order of candidates: which of them is chosen, and which are worth training."""

from __future__ import annotations

from collections.abc import Sequence

from baretorch.tune.result import Candidate

RESOLUTION = 0.01  # points; accuracies that are nearer to each other are equal


def points(original: float, count: float) -> float:
    """Return so many points in the metric's own unit: hundredths of a metric up to 1, and whole units of others."""
    return count / 100 if abs(original) <= 1 else count


def best_first(candidates: Sequence[Candidate], smallest: bool, equal: float) -> list[int]:
    """Return the numbers of the candidates, the best first.

    1. What meets all budgets but the accuracy's comes before what does not. What meets a budget by more is not better.
    2. The smaller comes first, if the smallest is asked for.
    3. The more accurate comes first, unless the accuracies differ by less than `equal`.
    4. The faster comes first, then the smaller, then the one that takes less RAM, then the one that was found earlier.
    """
    left, order, costs = set(range(len(candidates))), list[int](), _costs(candidates)
    while left:
        some = {i for i in left if not candidates[i].over} or left
        if smallest:
            least = min(candidates[i].flash for i in some)
            some = {i for i in some if candidates[i].flash == least}
        highest = max(candidates[i].accuracy for i in some)
        alike = [i for i in some if highest - candidates[i].accuracy < equal]
        order += sorted(alike, key=lambda i: (costs[i], i))
        left.difference_update(alike)
    return order


def _costs(candidates: Sequence[Candidate]) -> list[tuple[float, int, int]]:
    """Time, flash and RAM of each. Time is counted in instructions, unless it is known of all."""
    known = [c.milliseconds for c in candidates if c.milliseconds is not None]
    times = known if len(known) == len(candidates) else [float(c.instructions) for c in candidates]
    return [(time, c.flash, c.ram) for time, c in zip(times, candidates, strict=True)]
