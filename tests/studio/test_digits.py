"""A drawing becomes the picture that MNIST would have made of it, however large and wherever it was drawn."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baretorch.errors import CompileError
from baretorch.studio.digits import MIDDLE, MOST_POINTS, SIDE, picture, read_strokes
from tests.studio.strokes import DIGITS

SAMPLE = Path(__file__).parents[2] / "examples" / "mnist" / "sample.npz"


def drawn(digit: int, scale: float = 1.0, x: float = 0.0, y: float = 0.0) -> np.ndarray:
    return picture([np.array(stroke) * scale + (x, y) for stroke in DIGITS[digit]])


def centre(image: np.ndarray) -> np.ndarray:
    middles = np.arange(SIDE) + 0.5
    return np.array([(image.sum(0) * middles).sum(), (image.sum(1) * middles).sum()]) / image.sum()


@pytest.mark.parametrize("digit", DIGITS)
def test_size_and_place_do_not_matter(digit: int) -> None:
    plain = drawn(digit)
    assert plain.shape == (28, 28) and plain.dtype == np.float32
    assert plain.min() == 0 and plain.max() == 1
    for scale, x, y in ((0.3, 0.02, 0.6), (0.5, 0.4, 0.0), (1.3, -0.2, -0.2)):
        assert np.abs(drawn(digit, scale, x, y) - plain).max() < 1e-5


@pytest.mark.parametrize("digit", DIGITS)
def test_the_box_is_20_pixels_and_its_centre_of_mass_in_the_middle(digit: int) -> None:
    image = drawn(digit)
    rows, columns = np.nonzero(image.max(1) > 0.45)[0], np.nonzero(image.max(0) > 0.45)[0]
    longer = max(rows[-1] - rows[0], columns[-1] - columns[0]) + 1
    assert longer in (20, 21)  # 21 where it begins between two pixels
    assert np.abs(centre(image) - MIDDLE).max() < 0.6


def test_it_is_like_mnist() -> None:
    """Its own digits have their centre of mass there, and strokes have about as much ink."""
    with np.load(SAMPLE) as sample:
        images = sample["train_images"].reshape(-1, SIDE, SIDE) / 255
    assert np.abs(np.mean([centre(image) for image in images], 0) - MIDDLE).max() < 0.1
    ink = np.mean([drawn(digit).sum() for digit in DIGITS])
    assert abs(ink / images.sum((1, 2)).mean() - 1) < 0.1


def test_nothing_a_dot_and_a_scribble() -> None:
    assert not picture([]).any()
    dot = picture([np.array([[0.3, 0.3], [0.301, 0.3]])])
    assert 4 < dot.sum() < 10  # it stays one
    rng = np.random.default_rng(0)
    assert np.isfinite(picture([rng.random((MOST_POINTS, 2))])).all()


POINT = st.tuples(st.floats(0, 1), st.floats(0, 1))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(POINT, min_size=1, max_size=8), max_size=6))
def test_any_strokes_make_a_picture(strokes: list[list[tuple[float, float]]]) -> None:
    image = picture(read_strokes(json.dumps({"strokes": strokes}).encode()))
    assert image.shape == (SIDE, SIDE) and image.min() >= 0 and image.max() <= 1
    assert image.any() == bool(strokes)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b'{"strokes": 3}',
        b'{"strokes": [[1, 2, 3]]}',
        b'{"strokes": [["a", "b"]]}',
        b'{"strokes": [[[0, 0], [1]]]}',
        b'{"strokes": [[[0, 1.1]]]}',
        b'{"strokes": [[[0, NaN]]]}',
        b'{"strokes": [[[0, 1e999]]]}',
        b'{"strokes": ' + b"[" * 90_000,
        json.dumps({"strokes": [[[0, 0]] * (MOST_POINTS + 1)]}).encode(),
    ],
)
def test_drawings_that_are_none(body: bytes) -> None:
    with pytest.raises(CompileError, match="an invalid drawing"):
        read_strokes(body)
