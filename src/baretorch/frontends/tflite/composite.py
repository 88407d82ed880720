"""The row of STABLEHLO_COMPOSITE: an operator that a subgraph of the file defines."""

from __future__ import annotations

from dataclasses import replace

from baretorch.errors import CompileError
from baretorch.frontends.tflite.call import Field, TfliteCall
from baretorch.frontends.tflite.lowering import TfliteLowering, TfliteRow, lower_all
from baretorch.frontends.tflite.schema import COMPOSITE, damaged

DEEPEST = 8  # composites in composites; a file of a few bytes could nest them without end


def composite(g: TfliteLowering, call: TfliteCall) -> tuple[str, ...]:
    """Lower the operators of the decomposition in its place."""
    index, name = call.option(Field(1)), call.text(0)
    if not 0 <= index < len(g.model.subgraphs):
        raise damaged(f"{name} is defined by subgraph {index} of {len(g.model.subgraphs)}")
    if g.depth == DEEPEST:
        raise CompileError(f"{name}: composites are nested too deeply", need=f"{DEEPEST} at most")
    subgraph = g.model.subgraphs[index]
    g.model.file.spend(len(subgraph.tensors) + len(subgraph.operators))
    inputs = [subgraph.tensors[i] for i in subgraph.inputs]
    if len(inputs) != len(call.inputs) or len(subgraph.outputs) != len(call.outputs):
        raise damaged(f"{name} has {len(call.inputs)} inputs, and its decomposition {len(inputs)}")
    values = {}
    for t, x in zip(inputs, call.given(), strict=True):
        if (t.shape, g.type_of(t)) != (g.shape(x), g[x].dtype):
            raise damaged(f"{name} is called with {g[x].type}, but its decomposition states {t}")
        values[t.index] = x
    origin = g.b.origin
    inner = replace(g, subgraph=subgraph, depth=g.depth + 1, values=values, handles={})
    lower_all(inner, subgraph.operators)
    g.b.origin = origin
    return tuple(inner.value(i) for i in subgraph.outputs)


ROWS: dict[str, TfliteRow] = {COMPOSITE: TfliteRow(composite, (), "by the operators of its decomposition", zeros=True)}
