"""Make the notes of `note_scales` true: operators between noted tensors become int8 operators.

Where an operator has no int8 form, or a tensor around it has no scale, it stays float and quantize or dequantize stand
at the border; `float_layers` names what stayed, `why_float` says why, `told_float` tells users.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from baretorch.errors import CompileError
from baretorch.ir import DType, Graph, Node
from baretorch.ops import int8_rule
from baretorch.ops.fft import Fft, Rfft
from baretorch.ops.functions import Log, Log1p, Log2
from baretorch.ops.int8 import NoInt8, StaysFloat, Walk
from baretorch.ops.special import Log10
from baretorch.passes.rewrite import rebuilt

TRANSFORMS = (Fft, Rfft)
LOGARITHMS = (Log, Log1p, Log2, Log10)
SPECTRA = "the powers of a spectrum differ by more than eight bits can tell"


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
    rule = int8_rule(node.op)
    if rule is None:
        raise NoInt8(f"there is no int8 {node.op.name}")
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


def told_float(graph: Graph, but: Collection[str] = ()) -> list[tuple[str, str]]:
    """(layers, why they stayed float): those around a spectrum together, the others one by one."""
    spectra = _spectra(graph)
    pairs = list(zip(_floats(graph, but), float_layers(graph, but), strict=True))
    around = [layer for node, layer in pairs if spectra.issuperset(node.outputs)]
    others = [(layer, _reason(graph, node)) for node, layer in pairs if not spectra.issuperset(node.outputs)]
    return [*([(", ".join(around), SPECTRA)] if around else []), *others]


def could_be_int8(graph: Graph) -> list[str]:
    """Those of `float_layers` whose operators have an int8 form, and that are not float for a spectrum's sake."""
    spectra = _spectra(graph)
    return [
        layer
        for node, layer in zip(_floats(graph), float_layers(graph), strict=True)
        if not spectra.issuperset(node.outputs) and not isinstance(_refusal(graph, node), NoInt8)
    ]


def _reason(graph: Graph, node: Node) -> str:
    return str(_refusal(graph, node) or "its inputs are float")


def _refusal(graph: Graph, node: Node) -> StaysFloat | None:
    try:
        _convert(Walk(graph), node)
    except StaysFloat as reason:
        return reason
    return None


def _spectra(graph: Graph) -> set[str]:
    """Tensors around Fourier transforms that quantize/spectra.py left without a scale: what a transform is made of, and
    what is made of it up to the first logarithm or scale."""
    before: set[str] = set()
    for node in reversed(graph.nodes):
        if isinstance(node.op, TRANSFORMS) or before.intersection(node.outputs):
            before.update(n for n in node.inputs if graph[n].dtype is DType.FLOAT32)
    after: set[str] = set()
    ended: set[str] = set()
    for node in graph.nodes:
        if isinstance(node.op, TRANSFORMS) or (after - ended).intersection(node.inputs):
            after.update(node.outputs)
            log = isinstance(node.op, LOGARITHMS)
            ended.update(n for n in node.outputs if log or graph[n].quant is not None)
    return before | after


def _floats(graph: Graph, but: Collection[str] = ()) -> list[Node]:
    if not any(t.dtype is DType.INT8 or t.quant for t in graph.tensors.values()):
        return []
    masks = _masks(graph)
    return [
        node
        for node in graph.nodes
        if graph[node.outputs[0]].dtype is DType.FLOAT32
        and node.op.computes
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
            values = node.inputs[node.op.values]
            read.update(values)
            masks.update(set(node.inputs).difference(values))
    return masks - read
