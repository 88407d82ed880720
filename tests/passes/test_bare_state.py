"""State of int8 models is kept in the bits that they compute with, and is made where it lies."""

from __future__ import annotations

import numpy as np

from baretorch.emit import emit
from baretorch.ir import Builder, DType, Graph, Op, State, interpret
from baretorch.ops.elementwise import Add
from baretorch.ops.fixed_point import FromFixed, ToFixed
from baretorch.ops.lookup import Lookup
from baretorch.ops.move import Copy
from baretorch.ops.quantize import Dequantize, Quantize
from baretorch.passes.bare_io import bare_io
from baretorch.passes.bare_state import bare_state, common_forms
from baretorch.plan import make_plan
from baretorch.targets.boards import load_board
from baretorch.verify import verify

INITIAL = np.array([0.26, -1.0, 3.0, 0.0], np.float32)
TABLE = np.random.default_rng(0).permutation(np.arange(-128, 128)).astype(np.int8)


AS_MADE = Quantize(0.125, 3)


def counter(reads: Op = AS_MADE, *, float_too: bool = False) -> Graph:
    """A state that goes through a table; its next value is the output."""
    b = Builder("counter")
    state = b.input("s", INITIAL.shape, DType.FLOAT32)
    changed = b.add(Lookup(), b.add(reads, state), b.const("table", TABLE))
    after = b.add(Dequantize(0.125, 3), changed)
    outputs = [after, b.add(Add(), state, after)] if float_too else [after]
    return verify(b.graph((), outputs, [State(state, after, INITIAL)]))


def test_state_that_is_read_and_made_as_int8_is_int8() -> None:
    graph = counter()
    bare = verify(bare_state(graph, common_forms([graph])))
    assert bare["s"].dtype is DType.INT8
    assert [n.op.name for n in bare.nodes] == ["lookup", "dequantize"]
    memories: tuple[dict[str, np.ndarray], ...] = ({}, {})
    for _ in range(3):
        (want,), (have,) = (interpret(g, [], memory=m).values() for g, m in zip((graph, bare), memories, strict=True))
        np.testing.assert_array_equal(have, want)


def test_state_with_a_fixed_point_has_16_bits() -> None:
    b = Builder("kept")
    state = b.input("s", INITIAL.shape, DType.FLOAT32)
    after = b.add(FromFixed(11), b.add(Copy(), b.add(ToFixed(11), state)))
    graph = verify(b.graph((), (after,), [State(state, after, INITIAL)]))
    bare = verify(bare_state(graph, common_forms([graph])))
    assert bare["s"].dtype is DType.INT16
    np.testing.assert_array_equal(bare.state[0].initial, [532, -2048, 6144, 0])


def test_state_stays_float_where_something_reads_it_so_or_in_another_scale() -> None:
    assert common_forms([counter(float_too=True)]) == {}
    assert common_forms([counter(Quantize(0.25, 3))]) == {}
    assert common_forms([counter(), counter(float_too=True)]) == {}  # two methods have one state


def test_an_output_that_is_the_next_value_is_not_copied() -> None:
    b = Builder("sum")
    x, state = b.input("x", (4,), DType.FLOAT32), b.input("s", (4,), DType.FLOAT32)
    after = b.add(Add(), state, x)
    plan = make_plan(verify(b.graph((x,), (after,), [State(state, after, INITIAL)])), load_board("mps2-an386"))
    assert [step.call.op.name for step in plan.steps] == ["add"]
    assert plan.outputs[0].storage == plan.state[0].operand.storage
    assert plan.arena == 2 * INITIAL.nbytes, "the input, and the state, which is the output"


def test_nor_is_one_of_an_int8_model() -> None:
    """The state is what the only step reads, writes and gives; the C has that step and no other."""
    graph = counter()
    bare = bare_io(bare_state(graph, common_forms([graph])))
    plan = make_plan(verify(bare), load_board("mps2-an386"))
    assert [step.call.op.name for step in plan.steps] == ["lookup"]
    (step,) = plan.steps
    assert {o.storage for o in (*step.reads, *step.writes, plan.outputs[0], plan.state[0].operand)} == {"s"}
    assert plan.arena == INITIAL.size
    text = emit("counter", {"forward": plan}).files["model.c"]
    assert "bt_lookup_ref(" in text and "bt_copy_ref(" not in text
