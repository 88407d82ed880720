"""Let a convolution of volumes go frame by frame, so that the frames of one window exist at a time, not those of all.

    y = conv2d(depth_windows(x))  ->  y = cat of conv2d(depth_windows(frames of x)), for each window

The frames are slices of x, which are views, and the results are made where the cat wants them.
"""

from __future__ import annotations

from dataclasses import replace

from baretorch.ir.graph import Graph, Node, Op, Tensor, fresh
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.layout import DepthWindows
from baretorch.ops.move import Cat, Slice
from baretorch.passes.rewrite import rebuilt


def split_depth(graph: Graph) -> Graph:
    producer, uses = graph.producer(), graph.uses()
    nodes: list[Node] = []
    new: dict[str, Tensor] = {}

    def add(op: Op, like: str, shape: tuple[int, ...], *inputs: str) -> str:
        name = fresh(graph, new, like)
        new[name] = replace(graph[like], name=name, shape=shape)
        nodes.append(Node(op, inputs, (name,)))
        return name

    for node in graph.nodes:
        before = producer.get(node.inputs[0]) if isinstance(node.op, (Conv2d, QConv2d)) else None
        if before is None or not isinstance(before.op, DepthWindows) or len(uses[before.outputs[0]]) > 1:
            nodes.append(node)
            continue
        windows, (x,), (gathered,), (out,) = before.op, before.inputs, before.outputs, node.outputs
        batch, _, *frame = graph[x].shape
        count, length = graph[out].shape[0], windows.dilation * (windows.kernel - 1) + 1
        if batch != 1 or count == 1:
            nodes.append(node)
            continue
        parts = []
        for i in range(count):
            start = i * windows.stride
            frames = add(Slice(1, start, start + length), x, (1, length, *frame), x)
            together = add(windows, gathered, (1, *graph[gathered].shape[1:]), frames)
            parts.append(add(node.op, out, (1, *graph[out].shape[1:]), together, *node.inputs[1:]))
        nodes.append(Node(Cat(0), tuple(parts), (out,)))
    return rebuilt(graph, nodes, new.values()) if new else graph
