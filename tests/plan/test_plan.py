"""The planner against an independent judge: memory full of poison, and every way its check can fail."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from baretorch.errors import CompileError, InternalError
from baretorch.frontends import from_module
from baretorch.ir.graph import Builder, DType, Graph, State, Tensor, interpret
from baretorch.ops.elementwise import Add
from baretorch.ops.functions import Tanh
from baretorch.ops.layout import Reshape
from baretorch.ops.linear import Linear
from baretorch.ops.move import Cat, Change, Slice, SliceScatter
from baretorch.options import Options
from baretorch.passes.order import lower_graph
from baretorch.pipeline import compile_source
from baretorch.plan import make_plan
from baretorch.plan.check.plan import check_plan
from baretorch.plan.memory.offsets import lower_bound, place_buffers
from baretorch.plan.schedule import Operand, Schedule, Step
from baretorch.plan.types import Buffer, Plan
from baretorch.targets.boards import load_board
from tests.models import cnn, cnn_input

HOST = load_board("host")


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Random DAGs of elementwise nodes and views over tensors of random sizes, some of them state."""
    b = Builder("random")
    sizes = draw(st.lists(st.integers(1, 40), min_size=1, max_size=3))
    live = [b.input(f"x{i}", (n,), DType.FLOAT32) for i, n in enumerate(sizes)]
    inputs = list(live)
    states = [
        b.input(f"s{i}", (n,), DType.FLOAT32) for i, n in enumerate(draw(st.lists(st.integers(1, 20), max_size=3)))
    ]
    live += states
    for _ in range(draw(st.integers(0, 25))):
        a = draw(st.sampled_from(live))
        kind = draw(st.integers(0, 6))
        if kind == 0:
            live.append(b.add(Tanh(), a))
        elif kind == 1:
            live.append(b.add(Reshape((1, *b.tensors[a].shape)), a))
        elif kind == 2:
            same = [t for t in live if b.tensors[t].shape == b.tensors[a].shape]
            live.append(b.add(Add(), a, draw(st.sampled_from(same))))
        elif kind == 3:
            shape = b.tensors[a].shape
            axis = draw(st.integers(0, len(shape) - 1))
            start = draw(st.integers(0, shape[axis] - 1))
            live.append(b.add(Slice(axis, start, draw(st.integers(start + 1, shape[axis]))), a))
        elif kind == 4:
            rank = len(b.tensors[a].shape)
            others = [t for t in live if b.tensors[t].shape[:-1] == b.tensors[a].shape[:-1]]
            parts = draw(st.lists(st.sampled_from(others), min_size=1, max_size=4))
            live.append(b.add(Cat(rank - 1), a, *parts))
        elif kind == 5:
            part = [
                t
                for t in live
                if (s := b.tensors[t].shape)[:-1] == b.tensors[a].shape[:-1] and s[-1] <= b.tensors[a].shape[-1]
            ]
            live.append(b.add(SliceScatter(len(b.tensors[a].shape) - 1, 0), a, draw(st.sampled_from(part))))
        else:
            weight = np.ones((draw(st.integers(1, 40)), b.tensors[a].shape[-1]), np.float32)
            live.append(b.add(Linear(), a, b.const("w", weight / weight.size)))
    outputs = draw(st.lists(st.sampled_from(live), min_size=1, max_size=4))
    following = {
        s: draw(st.sampled_from([t for t in live if b.tensors[t].shape == b.tensors[s].shape])) for s in states
    }
    return b.graph(
        inputs, outputs, [State(s, n, np.full(b.tensors[s].shape, 0.5, np.float32)) for s, n in following.items()]
    )


def simulate(
    plan: Plan,
    inputs: list[np.ndarray],
    kept: dict[str, np.ndarray] | None = None,
    order: Iterable[Step] | None = None,
) -> list[np.ndarray]:
    """Run the plan in one array of bytes that starts as poison, without looking at lifetimes. A step's kernel is as bad
    as its distances allow: when it has written a byte of its output, it reads on from as far back as they say.
    `kept` is the state, from run to run; `order` another than that of the plan's steps."""
    memory = np.full(plan.arena, 0xA5, np.uint8)
    offset = {b.name: b.offset for b in plan.layout.buffers}
    constants = {c.name: c.data for c in plan.layout.constants}
    graph = plan.graph

    def view(operand: Operand, t: Tensor | None = None, pitch: int = 0) -> np.ndarray:
        t = t or graph[operand.tensor]
        at = offset[operand.storage] + operand.offset
        if not pitch:
            return memory[at : at + t.bytes].view(t.dtype.numpy).reshape(t.shape)
        whole = memory[at : at + operand.size].view(t.dtype.numpy)
        steps = [pitch * prod(t.shape[i + 1 : -1]) * t.dtype.size for i in range(len(t.shape) - 1)]
        return np.lib.stride_tricks.as_strided(whole, t.shape, [*steps, t.dtype.size])

    def late(x: Operand, t: Tensor, step: Step, distance: int | None) -> np.ndarray:
        """The input with poison where the kernel may have written before it reads."""
        found = view(x, t).copy()
        raw = found.reshape(-1).view(np.uint8)
        for y in step.writes:
            ahead = (offset[x.storage] + x.offset) - (offset[y.storage] + y.offset)
            pixels = None if step.back else step.kernel.nearer(step.call)
            whole = pixels is not None and pixels.distance <= ahead and ahead % pixels.step == 0
            if not whole and (distance is None or (-ahead if step.back else ahead) < distance):
                overwritten = np.arange(raw.size) + ahead
                raw[(overwritten >= 0) & (overwritten < y.size)] = 0xA5
        return found

    for operand, value in zip(plan.inputs, inputs, strict=True):
        view(operand)[...] = value
    for s in plan.state:
        first = constants[s.initial] if s.initial is not None else 0
        view(s.operand)[...] = first if kept is None else kept.get(s.operand.tensor, first)
    for step in order if order is not None else plan.steps:
        if step.scratch:
            at = offset[step.scratch.name]
            memory[at : at + step.scratch.size] = 0x5A
        call = step.call
        reads, distances = iter(step.reads), iter(step.distances)
        values = [t.data if t.data is not None else late(next(reads), t, step, next(distances)) for t in call.inputs]
        if isinstance(call.op, Change):
            call.op.write(view(step.writes[0], call.y), *values)
            continue
        for o, t, result in zip(step.writes, call.outputs, call.op.reference(*values), strict=True):
            view(o, t, call.pitch)[...] = result
    if kept is not None:
        kept.update({s.operand.tensor: view(s.operand).copy() for s in plan.state})
    return [constants[o.storage].reshape(graph[o.tensor].shape) if o.constant else view(o) for o in plan.outputs]


@settings(max_examples=400, deadline=None)
@given(graphs())
def test_no_live_byte_is_overwritten(graph: Graph) -> None:
    """Not in the first run, nor in the next, which begins with the state that the first one leaves."""
    rng = np.random.default_rng(0)
    plan = make_plan(lower_graph(graph), HOST)
    remembered: dict[str, np.ndarray] = {}
    kept: dict[str, np.ndarray] = {}
    for _ in range(2 if graph.state else 1):
        inputs = [rng.standard_normal(graph[n].shape).astype(np.float32) for n in graph.inputs]
        want = interpret(graph, inputs, memory=remembered)
        for name, have in zip(graph.outputs, simulate(plan, inputs, kept), strict=True):
            np.testing.assert_allclose(have, want[name], rtol=1e-5, atol=1e-6)
        for name, have in kept.items():
            np.testing.assert_allclose(have, remembered[name], rtol=1e-5, atol=1e-6)
    assert plan.layout.lower_bound <= plan.arena


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 100), st.integers(0, 20), st.integers(0, 10)), min_size=1, max_size=12))
def test_the_bound_is_a_bound_and_placing_is_sound(rows: list[tuple[int, int, int]]) -> None:
    buffers = [Buffer(f"b{i}", size, first, first + length) for i, (size, first, length) in enumerate(rows)]
    placed, arena, _ = place_buffers(buffers, "ram")
    assert lower_bound(buffers) <= arena
    for i, a in enumerate(placed):
        assert a.offset >= 0 and a.end <= arena and a.offset % 4 == 0
        for b in placed[:i]:
            assert not a.meets(b) or a.end <= b.offset or b.end <= a.offset


def cnn_plan() -> Plan:
    return make_plan(lower_graph(from_module(cnn(), (cnn_input(),), "cnn").graph), HOST)


def test_the_check_finds_an_overlap() -> None:
    plan = cnn_plan()
    first = plan.steps[0].operands
    reads, writes = first[0].storage, first[-1].storage
    layout, at = plan.layout, plan.layout.buffer(reads).offset
    moved = tuple(replace(b, offset=at) if b.name == writes else b for b in layout.buffers)
    with pytest.raises(InternalError, match="overlap in phase"):
        check_plan(replace(plan, layout=replace(layout, buffers=moved)))


def test_the_check_finds_a_buffer_that_died_too_early() -> None:
    plan = cnn_plan()
    reads = plan.steps[2].operands[0].storage
    short = tuple(replace(b, last=1) if b.name == reads else b for b in plan.layout.buffers)
    with pytest.raises(InternalError, match="which is not there"):
        check_plan(replace(plan, layout=replace(plan.layout, buffers=short)))


def test_the_check_finds_a_buffer_outside_the_arena() -> None:
    plan = cnn_plan()
    with pytest.raises(InternalError, match=r"buffer .* is at"):
        smaller = (replace(plan.layout.banks[0], size=plan.arena - 4),)
        check_plan(replace(plan, layout=replace(plan.layout, banks=smaller)))


def test_too_large_for_the_ram_names_the_peak() -> None:
    class Wide(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = torch.nn.Linear(1, 6000)
            self.b = torch.nn.Linear(6000, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.b(torch.tanh(self.a(x)))

    graph = lower_graph(from_module(Wide(), (torch.zeros(1, 1),), "wide").graph)
    with pytest.raises(CompileError) as caught:
        make_plan(graph, load_board("microbit"))
    line = Wide.forward.__code__.co_firstlineno + 1
    assert caught.value.render() == (
        "error: the model does not fit microbit: SRAM is 9,668 bytes too small\n"
        f"  at    a  (test_plan.py:{line}): output of a 24,000 bytes, input x 4 bytes\n"
        "  have  arena 24,004 bytes\n"
        "  need  at most 14,336 bytes of SRAM, in addition to 2,048 for the stack\n"
        "  try   `baretorch fit MODEL --board microbit` finds options that make it fit; "
        "without --board, it checks all boards"
    )


def test_layers_that_share_weights_share_them_in_flash() -> None:
    class Twice(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(torch.tanh(self.layer(x)))

    plan = make_plan(lower_graph(from_module(Twice(), (torch.zeros(1, 8),), "twice").graph), HOST)
    assert plan.weight_bytes() == (64 + 8) * 4


def test_the_check_finds_state_that_is_read_too_late() -> None:
    b = Builder("late")
    x, s = (b.input(name, (4,), DType.FLOAT32) for name in ("x", "s"))
    y, following = b.add(Tanh(), s), b.add(Tanh(), x)
    plan = make_plan(b.graph([x], [y], [State(s, following, np.zeros(4, np.float32))]), HOST)
    assert plan.steps[1].operands[-1].storage == "s"
    lives = {y: {"first": 1}, x: {"last": 1}}
    buffers = tuple(replace(buffer, **lives.get(buffer.name, {})) for buffer in plan.layout.buffers)
    with pytest.raises(InternalError, match="reads s after its state has changed"):
        turned = Schedule(plan.phases[::-1])
        check_plan(replace(plan, schedule=turned, layout=replace(plan.layout, buffers=buffers)))


@pytest.mark.parametrize(
    "board, options", [("host", Options()), ("pico", Options(cores=2)), ("arduino-uno", Options())]
)
def test_state_may_become_a_constant(board: str, options: Options) -> None:
    """`self.state.zero_()` makes a state constant."""
    b = Builder("again")
    x, s = (b.input(name, (4,), DType.FLOAT32) for name in ("x", "s"))
    y, next_ = b.add(Add(), x, s), b.const("c", np.arange(4, dtype=np.float32))
    plan = make_plan(b.graph([x], [y], [State(s, next_, np.full(4, 0.5, np.float32))]), load_board(board), options)
    kept: dict[str, np.ndarray] = {}
    given = np.ones(4, np.float32)
    np.testing.assert_array_equal(simulate(plan, [given], kept)[0], given + 0.5)
    np.testing.assert_array_equal(simulate(plan, [given], kept)[0], given + np.arange(4))


class Tied(nn.Module):
    """A weight that a layer has packed for its kernel, and another reads as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(16, 16, bias=False)

    def forward(self, x: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.fc(x), z + self.fc.weight


def test_a_packed_weight_does_not_stand_for_the_plain_one() -> None:
    model = Tied()
    source = from_module(model, (torch.randn(1, 16), torch.randn(16, 16)), "tied")
    plan = compile_source(source, load_board("mps2-an386")).plan
    first, second = ([plan.layout.constant(o.storage).data for o in s.operands if o.constant] for s in plan.steps)
    weight = model.fc.weight.detach().numpy()
    assert not np.array_equal(first[0].reshape(-1), weight.reshape(-1)), "else there is nothing to mistake"
    assert np.array_equal(second[0], weight)
