"""Keep the state of an int8 model as it is computed, int8 or 16 bits with a fixed point, instead of float.

A run stores its state in this form already, and the next one reads the same bits. Only the initial value is rounded,
ahead of time instead of by the first run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from baretorch.ir.graph import Graph, Node, Op, Quant, State
from baretorch.ops.int8.quantize import Dequantize, FromFixed, Quantize, ToFixed
from baretorch.passes.rewrite import rebuild


def common_forms(graphs: Collection[Graph]) -> dict[str, Op]:
    """Return the form of each state that all methods of a model store alike: it is in the same place for all."""
    forms: dict[str, set[Op | None]] = {}
    for graph in graphs:
        uses, producer, states = graph.uses(), graph.producer(), {s.name for s in graph.state}
        for state in graph.state:
            forms.setdefault(state.name, set()).update(_forms(graph, state, uses, producer, states))
    for line in _lines([s for graph in graphs for s in graph.state]):
        forms |= dict.fromkeys(line, set[Op | None]().union(*(forms[name] for name in line)))
    return {name: form for name, found in forms.items() if len(found) == 1 for form in found if form is not None}


def bare_state(graph: Graph, forms: Mapping[str, Op]) -> Graph:
    """Return the graph with states in these forms."""
    producer, uses = graph.producer(), graph.uses()
    new = {}
    rename: dict[str, str] = {}
    gone: set[int] = set()  # nodes that computed the stored form of a state
    states = []
    for state in graph.state:
        form = forms.get(state.name)
        if form is None:
            states.append(state)
            continue
        (initial,) = form.reference(state.initial)
        (signature,) = form.infer([graph[state.name]])
        assert isinstance(form, (Quantize, ToFixed))
        quant = Quant((form.scale,), (form.zero,)) if isinstance(form, Quantize) else Quant((2.0**-form.bits,), (0,))
        new[state.name] = replace(graph[state.name], dtype=signature.dtype, quant=quant)
        for reader in uses.get(state.name, ()):
            gone.add(id(reader))
            rename[reader.outputs[0]] = state.name
        after = producer[state.next].inputs[0] if state.next in producer else state.next  # else a state itself
        states.append(State(state.name, after, initial))
    nodes = [node for node in graph.nodes if id(node) not in gone]
    return rebuild(replace(graph, state=tuple(states)), nodes, new.values(), rename)


def _forms(
    graph: Graph,
    state: State,
    uses: Mapping[str, Sequence[Node]],
    producer: Mapping[str, Node],
    states: Collection[str],
) -> set[Op | None]:
    """Return the forms in which the state is stored wherever it is read and computed; None stands for float."""
    found: set[Op | None] = {r.op if isinstance(r.op, (Quantize, ToFixed)) else None for r in uses.get(state.name, ())}
    if state.name in graph.outputs:
        found.add(None)
    if state.next not in states:
        made = producer.get(state.next)
        found.add(_inverse(made.op) if made is not None else None)
    return found


def _lines(states: Sequence[State]) -> list[set[str]]:
    """Group states into delay lines: where one takes over the value of another, both store the same bits."""
    lines = {s.name: {s.name} for s in states}
    for state in states:
        if state.next in lines:
            joined = lines[state.name] | lines[state.next]
            lines |= dict.fromkeys(joined, joined)
    return list({id(line): line for line in lines.values()}.values())


def _inverse(op: Op) -> Op | None:
    """Return the operator that reverses a conversion to float."""
    if isinstance(op, Dequantize):
        return Quantize(op.scale, op.zero)
    return ToFixed(op.bits) if isinstance(op, FromFixed) else None
