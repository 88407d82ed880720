"""verify() catches each way a graph can be wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from baretorch.errors import InternalError
from baretorch.ir import Builder, DType, Graph, Node, Tensor, interpret, verify
from baretorch.ops.elementwise import Add, Clamp


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
        (replace(g, tensors=stray), "tensors nobody makes: ['stray']"),
        (replace(g, state=("y",)), "state y has no initial value"),
        (replace(g, nodes=(add, Node(Clamp(0.0, 1.0), ("s",), ("y", "x")))), "node 1 clamp has 2 outputs"),
        (replace(g, tensors=wrong), "but s float32[3] is declared"),
        (replace(g, tensors={**g.tensors, "c": replace(g["c"], shape=(4,))}), "c float32[4] holds data of shape (2,)"),
    ]


@pytest.mark.parametrize(("bad", "text"), broken())
def test_each_fault_is_named(bad: Graph, text: str) -> None:
    with pytest.raises(InternalError) as caught:
        verify(bad)
    assert text in str(caught.value)


def test_names_are_made_unique() -> None:
    b = Builder()
    assert [b.fresh("a"), b.fresh("a"), b.fresh("a")] == ["a", "a_2", "a_3"]
