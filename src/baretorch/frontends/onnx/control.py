"""Rows of the ONNX table: nodes with graphs. A Graph has no branches and no loops: those that are known ahead of time
are inlined; otherwise both branches are computed and one result is selected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import shapes
from baretorch.frontends.lowering import Result
from baretorch.frontends.onnx.call import OnnxCall
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow, Value
from baretorch.ops.move import Choose

TURNS = 256  # of a loop, as of one in PyTorch


def if_(g: OnnxLowering, c: OnnxCall) -> Result:
    condition = c.need(0)
    known = g.known(condition)
    if known is not None:
        taken = "then_branch" if bool(known.reshape(-1)[0]) else "else_branch"
        return _names(g, g.lower(c.attribute(taken), (), f"{c.name}/"))
    sides = [_as_in_file(g, g.lower(c.attribute(n), (), f"{c.name}/")) for n in ("then_branch", "else_branch")]
    made = []
    for a, b in zip(*sides, strict=True):
        if (g[a].shape, g[a].dtype) != (g[b].shape, g[b].dtype):
            raise CompileError(
                "If: the branches return different shapes",
                have=f"{g[a]} and {g[b]}",
                try_="`--fix INPUT=VALUE`, if the condition depends on an input that is always the same",
            )
        made.append(g.b.add(Choose(), g.reshape(condition, ()), a, b))
    return tuple(made)


def loop(g: OnnxLowering, c: OnnxCall) -> Result:
    """Inline the body for each iteration. The number of iterations must be known."""
    body = c.attribute("body")
    limit = None if c.input(0) is None else int(g.constant(c.input(0), "Loop: the number of turns").reshape(-1)[0])
    going = None if c.input(1) is None else bool(g.constant(c.input(1), "Loop: the condition").reshape(-1)[0])
    carried: list[Value] = [c.need(i) for i in range(2, len(c.inputs))]
    scanned: list[list[str]] = [[] for _ in range(c.outputs - len(carried))]
    turn = 0
    while going is not False and (limit is None or turn < limit):
        _need_few(c, turn + 1 if limit is None else limit)
        given = [np.array(turn, np.int64), np.array(True), *carried]
        test, *made = g.lower(body, given, f"{c.name}[{turn}]/")
        going = _known_truth(g, test)
        carried, rest = made[: len(carried)], made[len(carried) :]
        for column, value in zip(scanned, rest, strict=True):
            column.append(g.as_in_file(g.name_of(value)))
        turn += 1
    return (*_names(g, carried), *(_stack(g, c, column, 0) for column in scanned))


def scan(g: OnnxLowering, c: OnnxCall) -> Result:
    body, count = c.attribute("body"), c.attribute("num_scan_inputs")
    split = len(c.inputs) - count
    carried: list[Value] = [c.need(i) for i in range(split)]
    sequences = [c.need(i) for i in range(split, len(c.inputs))]
    axes = [g.axis(x, a) for x, a in zip(sequences, c.attribute("scan_input_axes", (0,) * count), strict=True)]
    backward = c.attribute("scan_input_directions", (0,) * count)
    lengths = {g.shape(x)[a] for x, a in zip(sequences, axes, strict=True)}
    if len(lengths) != 1:
        raise CompileError("Scan: its inputs have different lengths", have=", ".join(str(g[x]) for x in sequences))
    (length,) = lengths
    _need_few(c, length)
    outputs = c.outputs - len(carried)
    scanned: list[list[str]] = [[] for _ in range(outputs)]
    for turn in range(length):
        given = [
            shapes.select(g, x, a, length - 1 - turn if back else turn)
            for x, a, back in zip(sequences, axes, backward, strict=True)
        ]
        made = g.lower(body, [*carried, *given], f"{c.name}[{turn}]/")
        carried = made[: len(carried)]
        for column, value in zip(scanned, made[len(carried) :], strict=True):
            column.append(g.as_in_file(g.name_of(value)))
    directions = c.attribute("scan_output_directions", (0,) * outputs)
    places = c.attribute("scan_output_axes", (0,) * outputs)
    ordered = [column[::-1] if back else column for column, back in zip(scanned, directions, strict=True)]
    return (*_names(g, carried), *(_stack(g, c, s, a) for s, a in zip(ordered, places, strict=True)))


def _need_few(c: OnnxCall, turns: int) -> None:
    if turns > TURNS:
        raise CompileError(
            f"{c.op}: {turns} turns are too many to be written out", need=f"at most {TURNS} turns, known beforehand"
        )


def _known_truth(g: OnnxLowering, test: Value) -> bool:
    data = g.known(test) if isinstance(test, str) else test
    if not isinstance(data, np.ndarray):
        raise CompileError(
            "Loop: how many turns it takes depends on values",
            need="a number of turns that is known before the image is built",
        )
    return bool(data.reshape(-1)[0])


def _names(g: OnnxLowering, values: Sequence[Value]) -> tuple[str, ...]:
    return tuple(g.name_of(v) for v in values)


def _as_in_file(g: OnnxLowering, values: Sequence[Value]) -> tuple[str, ...]:
    """Return values in the file's form, so that a value computed from several keeps no property of one of them."""
    return tuple(map(g.as_in_file, _names(g, values)))


def _stack(g: OnnxLowering, c: OnnxCall, parts: Sequence[str], axis: int) -> str:
    if not parts:
        raise CompileError(f"{c.op}: without a turn it makes nothing to stack")
    rank = len(g.shape(parts[0])) + 1
    return shapes.stack(g, parts, axis + rank if axis < 0 else axis)


def sequence(g: OnnxLowering, c: OnnxCall) -> Any:
    raise CompileError(
        f"{c.op}: sequences and optional values are not supported", need="tensors whose number and shapes are known"
    )


ROWS: dict[str, OnnxRow] = {
    "If": OnnxRow(if_),
    "Loop": OnnxRow(loop),
    "Scan": OnnxRow(scan),
    **dict.fromkeys(
        (
            *("SequenceEmpty", "SequenceConstruct", "SequenceInsert", "SequenceAt", "SequenceErase", "SequenceLength"),
            *("SequenceMap", "SplitToSequence", "ConcatFromSequence"),
            *("Optional", "OptionalHasElement", "OptionalGetElement"),
        ),
        OnnxRow(sequence, refused=True),
    ),
}
