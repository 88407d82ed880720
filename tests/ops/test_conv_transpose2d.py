"""conv_transpose2d refuses what it does not support, has the stated cost, and is right for random shapes. Its values
are in the case table."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from baretorch.ops.conv_transpose2d import ConvTranspose2d
from tests.ops.case import Case, normal, run_reference, run_torch
from tests.ops.cases import layers
from tests.ops.refusal import refusal, tensors
from tests.ops.strategies import pairs


def test_refusals() -> None:
    x, weight = (1, 3, 3, 4), (6, 2, 2, 4)
    assert refusal(ConvTranspose2d(padding=(2, 2, 0, 0)), x, weight) == (
        "error: conv_transpose2d: the output is empty\n"
        "  have  x0 float32[1, 3, 3, 4], x1 float32[6, 2, 2, 4]\n"
        "  need  less padding than (2, 2, 0, 0)"
    )
    assert "four dimensions" in refusal(ConvTranspose2d(), x[1:], weight)
    assert "do not fit groups of 2" in refusal(ConvTranspose2d(groups=2), x, weight)
    assert "one value per output channel" in refusal(ConvTranspose2d(), x, weight, (4,))
    assert "without size or stride" in refusal(ConvTranspose2d((0, 1)), x, weight)


def test_macs() -> None:
    """Every input meets every weight of its group once."""
    op = ConvTranspose2d((2, 2), groups=2)
    inputs = tensors((1, 3, 5, 4), (6, 2, 2, 2))
    assert op.macs(inputs, tensors((1, 6, 10, 6))) == 3 * 5 * 6 * 2 * 2 * 2


@st.composite
def cases(draw: st.DrawFn) -> Case:
    kernel, stride, dilation, size = draw(pairs(1, 4)), draw(pairs(1, 4)), draw(pairs(1, 3)), draw(pairs(1, 5))
    padding = (*draw(pairs(-3, 3)), *draw(pairs(-3, 3)))
    padding = (max(padding[0], 0), padding[1], max(padding[2], 0), padding[3])
    rows, columns = ((size[i] - 1) * stride[i] + dilation[i] * (kernel[i] - 1) + 1 for i in (0, 1))
    assume(rows > padding[0] + max(padding[1], 0) and columns > padding[2] + max(padding[3], 0))
    groups, depth, multiple = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    x, weight = (draw(st.integers(1, 2)), *size, groups * depth), (groups * multiple, *kernel, depth)
    bias = draw(st.sampled_from([(), ((groups * multiple,),)]))
    op = ConvTranspose2d(stride, padding, dilation, groups)
    return layers.conv_transpose2d(f"of {x}, {weight}", op, normal(x, weight, *bias))


@settings(derandomize=True, database=None, deadline=None, max_examples=100)
@given(cases())
def test_any_shape(case: Case) -> None:
    case.check(run_reference([case])[0], run_torch([case])[0])
