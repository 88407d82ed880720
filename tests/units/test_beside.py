"""Cores do other layers while a unit computes: the same bits, and what goes wrong is seen by judge and emulator."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from baretorch import pipeline
from baretorch.emulators.types import DeviceFault
from baretorch.errors import InternalError
from baretorch.frontends import Source
from baretorch.ir import Builder, DType, interpret
from baretorch.ops.qbinary import QAdd
from baretorch.ops.qconv2d import QConv2d
from baretorch.options import Compiler, Options, Units
from baretorch.pipeline import Compiled
from baretorch.plan.check_order import check_order
from baretorch.plan.types import Executor, Phase
from baretorch.report.cluster import traced
from tests.units.test_gemm import BOARD

AUTO = Options(units=Units.AUTO, toolchain=Compiler.GCC)
SAME = (1, 1, 1, 1)


@cache
def source() -> Source:
    """A branch for the unit beside one for the cores, a sum of both, which follows the unit's layer, and a layer of the
    unit behind it."""
    rng = np.random.default_rng(0)
    b = Builder("branches")

    def conv(x: str, name: str, groups: int = 1) -> str:
        weight = b.const("w", rng.integers(-127, 128, (16, 3, 3, 16 // groups)).astype(np.int8))
        terms = (b.const("b", np.zeros(16, np.int32)), b.const("m", np.full(16, 1 << 23, np.int32)))
        return b.add(QConv2d(0, 0, padding=SAME, groups=groups), x, weight, *terms, name=name)

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
        assert phase.steps[0].executor is Executor.GEMM0 and all(step.executor.is_core for step in phase.steps[1:])
    found = pipeline.run_image(of, pipeline.build_image(of, tmp_path))
    (want,) = interpret(source().graph, source().examples).values()
    assert found.outputs[0].tobytes() == found.first[0].tobytes() == want.tobytes()
    assert found.trace is not None and BOARD.chip.cluster is not None
    told = traced(of.plan, found.trace, BOARD.chip.cluster, [True] * len(of.plan.steps))
    product = next(layer for layer in told.layers if layer.name == "product")
    assert 0 < product.beside <= product.worked <= product.cycles + product.beside
    assert told.cycles > sum(layer.cycles for layer in told.layers) > 0.9 * told.cycles
    assert told.cycles < sum(max(layer.cycles, layer.worked) for layer in told.layers), "some of it at the same time"


def test_one_core_works_while_the_unit_does() -> None:
    alone = compiled(replace(AUTO, cores=1))
    assert [len(phase.steps) for phase in alone.plan.phases if phase.beside(phase.steps[0])]
    text = alone.c.files["model.c"]
    assert text.index("bt_gemm_begin(") < text.index("bt_gemm_wait(")


def test_what_a_core_touches_while_the_unit_uses_it_is_seen() -> None:
    """The sum in the phase of the product that it reads."""
    plan = compiled().plan
    times = [t for t, phase in enumerate(plan.phases) if phase.steps[0].call.y.name == "product"]
    product = plan.phases[times[0]].steps[0]
    sums = next(phase for phase in plan.phases if phase.main.call.y.name == "sum")
    some = tuple(step for step in sums.steps if step.executor.is_core)
    phases = (*plan.phases[: times[0]], Phase((product, *some), meet=True), *plan.phases[times[0] + 1 :])
    with pytest.raises(InternalError, match=r"qadd on CORE. and qconv2d on GEMM0 touch the same bytes"):
        check_order(replace(plan, schedule=replace(plan.schedule, phases=phases)))


def test_a_missing_wait_is_seen_with_the_layers_name(tmp_path: Path) -> None:
    of = compiled()
    text = re.sub(r"    bt_gemm_wait\(\d+\);.*\n", "", of.c.files["model.c"], count=1)
    assert text != of.c.files["model.c"]
    broken = replace(of, c=replace(of.c, files={**of.c.files, "model.c": text}))
    image = pipeline.build_image(broken, tmp_path)
    with pytest.raises(DeviceFault, match=r"nobody has waited for that|asked for what it cannot do") as caught:
        pipeline.run_image(broken, image)
    assert caught.value.have[0].startswith("in layer ")
