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
    INT16 = "int16"  # weights of 8 bits, inputs and outputs of 16
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
    """The notes of a quantized graph, in the precisions of its layers. Of each layer, what it makes is given."""
    tensors = dict(graph.tensors)
    nodes = list(graph.nodes)
    for layer, (precision, made) in layers.items():
        if precision not in (Precision.INT4, Precision.INT16):
            continue
        found = [i for i, n in enumerate(nodes) if made.intersection(n.outputs) and _has_weights(graph, n)]
        if not found:
            ops = sorted({n.op.name for n in nodes if made.intersection(n.outputs)})
            raise CompileError(
                f"--config: {layer!r} = {precision.value!r}: it has no weights in int8",
                have=", ".join(ops) or None,
                need="a linear layer or a convolution that is quantized",
            )
        for i in found:
            x, weight, *rest = nodes[i].inputs
            if precision is Precision.INT4:
                own = _in_int4(graph[weight], fresh(graph, tensors, f"{weight}_int4"))
                tensors[own.name] = own
                nodes[i] = replace(nodes[i], inputs=(x, own.name, *rest))
            for name in (*nodes[i].outputs, *graph.inputs) if precision is Precision.INT16 else ():
                quant = tensors[name].quant
                if quant is not None and (name == x or name in nodes[i].outputs):
                    tensors[name] = replace(tensors[name], quant=replace(quant, bits=16))
    return replace(graph, tensors=tensors, nodes=tuple(nodes))


def _has_weights(graph: Graph, node: Node) -> bool:
    return (
        isinstance(node.op, (Linear, Conv2d))
        and graph[node.inputs[1]].quant is not None
        and graph[node.outputs[0]].quant is not None
    )


def _in_int4(weight: Tensor, name: str) -> Tensor:
    """A weight of its own, as others may have the same in int8."""
    assert weight.data is not None
    return replace(weight, name=name, quant=per_channel(weight.data, bits=4))
