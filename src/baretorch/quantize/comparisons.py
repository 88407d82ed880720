"""Comparisons of rounded numbers: pairs that are closer than their int8 steps may fall on the other side. Such pairs
are rare, so a few samples may show none. Therefore pairs `WIDER` times as far apart are put there, and the damage,
which is that many times too large, is divided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from baretorch.ir import Array, DType, Graph, Node, Tensor, fresh
from baretorch.ops.elementwise import Add, Sub
from baretorch.ops.functions import Abs
from baretorch.ops.logic import Comparison, Eq, Le, Lt
from baretorch.passes.rewrite import rebuilt
from baretorch.quantize.accuracy import sqnr_db
from baretorch.quantize.watch import Runner, watching

WIDER = 16


def compared(graph: Graph) -> dict[Node, float]:
    """The comparisons of rounded numbers in a noted graph, each with how far rounding may move its two sides."""
    steps = {name: max(t.quant.scale) for name, t in graph.tensors.items() if t.quant is not None}
    found = {}
    for node in graph.nodes:
        far = [steps.get(name, 0.0) for name in node.inputs]
        for name in node.outputs:
            steps.setdefault(name, max(far, default=0.0))
        if isinstance(node.op, Comparison) and any(far) and graph[node.inputs[0]].dtype is DType.FLOAT32:
            found[node] = sum(far) / 2
    return found


def expected_db(graph: Graph, inputs: Sequence[Sequence[Array]], runner: Runner) -> float | None:
    """The signal to noise that comparisons leave of the answer, over many inputs like these; None if that is all."""
    signal = noise = 0.0
    sides = (moved(graph, WIDER), moved(graph, -WIDER))
    with (
        watching(graph, graph.outputs, runner) as exact,
        watching(sides[0], graph.outputs, runner) as up,
        watching(sides[1], graph.outputs, runner) as down,
    ):
        for given in inputs:
            wants = exact(given)
            for has in (up(given), down(given)):
                for name in graph.outputs:
                    if graph[name].dtype is DType.FLOAT32:
                        want, got = (np.nan_to_num(x[name].astype(np.float64)) for x in (wants, has))
                        signal += float(np.square(want).sum())
                        noise += float(np.square(got - want).sum()) / WIDER
    return sqnr_db(signal, noise)


def moved(graph: Graph, far: float) -> Graph:
    """The graph whose comparisons see one side moved so many times as far as rounding may. What is closer is equal."""
    wide, new, nodes = compared(graph), dict[str, Tensor](), list[Node]()

    def tensor(like: Tensor, suffix: str, data: Array | None = None) -> str:
        name = fresh(graph, new, f"{like.name}_{suffix}")
        shape = like.shape if data is None else data.shape
        new[name] = replace(like, name=name, shape=shape, dtype=DType.FLOAT32, quant=None, data=data)
        return name

    def parts(node: Node) -> Iterator[Node]:
        y, (a, b) = graph[node.outputs[0]], node.inputs
        ordered = isinstance(node.op, (Lt, Le))
        by = tensor(y, "far", np.array((far if ordered else abs(far)) * wide[node], np.float32))
        if ordered:
            a_moved = tensor(graph[a], "moved")
            yield Node(Add(), (a, by), (a_moved,))
            yield replace(node, inputs=(a_moved, b))
        else:
            apart, size = tensor(y, "apart"), tensor(y, "size")
            yield Node(Sub(), (a, b), (apart,))
            yield Node(Abs(), (apart,), (size,))
            equal = isinstance(node.op, Eq)
            yield Node(Lt() if equal else Le(), (size, by) if equal else (by, size), node.outputs)

    for node in graph.nodes:
        nodes += parts(node) if node in wide else (node,)
    return rebuilt(graph, nodes, new.values())
