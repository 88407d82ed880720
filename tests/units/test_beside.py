"""Cores do other layers while a unit computes: the same bits, and what goes wrong is seen by judge and emulator."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from baretorch import pipeline
from baretorch.errors import InternalError
from baretorch.frontends import Source
from baretorch.ir.graph import Builder, DType, interpret
from baretorch.machines.types import DeviceFault
from baretorch.measure.cluster import match_trace
from baretorch.ops.int8.qbinary import QAdd
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.move import Cat
from baretorch.options import Compiler, Options, Units
from baretorch.pipeline import Compiled
from baretorch.plan.check.order import check_order
from baretorch.plan.schedule import Phase
from baretorch.units.gemm import GEMM
from tests.plan.test_banks import smaller
from tests.units.test_gemm import BOARD

AUTO = Options(units=Units.AUTO, toolchain=Compiler.GCC)
SAME = (1, 1, 1, 1)


def convolution(b: Builder, x: str, name: str, shape: tuple[int, ...], op: QConv2d) -> str:
    weight = b.const("w", np.random.default_rng(len(name)).integers(-127, 128, shape).astype(np.int8))
    terms = (b.const("b", np.zeros(shape[0], np.int32)), b.const("m", np.full(shape[0], 1 << 23, np.int32)))
    return b.add(op, x, weight, *terms, name=name)


@cache
def source() -> Source:
    """Return a model with a branch for the unit and one for the cores, a sum of both after the unit's layer, and a
    later layer of the unit."""
    rng = np.random.default_rng(0)
    b = Builder("branches")

    def conv(x: str, name: str, groups: int = 1) -> str:
        return convolution(b, x, name, (16, 3, 3, 16 // groups), QConv2d(0, 0, padding=SAME, groups=groups))

    x = b.input("x", (1, 24, 24, 16), DType.INT8)
    other = conv(x, "depthwise", 16)
    sum_ = b.add(QAdd(8192, 8192, 0, 14), conv(x, "product"), other, name="sum")
    graph = b.graph([x], [conv(sum_, "last")])
    return Source("branches", {"forward": graph}, (rng.integers(-128, 128, (1, 24, 24, 16)).astype(np.int8),))


def compiled(options: Options = AUTO) -> Compiled:
    return pipeline.compile_graph(source(), source().graph, BOARD, options)


def test_cores_work_while_the_unit_does(tmp_path: Path) -> None:
    of = compiled()
    together = [phase for phase in of.plan.phases if len({step.call.y.name for step in phase.steps}) > 1]
    names = {tuple(sorted({step.call.y.name for step in phase.steps})) for phase in together}
    assert ("depthwise", "product") in names, "another branch"
    assert ("product", "sum") in names or ("last", "sum") in names, "tiles of rows"
    for phase in together:
        assert phase.steps[0].executor == GEMM and all(step.executor.is_core for step in phase.steps[1:])
    found = pipeline.run_image(of, pipeline.build_image(of, tmp_path))
    (want,) = interpret(source().graph, source().examples).values()
    assert found.outputs[0].tobytes() == found.first[0].tobytes() == want.tobytes()
    assert found.trace is not None and BOARD.chip.cluster is not None
    told = match_trace(of.plan, found.trace, BOARD.chip.cluster, [True] * len(of.plan.steps))
    product = next(layer for layer in told.layers if layer.name == "product")
    assert 0 < product.beside <= product.worked <= product.cycles + product.beside
    assert told.cycles > sum(layer.cycles for layer in told.layers) > 0.9 * told.cycles
    assert told.cycles < sum(max(layer.cycles, layer.worked) for layer in told.layers), "some of it at the same time"


def test_one_core_works_while_the_unit_does() -> None:
    alone = compiled(replace(AUTO, cores=1))
    assert [len(phase.steps) for phase in alone.plan.phases if phase.beside(phase.steps[0])]
    text = alone.c.files["model.c"]
    assert text.index("bt_gemm_begin(") < text.index("bt_gemm_wait(")


def test_a_unit_writes_and_reads_rows_in_slower_memory(tmp_path: Path) -> None:
    """The unit's output does not fit L1 as a whole: it is copied out in tiles of rows, and copied back for another
    layer."""
    b = Builder("wide")
    x = b.input("x", (1, 24, 24, 4), DType.INT8)
    first = convolution(b, x, "first", (16, 3, 3, 4), QConv2d(0, 0, padding=SAME))
    wide = convolution(b, first, "wide", (32, 1, 1, 16), QConv2d(0, 0))
    half = convolution(b, wide, "half", (16, 2, 2, 32), QConv2d(0, 0, stride=(2, 2)))
    graph = b.graph([x], [convolution(b, half, "last", (8, 1, 1, 16), QConv2d(0, 0))])
    example = np.random.default_rng(0).integers(-128, 128, (1, 24, 24, 4)).astype(np.int8)
    of = pipeline.compile_graph(
        Source("wide", {"forward": graph}, (example,)), graph, smaller(BOARD, "L1", 32 << 10), AUTO
    )
    rows = {layer.layer: layer.count for layer in of.plan.tiles.layers if layer.axis == "rows"} if of.plan.tiles else {}
    assert rows.keys() >= {"wide", "half"} and min(rows.values()) >= 3 and not of.plan.no_room
    assert {step.executor for step in of.plan.steps} == {GEMM}
    found = pipeline.run_image(of, pipeline.build_image(of, tmp_path))
    (want,) = interpret(graph, [example]).values()
    assert found.outputs[0].tobytes() == want.tobytes()


def test_what_a_core_touches_while_the_unit_uses_it_is_seen() -> None:
    """The sum in the phase of the product that it reads."""
    plan = compiled().plan
    times = [t for t, phase in enumerate(plan.phases) if phase.steps[0].call.y.name == "product"]
    product = plan.phases[times[0]].steps[0]
    sums = next(phase for phase in plan.phases if phase.main.call.y.name == "sum")
    some = tuple(step for step in sums.steps if step.executor.is_core)
    phases = (*plan.phases[: times[0]], Phase((product, *some), meet=True), *plan.phases[times[0] + 1 :])
    with pytest.raises(InternalError, match=r"qadd on core. and qconv2d on gemm0 touch the same bytes"):
        check_order(replace(plan, schedule=replace(plan.schedule, phases=phases)))


def test_a_missing_wait_is_seen_with_the_layers_name(tmp_path: Path) -> None:
    of = compiled()
    text = re.sub(r"    bt_gemm_wait\(\d+\);.*\n", "", of.c.files["model.c"], count=1)
    assert text != of.c.files["model.c"]
    broken = replace(of, c=replace(of.c, files={**of.c.files, "model.c": text}))
    image = pipeline.build_image(broken, tmp_path)
    with pytest.raises(DeviceFault, match=r"without waiting for it|an invalid request") as caught:
        pipeline.run_image(broken, image)
    assert caught.value.have[0].startswith("in layer ")


def test_a_sum_that_is_a_part_of_a_cat_is_made_there(tmp_path: Path) -> None:
    """Not where its input dies, which is smaller than the cat."""
    b = Builder("cat")
    x = b.input("x", (1, 24, 24, 16), DType.INT8)
    one, two = (convolution(b, x, n, (16, 3, 3, 16), QConv2d(0, 0, padding=SAME)) for n in ("one", "other"))
    sum_ = b.add(QAdd(8192, 8192, 0, 14), one, two, name="sum")
    cat = b.add(Cat(1), sum_, convolution(b, x, "third", (16, 1, 1, 16), QConv2d(0, 0)), name="cat")
    graph = b.graph([x], [convolution(b, cat, "last", (8, 1, 1, 16), QConv2d(0, 0))])
    example = np.random.default_rng(0).integers(-128, 128, (1, 24, 24, 16)).astype(np.int8)
    of = pipeline.compile_graph(Source("cat", {"forward": graph}, (example,)), graph, BOARD, AUTO)
    found = pipeline.run_image(of, pipeline.build_image(of, tmp_path))
    (want,) = interpret(graph, [example]).values()
    assert found.outputs[0].tobytes() == want.tobytes()


def test_the_unit_computes_bands(tmp_path: Path) -> None:
    """The unit also computes layers that run in bands of rows for want of RAM."""
    b = Builder("bands")
    x = b.input("x", (1, 24, 24, 4), DType.INT8)
    wide = convolution(b, x, "wide", (32, 3, 3, 4), QConv2d(0, 0, padding=SAME))
    half = convolution(b, wide, "half", (16, 2, 2, 32), QConv2d(0, 0, stride=(2, 2)))
    graph = b.graph([x], [convolution(b, half, "last", (8, 1, 1, 16), QConv2d(0, 0))])
    example = np.random.default_rng(0).integers(-128, 128, (1, 24, 24, 4)).astype(np.int8)
    source = Source("bands", {"forward": graph}, (example,))
    whole = pipeline.compile_graph(source, graph, BOARD, AUTO)
    of = pipeline.compile_graph(source, graph, BOARD, replace(AUTO, ram=whole.plan.arena // 2))
    assert of.plan.bands is not None and of.plan.arena <= whole.plan.arena // 2
    assert {step.executor for step in of.plan.steps if isinstance(step.call.op, QConv2d)} == {GEMM}
    found = pipeline.run_image(of, pipeline.build_image(of, tmp_path))
    (want,) = interpret(graph, [example]).values()
    assert found.outputs[0].tobytes() == want.tobytes()
