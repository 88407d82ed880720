"""Remove expands and reshapes that change nothing, and move reshapes out of the way of other passes."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from baretorch.ir.graph import Graph, Node, Shape, Tensor, fresh, with_data
from baretorch.ops.elementwise import Add, Clamp, Elementwise, Mul
from baretorch.ops.layout import Expand, Permute, Reshape
from baretorch.passes.rewrite import rebuild


def drop_expand(graph: Graph) -> Graph:
    """Remove expands whose readers broadcast anyway: a repeated element need not exist twice."""
    source = {node.outputs[0]: node.inputs[0] for node in graph.nodes if isinstance(node.op, Expand)}
    nodes: list[Node] = []
    for node in graph.nodes:
        inputs = node.inputs
        for i, name in enumerate(inputs) if isinstance(node.op, Elementwise) else ():
            fewer = (*inputs[:i], source.get(name, name), *inputs[i + 1 :])
            if node.op.infer(graph.of(fewer))[0].shape == graph[node.outputs[0]].shape:
                inputs = fewer
        nodes.append(Node(node.op, inputs, node.outputs))
    return rebuild(graph, nodes)


def sink_views(graph: Graph) -> Graph:
    """Move reshapes below the elementwise operators that follow, so that operators to fuse become neighbours.

    A 1-D convolution is a 2-D one of height 1, with reshapes between it and its BatchNorm, ReLU and pool.
    """
    tensors = dict(graph.tensors)
    new: dict[str, Tensor] = {}
    nodes: list[Node] = []
    above: dict[str, str] = {}  # a reshape's result -> what it reshapes

    def add(t: Tensor) -> str:
        t = replace(t, name=fresh(graph, new, f"{t.name}_view"))
        new[t.name] = tensors[t.name] = t
        return t.name

    def operand(name: str, shape: Shape) -> str | None:
        """Return the operand to use if the operator is applied before the reshape, to `shape`; None if there is
        none."""
        t = tensors[name]
        if t.data is None:
            x = above.get(name)
            return x if x is not None and tensors[x].shape == shape else None
        if t.count == 1:
            return add(with_data(t, t.data.reshape(())))
        if t.shape[-1:] == (t.count,) == shape[-1:]:  # one per channel
            return add(with_data(t, t.data.reshape(-1)))
        return None

    for node in graph.nodes:
        x = next((above[name] for name in node.inputs if name in above), None)
        if x is not None and isinstance(node.op, (Clamp, Add, Mul)):
            (out,) = node.outputs
            before = tensors[x].shape
            operands = [operand(name, before) for name in node.inputs]
            if None not in operands and prod(before) == graph[out].count:
                name = add(replace(graph[out], shape=before))
                nodes.append(Node(node.op, tuple(o for o in operands if o is not None), (name,)))
                node = Node(Reshape(graph[out].shape), (name,), (out,))
        if isinstance(node.op, Reshape):
            above[node.outputs[0]] = node.inputs[0]
        nodes.append(node)
    return rebuild(graph, nodes, new.values())


def views(graph: Graph) -> Graph:
    """Merge chains of reshapes and remove those that change nothing. The planner makes the rest aliases."""
    producer: dict[str, Node] = {}
    rename: dict[str, str] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        x = node.inputs[0] if node.inputs else ""
        x = rename.get(x, x)
        if isinstance(node.op, Permute) and _moves_nothing(node.op.dims, graph[x].shape):
            node = Node(Reshape(graph[node.outputs[0]].shape), (x,), node.outputs)
        if isinstance(node.op, Reshape):
            before = producer.get(x)
            if before is not None and isinstance(before.op, Reshape):
                x = before.inputs[0]
            if graph[x].shape == node.op.shape:
                rename[node.outputs[0]] = x
                continue
            node = Node(node.op, (x,), node.outputs)
        for out in node.outputs:
            producer[out] = node
        nodes.append(node)
    return rebuild(graph, nodes, rename=rename)


def _moves_nothing(dims: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Return whether only dimensions of size 1 change places, so every element stays where it is in memory."""
    kept = [d for d in dims if shape[d] != 1]
    return kept == sorted(kept)
