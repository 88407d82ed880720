"""A graph of 10,000 nodes compiles in time, and work and memory grow with the graph, not faster."""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from math import inf
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import baretorch
from baretorch import pipeline
from baretorch.emit import emit
from baretorch.frontends import Source
from baretorch.ir.graph import Builder, DType, Graph
from baretorch.machines.host_program import computer
from baretorch.ops.elementwise import Add, Clamp
from baretorch.ops.functions import Tanh
from baretorch.ops.linear import Linear
from baretorch.options import Buffers, Optimize, Options
from baretorch.passes.order import lower_graph
from baretorch.plan import make_plan
from baretorch.targets.boards import load_board
from tests.models import compile_model, int8_model

FOLDER = str(Path(baretorch.__file__).parent)


def graph(nodes: int) -> Graph:
    """A long chain with many short and some long skips."""
    rng = np.random.default_rng(0)
    b = Builder("big")
    h = b.input("x", (1, 8), DType.FLOAT32)
    made = [h]
    w = b.const("w", np.eye(8, dtype=np.float32))
    for i in range(nodes):
        if i % 3 == 0:
            h = b.add(Linear(), h, w)
        elif i % 3 == 1:
            h = b.add(Tanh(), h)
        else:
            h = b.add(Add(), h, made[int(rng.integers(max(0, len(made) - 20), len(made)))])
        made.append(h)
    return b.graph(made[:1], [h])


def compile_(nodes: int) -> pipeline.Compiled:
    made = graph(nodes)
    return pipeline.compile_graph(Source("big", {"forward": made}, ()), lower_graph(made), load_board("mps2-an386"))


def peak(nodes: int) -> int:
    tracemalloc.start()
    compile_(nodes)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def test_ten_thousand_nodes_in_thirty_seconds() -> None:
    began = time.process_time()
    compiled = compile_(10_000)
    assert time.process_time() - began < 30
    assert len(compiled.plan.steps) == 10_000


@pytest.mark.slow
def test_memory_grows_linearly() -> None:
    assert peak(1000) < 5 * peak(250)


def layers(count: int, residual: bool) -> Source:
    """Layers with weights of their own in a chain, with or without sums."""
    rng = np.random.default_rng(0)
    b = Builder("deep")
    x = h = b.input("x", (1, 4), DType.FLOAT32)
    for i in range(count):
        w = b.const(f"w{i}", rng.normal(0, 0.7, (4, 4)).astype(np.float32))
        y = b.add(Clamp(0.0, inf), b.add(Linear(), h, w))
        h = b.add(Tanh(), b.add(Add(), h, y)) if residual else y
    return Source("deep", {"forward": b.graph([x], [h])}, (np.ones((1, 4), np.float32),))


def in_int8(count: int, residual: bool) -> None:
    source = int8_model(layers(count, residual), [(np.full((1, 4), i, np.float32),) for i in range(10)])
    compile_model(source, load_board("mps2-an386"))


def watched(count: int, residual: bool) -> None:
    """Compile what calibration runs on this computer: each layer is an output."""
    graph = lower_graph(layers(count, residual).graph)
    every = Graph(graph.name, graph.tensors, graph.nodes, graph.inputs, tuple(n.outputs[0] for n in graph.nodes))
    emit("watched", {"forward": make_plan(every, computer(), Options(buffers=Buffers.CALLER))}, Optimize.SIZE)


def work(run: Callable[[], None]) -> Counter[str]:
    """The lines of Baretorch that a run executes, by function; a comprehension has one for each of its elements."""
    lines: Counter[str] = Counter()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(FOLDER):
            return None
        if event == "line":
            lines[f"{Path(name).name}:{frame.f_code.co_firstlineno} {frame.f_code.co_name}"] += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return lines


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("compile_", [in_int8, watched])
def test_work_grows_linearly(compile_: Callable[[int, bool], None], residual: bool) -> None:
    """Work grows linearly in each function: 40 layers more cost twice what 20 more do. They would cost four times as
    much if each looked at all others."""
    compile_(10, residual)  # what is read once
    few, more, many = (work(lambda n=n: compile_(n, residual)) for n in (20, 40, 80))
    grown = {name: (more[name] - few[name], many[name] - more[name]) for name in many}
    assert {name: pair for name, pair in grown.items() if pair[1] > 2.5 * pair[0] + 300} == {}
