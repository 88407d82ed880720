"""Make inputs and outputs of float16 and bfloat16 float32, for models whose interface Baretorch chooses."""

from __future__ import annotations

from dataclasses import replace

from baretorch.ir.graph import DType, Graph
from baretorch.ops.halves import FromHalf, ToHalf
from baretorch.passes.rewrite import rebuild


def wide_io(graph: Graph) -> Graph:
    """Make inputs and outputs of float16 and bfloat16 float32, as the model computes with them. Moves of halves, such
    as a permutation of an output, become moves of float32."""
    casts = {node.outputs[0]: node.inputs[0] for node in graph.nodes if isinstance(node.op, (FromHalf, ToHalf))}
    if not casts:
        return graph
    wide = [replace(t, dtype=DType.FLOAT32) for t in graph.tensors.values() if t.dtype.is_half]
    return rebuild(graph, [node for node in graph.nodes if node.outputs[0] not in casts], wide, casts)
