"""Regions for an NPU: maximal, without a way out and back in, and the graph means the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from baretorch.errors import CompileError
from baretorch.ir.graph import Builder, DType, Graph, Quant, interpret
from baretorch.ir.verify import verify
from baretorch.npu.partition import BORDERS, MOST_WRONG, MOVES, WRONG, Partition, WrongStream, make_partition
from baretorch.npu.payload import Payload
from baretorch.npu.vela import VelaResult
from baretorch.ops.delegate import Delegate
from baretorch.ops.int8.lookup import Lookup
from baretorch.ops.int8.qbinary import sum_of
from baretorch.ops.int8.qsoftmax import QSoftmax, log_softmax_of
from baretorch.ops.layout import Permute, Reshape
from baretorch.ops.move import Slice
from baretorch.ops.pool import MaxPool2d
from baretorch.targets.parts import Npu
from tests.npu.stand_in import NPU, StandIn

Q = Quant((0.1,), (3,))


class Net(Builder):
    """Images of int8, element by element."""

    def image(self, name: str, size: int = 3) -> str:
        return self.input(name, (1, size, 5, 4), DType.INT8, Q)

    def kept(self, name: str) -> str:
        self.tensors[name] = replace(self.tensors[name], quant=Q)
        return name

    def table(self, x: str) -> str:
        """On the NPU."""
        return self.kept(self.add(Lookup(), x, self.const("table", np.arange(-128, 128).astype(np.int8)[::-1].copy())))

    def log_softmax(self, x: str) -> str:
        """On the CPU."""
        return self.kept(self.add(log_softmax_of(Q, Q), x))

    def sum(self, a: str, b: str) -> str:
        op = sum_of(Q, Q, Q)
        assert op is not None
        return self.kept(self.add(op, a, b))


def same(graph: Graph, found: Partition) -> None:
    verify(found.graph)
    lot = np.random.default_rng(5)
    inputs = [lot.integers(-128, 128, t.shape).astype(np.int8) for t in graph.of(graph.inputs)]
    want, got = interpret(graph, inputs), interpret(found.graph, inputs)
    assert set(want) == set(got)
    for name in want:
        np.testing.assert_array_equal(want[name], got[name])


def delegates(found: Partition) -> list[Delegate]:
    return [node.op for node in found.graph.nodes if isinstance(node.op, Delegate)]


def test_one_region_takes_all_it_can() -> None:
    g = Net()
    x = g.image("x")
    y = g.sum(g.table(x), x)
    graph = g.graph((x,), (y,))
    found = make_partition(graph, NPU, StandIn())
    same(graph, found)
    assert [node.op.name for node in found.graph.nodes] == ["delegate"]
    (region,) = found.regions
    assert (region.bytes_in, region.bytes_out, region.commands, region.weights) == (60, 60, 64, 48)
    assert (region.cycles, found.cycles, found.left) == (1000, 1000, ())


def test_no_way_leads_out_and_back_in() -> None:
    """For a -> softmax -> b and a -> b, a and b are two regions, because the softmax is between them."""
    g = Net()
    x = g.image("x")
    a = g.table(x)
    y = g.sum(g.log_softmax(a), a)
    graph = g.graph((x,), (y,))
    found = make_partition(graph, NPU, StandIn())
    same(graph, found)
    assert [len(op.region.nodes) for op in delegates(found)] == [1, 1]
    assert [(left.op, left.why) for left in found.left] == [
        ("qlog_softmax", "TOSA has no operator for what qlog_softmax computes")
    ]


def test_what_comes_before_and_after_is_sorted() -> None:
    """The CPU's operator stands between two of the NPU's, and comes first, so that the NPU is started once."""
    g = Net()
    x = g.image("x")
    a = g.table(x)
    b = g.log_softmax(x)
    c = g.table(a)
    graph = g.graph((x,), (g.sum(b, b), c))
    found = make_partition(graph, NPU, StandIn())
    same(graph, found)
    assert found.graph.nodes[0].op.name == "qlog_softmax"
    assert [len(op.region.nodes) for op in delegates(found)] == [3]


def test_several_inputs_and_outputs_are_rows_of_bytes() -> None:
    g = Net()
    x, y = g.image("x", 3), g.image("y", 3)
    a = g.table(x)
    graph = g.graph((x, y), (g.sum(a, y), a, g.table(y)))
    found = make_partition(graph, NPU, StandIn())
    same(graph, found)
    (op,) = delegates(found)
    assert [p.offset for p in op.inputs] == [0, 64]
    assert [p.offset for p in op.outputs] == [0, 64, 128]


def test_views_at_the_border_stay_outside() -> None:
    g = Net()
    x = g.input("x", (60,), DType.INT8, Q)
    y = g.kept(g.add(Reshape((60,)), g.table(g.kept(g.add(Reshape((1, 3, 5, 4)), x)))))
    graph = g.graph((x,), (y,))
    found = make_partition(graph, NPU, StandIn())
    same(graph, found)
    assert [node.op.name for node in found.graph.nodes] == ["reshape", "delegate", "reshape"]
    assert found.left == ()  # views cost nothing


def test_what_only_moves_bytes_is_left_to_the_cpu() -> None:
    g = Net()
    x = g.image("x")
    graph = g.graph((x,), (g.add(Permute((0, 3, 1, 2)), x),))
    found = make_partition(graph, NPU, StandIn())
    assert not found.regions
    assert [(left.op, left.why) for left in found.left] == [("permute", MOVES)]


def test_an_input_that_begins_in_the_middle_is_copied() -> None:
    """The NPU takes nothing that does not begin at a multiple of 16."""
    g = Net()
    x = g.image("x", 4)
    y = g.table(g.kept(g.add(Slice(1, 1, 4), x)))
    graph = g.graph((x,), (g.log_softmax(g.kept(g.add(Slice(1, 1, 4), x))), y))
    found = make_partition(graph, NPU, StandIn(refuses="slice"))
    same(graph, found)
    assert "copy" in [node.op.name for node in found.graph.nodes]


def test_only_what_vela_refuses_stays_on_the_cpu() -> None:
    g = Net()
    x = g.image("x")
    pooled = g.kept(g.add(MaxPool2d((1, 1), (1, 1)), g.table(x)))
    y = g.sum(pooled, pooled)
    graph = g.graph((x,), (y,))
    vela = StandIn(refuses="max_pool2d")
    found = make_partition(graph, NPU, vela)
    same(graph, found)
    assert [(left.op, left.why) for left in found.left] == [("max_pool2d", "Vela: max_pool2d could not run on NPU")]
    assert [node.op.name for node in found.graph.nodes] == ["delegate", "max_pool2d", "delegate"]


def test_a_softmax_is_the_npus_where_it_saves_a_region_or_all_is_wanted() -> None:
    g = Net()
    x = g.image("x")
    middle = g.kept(g.add(QSoftmax(0.1), g.table(x)))
    y = g.kept(g.add(QSoftmax(0.1), g.table(middle)))
    graph = g.graph((x,), (y,))
    found = make_partition(graph, NPU, StandIn())
    same(graph, found)
    assert [node.op.name for node in found.graph.nodes] == ["delegate", "qsoftmax"]
    assert [(left.op, left.why) for left in found.left] == [("qsoftmax", BORDERS)]
    found = make_partition(graph, NPU, StandIn(), most=True)
    same(graph, found)
    assert [node.op.name for node in found.graph.nodes] == ["delegate"] and not found.left


def test_a_softmax_alone_stays_on_the_cpu() -> None:
    g = Net()
    x = g.image("x")
    found = make_partition(g.graph((x,), (g.add(QSoftmax(0.1), x),)), NPU, StandIn())
    assert not found.regions and [left.why for left in found.left] == [BORDERS]


def test_a_region_whose_inputs_vela_leaves_out_stays_on_the_cpu() -> None:
    """Vela leaves out inputs on which nothing depends."""
    g = Net()
    a, b = g.image("a"), g.image("b")
    graph = g.graph((a, b), (g.sum(a, b),))

    def forgetful(region: Graph, npu: Npu) -> VelaResult:
        result = StandIn()(region, npu)
        return replace(result, payload=replace(result.payload, inputs=result.payload.inputs[:1]))

    found = make_partition(graph, NPU, forgetful)
    same(graph, found)
    assert [left.why for left in found.left] == ["Vela: its inputs or outputs are not those of the graph"]


def test_a_fast_memory_of_its_own_is_refused() -> None:
    g = Net()
    x = g.image("x")

    def fast(region: Graph, npu: Npu) -> VelaResult:
        result = StandIn()(region, npu)
        return replace(result, payload=replace(result.payload, fast=4096))

    with pytest.raises(CompileError) as error:
        make_partition(g.graph((x,), (g.table(x),)), replace(NPU, memory_mode="Dedicated_Sram"), fast)
    assert error.value.render() == (
        "error: Vela needs 4,096 bytes of a fast memory in addition to the arena's\n"
        "  at    memory_mode = 'Dedicated_Sram'\n"
        "  need  one bank for scratch: Shared_Sram or Sram_Only"
    )


def test_only_what_a_stream_has_wrong_stays_on_the_cpu() -> None:
    g = Net()
    x = g.image("x")
    y = g.table(g.sum(g.table(x), x))
    graph = g.graph((x,), (y,))

    def judge(region: Graph, payload: Payload) -> None:
        for node in region.nodes:
            if node.op.name == "qadd":
                raise _wrong(node.outputs[0])

    found = make_partition(graph, NPU, StandIn(), judge=judge)
    same(graph, found)
    assert [node.op.name for node in found.graph.nodes] == ["delegate", "qadd", "delegate"]
    assert [(left.op, left.why) for left in found.left] == [("qadd", f"{WRONG}: ")]


def test_if_a_stream_does_not_end_each_operator_is_asked_for() -> None:
    """Who is blamed then may be innocent."""
    g = Net()
    x = g.image("x")
    y = g.table(g.sum(g.table(x), x))
    graph = g.graph((x,), (y,))

    def judge(region: Graph, payload: Payload) -> None:
        if any(node.op.name == "qadd" for node in region.nodes):
            error = _wrong(region.nodes[0].outputs[0])
            error.sure = False
            raise error

    found = make_partition(graph, NPU, StandIn(), judge=judge)
    same(graph, found)
    assert [node.op.name for node in found.graph.nodes] == ["delegate", "qadd", "delegate"]


def test_a_region_that_is_wrong_again_and_again_is_given_up() -> None:
    g = Net()
    y = x = g.image("x")
    for _ in range(MOST_WRONG + 4):
        y = g.table(y)
    graph = g.graph((x,), (y,))
    sizes = []

    def judge(region: Graph, payload: Payload) -> None:
        sizes.append(len(region.nodes))
        raise _wrong(region.nodes[0].outputs[0])

    assert not make_partition(graph, NPU, StandIn(), judge=judge).regions
    assert sizes == [*range(MOST_WRONG + 4, 4, -1), 4]


def test_an_input_or_output_that_is_alone_begins_where_its_region_does() -> None:
    """The delegate's own buffer is that region, and no code would look elsewhere in it."""

    def moved(graph: Graph, npu: Npu) -> VelaResult:
        result = StandIn()(graph, npu)
        (slot,) = result.payload.outputs
        return replace(result, payload=replace(result.payload, outputs=(replace(slot, offset=16),)))

    g = Net()
    x = g.image("x")
    graph = g.graph((x,), (g.table(x),))
    found = make_partition(graph, NPU, moved)
    assert not found.regions
    assert [left.why for left in found.left] == ["Vela: its only input or output does not begin where its region does"]


def _wrong(first: str) -> WrongStream:
    error = WrongStream(WRONG)
    error.first = first
    return error
