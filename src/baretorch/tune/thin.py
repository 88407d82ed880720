"""Fours of weights that a layer needs least become zero, and those that stay make up for them: layers of which few are
left are kept without the others (ops/packing/sparse.py). Which are needed least is known from the inputs that they are
multiplied with, over the calibration data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from baretorch.ir.graph import Array, Graph, Node, with_data
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.linear import Linear
from baretorch.quantize.watch import Runner
from baretorch.tune.refine import COLUMNS, inputs_of

FOUR = 4
DAMPED = 0.02


def can_be_thin(graph: Graph, node: Node) -> bool:
    """A linear layer, or a convolution without windows, whose weights are its own and in fours."""
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


def thinned(graph: Graph, kept: Mapping[str, float], samples: Iterable[Sequence[Array]], runner: Runner) -> Graph:
    """The graph in which layers, by what they make, keep this part of their fours of weights."""
    layers = [n for n in graph.nodes if n.outputs[0] in kept and can_be_thin(graph, n)]
    small = [n for n in layers if graph[n.inputs[1]].shape[-1] <= COLUMNS]
    moments, _ = inputs_of(graph, small, samples, runner)
    tensors = dict(graph.tensors)
    for node in layers:
        weight = tensors[node.inputs[1]]
        assert weight.data is not None
        rows = weight.data.reshape(len(weight.data), -1).astype(np.float64)
        known = moments.get(node.outputs[0])
        made = _few(rows, kept[node.outputs[0]], np.eye(rows.shape[1]) if known is None else known)
        tensors[weight.name] = with_data(weight, made.reshape(weight.shape))
    return replace(graph, tensors=tensors)


def _few(rows: Array, part: float, moments: Array) -> Array:
    """The fours with the most power in the outputs; each row's are fitted to what the whole row would give."""
    power = (np.square(rows) * np.diag(moments)).reshape(len(rows), -1, FOUR).sum(axis=2)
    count = max(1, round(part * power.size))
    kept = np.zeros(power.size, bool)
    kept[np.argsort(-power, axis=None, kind="stable")[:count]] = True
    mask = np.repeat(kept.reshape(power.shape), FOUR, axis=1)
    known = moments + DAMPED * max(float(np.diag(moments).mean()), 1e-12) * np.eye(len(moments))
    made = np.zeros_like(rows)
    for row, (stay, weight) in enumerate(zip(mask, rows, strict=True)):
        if stay.any():
            made[row, stay] = np.linalg.solve(known[np.ix_(stay, stay)], known[stay] @ weight)
    return made


def zeros(graph: Graph, node: Node) -> Array:
    """1 where a layer's weights are in a four that is not all zero, else 0."""
    weight = graph[node.inputs[1]].data
    assert weight is not None
    used = weight.reshape(-1, FOUR).any(axis=1)
    return np.repeat(used, FOUR).reshape(weight.shape).astype(np.float32)
