"""Simulate int8 in float: every tensor with a scale is rounded to its int8 steps where it is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from baretorch.ir.graph import Array, DType, Graph, Node, Op, Quant, Tensor, fresh
from baretorch.ops.int8.arithmetic import dequantize, quantize_array
from baretorch.ops.int8.groups_of_inputs import round_in_groups
from baretorch.ops.int8.quantize import FINER, Dequantize, Dequantize16, Quantize, Quantize16

# Takes a tensor and the new tensors so far, to which it adds; returns nodes that change the tensor's value where it is
# computed, and the name of the result. None: the value stays.
Change: TypeAlias = Callable[[Tensor, dict[str, Tensor]], tuple[list[Node], str] | None]


def simulate(graph: Graph) -> Graph:
    """Return the graph with constants and values rounded to their scales."""

    def round_(t: Tensor, new: dict[str, Tensor]) -> tuple[list[Node], str] | None:
        if t.quant is None or t.dtype is not DType.FLOAT32:
            return None
        scale, zero = t.quant.scale[0], t.quant.zero_point[0]
        wide = t.quant.bits == 16
        there: Op = Quantize16(scale / FINER) if wide else Quantize(scale, zero)
        back: Op = Dequantize16(scale / FINER) if wide else Dequantize(scale, zero)
        stored, again = (fresh(graph, new, f"{t.name}_{suffix}") for suffix in ("steps", "rounded"))
        new[stored] = replace(t, name=stored, dtype=DType.INT16 if wide else DType.INT8)
        new[again] = replace(t, name=again, value=t.holds)
        return [Node(there, (t.name,), (stored,)), Node(back, (stored,), (again,))], again

    constants = {
        t.name: replace(t, data=round_constant(t.data, t.quant)) for t in graph.constants() if t.data is not None
    }
    return with_changes(replace(graph, tensors={**graph.tensors, **constants}), round_)


def with_changes(graph: Graph, change: Change) -> Graph:
    """Return the graph in which all readers see changed values of inputs, state and results."""
    new: dict[str, Tensor] = {}
    nodes: list[Node] = []
    changed: dict[str, str] = {}

    def add(names: Iterable[str]) -> None:
        for name in names:
            made = change(graph[name], new)
            if made is not None:
                nodes.extend(made[0])
                changed[name] = made[1]

    add((*graph.inputs, *(s.name for s in graph.state)))
    for node in graph.nodes:
        nodes.append(replace(node, inputs=tuple(changed.get(n, n) for n in node.inputs)))
        add(node.outputs)
    return replace(
        graph,
        tensors={**graph.tensors, **new},
        nodes=tuple(nodes),
        outputs=tuple(changed.get(n, n) for n in graph.outputs),
        state=tuple(replace(s, next=changed.get(s.next, s.next)) for s in graph.state),
    )


def round_constant(data: Array, quant: Quant | None) -> Array:
    """Return a constant rounded to its scale; without a scale it stays as it is."""
    if quant is None or data.dtype != np.float32:
        return data
    if quant.axis is None:
        return dequantize(
            quantize_array(data, quant.scale[0], quant.zero_point[0]), quant.scale[0], quant.zero_point[0]
        )
    if quant.group:
        rows = data.reshape(len(data), -1)
        scale = np.array(quant.scale)
        return np.asarray(round_in_groups(rows, scale) * scale[:, None], np.float32).reshape(data.shape)
    scales = np.array(quant.scale).reshape([-1 if i == quant.axis else 1 for i in range(data.ndim)])
    return np.asarray(np.rint(data / scales) * scales, np.float32)
