"""The precisions of layers: int8, int4, int16, float and float16, as a configuration chooses them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from math import inf

import numpy as np

from baretorch.errors import CompileError
from baretorch.ir.graph import Array, Graph, Node, Tensor, fresh
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.elementwise import Add, Clamp, Mul, Sub
from baretorch.ops.int8.groups_of_inputs import GROUP
from baretorch.ops.int8.qmove import MOVES_16_BITS
from baretorch.ops.layout import Permute, Reshape
from baretorch.ops.linear import Linear
from baretorch.ops.packing import half
from baretorch.ops.pool import AvgPool2d, MaxPool2d
from baretorch.ops.recurrent import Recurrent
from baretorch.ops.reduce import Mean
from baretorch.ops.softmax import Softmax
from baretorch.quantize.observers import SMALLEST, per_channel

KEPT = 2.0**-20  # the relative error in power up to which float16 can hold weights; normal numbers have 2^-24
LARGEST_BIAS = 2.0**100  # after scaling: sums stay far from the end of float32


class Precision(StrEnum):
    """The precision of a layer."""

    INT8 = "int8"  # the default of quantized layers
    INT4 = "int4"  # weights of 4 bits
    INT4G32 = "int4g32"  # the same with a factor for each 32 inputs
    INT16 = "int16"  # weights of 8 bits, inputs and outputs of 16
    FLOAT = "float"  # as with --keep-float
    FLOAT16 = "float16"  # float with weights of 16 bits


IN_FLOAT = (Precision.FLOAT, Precision.FLOAT16)
OF_WEIGHTS = (Precision.INT4, Precision.INT4G32, Precision.FLOAT16)  # for layers with weights only


def set_precisions(graph: Graph, layers: Mapping[str, tuple[Precision, set[str]]]) -> Graph:
    """Return a graph with scales in the precisions of its layers, each of which is given with its outputs."""
    tensors = dict(graph.tensors)
    nodes = list(graph.nodes)
    made_by = graph.producer()
    chosen: dict[int, tuple[str, Precision]] = {}
    halves: dict[int, list[Node]] = {}
    for layer, (precision, made) in layers.items():
        if precision not in FITS:
            continue
        fits = FITS[precision]
        found = [i for i, n in enumerate(graph.nodes) if made.intersection(n.outputs) and fits(graph, n)]
        if not found:
            ops = sorted({n.op.name for n in nodes if made.intersection(n.outputs)})
            lacks, need = LACKS[precision]
            raise CompileError(
                f"--config: {layer!r} = {precision.value!r}: {lacks}", have=", ".join(ops) or None, need=need
            )
        for i in found:
            if i in chosen:
                _need_same(*chosen[i], layer, precision)
                continue
            chosen[i] = (layer, precision)
            if precision is Precision.FLOAT16:
                halves[i] = convert_to_float16(graph, nodes[i], tensors)
                continue
            if precision in (Precision.INT4, Precision.INT4G32):
                x, weight, *rest = nodes[i].inputs
                own = _in_int4(graph[weight], fresh(graph, tensors, f"{weight}_int4"), precision)
                tensors[own.name] = own
                nodes[i] = replace(nodes[i], inputs=(x, own.name, *rest))
                continue
            weighted = isinstance(nodes[i].op, (Linear, Conv2d, Recurrent))
            values = nodes[i].inputs[:1] if weighted else nodes[i].inputs
            given = {_moved_from(made_by, n) for n in values}
            for name in (*nodes[i].outputs, *given.intersection(graph.inputs)):
                quant = tensors[name].quant
                if quant is not None:
                    tensors[name] = replace(tensors[name], quant=replace(quant, bits=16))
    nodes = [made for i, node in enumerate(nodes) for made in halves.get(i, [node])]
    for node in nodes:  # nodes that only move values of 16 bits keep them
        quants = [tensors[n].quant for n in (*node.inputs, *node.outputs)]
        wide = all(q is not None and q.bits == 16 and q == quants[-1] for q in quants[:-1])
        if isinstance(node.op, MOVES_16_BITS) and wide:
            tensors[node.outputs[0]] = replace(tensors[node.outputs[0]], quant=quants[0])
    return replace(graph, tensors=tensors, nodes=tuple(nodes))


def _need_same(first: str, one: Precision, layer: str, precision: Precision) -> None:
    """Raise CompileError if a layer has two names with different precisions."""
    if one is not precision:
        raise CompileError(
            f"--config: {first!r} = {one.value!r} and {layer!r} = {precision.value!r} are the same layer",
            need="one precision for it",
        )


def _moved_from(made: Mapping[str, Node], name: str) -> str:
    """Return the tensor of which this one is a copy in another order or shape, or this one itself."""
    while name in made and isinstance(made[name].op, (Permute, Reshape)):
        name = made[name].inputs[0]
    return name


LACKS = {
    Precision.INT4: ("it has no weights in int8", "a linear layer or a convolution that is quantized"),
    Precision.INT4G32: (
        "it has no weights in int8 for groups of 32 inputs",
        "a linear layer or a convolution of 1x1 that is quantized",
    ),
    Precision.INT16: (
        "it has no int16 form",
        "a linear layer, a convolution, an LSTM, GRU or RNN, a sum of two tensors, a pool, a mean or a softmax that is "
        "quantized",
    ),
    Precision.FLOAT16: ("it has no weights in float", "a linear layer or a convolution"),
}


def _in_int16(graph: Graph, node: Node) -> bool:
    """Report whether inputs and outputs of a node may have 16 bits."""
    values = graph.of(node.inputs)
    if isinstance(node.op, (Add, Sub)) and any(t.data is not None for t in values):
        return False
    if isinstance(node.op, (Add, Sub, MaxPool2d, AvgPool2d, Mean)) or type(node.op) is Softmax:
        return all(t.quant is not None for t in (*values, graph[node.outputs[0]]))
    if isinstance(node.op, Recurrent):
        noted = [graph[n].quant is not None for n in node.outputs[:2]]  # the hidden state at all times, or at the end
        return graph[node.inputs[0]].quant is not None and any(noted)
    return _has_weights(graph, node)


def _has_weights(graph: Graph, node: Node) -> bool:
    return (
        isinstance(node.op, (Linear, Conv2d))
        and graph[node.inputs[1]].quant is not None
        and graph[node.outputs[0]].quant is not None
    )


def _of_pixels(graph: Graph, node: Node) -> bool:
    """Report whether a node is a linear layer, or a convolution of single pixels."""
    op = node.op
    plain = isinstance(op, Conv2d) and replace(op, lo=-inf, hi=inf, pool=(1, 1)) == Conv2d()
    pointwise = plain and graph[node.inputs[1]].shape[1:3] == (1, 1)
    return _has_weights(graph, node) and (isinstance(op, Linear) or pointwise)


def has_float_weights(graph: Graph, node: Node) -> bool:
    """Report whether the weights of a layer can be float16."""
    return isinstance(node.op, (Linear, Conv2d)) and graph[node.inputs[1]].data is not None


FITS = {
    Precision.INT4: _has_weights,
    Precision.INT4G32: _of_pixels,
    Precision.INT16: _in_int16,
    Precision.FLOAT16: has_float_weights,
}


def _in_int4(weight: Tensor, name: str, precision: Precision) -> Tensor:
    """Return a copy of a weight in 4 bits. It is a copy because other layers may use the same weight in int8."""
    group = GROUP if precision is Precision.INT4G32 else 0
    return replace(weight, name=name, quant=per_channel(weight.numbers, 4, group))


def convert_to_float16(graph: Graph, node: Node, tensors: dict[str, Tensor]) -> list[Node]:
    """Return the nodes that compute a layer with weights of float16, and add new tensors to `tensors`. If float16
    cannot hold the weights of an output channel, they are stored times a power of two, and the result is divided by it.
    Both are exact, so that only the rounding of float16 itself remains."""
    op, (x, weight, *bias) = node.op, node.inputs
    assert isinstance(op, (Linear, Conv2d))
    data = graph[weight].numbers
    added = graph[bias[0]].data if bias else None
    powers = _powers(data, np.zeros(len(data)) if added is None else np.abs(added.astype(np.float64)))
    if not powers.any():
        return [replace(node, op=replace(op, half=True))]
    (out,) = node.outputs
    factors = np.ldexp(np.float32(1), powers)

    def scaled(name: str) -> str:
        own, t = fresh(graph, tensors, f"{name}_scaled"), graph[name]
        by = factors.reshape(-1, *[1] * (len(t.shape) - 1))
        tensors[own] = replace(t, name=own, quant=None, data=np.asarray(t.numbers * by, np.float32))
        return own

    def value(suffix: str, shape: tuple[int, ...], made: Array | None = None) -> str:
        own = fresh(graph, tensors, f"{out}_{suffix}")
        tensors[own] = replace(graph[out], name=own, quant=None, shape=shape, data=made)
        return own

    limited = (op.lo, op.hi) != (-inf, inf)
    whole = value("scaled", graph[out].shape)
    back = value("factors", (len(data),), np.ldexp(np.float32(1), -powers))
    sums = value("whole", graph[out].shape) if limited else out
    layer = replace(op, half=True, lo=-inf, hi=inf)
    nodes = [Node(layer, (x, scaled(weight), *map(scaled, bias)), (whole,)), Node(Mul(), (whole, back), (sums,))]
    return [*nodes, Node(Clamp(op.lo, op.hi), (sums,), (out,))] if limited else nodes


def _powers(weight: Array, bias: Array) -> Array:
    """Return the power of two with which to scale each output channel; 0 if float16 can hold its weights."""
    rows = weight.reshape(len(weight), -1).astype(np.float64)
    error = np.square(half.round_to_half(rows.astype(np.float32)).astype(np.float64) - rows).sum(axis=1)
    largest = np.abs(rows).max(axis=1, initial=0.0)
    lost = ~(error <= KEPT * np.square(rows).sum(axis=1)) & (largest >= SMALLEST)
    powers = 1 - np.frexp(largest)[1]
    most = np.floor(np.log2(LARGEST_BIAS / np.maximum(bias, 1.0)))
    return np.where(lost, np.minimum(powers, most), 0).astype(np.int32)
