"""The page of a search."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from baretorch.report.page.tuning import front_picture, tuning_page
from baretorch.tune.result import Budget, Candidate, Tuning

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import draw_front


def candidate(flash: int, accuracy: float, instructions: int) -> Candidate:
    return Candidate(f"of {flash}", "int8", accuracy, flash, 0, instructions, None)


def search(whole: Candidate, *tried: Candidate) -> Tuning:
    """Return a search in which the last candidate was chosen."""
    return Tuning("m", "pico", "accuracy", 0.99, Budget(0.98), whole, tried, tried[-1])


def test_the_front_is_a_line_that_rises() -> None:
    """Candidates that are only faster are dots next to the line."""
    small, quick, best = candidate(1000, 0.97, 90), candidate(2000, 0.96, 10), candidate(3000, 0.985, 80)
    slow = candidate(1000, 0.965, 50)
    whole = candidate(4000, 0.99, 100)
    tuning = search(whole, slow, small, quick, best)
    assert set(tuning.front) == {slow, small, quick, best, whole}
    picture = str(front_picture(tuning))
    (way,) = re.findall('<path d="M([^"]*)"', picture)
    points = [tuple(map(float, point.split())) for point in way.split(" L")]
    assert len(points) == 3
    assert all(b[0] > a[0] and b[1] < a[1] for a, b in pairwise(points)), "up is less"
    assert picture.count('class="best"') == 5


def test_words_of_the_plot_are_on_its_lines() -> None:
    """And hide what they lie on: lines come first, and words have an edge."""
    tuning = replace(search(candidate(4000, 0.99, 100), candidate(3000, 0.985, 80)), budget=Budget(0.98, 3100))
    parts = re.findall(r'<(line|text)[^>]* class="([^"]*)"[^>]*>([^<]*)', str(front_picture(tuning)))
    words = [i for i, (_, _, said) in enumerate(parts) if said.startswith(("the original", "least", "chosen", "plain"))]
    assert len(words) == 4 and all("clear" in parts[i][1] for i in words)
    assert max(i for i, (_, style, _) in enumerate(parts) if style == "peak") < min(words)
    assert "svg .clear { paint-order: stroke;" in tuning_page(tuning, "run it")


def test_the_page_lists_what_it_does_not_show() -> None:
    """Candidates that lost far more, and how to run the chosen one."""
    tuning = search(candidate(4000, 0.99, 100), candidate(2000, 0.2, 10), candidate(3000, 0.985, 80))
    page = tuning_page(tuning, "baretorch run 'a b.py' <&>")
    assert "1 more is outside of the picture." in page and "0 trials" in page
    assert "<code>baretorch run 'a b.py' &lt;&amp;&gt;</code>" in page.replace("&#x27;", "'").replace("&#39;", "'")
    assert "outside" not in tuning_page(search(candidate(4000, 0.99, 100), candidate(3000, 0.985, 80)), "")


def test_the_plot_of_a_page_can_be_drawn_alone() -> None:
    """tools/draw_front.py draws the plot for the docs."""
    tuning = search(candidate(4000, 0.99, 100), candidate(3000, 0.985, 80))
    text, width, height = draw_front.plot_of(tuning_page(tuning, "run it"))
    assert (width, height) == (1040, 500)
    assert text.count("<svg") == 1 and str(front_picture(tuning)) in text and "<table" not in text
    with pytest.raises(SystemExit, match="it has no plot"):
        draw_front.plot_of("<p>")
