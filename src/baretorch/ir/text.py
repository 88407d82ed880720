"""Print a Graph as text, for `--trace` and `inspect`, and parse it back.

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

import ast
import base64
import re
from collections.abc import Iterable
from dataclasses import fields, replace

import numpy as np

from baretorch.errors import CompileError
from baretorch.escape import GRAPH_NAME, graph_name, parse_graph_name
from baretorch.ir.graph import Array, Builder, DType, Graph, Node, Op, Order, Origin, Port, Quant, State, Tensor
from baretorch.ir.verify import verify
from baretorch.ops import find_op

_TENSOR = re.compile(rf"(?P<name>{GRAPH_NAME}): (?P<dtype>\w+)\[(?P<shape>[\d, ]*)\](?: q(?P<quant>\(.*?\)\)?))?")
_SOURCE = re.compile(r"[\w.-]+:\d+")  # where in which of the user's files
_ARGS = rf"(?:{GRAPH_NAME}(?:, {GRAPH_NAME})*)?"
_NODE = re.compile(rf"= (?P<op>\w+)\((?P<args>{_ARGS})\)(?P<attrs>[^#]*)")


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


def parse(text: str) -> Graph:
    """Parse a Graph that `to_text` printed. Raises CompileError with the line that is invalid."""
    b = Builder()
    inputs: list[str] = []
    outputs: list[str] = []
    state: list[State] = []
    initial: dict[str, Array] = {}
    labels: tuple[str, ...] = ()
    orders: tuple[tuple[Order, ...], tuple[Order, ...]] = ((), ())
    for number, line in enumerate(text.split("\n"), 1):
        word, _, rest = line.partition(" ")
        try:
            if word == "graph":
                b.name = parse_graph_name(rest.strip())
            elif word == "input":
                inputs.append(b.tensor(_parse_tensor(rest.strip())))
            elif word in ("const", "state"):
                declared, _, encoded = rest.strip().partition(" = ")
                t = _parse_constant(declared, encoded)
                b.tensor(t if word == "const" else replace(t, data=None))
                if word == "state" and t.data is not None:
                    initial[t.name] = t.data
            elif word == "labels":
                labels = tuple(_parse_names(rest))
            elif word == "orders":
                before, _, after = rest.partition("->")
                orders = _parse_orders(before), _parse_orders(after)
            elif word == "next":
                name, _, then = rest.strip().partition(" = ")
                name = parse_graph_name(name)
                state.append(State(name, parse_graph_name(then), initial[name]))
            elif word == "output":
                outputs.extend(_parse_names(rest))
            elif line.strip():
                _parse_node(b, line)
        except Exception as error:  # whatever words and numbers in the wrong place make of it
            raise CompileError(
                f"line {number} is not a graph line: {_short(error)}", have=_short(line.strip())
            ) from None
    try:
        made = replace(b.graph(inputs, outputs, state), labels=labels)
        return verify(replace(made, input_orders=orders[0], output_orders=orders[1]))
    except Exception as error:  # an operator with other inputs than it takes
        raise CompileError(f"the lines do not make a graph: {_short(error)}") from None


def _short(what: object) -> str:
    text = str(what)
    return text if len(text) <= 200 else f"{text[:200]}…"


def attributes(op: Op) -> str:
    """Print the fields of an op that differ from their defaults, as in `stride=(2, 2) lo=0.0`."""
    seen = (f for f in fields(op) if f.repr and getattr(op, f.name) != f.default)
    return " ".join(f"{f.name}={getattr(op, f.name)!r}" for f in seen)


def _tensor(t: Tensor) -> str:
    bits = f", {t.quant.bits}" if t.quant and t.quant.bits != 8 else ""
    quant = f" q({t.quant.scale}, {t.quant.zero_point}, {t.quant.axis}{bits})" if t.quant else ""
    return f"{graph_name(t.name)}: {t.type}{quant}"


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(graph_name, names))


def _parse_names(text: str) -> list[str]:
    return [parse_graph_name(n.strip()) for n in text.split(",") if n.strip()]


def _orders(ports: Iterable[Port]) -> str:
    return ", ".join(str(port.order) for port in ports)


def _parse_orders(text: str) -> tuple[Order, ...]:
    if not re.fullmatch(r"[\d(), ]*", text):
        raise ValueError(f"{_short(text)!r} is not a list of memory orders")
    return tuple(tuple(map(int, order)) for order in ast.literal_eval(f"[{text.strip()}]"))


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


def _parse_origin(text: str) -> Origin:
    path, _, source = text.strip().rpartition("(") if text.endswith(")") else (text.strip(), "", "")
    path, source = path.strip(), source.removesuffix(")")
    plain = not source or _SOURCE.fullmatch(source)
    return Origin(parse_graph_name(path) if path else "", source if plain else parse_graph_name(source))


def _parse_tensor(text: str) -> Tensor:
    found = _TENSOR.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} is not a tensor")
    dtype = DType.of(found["dtype"])
    if dtype is None:
        raise ValueError(f"no type is called {found['dtype']}")
    shape = tuple(int(d) for d in found["shape"].split(",") if d.strip())
    quant = None
    if found["quant"]:
        scale, zero, axis, *bits = ast.literal_eval(found["quant"])
        quant = Quant(scale, zero, axis, bits=bits[0] if bits else 8)
    return Tensor(parse_graph_name(found["name"]), shape, dtype, quant)


def _parse_constant(declared: str, encoded: str) -> Tensor:
    t = _parse_tensor(declared)
    raw = b"" if encoded == "-" else base64.b64decode(encoded, validate=True)
    data = np.frombuffer(raw, t.dtype.numpy).reshape(t.shape)
    return Tensor(t.name, t.shape, t.dtype, t.quant, data)


def _parse_node(b: Builder, line: str) -> None:
    code, _, comment = line.partition("  # ")
    at = code.index("= ")
    found = _NODE.fullmatch(code[at:].rstrip())
    if not found:
        raise ValueError("expected `name: type = op(inputs) attributes`")
    cls = find_op(found["op"])
    if cls is None:
        raise ValueError(f"no operator is called {found['op']}")
    attrs = {}
    for part in re.findall(r"(\w+)=(.*?)(?= \w+=|$)", found["attrs"].strip()):
        attrs[part[0]] = _literal(part[1])
    origin = _parse_origin(comment)
    names = []
    for declared in code[:at].strip().split("; "):
        t = _parse_tensor(declared)
        names.append(b.tensor(Tensor(t.name, t.shape, t.dtype, t.quant, origin=origin)))
    b.nodes.append(Node(cls(**attrs), tuple(_parse_names(found["args"])), tuple(names)))


def _literal(text: str) -> object:
    """Parse a Python literal, or `inf` or `nan`, which ast does not parse."""
    if text.strip() in ("inf", "-inf", "nan"):
        return float(text)
    try:
        return ast.literal_eval(text)
    except Exception:  # also what is nested too deeply
        raise ValueError(f"{_short(text)} is not a value") from None
