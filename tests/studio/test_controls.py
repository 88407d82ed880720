"""The controls of the page follow from the shape and the values of an input."""

from __future__ import annotations

import numpy as np
import pytest

from baretorch.ir.graph import DType, Port, Tensor
from baretorch.studio.controls import ControlKind, Picture, input_control, output_control, picture_of


@pytest.mark.parametrize(
    ("shape", "picture"),
    [
        ((1, 784), Picture(28, 28, 1, True)),
        ((784,), Picture(28, 28, 1, True)),
        ((1, 1, 28, 28), Picture(28, 28, 1, True)),
        ((1, 3, 96, 64), Picture(96, 64, 3, False)),
        ((1, 96, 64, 3), Picture(96, 64, 3, True)),
        ((1, 96, 64, 1), Picture(96, 64, 1, True)),
        ((49, 10), Picture(49, 10, 1, True)),
        ((1, 640), None),
        ((1, 2, 32, 32), None),
        ((2, 3, 32, 32), None),
        ((1, 3, 32, 4), None),
        ((1, 4), None),
        ((), None),
    ],
)
def test_pictures(shape: tuple[int, ...], picture: Picture | None) -> None:
    assert picture_of(shape) == picture


def port(shape: tuple[int, ...], dtype: DType = DType.FLOAT32) -> Port:
    return Port(Tensor("x", shape, dtype), tuple(range(len(shape))))


@pytest.mark.parametrize(
    ("dtype", "values", "limits"),
    [
        (DType.FLOAT32, [0.2, 0.9], (0, 1)),
        (DType.FLOAT32, [0.5], (0, 1)),
        (DType.FLOAT32, [-0.2, 0.9], (-1, 1)),
        (DType.FLOAT32, [0, 0], (-1, 1)),
        (DType.FLOAT32, [0, 6.28], (0, 6.5)),
        (DType.FLOAT32, [-2.7, 3.1], (-3, 3.5)),
        (DType.FLOAT32, [0, 254], (0, 255)),
        (DType.FLOAT32, [np.nan, np.inf, 4, 5], (4, 5)),
        (DType.UINT8, [3, 250], (0, 255)),
        (DType.INT32, [0, 9], (0, 9)),
        (DType.INT8, [-128, -127], (-128, -127)),
        (DType.BOOL, [1, 1], (0, 1)),
    ],
)
def test_limits(dtype: DType, values: list[float], limits: tuple[float, float]) -> None:
    control = input_control(port((1,), dtype), "x", [np.array([v]).astype(dtype.numpy) for v in values])
    assert (control.low, control.high) == limits


@pytest.mark.parametrize(
    ("dtype", "value", "limits"),
    [(DType.FLOAT32, 0, (0, 1)), (DType.FLOAT32, 3, (3, 4)), (DType.UINT8, 0, (0, 255)), (DType.UINT8, 255, (0, 255))],
)
def test_an_empty_picture_is_paper(dtype: DType, value: int, limits: tuple[float, float]) -> None:
    """Examples are often all zeros: what is drawn is then more, and never less than the type can hold."""
    control = input_control(port((1, 784), dtype), "x", [np.full((1, 784), value, dtype.numpy)])
    assert (control.low, control.high) == limits
    assert [control.spread(np.full((28, 28), part)).max() for part in (0.0, 1.0)] == list(limits)


def test_kinds() -> None:
    def kind(*shape: int) -> ControlKind:
        return input_control(port(shape), "x", [np.zeros(shape, np.float32)]).kind

    assert [kind(), kind(1, 32), kind(1, 33), kind(1, 16000), kind(1, 3, 8, 8)] == [
        ControlKind.NUMBERS,
        ControlKind.NUMBERS,
        ControlKind.CURVE,
        ControlKind.CURVE,
        ControlKind.PICTURE,
    ]
    assert output_control(port((1, 64)), "y").kind is ControlKind.NUMBERS
    assert output_control(port((1, 65)), "y").kind is ControlKind.CURVE


def test_a_picture_fills_the_range_of_the_examples() -> None:
    """MNIST is often shifted and scaled: paper is then not 0 and ink not 1."""
    sample = np.full((1, 784), -0.4242, np.float32)
    sample[0, 7] = 2.8215
    control = input_control(port((1, 784)), "x", [sample])
    filled = control.spread(np.eye(28, dtype=np.float32))
    assert filled.dtype == np.float32 and filled.shape == (1, 784)
    assert filled.max() == np.float32(2.8215) and filled.min() == np.float32(-0.4242)
    grey = np.arange(784).reshape(1, 784).astype(np.uint8)
    whole = input_control(port((1, 784), DType.UINT8), "x", [grey])
    assert whole.spread(np.full((28, 28), 0.5)).max() == 128
