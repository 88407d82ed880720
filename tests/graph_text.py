"""Parses a Graph that `to_text` of ir/text.py printed: so the text says all that a Graph has."""

from __future__ import annotations

import ast
import base64
import re
from dataclasses import replace

import numpy as np

from baretorch.errors import CompileError
from baretorch.ir.graph import HALVES, Array, Builder, DType, Graph, Node, Order, Origin, Quant, State, Tensor
from baretorch.ir.verify import verify
from baretorch.ops import OPS

OPERATORS = {row.op.name: row.op for row in OPS}
GRAPH_NAME = r'(?:[\w.]+|"(?:[^"\\]|\\.)*")'  # a regular expression for results of `graph_name`
_TENSOR = re.compile(rf"(?P<name>{GRAPH_NAME}): (?P<dtype>\w+)\[(?P<shape>[\d, ]*)\](?: q(?P<quant>\(.*?\)\)?))?")
_SOURCE = re.compile(r"[\w.-]+:\d+")  # where in which of the user's files
_ARGS = rf"(?:{GRAPH_NAME}(?:, {GRAPH_NAME})*)?"
_NODE = re.compile(rf"= (?P<op>\w+)\((?P<args>{_ARGS})\)(?P<attrs>[^#]*)")


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


def parse_graph_name(text: str) -> str:
    """Return the name that `graph_name` wrote; ValueError if it is not valid."""
    if not re.fullmatch(GRAPH_NAME, text):
        raise ValueError(f"{text!r} is not a name")
    return str(ast.literal_eval(text)) if text.startswith('"') else text


def _parse_names(text: str) -> list[str]:
    return [parse_graph_name(n.strip()) for n in text.split(",") if n.strip()]


def _parse_orders(text: str) -> tuple[Order, ...]:
    if not re.fullmatch(r"[\d(), ]*", text):
        raise ValueError(f"{_short(text)!r} is not a list of memory orders")
    return tuple(tuple(map(int, order)) for order in ast.literal_eval(f"[{text.strip()}]"))


def _parse_origin(text: str) -> Origin:
    path, _, source = text.strip().rpartition("(") if text.endswith(")") else (text.strip(), "", "")
    path, source = path.strip(), source.removesuffix(")")
    plain = not source or _SOURCE.fullmatch(source)
    return Origin(parse_graph_name(path) if path else "", source if plain else parse_graph_name(source))


def _parse_tensor(text: str) -> Tensor:
    found = _TENSOR.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} is not a tensor")
    dtype = HALVES.get(found["dtype"]) or DType.of(found["dtype"])
    if dtype is None:
        raise ValueError(f"no type is called {found['dtype']}")
    shape = tuple(int(d) for d in found["shape"].split(",") if d.strip())
    quant = None
    if found["quant"]:
        quant = Quant(*ast.literal_eval(found["quant"]))
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
    cls = OPERATORS.get(found["op"])
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
