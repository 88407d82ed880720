"""Steps that may make a quantized model more accurate. Each changes the weights of the float graph. The caller measures
the result, and keeps it if it is better.

- `balance_channels`: channels between two layers get similar ranges, which changes nothing in float (cross-layer
  equalization).
- `round_weights`: weights are not always rounded to the nearest. The error of each rounding is compensated by the
  weights that are not rounded yet, over the calibration data. Biases correct the mean error of each output.
- `retrain`: train(model) of the model file trains what is left of the model, with weights rounded as in the image.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from baretorch.errors import CompileError
from baretorch.ir.graph import Array, Graph, Node, Quant, with_data
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.int8.groups_of_inputs import factors_of
from baretorch.ops.layout import Reshape
from baretorch.ops.linear import Linear
from baretorch.ops.pool import AvgPool2d, MaxPool2d
from baretorch.passes.prune import Channels, channels
from baretorch.quantize.observers import per_channel
from baretorch.quantize.watch import OpenRunner, watching

COLUMNS = 2048  # of a layer at most: the time grows with their cube
DAMPED = 0.01
MOST = 16.0  # largest factor of a channel
NO_MASKS: Mapping[str, Array] = {}


@dataclass(frozen=True)
class Grid:
    """The grid that weights are rounded to: its bits, and the size of groups of inputs with a factor, or 0."""

    bits: int
    group: int = 0

    @property
    def most(self) -> int:
        return (1 << (self.bits - 1)) - 1


def round_weights(
    graph: Graph, grids: Mapping[str, Grid], samples: Iterable[Sequence[Array]], runner: OpenRunner
) -> tuple[Graph, Graph]:
    """Return the graph with weights on the grids of layers, by their outputs, and that graph with corrected biases."""
    layers = [n for n in graph.nodes if n.outputs[0] in grids and _is_dense(n)]
    layers = [n for n in layers if _columns(graph, n) <= COLUMNS]
    moments, means = inputs_of(graph, layers, samples, runner)
    tensors, right = dict(graph.tensors), {}
    for node in layers:
        weight, x = tensors[node.inputs[1]], moments[node.outputs[0]]
        flat = weight.numbers.reshape(len(weight.numbers), -1).astype(np.float64)
        made = _round_columns(flat, grids[node.outputs[0]], x)
        tensors[weight.name] = with_data(weight, made.reshape(weight.shape))
        if len(node.inputs) > 2:
            bias = graph[node.inputs[2]]
            right[bias.name] = with_data(bias, bias.numbers + (flat - made) @ means[node.outputs[0]])
    plain = replace(graph, tensors=tensors)
    return plain, replace(plain, tensors={**tensors, **right})


def _round_columns(weight: Array, grid: Grid, moments: Array) -> Array:
    """Round column by column. The columns after it compensate the error of each, according to the moments of inputs."""
    known = damp(moments, DAMPED)
    upper = np.linalg.cholesky(np.linalg.inv(known)).T
    left, made = weight.copy(), np.empty_like(weight)
    steps, largest = _steps(weight, grid), _largest(weight, grid.group or weight.shape[1])
    for i in range(weight.shape[1]):
        column = np.where(largest[:, i], weight[:, i], left[:, i]) / steps[:, i]
        whole = np.where(largest[:, i] & (np.abs(column) > 0.5), np.sign(column) * np.ceil(np.abs(column)), column)
        made[:, i] = np.clip(np.rint(whole), -grid.most, grid.most) * steps[:, i]
        left[:, i:] -= np.outer((left[:, i] - made[:, i]) / upper[i, i], upper[i, i:])
    return made


def damp(moments: Array, part: float) -> Array:
    """Add a part of the mean power to the diagonal, so that moments of few samples can be inverted."""
    return np.asarray(moments + part * max(float(np.diag(moments).mean()), 1e-12) * np.eye(len(moments)))


def _steps(weight: Array, grid: Grid) -> Array:
    """Return the step of the grid at each weight."""
    scales = np.array(per_channel(weight, grid.bits, grid.group).scale)
    factors = factors_of(weight, scales) if grid.group else np.ones(weight.shape)
    return np.asarray(scales[:, None] * factors)


def _largest(weight: Array, size: int) -> Array:
    """Mark the largest weight of each `size` in a row. It determines the step, which stays the same because the largest
    weight is rounded away from zero."""
    found = np.zeros(weight.shape, bool)
    for first in range(0, weight.shape[1], size):
        place = np.abs(weight[:, first : first + size]).argmax(axis=1)
        found[np.arange(len(weight)), first + place] = True
    return found


def inputs_of(
    graph: Graph, layers: Sequence[Node], samples: Iterable[Sequence[Array]], runner: OpenRunner
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return for each layer the mean products of the inputs of its weights, and their means."""
    sizes = {n.outputs[0]: _columns(graph, n) for n in layers}
    products = {name: np.zeros((size, size)) for name, size in sizes.items()}
    sums, rows = {name: np.zeros(size) for name, size in sizes.items()}, dict.fromkeys(sizes, 0)
    with watching(graph, list({n.inputs[0] for n in layers}), runner) as run:
        for sample in samples:
            values = run(sample)
            for node in layers:
                x = _input_rows(graph, node, values[node.inputs[0]].astype(np.float64))
                products[node.outputs[0]] += x.T @ x
                sums[node.outputs[0]] += x.sum(axis=0)
                rows[node.outputs[0]] += len(x)
    return {n: p / rows[n] for n, p in products.items()}, {n: s / rows[n] for n, s in sums.items()}


def _input_rows(graph: Graph, node: Node, x: Array) -> Array:
    """Return a row for each position of the output: the inputs in the order of the weights."""
    if isinstance(node.op, Linear):
        return x.reshape(-1, x.shape[-1])
    assert isinstance(node.op, Conv2d)
    _, height, width, _ = graph[node.inputs[1]].shape
    top, bottom, left, right = node.op.padding
    (sh, sw), (dh, dw) = node.op.stride, node.op.dilation
    x = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(x, ((height - 1) * dh + 1, (width - 1) * dw + 1), (1, 2))
    taken = windows[:, ::sh, ::sw, :, ::dh, ::dw]
    return np.moveaxis(taken, 3, 5).reshape(-1, height * width * x.shape[3])


def _is_dense(node: Node) -> bool:
    return isinstance(node.op, Linear) or (isinstance(node.op, Conv2d) and node.op.groups == 1)


def _columns(graph: Graph, node: Node) -> int:
    return graph[node.inputs[1]].count // max(graph[node.inputs[1]].shape[0], 1)


def balance_channels(graph: Graph, samples: Iterable[Sequence[Array]], runner: OpenRunner) -> Graph:
    """Divide each channel between layers by its range relative to the mean, and multiply it again where it is read.
    This is only possible if the limits between are 0 or infinity."""
    sets = [found for found in channels(graph) if _scales_freely(graph, found)]
    tensors = dict(graph.tensors)
    watched = {found.name: found.makers[0].outputs[0] for found in sets}
    ranges = {name: np.zeros(graph[y].shape[-1]) for name, y in watched.items()}
    with watching(graph, list(watched.values()), runner) as run:
        for sample in samples:
            values = run(sample)
            for name, y in watched.items():
                ranges[name] = np.maximum(ranges[name], np.abs(values[y]).reshape(-1, len(ranges[name])).max(axis=0))
    for found in sets:
        seen = ranges[found.name]
        alive = seen[seen > 0]
        middle = float(np.exp(np.log(alive).mean())) if alive.size else 1.0
        factor = np.sqrt(np.clip(np.where(seen > 0, seen, middle) / middle, 1 / MOST, MOST))
        (maker,) = found.makers
        for name in maker.inputs[1:]:
            by = (1 / factor).reshape(-1, *[1] * (len(tensors[name].shape) - 1))
            tensors[name] = with_data(tensors[name], tensors[name].numbers * by)
        for node in found.readers:
            weight = tensors[node.inputs[1]]
            parts = np.broadcast_to(factor, (weight.count // found.count, found.count))
            tensors[weight.name] = with_data(weight, weight.numbers * parts.reshape(weight.shape))
    return replace(graph, tensors=tensors)


def _scales_freely(graph: Graph, found: Channels) -> bool:
    """Return whether one layer makes the channels, and all operators up to the readers are homogeneous."""
    if len(found.makers) > 1 or any(graph[name].data is not None for name in found.tensors):
        return False
    (maker,) = found.makers
    assert isinstance(maker.op, (Linear, Conv2d))
    between = [n for n in graph.nodes if found.tensors.intersection(n.inputs) and n not in found.readers]
    limits = {maker.op.lo, maker.op.hi} <= {0.0, float("inf"), float("-inf")}
    return limits and all(isinstance(n.op, (Reshape, MaxPool2d, AvgPool2d)) for n in between)


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
