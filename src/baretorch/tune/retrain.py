"""Retrain a candidate with the train(model) of a model file: what is left of the model learns, with weights rounded as
in the image."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from baretorch.errors import CompileError
from baretorch.ir.graph import Array, Graph, Quant
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.linear import Linear
from baretorch.tune.refine import Grid

NO_MASKS: Mapping[str, Array] = {}


def find_obstacle(graph: Graph) -> str | None:
    """Return why train(model) cannot train a graph, or None if it can. Its batches have the samples along the first
    dimension of every input and output."""
    from baretorch.quantize.train import RoundingModule

    if graph.state:
        return "train(model) does not support a model with state"
    if any(graph[n].shape[:1] != (1,) for n in (*graph.inputs, *graph.outputs)):
        return "train(model) does not support a model whose inputs and outputs do not have a batch first"
    try:
        RoundingModule(graph)
    except CompileError as error:
        return error.what
    return None


def retrain(
    graph: Graph, grids: Mapping[str, Grid], train: Callable[[object], object], masks: Mapping[str, Array] = NO_MASKS
) -> Graph:
    """Return the graph after train(model). In each step, the weights of layers in `grids`, by their outputs, are
    rounded; `masks` keep parts of weights at zero, by the names of these."""
    from baretorch.quantize.train import RoundingModule

    tensors = dict(graph.tensors)
    for node in graph.nodes:
        grid = grids.get(node.outputs[0])
        if grid is not None and isinstance(node.op, (Linear, Conv2d)):
            weight = graph[node.inputs[1]]
            count = weight.shape[0]
            quant = Quant((1.0,) * count, (0,) * count, 0, bits=grid.bits, group=grid.group)
            tensors[weight.name] = replace(weight, quant=quant)
    module = RoundingModule(replace(graph, tensors=tensors), masks=masks)
    train(module)
    learned = module.to_graph()
    return replace(graph, tensors={n: replace(t, quant=graph[n].quant) for n, t in learned.tensors.items()})
