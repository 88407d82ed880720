"""State of int8 models is kept in the bits that they compute with, and is computed in place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from baretorch.emit import emit
from baretorch.ir.graph import Builder, DType, Graph, Op, Quant, State, interpret
from baretorch.ir.verify import verify
from baretorch.ops.elementwise import Add
from baretorch.ops.int8.lookup import Lookup
from baretorch.ops.int8.quantize import Dequantize, FromFixed, Quantize, ToFixed
from baretorch.ops.move import Copy
from baretorch.passes.int8_io import bare_io, float_io
from baretorch.passes.int8_state import bare_state, common_forms
from baretorch.plan import make_plan
from baretorch.targets.boards import load_board

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


def exchanged() -> Graph:
    """Return two states that change places; int8 reads only the second."""
    b = Builder("exchanged")
    first, second = (b.input(name, INITIAL.shape, DType.FLOAT32) for name in ("s", "t"))
    y = b.add(Dequantize(0.125, 3), b.add(Lookup(), b.add(AS_MADE, second), b.const("table", TABLE)))
    return verify(b.graph((), [y, b.add(Add(), first, y)], [State("s", "t", INITIAL), State("t", y, INITIAL)]))


def test_state_that_another_state_takes_over_stays_float() -> None:
    assert common_forms([exchanged()]) == {}
    verify(bare_state(exchanged(), common_forms([exchanged()])))


def test_an_int8_input_may_be_what_float_state_becomes() -> None:
    b = Builder("taken")
    x, state = b.input("x", INITIAL.shape, DType.FLOAT32), b.input("s", INITIAL.shape, DType.FLOAT32)
    y = b.add(Dequantize(0.125, 3), b.add(Lookup(), b.add(AS_MADE, x), b.const("table", TABLE)))
    read = b.add(AS_MADE, b.add(Copy(), state))
    z = b.add(Dequantize(0.125, 3), b.add(Lookup(), read, b.const("other", TABLE[::-1].copy())))
    graph = verify(bare_io(verify(b.graph([x], [y, z, x], [State(state, x, INITIAL)]))))
    assert (graph["x"].dtype, graph["s"].dtype, graph.outputs[2]) == (DType.INT8, DType.FLOAT32, "x")
    given, memory = np.array([5, -7, 100, 3], np.int8), dict[str, np.ndarray]()
    first = interpret(graph, [given], memory=memory)
    assert np.array_equal(first["x"], given)
    np.testing.assert_array_equal(memory["s"], (given.astype(np.float32) - 3) * 0.125)
    second = interpret(graph, [given], memory=memory)
    assert np.array_equal(second[graph.outputs[1]], TABLE[::-1][given.astype(int) + 128])


def test_a_float_input_may_be_what_int8_state_becomes() -> None:
    """A file that is int8 at its border, with `--io float`."""
    b = Builder("taken")
    x, state = (b.input(name, (4,), DType.INT8) for name in ("x", "s"))
    y = b.add(Lookup(), state, b.const("table", TABLE))
    graph = verify(b.graph([x], [y], [State(state, x, np.zeros(4, np.int8))]))
    quant = Quant((0.125,), (3,))
    known = {n: replace(t, quant=quant) if t.data is None else t for n, t in graph.tensors.items()}
    taking = verify(float_io(replace(graph, tensors=known)))
    assert (taking["x"].dtype, taking["s"].dtype) == (DType.FLOAT32, DType.INT8)
    memory = dict[str, np.ndarray]()
    interpret(taking, [np.array([0.5, -1.0, 3.0, 0.0], np.float32)], memory=memory)
    np.testing.assert_array_equal(memory["s"], [7, -5, 27, 3])
