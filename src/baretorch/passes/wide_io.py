"""Make inputs and outputs of float16 and bfloat16 float32, for models whose interface Baretorch chooses."""

from __future__ import annotations

from dataclasses import replace

from baretorch.ir.graph import DType, Graph
from baretorch.ops.halves import FromHalf, ToHalf
from baretorch.passes.rewrite import rebuild


def wide_io(graph: Graph) -> Graph:
    """Make inputs and outputs of float16 and bfloat16 float32, as the model computes with them."""
    given = {node.inputs[0]: node.outputs[0] for node in graph.nodes if isinstance(node.op, FromHalf)}
    halves = {node.outputs[0]: node.inputs[0] for node in graph.nodes if isinstance(node.op, ToHalf)}
    if not given and not halves:
        return graph
    wide = [replace(graph[x], dtype=DType.FLOAT32) for x in given]
    nodes = [node for node in graph.nodes if not isinstance(node.op, (FromHalf, ToHalf))]
    rename = {y: x for x, y in given.items()}
    outputs = tuple(halves.get(y, y) for y in graph.outputs)
    return rebuild(replace(graph, outputs=tuple(rename.get(y, y) for y in outputs)), nodes, wide, rename)
