"""Scales of weights with which 32 bits are enough to requantize. See docs/arithmetic.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from baretorch.ir.graph import Array, Graph, Node, fresh
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.int8.layer import narrow_scales
from baretorch.ops.linear import Linear
from baretorch.passes.order import LOWERING, run_passes
from baretorch.quantize.accuracy_warnings import rounded_answers
from baretorch.quantize.quantize import Quantization


def with_narrow(graph: Graph) -> Graph:
    """Return a float graph with scales, those of weights being coarser. Each layer gets a weight of its own, since its
    scales depend on those of the layer's input and output."""
    tensors, nodes = dict(graph.tensors), list(graph.nodes)
    for i, node in enumerate(nodes):
        scales = narrow_scales(graph, node) if _of_8_bits(graph, node) else None
        if scales is not None:
            x, weight, *rest = node.inputs
            t = graph[weight]
            assert t.quant is not None
            name = fresh(graph, tensors, f"{weight}_narrow")
            quant = replace(t.quant, scale=tuple(map(float, scales)), zero_point=(0,) * len(scales), axis=0)
            tensors[name] = replace(t, name=name, quant=quant)
            nodes[i] = replace(node, inputs=(x, name, *rest))
    return replace(graph, tensors=tensors, nodes=tuple(nodes))


def narrowed(quantization: Quantization, examples: Sequence[Array]) -> Quantization:
    """Return the quantization with coarser scales of weights, and the answers that these give to the examples."""
    graph = with_narrow(quantization.graph)
    answers = rounded_answers(graph, run_passes(graph, LOWERING)[-1][1], examples)
    return replace(quantization, graph=graph, answers=answers, narrow=True)


def _of_8_bits(graph: Graph, node: Node) -> bool:
    """A layer with weights that takes and gives int8."""
    noted = [graph[name].quant for name in (*node.inputs[:1], *node.outputs)]
    return isinstance(node.op, (Linear, Conv2d)) and all(q is not None and q.bits == 8 for q in noted)
