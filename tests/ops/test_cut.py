"""Operators whose output is made part by part: together the parts are the output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from baretorch.ir import Array, DType, Op, Span, Tensor
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.cut import part_of
from baretorch.ops.kernel import Call
from baretorch.ops.linear import Linear
from tests.ops.case import Case, run_reference
from tests.ops.cases import TABLE


def call_of(case: Case) -> Call[Op]:
    graph = case.graph()
    (node,) = graph.nodes
    return Call(node.op, graph.of(node.inputs), graph.of(node.outputs))


def is_cut(op: type[Op]) -> bool:
    return op.cut is not Op.cut


@pytest.mark.parametrize("case", [c for c in TABLE if is_cut(type(c.op))], ids=lambda c: c.name)
def test_the_references_of_all_pieces_are_that_of_the_whole(case: Case) -> None:
    call, arrays = call_of(case), case.arrays()
    (whole,) = run_reference([case])[0]
    for axis, size in enumerate(whole.shape):
        for place in sorted({1, size // 2, size - 1} & set(range(1, size))):
            made = [_reference(call, arrays, axis, start, stop) for start, stop in ((0, place), (place, size))]
            pieces = [m for m in made if m is not None]
            if len(pieces) == len(made):
                case.check((np.concatenate(pieces, axis),), (whole,))


def _reference(call: Call[Op], arrays: Sequence[Array], axis: int, start: int, stop: int) -> Array | None:
    piece = call.op.cut(call.inputs, call.y, axis, start, stop)
    if piece is None:
        return None
    read = [a if span is None else _part(a, span) for a, span in zip(arrays, piece.reads, strict=True)]
    (signature,) = piece.op.infer([_tensor(a) for a in read])
    assert signature.shape == (*call.y.shape[:axis], stop - start, *call.y.shape[axis + 1 :])
    (y,) = piece.op.reference(*read)
    return np.asarray(y).reshape(signature.shape)


def _part(a: Array, span: Span) -> Array:
    return a[(slice(None),) * span.axis + (slice(span.start, span.stop),)]


def _tensor(a: Array) -> Tensor:
    dtype = DType.of(a.dtype.name)
    assert dtype is not None
    return Tensor("x", a.shape, dtype)


def test_a_part_of_rows_knows_its_place_and_its_padding() -> None:
    x, y = (Tensor(name, (1, 8, 4, c), DType.FLOAT32) for name, c in (("x", 2), ("y", 6)))
    weight = Tensor("w", (6, 3, 3, 2), DType.FLOAT32, data=np.ones((6, 3, 3, 2), np.float32))
    call = Call(Conv2d(padding=(1, 1, 1, 1)), (x, weight), (y,))
    first, second = part_of(call, 1, 0, 3), part_of(call, 1, 3, 8)
    assert first is not None and second is not None
    assert (first.call.op.padding, first.call.x.shape, first.offsets, first.at) == ((1, 0, 1, 1), (1, 4, 4, 2), (0,), 0)
    assert (second.call.op.padding, second.call.x.shape) == ((0, 1, 1, 1), (1, 6, 4, 2))
    assert (second.offsets, second.at) == ((2 * 4 * 2 * 4,), 3 * 4 * 6 * 4)
    assert part_of(replace(call, inputs=(replace(x, shape=(2, 8, 4, 2)), weight)), 1, 0, 3) is None, "rows lie apart"


def test_a_part_of_the_channels_has_a_pitch_unless_there_is_one_row() -> None:
    weight = Tensor("w", (6, 5), DType.FLOAT32, data=np.arange(30, dtype=np.float32).reshape(6, 5))

    def call(rows: int) -> Call[Linear]:
        x, y = (Tensor(name, (rows, n), DType.FLOAT32) for name, n in (("x", 5), ("y", 6)))
        return Call(Linear(), (x, weight), (y,))

    one, several = part_of(call(1), 1, 2, 6), part_of(call(3), 1, 2, 6)
    assert one is not None and several is not None
    assert one.call.inputs[1].data is not None
    assert one.call.inputs[1].data.tolist() == np.arange(10, 30).reshape(4, 5).tolist()
    assert (one.call.pitch, one.call.y_pitch, one.at) == (0, 4, 8)
    assert (several.call.pitch, several.call.y_pitch, several.at, several.offsets) == (6, 6, 8, (0,))
    again = part_of(several.call, 0, 1, 3)
    assert again is not None
    assert (again.call.pitch, again.at, again.offsets) == (6, 6 * 4, (5 * 4,))
