"""int8 forms of lstm and gru."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from baretorch.ir import Array, DType, Node, Quant, Tensor
from baretorch.ops.arithmetic import multipliers
from baretorch.ops.fixed import FromFixed, ToFixed
from baretorch.ops.kernel import data_of
from baretorch.ops.layout import Permute, Reshape
from baretorch.ops.move import Cat, Slice
from baretorch.ops.qrecurrent import GATE_BITS, QGru, QLstm, QRecurrent
from baretorch.ops.recurrent import Gru, Lstm, Recurrent
from baretorch.passes.int8_layers import fits_32_bits, weight_scales
from baretorch.passes.int8_walk import StaysFloat, Walk
from baretorch.passes.rewrite import fresh

UNIT = Quant((1 / 128,), (0,))  # fits every hidden state: it is between -1 and 1


def recurrent(walk: Walk, node: Node) -> None:
    """Weights int8 per row, one bias and one multiplier per row for the input and for the hidden state. The states come
    and go as float: what is read of them is converted, the rest is left out."""
    op, graph = node.op, walk.graph
    assert isinstance(op, Recurrent)
    if not isinstance(op, (Lstm, Gru)):
        raise StaysFloat(f"there is no int8 {op.name}")
    kind: type[QRecurrent] = QLstm if isinstance(op, Lstm) else QGru
    x, *states = node.inputs[:-3]
    weights = graph.of(node.inputs[-3:])
    if any(t.data is None for t in weights):
        raise StaysFloat("its weight or bias is computed")
    q_x, q_y = walk.scale(x), _hidden_scale(walk, node)
    if q_y.scale[0] <= 2.0 ** (1 - kind.bits[0]):
        raise StaysFloat(f"its hidden state's scale {q_y.scale[0]:.3g} is too fine")
    bias = data_of(weights, 2)
    split = len(data_of(weights, 0))
    reset = np.zeros(split)
    reset[split - (len(bias) - split) :] = bias[split:]  # gru: what the reset gate applies to
    w_ih, ih, shift_ih = _rows(weights[0], q_x, bias[:split].astype(np.float64))
    w_hh, hh, shift_hh = _rows(weights[1], q_y, reset)
    (multiplier,), _ = multipliers([2.0 ** -kind.bits[0] / q_y.scale[0]])
    made = kind(q_y.zero_point[0], int(multiplier), shift_ih, shift_hh, op.reverse, op.batch_first)
    inputs = (
        walk.int8(x),
        *(_begin(walk, name, bits) for name, bits in zip(states, kind.bits, strict=False)),
        walk.constant(weights[0], "int8", w_ih),
        walk.constant(weights[1], "int8", w_hh),
        walk.constant(weights[0], "rows", np.concatenate([ih, hh], axis=1).astype(np.int32)),
    )
    y, *ends = node.outputs
    outputs = [_output(walk, y, DType.INT8, q_y), *(_output(walk, end, DType.INT16, None) for end in ends)]
    walk.nodes.append(Node(made, inputs, tuple(outputs)))
    walk.stored[y] = outputs[0]
    for end, fixed, bits in zip(ends, outputs[1:], kind.bits, strict=True):
        walk.nodes.append(Node(FromFixed(bits), (fixed,), (end,)))
        walk.floats.add(end)
    walk.found |= {y: q_y, ends[0]: q_y}
    walk.stored[ends[0]] = _last(walk, op, outputs[0], ends[0], q_y)


def _hidden_scale(walk: Walk, node: Node) -> Quant:
    """The scale measured for the hidden state, at all times or at the end, or of what is just made of it."""
    uses = walk.graph.uses()
    names = list(node.outputs[:2])
    for name in names:
        if (quant := walk.quant(name)) is not None:
            return quant
        names += [n.outputs[0] for n in uses.get(name, ()) if isinstance(n.op, (Cat, Permute, Reshape, Slice))]
    return UNIT


def _rows(t: Tensor, x: Quant, bias: Array) -> tuple[Array, Array, int]:
    """(a weight as int8, bias and multiplier per row, the shift of all), for a product whose result has the gates'
    fractional bits. The scales of its rows are those it was rounded to before, if any."""
    data = data_of([t], 0).astype(np.float64)
    if t.quant is not None and t.quant.axis == 0 and not any(t.quant.zero_point):
        scales = np.array(t.quant.scale)
    else:
        scales = np.abs(data).max(axis=1, initial=0.0) / 127
    scales = weight_scales(scales, data, bias, x.scale[0], 2.0**-GATE_BITS)
    w = np.clip(np.rint(data / scales[:, None]), -127, 127).astype(np.int8)
    factors = x.scale[0] * scales
    wide = w.astype(np.int64)
    multiplier, shift = multipliers([float(f) for f in factors * (1 << GATE_BITS)])
    biases = np.rint(bias / factors) - x.zero_point[0] * wide.sum(axis=1)
    fits_32_bits(int((np.abs(biases) + 128 * np.abs(wide).sum(axis=1)).max(initial=0)) << shift)
    return w, np.stack([biases, multiplier], axis=1).astype(np.int64), shift


def _begin(walk: Walk, name: str, bits: int) -> str:
    """A state that is given, with a fixed point."""
    t = walk.graph[name]
    if t.data is not None:
        return walk.constant(t, "fixed", ToFixed(bits).reference(t.data)[0])
    fixed = _output(walk, name, DType.INT16, None)
    walk.nodes.append(Node(ToFixed(bits), (walk.real(name),), (fixed,)))
    return fixed


def _output(walk: Walk, like: str, dtype: DType, quant: Quant | None) -> str:
    name = fresh(walk.graph, walk.new, f"{like}_{dtype.label}")
    walk.new[name] = replace(walk.graph[like], name=name, dtype=dtype, quant=quant, value="")
    return name


def _last(walk: Walk, op: Recurrent, y: str, end: str, quant: Quant) -> str:
    """The hidden state at the end as int8: y at the last time, which is the first if it runs backwards."""
    axis = 1 if op.batch_first else 0
    shape = walk.new[y].shape
    at = 0 if op.reverse else shape[axis] - 1
    cut = Slice(axis, at, at + 1)
    part = walk.add(cut, end, tuple(1 if d == axis else n for d, n in enumerate(shape)), quant, y)
    return walk.view(Reshape(walk.graph[end].shape), end, part)
