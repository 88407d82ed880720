"""A precision for each layer that has another than int8, from a small TOML:

[layers]
"net.0" = "int4"
"net.2" = "float"
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from baretorch.errors import CompileError
from baretorch.ir import Graph, Node, Tensor, fresh
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.linear import Linear
from baretorch.quantize.observers import per_channel

LARGEST = 1 << 20  # bytes of a file that people write


class Precision(StrEnum):
    INT8 = "int8"  # as all others
    INT4 = "int4"  # weights of 4 bits
    FLOAT = "float"  # as --keep-float leaves it


def read_config(path: str) -> dict[str, Precision]:
    """The layers of a file and their precisions; CompileError if that is not what it has."""
    file = Path(path)
    try:
        if file.stat().st_size > LARGEST:
            raise CompileError(f"--config {file.name}: it is too large", need=f"at most {LARGEST:,} bytes")
        told = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise CompileError(f"--config: cannot read {path}", have=error.strerror or str(error)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CompileError(f"--config {file.name}: it is no TOML", have=str(error), need=NEED) from error
    layers = told.get("layers")
    if set(told) != {"layers"} or not isinstance(layers, dict):
        raise CompileError(f"--config {file.name}: it has no list of layers", have=", ".join(told) or None, need=NEED)
    return {name: _precision(file.name, name, value) for name, value in layers.items()}


NEED = '[layers] and lines like "net.0" = "int4"'


def _precision(file: str, layer: str, value: object) -> Precision:
    if isinstance(value, str) and value in {*Precision}:
        return Precision(value)
    near = difflib.get_close_matches(str(value), [p.value for p in Precision], n=1)
    raise CompileError(
        f"--config {file}: {layer!r} = {value!r}: no such precision",
        need=", ".join(Precision),
        try_=f"did you mean {near[0]!r}?" if near else None,
    )


def with_precisions(graph: Graph, layers: Mapping[str, tuple[Precision, set[str]]]) -> Graph:
    """The notes of a quantized graph, with those of weights in the precision of their layer. Of each layer, what it
    makes is given."""
    tensors = dict(graph.tensors)
    nodes = list(graph.nodes)
    for layer, (precision, made) in layers.items():
        if precision is not Precision.INT4:
            continue
        found = [i for i, n in enumerate(nodes) if made.intersection(n.outputs) and _takes_int4(graph, n)]
        if not found:
            ops = sorted({n.op.name for n in nodes if made.intersection(n.outputs)})
            raise CompileError(
                f"--config: {layer!r} = 'int4': it has no weights that could be int4",
                have=", ".join(ops) or "nothing in int8",
                need="a linear layer or a convolution",
            )
        for i in found:
            weight = _in_int4(graph[nodes[i].inputs[1]], fresh(graph, tensors, f"{nodes[i].inputs[1]}_int4"))
            tensors[weight.name] = weight
            nodes[i] = replace(nodes[i], inputs=(nodes[i].inputs[0], weight.name, *nodes[i].inputs[2:]))
    return replace(graph, tensors=tensors, nodes=tuple(nodes))


def _takes_int4(graph: Graph, node: Node) -> bool:
    return isinstance(node.op, (Linear, Conv2d)) and graph[node.inputs[1]].quant is not None


def _in_int4(weight: Tensor, name: str) -> Tensor:
    """A weight of its own, as others may have the same in int8."""
    assert weight.data is not None
    return replace(weight, name=name, quant=per_channel(weight.data, bits=4))
