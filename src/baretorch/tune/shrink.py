"""Find the channels and weights that a model needs least, and weights that compensate for those that are removed.

A removed channel is replaced by the combination of the remaining channels that is nearest to it over the calibration
data (and a constant, if the layer reads no padding). So the importance of a channel is not its magnitude, but the part
of the layers' outputs that the others cannot replace. The order of removal follows one by one, as in "optimal brain
surgeon" (Hassibi and Stork, 1993).

Weights are removed in fours. Layers with few remaining fours are stored without the others (ops/packing/sparse.py). The
importance of fours follows from the layers' inputs over the calibration data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from baretorch.ir.graph import Array, Graph, Node, with_data
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.linear import Linear
from baretorch.passes.prune import Channels, drop_channels
from baretorch.quantize.watch import OpenRunner, watching
from baretorch.tune.refine import COLUMNS, damp, inputs_of

FOUR = 4
DAMPED = 0.02  # of the mean power of channels, because the samples are few


@dataclass(frozen=True)
class Moments:
    """Second moments of channels, by tensor: the means of channel i times channel j, and the means of each channel."""

    of: Mapping[str, Array]


def find_moments(
    graph: Graph, sets: Sequence[Channels], samples: Iterable[Sequence[Array]], runner: OpenRunner
) -> Moments:
    """Run the graph over the samples."""
    counts = {node.inputs[0]: found.columns(graph) for found in sets for node in found.readers}
    sums = {name: np.zeros((count + 1, count + 1)) for name, count in counts.items()}
    rows = dict.fromkeys(counts, 0)
    with watching(graph, list(counts), runner) as run:
        for sample in samples:
            values = run(sample)
            for name, count in counts.items():
                x = values[name].reshape(-1, count).astype(np.float64)
                x = np.hstack([x, np.ones((len(x), 1))])
                sums[name] += x.T @ x
                rows[name] += len(x)
    return Moments({name: total / rows[name] for name, total in sums.items()})


def removal_order(graph: Graph, found: Channels, moments: Moments) -> list[int]:
    """Return the channels of a set in the order of removal: next is the channel whose loss adds least to the error."""
    parts = [_Reader(graph, node, found.columns(graph), moments) for node in found.readers]
    left, order = np.ones(found.count, bool), []
    while left.any():
        losses = np.sum([part.losses() for part in parts], axis=0).reshape(found.count, -1).sum(axis=1)
        channel = int(np.where(left, losses, np.inf).argmin())
        for part in parts:
            for column in found.columns_of(graph, [channel]):
                part.remove(column)
        left[channel] = False
        order.append(channel)
    return order


class _Reader:
    """A layer that reads the channels, during their removal."""

    def __init__(self, graph: Graph, node: Node, count: int, moments: Moments) -> None:
        self.moments = _damp_channels(moments.of[node.inputs[0]], _has_constant(node))
        weight = _rows(graph, node, count)
        self.weight = np.hstack([weight, np.zeros((len(weight), len(self.moments) - count))])
        self.inverse = np.linalg.inv(self.moments)
        self.count = count
        made = np.einsum("ri,ij,rj->", self.weight, self.moments, self.weight)
        self.weight /= np.sqrt(max(float(made), 1e-30))  # layers count alike

    def losses(self) -> Array:
        """Return for each channel how much its loss adds to the error of the layer's outputs."""
        power = np.square(self.weight[:, : self.count]).sum(axis=0)
        return np.asarray(power / np.maximum(np.diag(self.inverse)[: self.count], 1e-30))

    def remove(self, channel: int) -> None:
        row = self.inverse[channel] / max(self.inverse[channel, channel], 1e-30)
        self.weight -= np.outer(self.weight[:, channel], row)
        self.inverse -= np.outer(self.inverse[:, channel], row)
        self.weight[:, channel] = self.inverse[channel] = self.inverse[:, channel] = 0.0


def remove_channels(graph: Graph, removed: Mapping[Channels, Sequence[int]], moments: Moments) -> Graph:
    """Return the graph without these channels, with weights that compensate for them."""
    tensors = dict(graph.tensors)
    for found, numbers in removed.items():
        count = found.columns(graph)
        kept = np.setdiff1d(np.arange(count), np.array(found.columns_of(graph, numbers), np.int64))
        for node in found.readers:
            name = node.inputs[1]
            now = replace(graph, tensors=tensors)
            rows, constants = _compensate(now, node, count, kept, moments)
            weight = tensors[name]
            tensors[name] = with_data(weight, rows.reshape(weight.shape))
            if len(node.inputs) > 2 and constants.any():
                bias = tensors[node.inputs[2]]
                added = constants.reshape(weight.shape[0], -1).sum(axis=1)
                tensors[bias.name] = with_data(bias, bias.numbers + added)
    return drop_channels(replace(graph, tensors=tensors), {found.name: numbers for found, numbers in removed.items()})


def _compensate(graph: Graph, node: Node, count: int, kept: Array, moments: Moments) -> tuple[Array, Array]:
    """Return a layer's weights in which the kept channels stand for the others too, and a constant for its bias."""
    weight = _rows(graph, node, count)
    known = _damp_channels(moments.of[node.inputs[0]], _has_constant(node))
    stay = np.append(kept, count) if len(known) > count else kept
    combined = np.linalg.solve(known[np.ix_(stay, stay)], known[stay][:, :count])  # each channel from the kept ones
    found = weight @ combined.T
    new = weight.copy()
    new[:, kept] = found[:, : len(kept)]
    return new, found[:, len(kept) :] if len(stay) > len(kept) else np.zeros((len(weight), 1))


def _rows(graph: Graph, node: Node, count: int) -> Array:
    return graph[node.inputs[1]].numbers.reshape(-1, count).astype(np.float64)


def _has_constant(node: Node) -> bool:
    """Return whether the layer's bias can hold a constant of its input."""
    padded = isinstance(node.op, Conv2d) and any(node.op.padding)
    return len(node.inputs) > 2 and not padded


def _damp_channels(moments: Array, constant: bool) -> Array:
    count = len(moments) - 1
    known = moments.copy() if constant else moments[:count, :count].copy()
    known[np.arange(count), np.arange(count)] += DAMPED * max(float(np.diag(moments)[:count].mean()), 1e-12)
    return known


def can_be_thin(graph: Graph, node: Node) -> bool:
    """Return whether a layer is linear or a 1x1 convolution, with weights of its own that can be split into fours."""
    if not isinstance(node.op, (Linear, Conv2d)) or graph[node.inputs[1]].data is None:
        return False
    shape = graph[node.inputs[1]].shape
    plain = len(shape) == 2 or (
        isinstance(node.op, Conv2d)
        and shape[1:3] == node.op.stride == node.op.pool == (1, 1)
        and node.op.groups == 1
        and not any(node.op.padding)
    )
    return plain and shape[-1] % FOUR == 0 and len(graph.uses()[node.inputs[1]]) == 1


def thin_weights(
    graph: Graph, kept: Mapping[str, float], samples: Iterable[Sequence[Array]], runner: OpenRunner
) -> Graph:
    """Return the graph in which layers, by their outputs, keep this part of their fours of weights."""
    layers = [n for n in graph.nodes if n.outputs[0] in kept and can_be_thin(graph, n)]
    small = [n for n in layers if graph[n.inputs[1]].shape[-1] <= COLUMNS]
    moments, _ = inputs_of(graph, small, samples, runner)
    tensors = dict(graph.tensors)
    for node in layers:
        weight = tensors[node.inputs[1]]
        rows = weight.numbers.reshape(len(weight.numbers), -1).astype(np.float64)
        known = moments.get(node.outputs[0])
        made = _keep_fours(rows, kept[node.outputs[0]], np.eye(rows.shape[1]) if known is None else known)
        tensors[weight.name] = with_data(weight, made.reshape(weight.shape))
    return replace(graph, tensors=tensors)


def _keep_fours(rows: Array, part: float, moments: Array) -> Array:
    """Keep the fours with the most power in the outputs, and fit those of each row to the outputs of the whole row."""
    power = (np.square(rows) * np.diag(moments)).reshape(len(rows), -1, FOUR).sum(axis=2)
    count = max(1, round(part * power.size))
    kept = np.zeros(power.size, bool)
    kept[np.argsort(-power, axis=None, kind="stable")[:count]] = True
    mask = np.repeat(kept.reshape(power.shape), FOUR, axis=1)
    known = damp(moments, DAMPED)
    made = np.zeros_like(rows)
    for row, (stay, weight) in enumerate(zip(mask, rows, strict=True)):
        if stay.any():
            made[row, stay] = np.linalg.solve(known[np.ix_(stay, stay)], known[stay] @ weight)
    return made


def mask_of(graph: Graph, node: Node) -> Array:
    """Return 1 for weights in fours that are not all zero, else 0."""
    weight = graph[node.inputs[1]].numbers
    used = weight.reshape(-1, FOUR).any(axis=1)
    return np.repeat(used, FOUR).reshape(weight.shape).astype(np.float32)
