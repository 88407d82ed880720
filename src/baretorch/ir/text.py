"""Print a Graph as text, for `--trace` and `inspect`. Tests parse it back (tests/graph_text.py).

graph sine
input  x: float32[1, 1]
const  net.0.weight: float32[16, 1] = 3f1c…            (base64 of the bytes, or elided)
net_0: float32[1, 16] = linear(x, net.0.weight, net.0.bias) lo=0.0  # net.0
output net_0

`labels` are the caller's names of the outputs. `orders (0, 2, 3, 1) -> (0, 1)` are the memory orders of inputs and
outputs, where one does not lie in memory as the caller's shape says. A name that is not made of letters, digits, dots
and _ stands in quotes.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from dataclasses import fields

from baretorch.escape import graph_name
from baretorch.ir.graph import Array, Graph, Node, Op, Origin, Port, Quant, Tensor

_SOURCE = re.compile(r"[\w.-]+:\d+")  # where in which of the user's files


def to_text(graph: Graph, data: bool = True) -> str:
    """Print the graph as text. Without `data`, constants are elided for readability; such a text does not parse
    back."""
    lines = [f"graph {graph_name(graph.name)}"]
    for name in graph.inputs:
        lines.append(f"input  {_tensor(graph[name])}")
    for s in graph.state:
        lines.append(f"state  {_tensor(graph[s.name])} = {_data(s.initial) if data else '…'}")
    for t in graph.tensors.values():
        if t.data is not None:
            lines.append(f"const  {_tensor(t)} = {_data(t.data) if data else '…'}")
    for node in graph.nodes:
        lines.append(_node(graph, node))
    lines.append(f"output {_names(graph.outputs)}")
    if graph.labels:
        lines.append(f"labels {_names(graph.labels)}")
    if any(port.order != tuple(range(len(port.order))) for port in (*graph.takes(), *graph.gives())):
        lines.append(f"orders {_orders(graph.takes())} -> {_orders(graph.gives())}")
    lines += [f"next   {graph_name(s.name)} = {graph_name(s.next)}" for s in graph.state]
    return "\n".join(lines) + "\n"


def attributes(op: Op) -> str:
    """Print the fields of an op that differ from their defaults, as in `stride=(2, 2) lo=0.0`."""
    seen = (f for f in fields(op) if f.repr and getattr(op, f.name) != f.default)
    return " ".join(f"{f.name}={getattr(op, f.name)!r}" for f in seen)


def _tensor(t: Tensor) -> str:
    quant = f" q({_quant(t.quant)})" if t.quant else ""
    return f"{graph_name(t.name)}: {t.type}{quant}"


def _quant(q: Quant) -> str:
    """Print scale, zero point and axis, and the other fields up to the last that differs from its default."""
    named = [(f.default, getattr(q, f.name)) for f in fields(q)]
    while len(named) > 3 and named[-1][0] == named[-1][1]:
        named.pop()
    return ", ".join(repr(value) for _, value in named)


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(graph_name, names))


def _orders(ports: Iterable[Port]) -> str:
    return ", ".join(str(port.order) for port in ports)


def _data(data: Array) -> str:
    return base64.b64encode(data.tobytes()).decode() or "-"


def _node(graph: Graph, node: Node) -> str:
    outs = "; ".join(_tensor(graph[n]) for n in node.outputs)
    attrs = attributes(node.op)
    origin = _origin(graph[node.outputs[0]].origin)
    head = f"{outs} = {node.op.name}({_names(node.inputs)})"
    return " ".join(filter(None, (head, attrs, f" # {origin}" if origin else "")))


def _origin(origin: Origin) -> str:
    """Print the module's path, and the line in the user's file in brackets."""
    path = graph_name(origin.path) if origin.path else ""
    source = origin.source if _SOURCE.fullmatch(origin.source) else graph_name(origin.source)
    return "  ".join(filter(None, (path, f"({source})" if origin.source else "")))
