"""Make the notes of `note_scales` true: operators between noted tensors become int8 operators.

Where an operator has no int8 form, or a tensor around it has no scale, it stays float and quantize or dequantize stand
at the border; `float_layers` names what stayed, `why_float` says why.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from baretorch.errors import CompileError
from baretorch.ir import DType, Graph, Node
from baretorch.ops.attention import Attention
from baretorch.ops.fixed import FromFixed
from baretorch.ops.layout import Pad
from baretorch.ops.qattention import QAttention
from baretorch.ops.quantize import Dequantize, Quantize
from baretorch.passes.int8_rules import MOVES, RULES
from baretorch.passes.int8_walk import StaysFloat, Walk
from baretorch.passes.rewrite import rebuilt

QUIET = (Quantize, Dequantize, FromFixed, Pad, *MOVES)  # float is no loss here


def to_int8(graph: Graph) -> Graph:
    if all(t.quant is None for t in graph.tensors.values()):
        return graph
    walk = Walk(graph)
    for node in graph.nodes:
        try:
            _convert(walk, node)
        except StaysFloat:
            walk.nodes.append(replace(node, inputs=tuple(map(walk.real, node.inputs))))
            walk.floats.update(node.outputs)
    outputs = tuple(walk.real(name) for name in graph.outputs)
    state = tuple(replace(s, next=walk.real(s.next)) for s in graph.state)
    for name, stored in reversed(walk.stored.items()):  # the first that a tensor stands for is what was computed
        if stored in walk.new:
            walk.new[stored] = replace(walk.new[stored], value=graph[name].holds)
    return rebuilt(replace(graph, outputs=outputs, state=state), walk.nodes, walk.new.values())


def _convert(walk: Walk, node: Node) -> None:
    if walk.graph[node.outputs[0]].dtype is DType.INT8:
        raise StaysFloat("it is int8 already")
    rule = next((rule for kind, rule in RULES if isinstance(node.op, kind)), None)
    if rule is None:
        raise StaysFloat(f"there is no int8 {node.op.name}")
    try:
        rule(walk, node)
    except CompileError as refusal:  # of its scales, which a float operator does not need
        raise StaysFloat(refusal.what) from refusal


def float_layers(graph: Graph, but: Collection[str] = ()) -> list[str]:
    """Of a graph with int8 operators, or scales for them: the operators that compute in float, by the user's name for
    them, without those of the layers that are named."""
    return [f"{node.op.name} {graph[node.outputs[0]].origin}".strip() for node in _floats(graph, but)]


def why_float(graph: Graph, but: Collection[str] = ()) -> list[str]:
    """For each of `float_layers`, why it stayed float. The notes are still there, so its rule can be asked again."""
    return [_reason(graph, node) for node in _floats(graph, but)]


def _reason(graph: Graph, node: Node) -> str:
    try:
        _convert(Walk(graph), node)
    except StaysFloat as reason:
        return str(reason)
    return "its inputs are float"


def _floats(graph: Graph, but: Collection[str] = ()) -> list[Node]:
    if not any(t.dtype is DType.INT8 or t.quant for t in graph.tensors.values()):
        return []
    masks = _masks(graph)
    return [
        node
        for node in graph.nodes
        if graph[node.outputs[0]].dtype is DType.FLOAT32
        and not isinstance(node.op, QUIET)
        and not masks.issuperset(node.outputs)
        and graph[node.outputs[0]].origin.path not in but
    ]


def _masks(graph: Graph) -> set[str]:
    """Tensors that only say which keys take part in attention: no number is lost or won there."""
    read = {*graph.outputs, *(s.next for s in graph.state)}
    masks: set[str] = set()
    for node in reversed(graph.nodes):
        if masks.issuperset(node.outputs) and read.isdisjoint(node.outputs):
            masks.update(node.inputs)
        else:
            values = 3 if isinstance(node.op, (Attention, QAttention)) else len(node.inputs)
            read.update(node.inputs[:values])
            masks.update(node.inputs[values:])
    return masks - read
