"""Rock, paper, scissors on corstone-300: the NPU answers for every picture as the Graph and Arm's TOSA model do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from baretorch import pipeline
from baretorch.frontends.user_code import import_file
from baretorch.ir.graph import Array, Graph, interpret
from baretorch.ir.io import store_inputs
from baretorch.machines import open_machine
from baretorch.machines.link import Link
from baretorch.machines.run import decode_outputs
from baretorch.npu import reference
from baretorch.npu.to_tosa import write_region
from baretorch.npu.tosa import TosaBlock
from baretorch.ops.delegate import Delegate
from baretorch.options import Options, UseNpu
from baretorch.pipeline import Compiled
from baretorch.targets.boards import load_board
from tests.models import compile_model, int8_file

MODEL = Path(__file__).parents[2] / "examples" / "rps" / "model.py"
MOST_INSTRUCTIONS = 3000
AT_ONCE = 10


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    source = int8_file(str(MODEL))
    return compile_model(source, load_board("corstone-300"), Options(npu=UseNpu.REQUIRE))


def by_tosa(region: Graph, xs: list[Array]) -> list[Array]:
    """Return the results of Arm's model for the region, for several pictures at once, because it starts slowly and
    weights repeat."""
    made = list[Array]()
    for first in range(0, len(xs), AT_ONCE):
        block, inputs, outputs = TosaBlock(), dict[str, Array](), list[str]()
        for x in xs[first : first + AT_ONCE]:
            one = write_region(region, block=block)
            inputs[one.values[region.inputs[0]].name] = x
            outputs.append(one.values[region.outputs[0]].name)
        made += reference.run(block.file(), inputs, outputs)
    return made


def check(compiled: Compiled, folder: Path, per_hand: int) -> int:
    """How many pictures were answered, every one to the last bit, and each by few instructions of the CPU."""
    assert compiled.partition is not None and len(compiled.partition.regions) == 1
    assert {left.op for left in compiled.partition.left} == {"quantize", "dequantize"}
    model: Any = import_file(MODEL)
    pictures, _ = model.pictures(per_hand, model.HELD_OUT)
    graph = compiled.graph
    (delegate,) = (n for n in compiled.plan.graph.nodes if isinstance(n.op, Delegate))
    assert isinstance(delegate.op, Delegate)
    region = delegate.op.region
    machine = open_machine(pipeline.build_image(compiled, folder), compiled.c.run)
    given, made = list[Array](), list[Array]()
    try:
        link = Link(machine)
        for picture in pictures:
            inputs = store_inputs(graph, [np.asarray(picture[None])])
            values = interpret(graph, inputs, keep=True)
            answer = decode_outputs(graph, link.run([np.ascontiguousarray(x).tobytes() for x in inputs]).outputs)
            np.testing.assert_array_equal(answer[0], values[graph.outputs[0]])
            given.append(values[region.inputs[0]])
            made.append(values[region.outputs[0]])
        taken = machine.instructions()
    finally:
        machine.close()
    assert max(taken[1:]) <= MOST_INSTRUCTIONS, "the first call looks at the checksum"
    for right, y in zip(by_tosa(region, given), made, strict=True):
        np.testing.assert_array_equal(right, y)
    return len(made)


@pytest.mark.slow
def test_all_held_out_pictures(compiled: Compiled, tmp_path: Path) -> None:
    assert check(compiled, tmp_path, 100) == 300
