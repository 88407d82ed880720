"""Check partial sums: each part adds to all of the sums of the part before it, and to nothing newer. The first part
starts with the bias, and the output is computed from the last, when each input channel was added once."""

from __future__ import annotations

import numpy as np

from baretorch.errors import InternalError
from baretorch.ir.graph import Graph
from baretorch.ops.int8.qsums import QFromSums, QSums
from baretorch.ops.layout import Reshape
from baretorch.ops.move import Slice
from baretorch.plan.check.order import written_by
from baretorch.plan.types import Plan

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


def check_sums(plan: Plan) -> None:
    graph = plan.graph
    own = {o.storage for step in plan.steps if isinstance(step.call.op, QSums) for o in step.writes}
    numbers = {name: i for i, name in enumerate(graph.tensors, 1)}
    begin = {name: numbers[name] if name in graph.inputs else 0 for name in own}
    held: dict[str, Numbers] = {n: np.full(plan.layout.buffer(n).size, begin[n], np.int64) for n in own}
    for phase in plan.phases:
        for step in phase.steps:
            given = [t for t in step.call.inputs if t.data is None]
            for o, t in zip(step.reads, given, strict=True):
                if o.storage in own:
                    have = held[o.storage][o.offset : o.end][written_by(step, o, t)]
                    if (have != numbers[_without_reshapes(graph, o.tensor)]).any():
                        raise InternalError(f"{step.call.op.name} of {step.layer} reads {o.tensor}, which is not there")
        for step in phase.steps:
            for o, t in zip(step.writes, step.call.outputs, strict=True):
                if o.storage in own:
                    held[o.storage][o.offset : o.end][written_by(step, o, t)] = numbers[o.tensor]
    for node in graph.nodes:
        if isinstance(node.op, QFromSums):
            _need_all_channels(graph, node.inputs[0])


def _without_reshapes(graph: Graph, name: str) -> str:
    """Return the tensor that this one is a reshape of."""
    producer = graph.producer()
    while name in producer and isinstance(producer[name].op, Reshape):
        name = producer[name].inputs[0]
    return name


def _need_all_channels(graph: Graph, name: str) -> None:
    """Check that these sums contain each input channel once, and the bias."""
    producer, last = graph.producer(), _without_reshapes(graph, name)
    end, name = None, last
    while name in producer and isinstance(op := producer[name].op, QSums):
        x, before, weight = producer[name].inputs
        start, channels = op.start, graph[x].shape[3]
        if x in producer and isinstance(cut := producer[x].op, Slice) and cut.axis == 3:
            start, channels = cut.start, graph[producer[x].inputs[0]].shape[3]
        stop = start + graph[weight].shape[3]
        if stop != (channels if end is None else end):
            raise InternalError(f"{last} has sums of channels up to {stop}, and not of those after")
        end, name = start, before
    if end and graph[name].data is not None:
        raise InternalError(f"{last} has no sums of the channels before {end}")
