"""Which channels a model needs least, and weights of the layers that read them which make up for those left out.

A channel that is left out is replaced by the combination of those that stay that comes nearest to it over the
calibration data (and a constant, where a layer reads no padding). So what counts is not how large a channel is, but how
much of what is made of it the others cannot say; the order in which to leave them out follows one by one, as in
"optimal brain surgeon" (Hassibi and Stork, 1993).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from baretorch.ir.graph import Array, Graph, Node, with_data
from baretorch.ops.conv2d import Conv2d
from baretorch.passes.prune import Channels, without
from baretorch.quantize.watch import Runner, watching

DAMPED = 0.02  # of the mean power of channels: few samples do not say all


@dataclass(frozen=True)
class Moments:
    """Mean products of channels with each other and with 1, where layers read them, by the tensor that they read."""

    of: Mapping[str, Array]


def find_moments(graph: Graph, sets: Sequence[Channels], samples: Iterable[Sequence[Array]], runner: Runner) -> Moments:
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
    """The channels of a set, those first that are missed least when they and all before them are left out."""
    parts = [_Reader(graph, node, found.columns(graph), moments) for node in found.readers]
    left, order = np.ones(found.count, bool), []
    while left.any():
        missed = np.sum([part.missed() for part in parts], axis=0).reshape(found.count, -1).sum(axis=1)
        channel = int(np.where(left, missed, np.inf).argmin())
        for part in parts:
            for column in found.of_columns(graph, [channel]):
                part.remove(column)
        left[channel] = False
        order.append(channel)
    return order


class _Reader:
    """A layer that reads the channels, while they become fewer."""

    def __init__(self, graph: Graph, node: Node, count: int, moments: Moments) -> None:
        self.moments = _damped(moments.of[node.inputs[0]], _has_constant(node))
        weight = _rows(graph, node, count)
        self.weight = np.hstack([weight, np.zeros((len(weight), len(self.moments) - count))])
        self.inverse = np.linalg.inv(self.moments)
        self.count = count
        made = np.einsum("ri,ij,rj->", self.weight, self.moments, self.weight)
        self.weight /= np.sqrt(max(float(made), 1e-30))  # layers count alike

    def missed(self) -> Array:
        """For each channel what its loss adds to the error of all that the layer makes."""
        power = np.square(self.weight[:, : self.count]).sum(axis=0)
        return np.asarray(power / np.maximum(np.diag(self.inverse)[: self.count], 1e-30))

    def remove(self, channel: int) -> None:
        row = self.inverse[channel] / max(self.inverse[channel, channel], 1e-30)
        self.weight -= np.outer(self.weight[:, channel], row)
        self.inverse -= np.outer(self.inverse[:, channel], row)
        self.weight[:, channel] = self.inverse[channel] = self.inverse[:, channel] = 0.0


def shrunk(graph: Graph, removed: Mapping[Channels, Sequence[int]], moments: Moments) -> Graph:
    """The graph without these channels, whose other weights make up for them."""
    tensors = dict(graph.tensors)
    for found, numbers in removed.items():
        count = found.columns(graph)
        kept = np.setdiff1d(np.arange(count), np.array(found.of_columns(graph, numbers), np.int64))
        for node in found.readers:
            name = node.inputs[1]
            now = replace(graph, tensors=tensors)
            rows, constants = _made_up(now, node, count, kept, moments)
            weight = tensors[name]
            tensors[name] = with_data(weight, rows.reshape(weight.shape))
            if len(node.inputs) > 2 and constants.any():
                bias = tensors[node.inputs[2]]
                assert bias.data is not None
                added = constants.reshape(weight.shape[0], -1).sum(axis=1)
                tensors[bias.name] = with_data(bias, bias.data + added)
    return without(replace(graph, tensors=tensors), {found.name: numbers for found, numbers in removed.items()})


def _made_up(graph: Graph, node: Node, count: int, kept: Array, moments: Moments) -> tuple[Array, Array]:
    """The rows of a layer's weights, in which those that are kept say what the others said, and what is constant."""
    weight = _rows(graph, node, count)
    known = _damped(moments.of[node.inputs[0]], _has_constant(node))
    stay = np.append(kept, count) if len(known) > count else kept
    said = np.linalg.solve(known[np.ix_(stay, stay)], known[stay][:, :count])  # each channel by those that stay
    found = weight @ said.T
    new = weight.copy()
    new[:, kept] = found[:, : len(kept)]
    return new, found[:, len(kept) :] if len(stay) > len(kept) else np.zeros((len(weight), 1))


def _rows(graph: Graph, node: Node, count: int) -> Array:
    weight = graph[node.inputs[1]].data
    assert weight is not None
    return weight.reshape(-1, count).astype(np.float64)


def _has_constant(node: Node) -> bool:
    """Whether a constant before the layer is one behind it: its bias holds it."""
    padded = isinstance(node.op, Conv2d) and any(node.op.padding)
    return len(node.inputs) > 2 and not padded


def _damped(moments: Array, constant: bool) -> Array:
    count = len(moments) - 1
    known = moments.copy() if constant else moments[:count, :count].copy()
    known[np.arange(count), np.arange(count)] += DAMPED * max(float(np.diag(moments)[:count].mean()), 1e-12)
    return known
