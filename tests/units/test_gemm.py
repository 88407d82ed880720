"""A cluster's GEMM unit computes the reference for every layer of the case table that it takes, and says why not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from baretorch import pipeline
from baretorch.emit import emit
from baretorch.errors import CompileError
from baretorch.frontends import Source
from baretorch.ir.graph import Builder, DType, Op
from baretorch.machines import open_machine
from baretorch.machines.link import Link
from baretorch.machines.run import call_image
from baretorch.measure.units import units_json
from baretorch.ops.helpers.executor import CORE0
from baretorch.ops.helpers.kernel import Call
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.int8.qlinear import QLinear
from baretorch.options import Buffers, Compiler, Options, Units
from baretorch.pipeline import Compiled, LoweredModel
from baretorch.plan import make_plan
from baretorch.targets.boards import load_board
from baretorch.units import units_of
from baretorch.units.gemm import GEMM
from tests.cli.program import baretorch
from tests.ops.case import Case, run_reference
from tests.ops.cases import TABLE
from tests.ops.emulated import with_large_scratchpad
from tests.ops.merge import merged, shared_out

BOARD = load_board("cluster8")
AUTO = Options(units=Units.AUTO, toolchain=Compiler.GCC)
(UNIT,) = units_of(BOARD.chip)


def call_of(case: Case) -> Call[Op]:
    graph = case.graph()
    return Call(case.op, graph.of(graph.nodes[0].inputs), graph.of(graph.outputs))


LAYERS = [c for c in TABLE if isinstance(c.op, (QConv2d, QLinear)) and c.activations == 1]
TAKEN = [c for c in LAYERS if UNIT.why_not(call_of(c)) is None]


def test_the_unit_computes_the_reference(tmp_path: Path) -> None:
    """One image runs all cases on the unit, and each result equals the reference, to the last bit."""
    assert len(TAKEN) > 50
    graph, inputs = merged(TAKEN)
    board = with_large_scratchpad(BOARD)
    plan = make_plan(graph, board, AUTO)
    theirs = [step for step in plan.steps if step.executor == GEMM]
    assert len(theirs) == len(TAKEN) and {type(step.call.op) for step in theirs} == {QConv2d, QLinear}
    c = emit("cases", {"forward": plan}, "size")
    source = Source("cases", {"forward": graph}, tuple(inputs))
    compiled = Compiled(LoweredModel(source, {"forward": graph}), board, {"forward": plan}, c, AUTO)
    machine = open_machine(pipeline.build_image(compiled, tmp_path), c.run)
    try:
        outputs = shared_out(TAKEN, call_image(Link(machine), graph, inputs))
    finally:
        machine.close()
    for case, got, want in zip(TAKEN, outputs, run_reference(TAKEN), strict=True):
        case.check(got, want)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("qconv2d depthwise", "it has 8 groups"),
        ("qconv2d dilated", "it is dilated"),
        ("qconv2d batch", "it has a batch of 2"),
        ("qconv2d same", None),
        ("qlinear odd", None),
    ],
)
def test_the_matcher_returns_a_reason(name: str, why: str | None) -> None:
    (case,) = [c for c in LAYERS if c.name == name]
    assert UNIT.why_not(call_of(case)) == why


def test_limits_are_those_of_the_toml() -> None:
    cluster = BOARD.chip.cluster
    assert cluster is not None and cluster.gemm is not None
    small = replace(cluster.gemm, kernel=2, channels=4)
    (unit,) = units_of(replace(BOARD.chip, cluster=replace(cluster, gemm=small)))
    (same, first) = (next(call_of(c) for c in LAYERS if c.name == f"qconv2d {n}") for n in ("same", "one by one, odd"))
    assert (unit.why_not(same), unit.why_not(first)) == ("its kernel is 3x3", "it has 13 input channels")


def two_layers(inside: int) -> tuple[Source, Compiled]:
    """Return two linear layers: with `inside` inputs and 8 outputs, and with 8 and 8."""
    rng = np.random.default_rng(0)
    b = Builder("two")
    x = last = b.input("x", (1, inside), DType.INT8)
    for in_ in (inside, 8):
        weight = b.const("w", rng.integers(-127, 128, (8, in_)).astype(np.int8))
        terms = (b.const("b", np.zeros(8, np.int32)), b.const("m", np.full(8, 1 << 20, np.int32)))
        last = b.add(QLinear(0), last, weight, *terms, name=f"of{in_}")
    graph = b.graph([x], [last])
    source = Source("two", {"forward": graph}, (np.zeros((1, inside), np.int8),))
    return source, pipeline.compile_graph(source, graph, BOARD, replace(AUTO, units=None))


def test_what_has_no_room_stays_with_the_cores() -> None:
    _, compiled = two_layers(8000)
    executors = [step.executor for step in compiled.plan.steps]
    assert executors[0] == CORE0 and executors[-1] == GEMM
    assert all(executor.is_core for executor in executors[:-1])
    why = "its constants, inputs and outputs do not fit into L1"
    cores = [{"layer": "of8000", "op": "qlinear", "why": why}]
    assert units_json(compiled) == [{"unit": "gemm0", "layers": ["of8"], "cores": cores}]
    own = [o for o in compiled.plan.steps[-1].operands if o.constant]
    there = [o.buffer or compiled.plan.layout.copies.get(o.storage) == "L1" for o in own]
    assert own and all(there), "the unit reads the scratchpad only"


def test_units_off() -> None:
    source, compiled = two_layers(100)
    assert {step.executor for step in compiled.plan.steps} == {GEMM}
    off = pipeline.compile_graph(source, source.graph, BOARD, replace(AUTO, units=Units.OFF))
    assert {step.executor.host for step in off.plan.steps} == {step.executor for step in off.plan.steps}
    assert units_json(off) == []


def test_a_unit_without_layers_has_reasons() -> None:
    cluster = BOARD.chip.cluster
    assert cluster is not None and cluster.gemm is not None
    picky = replace(cluster, gemm=replace(cluster.gemm, channels=1000))
    board = replace(BOARD, chip=replace(BOARD.chip, cluster=picky))
    source, _ = two_layers(100)
    compiled = pipeline.compile_graph(source, source.graph, board, replace(AUTO, units=None))
    (told,) = units_json(compiled)
    assert told["layers"] == [] and len(told["cores"]) == 2
    assert told["cores"][0]["why"] == "it has 100 input channels"


def test_ops_lists_what_the_unit_takes() -> None:
    told = baretorch("ops", "qlinear", "--board", "cluster8", "--json").json()
    (row,) = told["operators"]
    assert (row["kernels"][0]["symbol"], row["kernels"][0]["unit"]) == ("bt_gemm_unit", "gemm0")
    assert not any("unit" in kernel for kernel in row["kernels"][1:])
    assert told["units"] == {"gemm0": UNIT.takes} and "kernels up to 16x16" in UNIT.takes
    assert "gemm0 takes int8 convolutions" in baretorch("ops", "--board", "cluster8").out
    assert "unit" not in baretorch("ops", "qlinear", "--board", "cluster4-soc").out


def test_buffers_of_the_caller_are_copied_for_the_unit() -> None:
    """Who knows where they are."""
    source, own = two_layers(100)
    lent = pipeline.compile_graph(source, source.graph, BOARD, replace(AUTO, buffers=Buffers.CALLER))
    assert {step.executor for step in lent.plan.steps} == {GEMM}
    assert lent.plan.layout.lent == frozenset() and lent.plan.arena == own.plan.arena


@pytest.mark.parametrize(("place", "at"), [({"arena": "L2"}, "of100"), ({"of8": "L2"}, "of8")])
def test_a_layer_cannot_be_where_the_unit_is_not(place: dict[str, str], at: str) -> None:
    source, _ = two_layers(100)
    with pytest.raises(CompileError) as error:
        pipeline.compile_graph(source, source.graph, BOARD, replace(AUTO, place=place))
    assert error.value.render() == (
        "error: --place: a unit of the cluster cannot access L2\n"
        f"  at    {at}\n"
        "  need  L1 for its inputs and outputs\n"
        "  try   leave it out, or --units off"
    )
    cores = pipeline.compile_graph(source, source.graph, BOARD, replace(AUTO, place=place, units=Units.OFF))
    assert "L2" in {bank.name for bank in cores.plan.layout.banks}
