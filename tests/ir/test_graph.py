"""verify() catches each way a graph can be wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from baretorch.errors import InternalError
from baretorch.ir.graph import Builder, DType, Graph, Node, State, Tensor, interpret
from baretorch.ir.verify import verify
from baretorch.ops.elementwise import Add, Clamp

ONES = np.ones(2, np.float32)


def graph() -> Graph:
    b = Builder("g")
    x = b.input("x", (2,), DType.FLOAT32)
    c = b.const("c", np.ones(2, np.float32))
    y = b.add(Clamp(0.0, 1.0), b.add(Add(), x, c, name="s"), name="y")
    return b.graph([x], [y])


def test_a_good_graph_is_returned() -> None:
    g = graph()
    assert verify(g) is g
    assert interpret(g, [np.array([-3, -0.5], np.float32)])["y"].tolist() == [0.0, 0.5]


def broken() -> list[tuple[Graph, str]]:
    g = graph()
    add, clamp = g.nodes
    wrong = {**g.tensors, "s": replace(g["s"], shape=(3,))}
    stray = {**g.tensors, "stray": Tensor("stray", (1,), DType.FLOAT32)}
    return [
        (replace(g, nodes=(clamp, add)), "node 0 clamp reads s before it is made"),
        (replace(g, nodes=(add,)), "output y is never made"),
        (replace(g, nodes=(add, add, clamp)), "node 1 add makes s a second time"),
        (replace(g, inputs=("x", "x")), "an input is named twice"),
        (replace(g, inputs=("c",)), "input c is a constant"),
        (replace(g, tensors=stray), "tensors that no node produces: ['stray']"),
        (replace(g, state=(State("y", "y", ONES),)), "node 1 clamp makes y a second time"),
        (
            replace(g, inputs=(), state=(State("x", "s", np.ones(3, np.float32)),)),
            "state x float32[2] begins otherwise",
        ),
        (replace(g, nodes=(add, Node(Clamp(0.0, 1.0), ("s",), ("y", "x")))), "node 1 clamp has 2 outputs"),
        (replace(g, tensors=wrong), "but s float32[3] is declared"),
        (replace(g, tensors={**g.tensors, "c": replace(g["c"], shape=(4,))}), "c float32[4] holds data of shape (2,)"),
    ]


@pytest.mark.parametrize(("bad", "text"), broken())
def test_each_fault_is_named(bad: Graph, text: str) -> None:
    with pytest.raises(InternalError) as caught:
        verify(bad)
    assert text in str(caught.value)


def test_state_is_carried_from_run_to_run() -> None:
    b = Builder("sum")
    x, total = b.input("x", (2,), DType.FLOAT32), b.input("total", (2,), DType.FLOAT32)
    y = b.add(Add(), x, total, name="y")
    g = verify(b.graph([x], [y], [State(total, y, ONES)]))
    memory: dict[str, np.ndarray] = {}
    runs = [interpret(g, [ONES], memory=memory)["y"].tolist() for _ in range(3)]
    assert runs == [[2, 2], [3, 3], [4, 4]]
    assert interpret(g, [ONES])["y"].tolist() == [2, 2]


def test_names_are_made_unique() -> None:
    b = Builder()
    assert [b.fresh("a"), b.fresh("a"), b.fresh("a")] == ["a", "a_2", "a_3"]
