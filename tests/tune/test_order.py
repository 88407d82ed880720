"""Which candidate is better: exactly the order that docs/how-to/tune.md promises."""

from __future__ import annotations

import pytest

from baretorch.tune.result import NO_NUMBER, RESOLUTION, Candidate, best_first, points

EQUAL = points(0.99, RESOLUTION)


def made(
    label: str, accuracy: float, flash: int, ms: float | None, ram: int = 100, instructions: int = 0, over: str = ""
) -> Candidate:
    return Candidate(label, label, accuracy, flash, ram, instructions, ms, over=(over,) if over else ())


def order(*candidates: Candidate, smallest: bool = False, equal: float = EQUAL) -> str:
    return "".join(candidates[i].label for i in best_first(candidates, smallest, equal))


def test_of_equal_accuracy_the_faster_is_chosen() -> None:
    """Within a budget of 17 KiB: the one of 9 ms, though that of 21 ms is smaller."""
    assert order(made("a", 0.9, 16_000, 21.0), made("b", 0.9, 17_000, 9.0)) == "ba"


def test_accuracy_comes_first() -> None:
    assert order(made("a", 0.95, 16_000, 21.0), made("b", 0.90, 10_000, 9.0)) == "ab"


def test_then_flash_then_ram_then_the_earlier() -> None:
    alike = (made("a", 0.9, 20, 9.0), made("b", 0.9, 10, 9.0, 50), made("c", 0.9, 10, 9.0, 40), made("d", 0.9, 20, 9.0))
    assert order(*alike) == "cbad"


@pytest.mark.parametrize(("gap", "expected"), [(0.5, "ba"), (0.99, "ba"), (1.01, "ab"), (2.0, "ab")])
@pytest.mark.parametrize("original", [0.99, 99.0, 25.0])
def test_less_than_a_hundredth_of_a_point_is_nothing(original: float, gap: float, expected: str) -> None:
    """For percent and decibels, a point is a whole one."""
    equal = points(original, RESOLUTION)
    slow, fast = made("a", original, 10, 21.0), made("b", original - gap * equal, 20, 9.0)
    assert order(slow, fast, equal=equal) == expected
    assert order(fast, slow, equal=equal) == expected


def test_small_steps_do_not_add_up() -> None:
    """Each is as good as the next, but the last is not as good as the first."""
    steps = [made(name, 0.9 - 0.6 * EQUAL * i, 10, 9.0 - i) for i, name in enumerate("abcd")]
    assert order(*steps) == order(*reversed(steps)) == "badc"


def test_without_a_budget_the_smallest_is_chosen() -> None:
    found = (made("a", 0.95, 20, 5.0), made("b", 0.90, 10, 21.0), made("c", 0.91, 10, 30.0), made("d", 0.91, 10, 9.0))
    assert order(*found, smallest=True) == "dcba"


@pytest.mark.parametrize("smallest", [False, True])
def test_what_exceeds_a_budget_comes_last(smallest: bool) -> None:
    found = (made("a", 0.99, 5, 1.0, over="too slow"), made("b", 0.5, 10, 9.0))
    assert order(*found, smallest=smallest) == "ba"


def test_where_a_time_is_not_known_instructions_count() -> None:
    found = (made("a", 0.9, 10, 1.0, instructions=300), made("b", 0.9, 20, None, instructions=200))
    assert order(*found) == "ba"


def test_what_has_no_number_loses() -> None:
    assert order(made("a", NO_NUMBER, 10, 1.0), made("b", -20.0, 20, 9.0)) == "ba"
    assert order() == ""


def test_points() -> None:
    assert (points(0.97, 0.5), points(1.0, 0.5), points(97.0, 0.5), points(-30.0, 0.5)) == (0.005, 0.005, 0.5, 0.5)
