"""A graph of 10,000 nodes compiles in time, and memory grows with the graph, not faster."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest

from baretorch import pipeline
from baretorch.frontends import Source
from baretorch.ir import Builder, DType, Graph
from baretorch.ops.elementwise import Add
from baretorch.ops.functions import Tanh
from baretorch.ops.linear import Linear
from baretorch.targets.boards import load_board


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
    return pipeline.compile_graph(
        Source("big", {"forward": made}, ()), pipeline.optimized(made), load_board("mps2-an386")
    )


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
