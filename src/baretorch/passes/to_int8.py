"""Replace operators between tensors with scales by int8 operators.

An operator without int8 form, or next to a tensor without scale, stays float, with quantize or dequantize at the
border. Its outputs record the reason; `float_layers` lists these layers, and `explain_float` explains them to users.
"""

from __future__ import annotations

from dataclasses import replace

from baretorch.errors import CompileError
from baretorch.ir.graph import DType, Graph, InFloat, Node, fresh
from baretorch.ops import int8_rule
from baretorch.ops.elementwise import Clamp
from baretorch.ops.int8.quantize import Dequantize16, Quantize, Quantize16
from baretorch.ops.int8.rules import NoInt8, StaysFloat, Walk
from baretorch.passes.rewrite import rebuild
from baretorch.passes.spectra import around_spectra

SPECTRA = "the powers of a spectrum differ by more than eight bits can represent"


def to_int8(graph: Graph) -> Graph:
    if not (graph.is_int8 or graph.is_quantized):
        return graph
    walk, spectra = Walk(graph), around_spectra(graph)
    for node in graph.nodes:
        try:
            _convert(walk, node)
        except StaysFloat as refusal:
            walk.nodes += _cut(walk, replace(node, inputs=tuple(_real(walk, n) for n in node.inputs)))
            walk.floats.update(node.outputs)
            why = InFloat(str(refusal), not isinstance(refusal, NoInt8), spectra.issuperset(node.outputs))
            walk.new |= {name: replace(graph[name], in_float=graph[name].in_float or why) for name in node.outputs}
    outputs = tuple(_real(walk, name) for name in graph.outputs)
    state = tuple(replace(s, next=walk.real(s.next)) for s in graph.state)
    for name, stored in reversed(
        [*walk.wide.items(), *walk.stored.items()]
    ):  # the first form of a tensor is the computed one
        if stored in walk.new:
            walk.new[stored] = replace(walk.new[stored], value=graph[name].holds)
    return _drop_round_trips(rebuild(replace(graph, outputs=outputs, state=state), walk.nodes, walk.new.values()))


def _drop_round_trips(graph: Graph) -> Graph:
    """Remove conversions from int16 to float and back to the same int16, which change nothing."""
    producer, rename = graph.producer(), dict[str, str]()
    for node in graph.nodes:
        made = producer.get(node.inputs[0]) if isinstance(node.op, Quantize16) else None
        if made is not None and isinstance(node.op, Quantize16) and made.op == Dequantize16(node.op.scale):
            rename[node.outputs[0]] = made.inputs[0]
    return rebuild(graph, graph.nodes, rename=rename) if rename else graph


def _real(walk: Walk, name: str) -> str:
    """Return a tensor as float, and an input of the graph clamped to the model's range."""
    quant = walk.quant(name)
    if name not in walk.graph.inputs or quant is None or not quant.cuts or walk.graph[name].dtype is not DType.FLOAT32:
        return walk.real(name)
    if name not in walk.cut:
        walk.cut[name] = fresh(walk.graph, walk.new, f"{name}_cut")
        walk.new[walk.cut[name]] = replace(walk.graph[name], name=walk.cut[name])
        walk.nodes.append(Node(Clamp(*quant.range), (name,), (walk.cut[name],)))
    return walk.cut[name]


def _cut(walk: Walk, node: Node) -> list[Node]:
    """Return the nodes for one that stays float, whose output is clamped where the model does that."""
    (out, *others), quant = node.outputs, walk.quant(node.outputs[0])
    if others or quant is None or not quant.cuts or walk.graph[out].dtype is not DType.FLOAT32:
        return [node]
    if not node.op.computes and all(walk.graph[n].quant == quant for n in node.inputs[node.op.values]):
        return [node]
    lo, hi = quant.range
    limited = node.op.clamp(lo, hi)
    if limited is not None:
        return [replace(node, op=limited)]
    whole = fresh(walk.graph, walk.new, f"{out}_whole")
    walk.new[whole] = replace(walk.graph[out], name=whole, quant=None)
    return [replace(node, outputs=(whole,)), Node(Clamp(lo, hi), (whole,), (out,))]


def _convert(walk: Walk, node: Node) -> None:
    if walk.graph[node.outputs[0]].dtype in (DType.INT8, DType.INT16) and not isinstance(node.op, Quantize):
        raise StaysFloat("it is quantized already")
    for why in (walk.graph[name].in_float for name in node.outputs):
        if why is not None:
            raise StaysFloat(why.text)
    rule = int8_rule(node.op)
    if rule is None:
        raise NoInt8(f"{node.op.name} has no int8 form")
    try:
        rule(walk, node)
    except CompileError as refusal:  # of its scales, which a float operator does not need
        raise StaysFloat(refusal.what) from refusal


def float_layers(graph: Graph) -> list[str]:
    """Return the operators of an int8 graph that compute in float, by the user's names."""
    return [layer for layer, _ in find_floats(graph)]


def explain_float(graph: Graph, chosen: bool = True) -> list[tuple[str, str]]:
    """Return pairs (layers, why they stayed float): those around a spectrum together, the others one by one; without
    those that the user keeps in float if `chosen` is False."""
    found = [(layer, why) for layer, why in find_floats(graph) if chosen or not why.chosen]
    around = [layer for layer, why in found if why.spectrum]
    others = [(layer, why.text) for layer, why in found if not why.spectrum]
    return [*([(", ".join(around), SPECTRA)] if around else []), *others]


def could_be_int8(graph: Graph) -> list[str]:
    """Return those of `float_layers` that have an int8 form, and are not float because of a spectrum."""
    return [layer for layer, why in find_floats(graph) if why.has_form and not why.spectrum and not why.chosen]


def find_floats(graph: Graph) -> list[tuple[str, InFloat]]:
    """Return the user's name for each operator that computes in float, and why."""
    if not (graph.is_int8 or graph.is_quantized):
        return []
    masks = mask_tensors(graph)
    found = []
    for node in graph.nodes:
        y = graph[node.outputs[0]]
        if y.dtype is not DType.FLOAT32 or not node.op.computes or masks.issuperset(node.outputs):
            continue
        found.append((f"{node.op.name} {y.origin}".strip(), y.in_float or InFloat("its inputs are float")))
    return found


def mask_tensors(graph: Graph) -> set[str]:
    """Return the tensors that only select the keys that take part in attention: their values are not rounded."""
    read = set(graph.kept)
    masks: set[str] = set()
    for node in reversed(graph.nodes):
        if masks.issuperset(node.outputs) and read.isdisjoint(node.outputs):
            masks.update(node.inputs)
        else:
            values = node.inputs[node.op.values]
            read.update(values)
            masks.update(set(node.inputs).difference(values))
    return masks - read
