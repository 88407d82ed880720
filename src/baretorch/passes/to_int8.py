"""Make the notes of `note_scales` true: operators between noted tensors become int8 operators.

Where an operator has no int8 form, or a tensor around it has no scale, it stays float and quantize or dequantize stand
at the border; `float_layers` names what stayed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from baretorch.ir import Array, DType, Graph, Node, Op, Quant, Tensor, with_data
from baretorch.ops.arithmetic import dequantize, multipliers, quantize
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.elementwise import Clamp
from baretorch.ops.layout import Pad, Permute, Reshape
from baretorch.ops.linear import Linear
from baretorch.ops.lookup import Lookup
from baretorch.ops.move import Cat, Copy, Slice
from baretorch.ops.pool import MaxPool2d
from baretorch.ops.qconv2d import QConv2d
from baretorch.ops.qlinear import QLinear
from baretorch.ops.quantize import Dequantize, Quantize
from baretorch.passes.rewrite import fresh, rebuilt

MOVES = (Reshape, Permute, Slice, Cat, Copy, MaxPool2d)  # the output is made of the input's own values
QUIET = (Quantize, Dequantize, Reshape, Permute, Slice, Cat, Copy)  # float is no loss here


def to_int8(graph: Graph) -> Graph:
    if all(t.quant is None for t in graph.tensors.values()):
        return graph
    walk = _Walk(graph)
    for node in graph.nodes:
        walk.visit(node)
    outputs = tuple(walk.real(name) for name in graph.outputs)
    state = tuple(replace(s, next=walk.real(s.next)) for s in graph.state)
    return rebuilt(replace(graph, outputs=outputs, state=state), walk.nodes, walk.new.values())


def float_layers(graph: Graph) -> list[str]:
    """Of a graph with int8 operators: the operators that compute in float, by the user's name for them."""
    if not any(t.dtype is DType.INT8 for t in graph.tensors.values()):
        return []
    return [
        f"{node.op.name} {graph[node.outputs[0]].origin}".strip()
        for node in graph.nodes
        if graph[node.outputs[0]].dtype is DType.FLOAT32 and not isinstance(node.op, QUIET)
    ]


@dataclass
class _Walk:
    graph: Graph
    nodes: list[Node] = field(default_factory=list)
    new: dict[str, Tensor] = field(default_factory=dict)
    stored: dict[str, str] = field(default_factory=dict)  # tensor -> its int8 tensor
    floats: set[str] = field(default_factory=set)  # tensors that exist as float

    def __post_init__(self) -> None:
        self.floats.update(self.graph.inputs)
        self.floats.update(s.name for s in self.graph.state)
        self.floats.update(t.name for t in self.graph.tensors.values() if t.data is not None)

    def visit(self, node: Node) -> None:
        make = next((rule for kind, rule in RULES if isinstance(node.op, kind)), None)
        if make is None or not make(self, node):
            self.nodes.append(replace(node, inputs=tuple(map(self.real, node.inputs))))
            self.floats.update(node.outputs)

    def quant(self, name: str) -> Quant | None:
        return self.graph[name].quant

    def emit(self, node: Node, op: Op, *inputs: str) -> bool:
        """The int8 form of the node, under a new name."""
        (out,) = node.outputs
        name = fresh(self.graph, self.new, f"{out}_int8")
        self.new[name] = replace(self.graph[out], name=name, dtype=DType.INT8)
        self.stored[out] = name
        self.nodes.append(Node(op, inputs, (name,)))
        return True

    def int8(self, name: str) -> str:
        """The tensor as it is stored; quantized here if it exists only as float."""
        if name not in self.stored:
            t = self.graph[name]
            assert t.quant is not None and t.quant.axis is None
            scale, zero = t.quant.scale[0], t.quant.zero_point[0]
            made = fresh(self.graph, self.new, f"{name}_int8")
            if t.data is not None:
                self.new[made] = replace(t, name=made, dtype=DType.INT8, data=quantize(t.data, scale, zero))
            else:
                self.new[made] = replace(t, name=made, dtype=DType.INT8)
                self.nodes.append(Node(Quantize(scale, zero), (name,), (made,)))
            self.stored[name] = made
        return self.stored[name]

    def real(self, name: str) -> str:
        """The tensor as float; dequantized here if it exists only as int8."""
        if name not in self.floats:
            quant = self.graph[name].quant
            assert quant is not None
            op = Dequantize(quant.scale[0], quant.zero_point[0])
            self.nodes.append(Node(op, (self.stored[name],), (name,)))
            self.floats.add(name)
        return name

    def constant(self, like: Tensor, suffix: str, data: Array) -> str:
        dtype = DType.of(data.dtype.name)
        assert dtype is not None
        name = fresh(self.graph, self.new, f"{like.name}_{suffix}")
        self.new[name] = with_data(replace(like, name=name, dtype=dtype), data)
        return name


def limits(lo: float, hi: float, scale: float, zero: int) -> tuple[int, int]:
    """Real limits as stored numbers."""
    low, high = quantize(np.array([lo, hi], np.float32), scale, zero)
    return int(low), int(high)


def _layer(walk: _Walk, node: Node) -> bool:
    """linear and conv2d: int8 weights, int32 biases with the input's zero point folded in, multipliers."""
    op = node.op
    assert isinstance(op, (Linear, Conv2d))
    x, w = walk.graph[node.inputs[0]], walk.graph[node.inputs[1]]
    (out,) = node.outputs
    y = walk.quant(out)
    if x.quant is None or y is None or w.quant is None or w.data is None or any(w.quant.zero_point):
        return False
    if len(node.inputs) > 2 and walk.graph[node.inputs[2]].data is None:
        return False
    channels = w.shape[0]
    s_w = np.broadcast_to(np.array(w.quant.scale, np.float64), (channels,))
    s_x, z_x, s_y, z_y = x.quant.scale[0], x.quant.zero_point[0], y.scale[0], y.zero_point[0]
    column = (-1, *(1,) * (len(w.shape) - 1))
    stored = np.rint(w.data.astype(np.float64) / s_w.reshape(column)).astype(np.int8)
    bias = walk.graph[node.inputs[2]].data if len(node.inputs) > 2 else np.zeros(channels)
    assert bias is not None
    sums = stored.reshape(channels, -1).astype(np.int64).sum(axis=1)
    whole = np.clip(np.rint(bias / (s_x * s_w)) - z_x * sums, -(2**31), 2**31 - 1)
    multiplier, shift = multipliers([float(f) for f in s_x * s_w / s_y])
    lo, hi = limits(op.lo, op.hi, s_y, z_y)
    constants = (
        walk.constant(w, "int8", stored),
        walk.constant(w, "bias", whole.astype(np.int32)),
        walk.constant(w, "multiplier", multiplier),
    )
    if isinstance(op, Linear):
        made: Op = QLinear(z_y, shift, lo, hi)
    else:
        made = QConv2d(z_x, z_y, shift, lo, hi, op.stride, op.padding, op.dilation, op.groups, op.pool)
    return walk.emit(node, made, walk.int8(x.name), *constants)


def _move(walk: _Walk, node: Node) -> bool:
    """The same operator on stored bytes, where all scales are equal."""
    quants = {walk.quant(n) for n in (*node.inputs, *node.outputs)}
    if len(quants) != 1 or None in quants:
        return False
    return walk.emit(node, node.op, *map(walk.int8, node.inputs))


def _pad(walk: _Walk, node: Node) -> bool:
    assert isinstance(node.op, Pad)
    quant = walk.quant(node.inputs[0])
    if quant is None or quant != walk.quant(node.outputs[0]):
        return False
    stored = quantize(np.array(node.op.value, np.float32), quant.scale[0], quant.zero_point[0])
    return walk.emit(node, replace(node.op, value=float(stored)), walk.int8(node.inputs[0]))


def _table(walk: _Walk, node: Node) -> bool:
    """A function of one value: computed here for all 256."""
    x, y = walk.quant(node.inputs[0]), walk.quant(node.outputs[0])
    if len(node.inputs) != 1 or x is None or y is None:
        return False
    every = dequantize(np.arange(-128, 128, dtype=np.int8), x.scale[0], x.zero_point[0])
    (values,) = node.op.reference(every)
    table = quantize(values, y.scale[0], y.zero_point[0])
    return walk.emit(
        node, Lookup(), walk.int8(node.inputs[0]), walk.constant(walk.graph[node.outputs[0]], "table", table)
    )


RULES: tuple[tuple[type | tuple[type, ...], Callable[[_Walk, Node], bool]], ...] = (
    ((Linear, Conv2d), _layer),
    (MOVES, _move),
    (Pad, _pad),
    (Clamp, _table),
)
