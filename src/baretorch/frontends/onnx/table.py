"""Converts an ONNX model to a Graph. TABLE maps ONNX's operators to a `OnnxRow` each, in the ROWS of a module."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from baretorch.errors import CompileError
from baretorch.frontends.onnx import (
    activations,
    attention,
    classic,
    classic_features,
    classic_trees,
    contrib,
    control,
    convs,
    index,
    integer_rows,
    math,
    nn,
    pools,
    products,
    quant,
    reduce,
    resize,
    sequence,
    shapes,
    signal,
)
from baretorch.frontends.onnx.integer import IntegerLowering, Range
from baretorch.frontends.onnx.interface import Interface
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow, Scope, Value, opsets_of
from baretorch.frontends.onnx.versions import upgrade
from baretorch.frontends.untrusted import ROOM
from baretorch.ir.graph import Builder, DType, Graph, State
from baretorch.ir.verify import verify

TABLE: dict[str, OnnxRow] = {
    **math.ROWS,
    **activations.ROWS,
    **products.ROWS,
    **convs.ROWS,
    **pools.ROWS,
    **nn.ROWS,
    **resize.ROWS,
    **shapes.ROWS,
    **index.ROWS,
    **reduce.ROWS,
    **sequence.ROWS,
    **quant.ROWS,
    **control.ROWS,
    **attention.ROWS,
    **contrib.ROWS,
    **signal.ROWS,
    **classic.ROWS,
    **classic_trees.ROWS,
    **classic_features.ROWS,
}


def to_graph(
    model: Any,
    interface: Interface,
    name: str,
    ranges: Mapping[str, Range] | None = None,
    halves: Mapping[str, DType] = MappingProxyType({}),
) -> tuple[Graph, tuple[str, ...]]:
    """Return the Graph of a model with these inputs, outputs and state, and notes for the user. An integer network has
    the `ranges` of its inputs. `halves` are the types of inputs and outputs that the file declares as halves."""
    model = upgrade(model)
    functions = {(f.domain, f.name, f.overload): f for f in model.functions}
    b = Builder(name)
    room = ROOM + 4 * model.ByteSize()
    if ranges is None:
        g = OnnxLowering(b, TABLE, functions, quant.ROWS, room=room)
    else:
        g = IntegerLowering(b, integer_rows.ROWS, functions, (), room=room, given=ranges)
    given = [replace(i, dtype=halves.get(i.name, i.dtype)) for i in interface.inputs]
    values: dict[str, Value] = {i.name: g.widen_half(g.add_input(i)) for i in given}
    states = [(s, b.input(s.input.name, s.input.shape, s.input.dtype)) for s in interface.state]
    values |= {s.input.name: tensor for s, tensor in states}
    scope = Scope(values, opsets=opsets_of(model))
    taken = {s.input.name for s in interface.state}
    g.run(model.graph.node, (t for t in model.graph.initializer if t.name not in taken), scope)
    outputs = [g.as_in_file(g.tensor(scope, output)) for output in interface.outputs]
    outputs = [
        g.round_to_half(y, halves[output]) if output in halves else y
        for output, y in zip(interface.outputs, outputs, strict=True)
    ]
    state = [
        State(tensor, _alike(g, tensor, g.as_in_file(g.tensor(scope, s.output))), s.initial) for s, tensor in states
    ]
    kept = {*outputs, *(s.next for s in state)}
    if ranges is not None:
        _drop_unused(b, kept)
    read = {n for node in b.nodes for n in node.inputs} | kept
    graph = replace(b.graph(g.inputs, outputs, state), labels=tuple(interface.outputs))
    tensors = {n: t for n, t in graph.tensors.items() if t.data is None or n in read}
    return verify(replace(graph, tensors=tensors)), tuple(g.notes)


def _drop_unused(b: Builder, kept: Collection[str]) -> None:
    """Remove nodes that no output depends on: sums that became a part of the layer with their requantization."""
    needed, nodes = set(kept), []
    for node in reversed(b.nodes):
        if needed.intersection(node.outputs):
            needed.update(node.inputs)
            nodes.append(node)
        else:
            for name in node.outputs:
                del b.tensors[name]
    b.nodes[:] = reversed(nodes)


def _alike(g: OnnxLowering, old: str, new: str) -> str:
    """Return the next value of a state, which must have the type and shape of the old one."""
    if (g[old].shape, g[old].dtype) != (g[new].shape, g[new].dtype):
        raise CompileError(
            f"--state: the output {new!r} is {g[new].type}", need=f"{g[old].type}, as the input {old!r} is"
        )
    return new
