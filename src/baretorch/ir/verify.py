"""Check the grammar of a Graph: names, order, shapes and types."""

from __future__ import annotations

from collections.abc import Iterator

from baretorch.errors import InternalError
from baretorch.ir.graph import Graph, Node, Tensor


def verify(graph: Graph) -> Graph:
    """Check the grammar of a Graph and return it. A failure is a bug in the stage that made it."""
    for fault in _faults(graph):
        raise InternalError(f"graph {graph.name}: {fault}")
    return graph


def _faults(graph: Graph) -> Iterator[str]:
    """Yield the faults of a Graph. Later faults may only be consequences of the first."""
    for name, t in graph.tensors.items():
        yield from _faults_of_tensor(name, t)
    if len(set(graph.inputs)) != len(graph.inputs):
        yield "an input is named twice"
    if len(graph.labels) not in (0, len(graph.outputs)):
        yield f"{len(graph.labels)} labels for {len(graph.outputs)} outputs"
    for names, orders in ((graph.inputs, graph.input_orders), (graph.outputs, graph.output_orders)):
        if len(orders) not in (0, len(names)):
            yield f"{len(orders)} memory orders for {', '.join(names)}"
    given = [*graph.inputs, *(s.name for s in graph.state)]
    known = set(given) | {t.name for t in graph.tensors.values() if t.data is not None}
    if not known <= set(graph.tensors):
        yield "an input has no tensor"
    for name in given:
        if graph[name].data is not None:
            yield f"input {name} is a constant"
    for i, node in enumerate(graph.nodes):
        yield from _faults_of_node(graph, i, node, known)
        known.update(node.outputs)
    for name in graph.outputs:
        if name not in known:
            yield f"output {name} is never made"
    for port in (*graph.takes(), *graph.gives()):
        if sorted(port.order) != list(range(len(port.tensor.shape))):
            yield f"{port.order} is not an order of {port.tensor}"
    for state in graph.state:
        if state.next not in known:
            yield f"the next value of state {state.name} is never made"
        then, now, begins = graph[state.next], graph[state.name], state.initial
        if (then.shape, then.dtype) != (now.shape, now.dtype):
            yield f"state {now} becomes {then}"
        if (begins.shape, begins.dtype) != (now.shape, now.dtype.numpy):
            yield f"state {now} begins otherwise"
    if not set(graph.tensors) <= known:
        yield f"tensors that no node produces: {sorted(set(graph.tensors) - known)}"


def _faults_of_tensor(name: str, t: Tensor) -> Iterator[str]:
    if t.name != name:
        yield f"tensor {t.name} is filed under {name}"
    if not all(isinstance(d, int) and d >= 0 for d in t.shape):
        yield f"{t} has a bad shape"
    if t.data is not None and t.data.shape != t.shape:
        yield f"{t} holds data of shape {t.data.shape}"
    if t.data is not None and t.data.dtype != t.dtype.numpy:
        yield f"{t} holds data of type {t.data.dtype}"


def _faults_of_node(graph: Graph, i: int, node: Node, known: set[str]) -> Iterator[str]:
    for name in node.inputs:
        if name not in known:
            yield f"node {i} {node.op.name} reads {name} before it is made"
    signatures = node.op.infer(graph.of(node.inputs))
    if len(signatures) != len(node.outputs):
        yield f"node {i} {node.op.name} has {len(node.outputs)} outputs"
    made = set[str]()
    for name, s in zip(node.outputs, signatures, strict=True):
        if name not in graph.tensors:
            yield f"node {i} {node.op.name} makes {name}, which has no tensor"
        if name in known or name in made:
            yield f"node {i} {node.op.name} makes {name} a second time"
        made.add(name)
        t = graph[name]
        if (t.shape, t.dtype) != (s.shape, s.dtype):
            yield f"node {i} {node.op.name} makes {s}, but {t} is declared"
