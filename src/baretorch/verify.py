"""The grammar of a Graph: names, order, shapes and types."""

from __future__ import annotations

from baretorch.errors import InternalError
from baretorch.ir import Graph


def verify(graph: Graph) -> Graph:
    """Check the grammar of a Graph and return it. A failure is a bug in the stage that made it."""

    def need(condition: bool, text: str) -> None:
        if not condition:
            raise InternalError(f"graph {graph.name}: {text}")

    for name, t in graph.tensors.items():
        need(t.name == name, f"tensor {t.name} is filed under {name}")
        need(all(isinstance(d, int) and d >= 0 for d in t.shape), f"{t} has a bad shape")
        if t.data is not None:
            need(t.data.shape == t.shape, f"{t} holds data of shape {t.data.shape}")
            need(t.data.dtype == t.dtype.numpy, f"{t} holds data of type {t.data.dtype}")
    need(len(set(graph.inputs)) == len(graph.inputs), "an input is named twice")
    need(len(graph.labels) in (0, len(graph.outputs)), f"{len(graph.labels)} labels for {len(graph.outputs)} outputs")
    for names, orders in ((graph.inputs, graph.input_orders), (graph.outputs, graph.output_orders)):
        need(len(orders) in (0, len(names)), f"{len(orders)} memory orders for {', '.join(names)}")
    given = [*graph.inputs, *(s.name for s in graph.state)]
    known = set(given) | {t.name for t in graph.tensors.values() if t.data is not None}
    need(known <= set(graph.tensors), "an input has no tensor")
    for name in given:
        need(graph[name].data is None, f"input {name} is a constant")
    for i, node in enumerate(graph.nodes):
        where = f"node {i} {node.op.name}"
        for name in node.inputs:
            need(name in known, f"{where} reads {name} before it is made")
        signatures = node.op.infer(graph.of(node.inputs))
        need(len(signatures) == len(node.outputs), f"{where} has {len(node.outputs)} outputs")
        for name, s in zip(node.outputs, signatures, strict=True):
            need(name in graph.tensors, f"{where} makes {name}, which has no tensor")
            need(name not in known, f"{where} makes {name} a second time")
            t = graph[name]
            need((t.shape, t.dtype) == (s.shape, s.dtype), f"{where} makes {s}, but {t} is declared")
            known.add(name)
    for name in graph.outputs:
        need(name in known, f"output {name} is never made")
    for port in (*graph.takes(), *graph.gives()):
        need(sorted(port.order) == list(range(len(port.tensor.shape))), f"{port.order} is no order of {port.tensor}")
    for state in graph.state:
        need(state.next in known, f"the next value of state {state.name} is never made")
        then, now = graph[state.next], graph[state.name]
        need((then.shape, then.dtype) == (now.shape, now.dtype), f"state {now} becomes {then}")
        begins = state.initial
        need((begins.shape, begins.dtype) == (now.shape, now.dtype.numpy), f"state {now} begins otherwise")
    need(set(graph.tensors) <= known, f"tensors nobody makes: {sorted(set(graph.tensors) - known)}")
    return graph
