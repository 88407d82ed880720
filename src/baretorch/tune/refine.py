"""Steps that may make a quantized model more accurate. Each changes the weights of the float graph; whoever takes them
measures, and keeps what helps.

- `balanced`: channels between two layers get ranges alike, which changes nothing in float (cross-layer equalization).
- `rounded`: what rounding a weight to its few bits adds to a layer's answer, the weights beside it take back, over the
  calibration data; so weights are not always rounded to the nearest.
- `corrected`: biases take back what rounding moves the mean of each output by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from baretorch.ir.graph import Array, Graph, Node, Tensor, with_data
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.int8.groups_of_inputs import factors_of
from baretorch.ops.layout import Reshape
from baretorch.ops.linear import Linear
from baretorch.ops.pool import AvgPool2d, MaxPool2d
from baretorch.passes.prune import Channels, channels
from baretorch.quantize.observers import per_channel
from baretorch.quantize.watch import Runner, watching

COLUMNS = 2048  # of a layer at most: the effort grows with their cube
DAMPED = 0.01
MOST = 16.0  # that a channel is scaled by


@dataclass(frozen=True)
class Grid:
    """What weights are rounded to: so many bits, with a factor for each group of inputs or without."""

    bits: int
    group: int = 0

    @property
    def most(self) -> int:
        return (1 << (self.bits - 1)) - 1


def rounded(
    graph: Graph, grids: Mapping[str, Grid], samples: Iterable[Sequence[Array]], runner: Runner
) -> tuple[Graph, Graph]:
    """The graph with weights on their grids, by the layer's output; and the same with corrected biases."""
    layers = [n for n in graph.nodes if n.outputs[0] in grids and _is_dense(graph, n)]
    layers = [n for n in layers if _columns(graph, n) <= COLUMNS]
    moments, means = inputs_of(graph, layers, samples, runner)
    tensors, right = dict(graph.tensors), {}
    for node in layers:
        weight, x = tensors[node.inputs[1]], moments[node.outputs[0]]
        assert weight.data is not None
        flat = weight.data.reshape(len(weight.data), -1).astype(np.float64)
        made = _on_grid(flat, grids[node.outputs[0]], x)
        tensors[weight.name] = with_data(weight, made.reshape(weight.shape))
        if len(node.inputs) > 2:
            bias = graph[node.inputs[2]]
            assert bias.data is not None
            right[bias.name] = with_data(bias, bias.data + (flat - made) @ means[node.outputs[0]])
    plain = replace(graph, tensors=tensors)
    return plain, replace(plain, tensors={**tensors, **right})


def _on_grid(weight: Array, grid: Grid, moments: Array) -> Array:
    """Column by column: the error of each goes into those that come after it, as their inputs tell."""
    known = moments + DAMPED * max(float(np.diag(moments).mean()), 1e-12) * np.eye(len(moments))
    upper = np.linalg.cholesky(np.linalg.inv(known)).T
    left, made = weight.copy(), np.empty_like(weight)
    steps, largest = _steps(weight, grid), _largest(weight, grid.group or weight.shape[1])
    for i in range(weight.shape[1]):
        column = np.where(largest[:, i], weight[:, i], left[:, i]) / steps[:, i]
        whole = np.where(largest[:, i] & (np.abs(column) > 0.5), np.sign(column) * np.ceil(np.abs(column)), column)
        made[:, i] = np.clip(np.rint(whole), -grid.most, grid.most) * steps[:, i]
        left[:, i:] -= np.outer((left[:, i] - made[:, i]) / upper[i, i], upper[i, i:])
    return made


def _steps(weight: Array, grid: Grid) -> Array:
    """Of each weight."""
    scales = np.array(per_channel(weight, grid.bits, grid.group).scale)
    factors = factors_of(weight, scales) if grid.group else np.ones(weight.shape)
    return np.asarray(scales[:, None] * factors)


def _largest(weight: Array, size: int) -> Array:
    """Which weights are the largest of so many in a row. Steps are theirs, and stay what they are if these are rounded
    up, which is why."""
    found = np.zeros(weight.shape, bool)
    for first in range(0, weight.shape[1], size):
        place = np.abs(weight[:, first : first + size]).argmax(axis=1)
        found[np.arange(len(weight)), first + place] = True
    return found


def inputs_of(
    graph: Graph, layers: Sequence[Node], samples: Iterable[Sequence[Array]], runner: Runner
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Mean products of what each weight of a layer is multiplied with, and its mean."""
    sizes = {n.outputs[0]: _columns(graph, n) for n in layers}
    products = {name: np.zeros((size, size)) for name, size in sizes.items()}
    sums, rows = {name: np.zeros(size) for name, size in sizes.items()}, dict.fromkeys(sizes, 0)
    with watching(graph, list({n.inputs[0] for n in layers}), runner) as run:
        for sample in samples:
            values = run(sample)
            for node in layers:
                x = _multiplied(graph, node, values[node.inputs[0]].astype(np.float64))
                products[node.outputs[0]] += x.T @ x
                sums[node.outputs[0]] += x.sum(axis=0)
                rows[node.outputs[0]] += len(x)
    return {n: p / rows[n] for n, p in products.items()}, {n: s / rows[n] for n, s in sums.items()}


def _multiplied(graph: Graph, node: Node, x: Array) -> Array:
    """A row for each place of the output: the inputs in the order of the weights."""
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


def _is_dense(graph: Graph, node: Node) -> bool:
    return isinstance(node.op, Linear) or (isinstance(node.op, Conv2d) and node.op.groups == 1)


def _columns(graph: Graph, node: Node) -> int:
    return graph[node.inputs[1]].count // max(graph[node.inputs[1]].shape[0], 1)


def balanced(graph: Graph, samples: Iterable[Sequence[Array]], runner: Runner) -> Graph:
    """Each channel between layers is divided by its range, beside the mean of all, and multiplied again where it is
    read; only where that changes nothing: limits are at 0 and infinity, if there are any."""
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
            tensors[name] = _times(tensors[name], np.broadcast_to(by, tensors[name].shape))
        for node in found.readers:
            weight = tensors[node.inputs[1]]
            parts = np.broadcast_to(factor, (weight.count // found.count, found.count))
            tensors[weight.name] = _times(weight, parts.reshape(weight.shape))
    return replace(graph, tensors=tensors)


def _scales_freely(graph: Graph, found: Channels) -> bool:
    """One layer makes the channels, and all between it and the readers goes with a factor."""
    if len(found.makers) > 1 or any(graph[name].data is not None for name in found.tensors):
        return False
    (maker,) = found.makers
    assert isinstance(maker.op, (Linear, Conv2d))
    between = [n for n in graph.nodes if found.tensors.intersection(n.inputs) and n not in found.readers]
    limits = {maker.op.lo, maker.op.hi} <= {0.0, float("inf"), float("-inf")}
    return limits and all(isinstance(n.op, (Reshape, MaxPool2d, AvgPool2d)) for n in between)


def _times(t: Tensor, factor: Array) -> Tensor:
    assert t.data is not None
    return with_data(t, t.data * factor)
