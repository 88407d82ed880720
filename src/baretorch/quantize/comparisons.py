"""Estimate the noise of comparisons: rounding may reverse the order of two numbers that are closer than an int8 step.

Such pairs are rare, so a few samples may contain none. Therefore pairs that are up to `WIDER` times as far apart are
reversed, and the resulting noise, which is that many times too large, is divided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from baretorch.ir.graph import Array, DType, Graph, Node, Tensor, fresh
from baretorch.ops.elementwise import Add, Sub
from baretorch.ops.functions import Abs
from baretorch.ops.logic import Comparison, Eq, Le, Lt
from baretorch.ops.scan import ArgMax
from baretorch.passes.rewrite import rebuild
from baretorch.quantize.watch import OpenRunner, RunGraph, watching

WIDER = 16


def find_comparisons(graph: Graph, noise: Mapping[str, float] | None = None) -> dict[Node, float]:
    """Return the comparisons of rounded numbers in a graph with scales, each with the distance by which rounding may
    move its two sides. `noise` is the measured error of tensors; if it exceeds their rounding, it counts as that of
    larger steps."""
    steps = {name: max(t.quant.scale) for name, t in graph.tensors.items() if t.quant is not None}
    for name, error in (noise or {}).items():
        steps[name] = max(steps.get(name, 0.0), error * 12**0.5)
    found = {}
    for node in graph.nodes:
        far = [steps.get(name, 0.0) for name in node.inputs]
        for name in node.outputs:
            steps.setdefault(name, max(far, default=0.0))
        if isinstance(node.op, (Comparison, ArgMax)) and any(far) and graph[node.inputs[0]].dtype is DType.FLOAT32:
            found[node] = sum(far) / 2
    return found


def expected_noise(
    graph: Graph, far: Mapping[Node, float], inputs: Sequence[Sequence[Array]], exact: RunGraph, runner: OpenRunner
) -> dict[str, float]:
    """Return the power of the noise that comparisons leave in each output, on average over many inputs like these.
    `exact` runs the graph itself."""
    noise = dict.fromkeys(graph.outputs, 0.0)
    sides = (move_comparisons(graph, far, WIDER), move_comparisons(graph, far, -WIDER))
    exact.reset()
    with watching(sides[0], graph.outputs, runner) as up, watching(sides[1], graph.outputs, runner) as down:
        for given in inputs:
            wants = exact(given)
            for has in (up(given), down(given)):
                for name in graph.outputs:
                    if graph[name].dtype in (DType.FLOAT32, DType.BOOL):
                        want, got = (np.nan_to_num(x[name].astype(np.float64)) for x in (wants, has))
                        noise[name] += float(np.square(got - want).sum()) / (len(sides) * WIDER)
    return noise


def move_comparisons(graph: Graph, wide: Mapping[Node, float], far: float) -> Graph:
    """Return the graph with one side of its comparisons moved `far` times as far as rounding may move it. Closer
    numbers count as equal. The numbers of an argmax are moved at random."""
    new, nodes = dict[str, Tensor](), list[Node]()
    rng = np.random.default_rng(int(far > 0))

    def tensor(like: Tensor, suffix: str, data: Array | None = None) -> str:
        name = fresh(graph, new, f"{like.name}_{suffix}")
        shape = like.shape if data is None else data.shape
        new[name] = replace(like, name=name, shape=shape, dtype=DType.FLOAT32, quant=None, data=data)
        return name

    def parts(node: Node) -> Iterator[Node]:
        y, a = graph[node.outputs[0]], node.inputs[0]
        if isinstance(node.op, ArgMax):
            around = rng.uniform(-1, 1, graph[a].shape) * far * wide[node]
            a_moved = tensor(graph[a], "moved")
            yield Node(Add(), (a, tensor(graph[a], "far", around.astype(np.float32))), (a_moved,))
            yield replace(node, inputs=(a_moved,))
            return
        b = node.inputs[1]
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
    return rebuild(graph, nodes, new.values())
