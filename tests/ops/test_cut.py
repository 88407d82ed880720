"""Operators and kernels that make their output part by part: together the parts are the output, to the last bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from baretorch.ir.graph import Array, DType, Op, Span, Tensor
from baretorch.ops import OPS
from baretorch.ops.conv2d import Conv2d, flatten_pixels
from baretorch.ops.helpers.cut import part_of, part_within
from baretorch.ops.helpers.kernel import Call, nowhere
from baretorch.ops.int8.qpool import QAvgPool2d
from baretorch.ops.linear import Linear
from baretorch.plan.types import Plan
from baretorch.targets.boards import load_board
from tests.ops.arrange import spread
from tests.ops.case import Case, Outputs, run_reference
from tests.ops.cases import TABLE, padding
from tests.ops.cutting import WHOLE, Trial, in_parts, some_of_each, trials
from tests.ops.emulated import run_emulated
from tests.ops.host import run_host

BOARDS = ("mps2-an385-v6m", "mps2-an386", "mps3-an547", "virt-rv32", "cluster8")
FAST = ("-O2", "-fno-strict-aliasing")
PLACES, ALL_PLACES = 3, 17  # of an axis, in `make test` and in the sweep; the sweep has odd ones
PER_IMAGE = 50  # trials in an image, which has as many cases at most: the protocol counts outputs in a byte

Run = Callable[[Sequence[Case], Callable[[Plan], Plan]], list[Outputs]]


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
    (signature,) = piece.op.infer([Tensor("x", a.shape, t.dtype) for a, t in zip(read, call.inputs, strict=True)])
    assert signature.shape == (*call.y.shape[:axis], stop - start, *call.y.shape[axis + 1 :])
    (y,) = piece.op.reference(*read)
    return np.asarray(y).reshape(signature.shape)


def _part(a: Array, span: Span) -> Array:
    return a[(slice(None),) * span.axis + (slice(span.start, span.stop),)]


def test_pointwise_convolutions_have_their_pixels_in_a_column() -> None:
    """No other operator has, whatever its geometry is."""
    changed = set()
    for case in TABLE:
        call = call_of(case)
        column = flatten_pixels(call)
        if column is not call:
            x, *others = case.arrays()
            (y,) = column.op.reference(x.reshape(column.x.shape), *others)
            case.check((np.asarray(y).reshape(call.y.shape),), run_reference([case])[0])
            changed.add(call.op.name)
    assert changed == {"conv2d", "int_conv2d", "qconv2d", "qconv2d16"}


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


def test_channels_of_a_wide_input_have_a_pitch_though_the_output_is_one_pixel() -> None:
    x, y = (Tensor(name, (1, size, size, 8), DType.INT8) for name, size in (("x", 3), ("y", 1)))
    call = Call(QAvgPool2d((3, 3), (1, 1), 0, 1 << 30, 0, 0), (x,), (y,))
    part = part_of(call, 3, 4, 8, wide=True)
    assert part is not None and (part.call.pitch, part.call.x.shape) == (8, (1, 3, 3, 4))
    assert (part.offsets, part.at) == ((4,), 4)
    assert part_of(call, 3, 4, 8) is None, "they lie apart"


def test_a_part_of_a_part_is_one_of_the_whole() -> None:
    x, y = (Tensor(name, (1, 8, 4, 8), DType.INT8) for name in "xy")
    call = Call(QAvgPool2d((3, 3), (1, 1), 0, 1 << 30, 0, 0, (1, 1, 1, 1)), (x,), (y,))
    rows = part_of(call, 1, 4, 8)
    assert rows is not None
    part = part_within(rows, 3, 4, 8, wide=True)
    assert part is not None and part.wide
    assert (part.call.x.shape, part.call.y.shape, part.call.pitch) == ((1, 5, 4, 4), (1, 4, 4, 4), 8)
    assert (part.offsets, part.at) == ((3 * 4 * 8 + 4,), 4 * 4 * 8 + 4)


def on_host(inline: bool) -> Run:
    return lambda cases, arrange: run_host(cases, inline, arrange, FAST)


def on(board: str, folder: Path, optimize: str) -> Run:
    return lambda cases, arrange: run_emulated(cases, board, folder, optimize, arrange=arrange)


def check(found: Sequence[Trial], run: Run, at_once: int = PER_IMAGE) -> None:
    """Check that the parts of a result equal the whole."""
    for start in range(0, len(found), at_once):
        _check(found[start : start + at_once], run)


def _check(found: Sequence[Trial], run: Run) -> None:
    cases = list(dict.fromkeys(t.case for t in found))
    table = [*((case, WHOLE) for case in cases), *((t.case, t.cut) for t in found)]
    outputs = run([case for case, _ in table], lambda plan: in_parts(spread(plan), [cut for _, cut in table]))
    whole = dict(zip((case.name for case in cases), outputs, strict=False))
    for (case, cut), got in zip(table, outputs, strict=True):
        for have, want in zip(got, whole[case.name], strict=True):
            assert _equal(have, want), f"{case.name}, cut along {cut.axis} at {cut.places}"


def _equal(have: Array, want: Array) -> bool:
    """Bit for bit, but for the sign of what is not a number, which compilers choose."""
    if have.dtype.kind != "f":
        return have.tobytes() == want.tobytes()
    none = np.isnan(want)
    return bool((np.isnan(have) == none).all()) and have[~none].tobytes() == want[~none].tobytes()


def test_portable_kernels_make_parts() -> None:
    check(some_of_each(trials(TABLE, load_board("host"), PLACES), 1), on_host(inline=False), 500)


@pytest.mark.parametrize("board", [*BOARDS[:-1], pytest.param(BOARDS[-1], marks=pytest.mark.slow)])
def test_kernels_for_a_cpu_make_parts(board: str, tmp_path: Path) -> None:
    check(some_of_each(trials(TABLE, load_board(board), PLACES), 2), on(board, tmp_path, "speed"))


@pytest.mark.parametrize("board", ["host", *BOARDS])
def test_kernels_make_parts_of_layers_with_much_padding(board: str, tmp_path: Path) -> None:
    found = some_of_each(trials(padding.CASES, load_board(board), PLACES), 1)
    assert found
    check(found, on_host(inline=False) if board == "host" else on(board, tmp_path, "speed"))


def test_every_kernel_that_makes_parts_is_tried() -> None:
    boards = [load_board(b) for b in ("host", *BOARDS)]
    tried = {f for board in boards for t in trials(TABLE, board, PLACES) for f in t.functions}
    kernels = [k for row in OPS for k in row.kernels if k.splits is not nowhere]
    assert len(kernels) > 100
    assert {f for k in kernels for f in (k.symbol, k.channels) if f} - tried == set()


@pytest.mark.slow
@pytest.mark.parametrize("inline", [False, True], ids=["out-of-line", "inlined"])
def test_portable_kernels_make_parts_of_every_case(inline: bool) -> None:
    found = trials(TABLE, load_board("host"), PLACES if inline else ALL_PLACES)
    check(found, on_host(inline), 500)


@pytest.mark.slow
@pytest.mark.parametrize("optimize", ["speed", "size"])
@pytest.mark.parametrize("board", BOARDS)
def test_kernels_for_a_cpu_make_parts_of_every_case(board: str, optimize: str, tmp_path: Path) -> None:
    found = trials(TABLE, load_board(board), PLACES if optimize == "speed" else ALL_PLACES)
    check(found, on(board, tmp_path, optimize))
