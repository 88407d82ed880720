"""Rows of the TFLite table: operators with state."""

from __future__ import annotations

from collections.abc import Sequence
from math import frexp, inf

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.tflite.call import TANH, Field, TfliteCall
from baretorch.frontends.tflite.lowering import TfliteLowering, TfliteRow, layer_name, stored_as
from baretorch.frontends.tflite.schema import TfTensor, damaged
from baretorch.ir.graph import Quant
from baretorch.ops.elementwise import Add, Clamp, Mul
from baretorch.ops.int8 import gates
from baretorch.ops.int8.litert import multiplier_of
from baretorch.ops.int8.litert_lstm import LITERT_CELL_BITS
from baretorch.ops.int8.litert_svdf import LiteRtSvdf
from baretorch.ops.int8.rules import fits_32_bits
from baretorch.ops.linear import Linear
from baretorch.ops.move import Cat, Slice
from baretorch.ops.recurrent import Cell, Lstm
from baretorch.ops.reduce import Sum

# Of UNIDIRECTIONAL_SEQUENCE_LSTM's inputs:
FROM_INPUT, FROM_HIDDEN, BIASES = range(1, 5), range(5, 9), range(12, 16)  # for the gates i, f, g, o
UNKNOWN = {"peepholes": range(9, 12), "a projection": range(16, 18), "layer normalization": range(20, 24)}
HIDDEN, CELL = 18, 19
INT8_CELL = 1 << (15 - gates.CELL_BITS)  # the largest cell of Baretorch's own int8 form
PRODUCT = 4  # the intermediate value sigmoid(o) tanh(c), which is the next hidden state


def svdf(g: TfliteLowering, call: TfliteCall) -> str:
    """Lower SVDF: a feature per filter and time, and of the last ones a sum with a weight for each: x[N, I],
    features[F, I], times[F, M], bias, and the state [N, F * M]."""
    x, features, times, rank = call.x(0), call.x(1), call.x(2), call.option(Field(0))
    (batch, _), (filters, memory) = g.shape(x), g.shape(times)
    if rank < 1 or filters % rank:
        raise CompileError(f"SVDF: {filters} filters of rank {rank}")
    key, state = _variable(call, 4)
    if state.type in ("int8", "int16"):
        return _svdf_of_integers(g, call, key, state, rank)
    kept = g.variable(key, state)
    before = g.reshape(kept.now, (batch, filters, memory))
    newest = g.reshape(g.b.add(Linear(), x, features), (batch, filters, 1))
    last = g.b.add(Cat(2), g.b.add(Slice(2, 1, memory), before), newest) if memory > 1 else newest
    kept.now = g.reshape(last, g.shape(kept.begin))
    sums = g.b.add(Sum((2,), False), g.b.add(Mul(), last, times))
    y = g.b.add(Sum((2,), False), g.reshape(sums, (batch, filters // rank, rank)))
    bias = call.maybe(3)
    y = y if bias is None else g.b.add(Add(), y, bias)
    limits = call.limits(1)
    return g.b.add(Clamp(*limits), y) if limits[0] == 0 or limits[1] < np.inf else y


def _svdf_of_integers(g: TfliteLowering, call: TfliteCall, key: str, state: TfTensor, rank: int) -> str:
    """Lower SVDF with a state of 8 or 16 bits, in the arithmetic of LiteRT's kernels."""
    x, features, times, bias = (call.operands[i] for i in range(4))
    tensors = [t for t in (x, features, times, bias, state, call.y) if t is not None]
    types = [None if t is None else t.type for t in (x, features, times, call.y)]
    known = all(t.data is not None for t in (features, times, bias) if t is not None)
    scaled = all(t.quant is not None and t.quant.axis is None for t in tensors if t is not bias)
    if types != ["int8", "int8", state.type, "int8"] or (bias and bias.type != "int32") or not known or not scaled:
        raise CompileError(
            "SVDF: these types are not supported",
            have=", ".join(map(str, tensors)),
            need="x, features and the result int8, times of the state's type, bias int32, each with one scale",
        )
    assert x is not None and features is not None and times is not None
    zeros = {t.index: t.quant.zero_point[0] for t in tensors if t.quant is not None}
    if zeros[features.index] or zeros[times.index] or (state.type == "int16" and zeros[state.index]):
        raise CompileError("SVDF: weights, or a state of 16 bits, with a zero point are not supported")
    w, by_time = features.array().astype(np.int64), times.array().astype(np.int64)
    added = np.zeros(len(w) // rank, np.int64) if bias is None else bias.array().astype(np.int64)
    from_x = -zeros[x.index] * w.sum(axis=1)
    added = added - zeros[state.index] * by_time.sum(axis=1).reshape(-1, rank).sum(axis=1)
    fits_32_bits(int((np.abs(from_x) + 128 * np.abs(w).sum(axis=1)).max(initial=0)))
    fits_32_bits(int(np.abs(added).max(initial=0)))
    if state.type == "int8":
        g.micro.append(layer_name(call.y))
    # LiteRT multiplies and divides these scales in float32.
    s_x, s_w, s_t, s_state, s_y = (np.float32(t.scale) for t in (x, features, times, state, call.y))
    kept = g.variable(key, state, np.full(state.shape, zeros[state.index], state.type))
    to_state, to_y = multiplier_of(float(s_x * s_w / s_state)), multiplier_of(float(s_state * s_t / s_y))
    made = LiteRtSvdf(rank, *to_state, zeros[state.index], *to_y, zeros[call.y.index])
    constants = (
        ("features", w, np.int8),
        ("from_x", from_x, np.int32),
        ("times", by_time, state.type),
        ("bias", added, np.int32),
    )
    inputs = (g.b.const(name, data.astype(dtype)) for name, data, dtype in constants)
    quants = [stored_as(t) for t in (x, call.y)]
    assert quants[0] is not None and quants[1] is not None
    y, kept.now = g.b.add_many(made, g.store(call.x(0), quants[0]), kept.now, *inputs)
    return g.load(y, quants[1])


def lstm(g: TfliteLowering, call: TfliteCall) -> str:
    """Lower an LSTM. The weights of its gates are concatenated to those of Baretorch's layer."""
    for what, inputs in UNKNOWN.items():
        if any(call.maybe(i) is not None for i in inputs):
            raise CompileError(f"{call.name} with {what} is not supported", need="a plain LSTM, as Keras has it")
    if call.option(Field(0, "b")) != TANH:
        raise CompileError(f"{call.name}: an activation other than TANH is not supported")
    cell_bytes = _cell(call)
    most = inf if cell_bytes is not None else _largest_cell(call)
    if most < INT8_CELL:
        g.notes.append(
            f"{layer_name(call.y)}: in int8, its cells are limited to {INT8_CELL}, not to {most:g} as in LiteRT"
        )
    hidden, cell = (g.variable(*_variable(call, i)) for i in (HIDDEN, CELL))
    weights = (_stack(g, call, FROM_INPUT), _stack(g, call, FROM_HIDDEN), _stack(g, call, BIASES))
    op = Lstm(batch_first=not call.option(Field(3, "B")), cell=cell_bytes, clip=most)
    y, hidden.now, cell.now = g.b.add_many(op, call.x(), hidden.now, cell.now, *weights)
    return y


def _cell(call: TfliteCall) -> Cell | None:
    """Return the format of cells in the file if LiteRT computes the layer in integers and its hidden state has one
    scale."""
    hidden, cell = call.operands[HIDDEN], call.operands[CELL]
    product = call.between[PRODUCT] if len(call.between) > PRODUCT else None
    if hidden is None or cell is None or product is None or cell.type != "int16" or cell.quant is None:
        return None
    part, exponent = frexp(cell.quant.scale[0])
    y = stored_as(call.y)
    if (
        y is None
        or stored_as(hidden) != y
        or stored_as(product) != y
        or part != 0.5
        or 1 - exponent not in LITERT_CELL_BITS
    ):
        return None
    most = min(int(call.real(1) / cell.quant.scale[0]), 32767)
    return Cell(1 - exponent, -most, most) if most > 0 else Cell(1 - exponent)


def _largest_cell(call: TfliteCall) -> float:
    """Return LiteRT's limit for cells: the file's, and in int8 also the largest number that 16 bits of their scale
    represent."""
    limits, t = [call.real(1) or inf], call.operands[CELL]
    if t is not None and t.type == "int16" and t.quant is not None:
        limits.append(32767 * t.quant.scale[0])
    return min(limits)


def _stack(g: TfliteLowering, call: TfliteCall, inputs: Sequence[int]) -> str:
    """Stack constants of the four gates, each row with the scale that it had."""
    names = [call.x(i) for i in inputs]
    gates = [g.constant(n, f"a weight of {call.name}") for n in names]
    if others := {data.dtype.name for data in gates} - {"float32"}:
        raise CompileError(
            f"{call.name}: a weight has another type than float32, and no scale",
            have=", ".join(sorted(others)),
            need="float32, or integers with a scale",
        )
    data = np.concatenate(gates)
    scales = [s for n in names if (q := g[n].quant) is not None for s in _per_row(q, g.shape(n)[0])]
    quant = Quant(tuple(scales), (0,) * len(scales), 0) if len(scales) == len(data) else None
    if any((q := g[n].quant) is not None and any(q.zero_point) for n in names):
        raise CompileError(f"{call.name}: weights with a zero point are not supported")
    return g.b.const("gates", data, quant)


def _per_row(quant: Quant, rows: int) -> tuple[float, ...]:
    return quant.scale if quant.axis == 0 else quant.scale * rows


def _variable(call: TfliteCall, i: int) -> tuple[str, TfTensor]:
    """Return the variable of an input: its name and its tensor in the file."""
    t = call.operands[i] if i < len(call.operands) else None
    if t is None or not t.variable:
        raise CompileError(f"{call.name}: input {i} must be a variable, which is kept between runs")
    return f"t{t.index}", t


def call_once(g: TfliteLowering, call: TfliteCall) -> tuple[str, ...]:
    """Lower a subgraph that runs before the first run, and initializes variables."""
    index = call.option(Field(0))
    if not 0 <= index < len(g.model.subgraphs):
        raise damaged(f"CALL_ONCE calls subgraph {index} of {len(g.model.subgraphs)}")
    subgraph = g.model.subgraphs[index]
    names: dict[int, str] = {}
    for operator in subgraph.operators:
        if operator.name == "VAR_HANDLE" and operator.outputs:
            names[operator.outputs[0]] = operator.options.text(1) if operator.options else ""
        elif operator.name == "ASSIGN_VARIABLE" and len(operator.inputs) == 2:
            handle, value = operator.inputs
            t = subgraph.tensors[value]
            if handle not in names or t.data is None:
                raise CompileError("CALL_ONCE: a variable's first value must be a constant", have=str(t))
            g.initial[names[handle]] = g.constant(g.known(t), "a variable's first value")
        else:
            raise CompileError(f"CALL_ONCE: {operator.name} is not supported there", need="VAR_HANDLE, ASSIGN_VARIABLE")
    return ()


def var_handle(g: TfliteLowering, call: TfliteCall) -> tuple[str, ...]:
    g.handles[call.y.index] = call.text(1) or call.y.name
    return ()


def read_variable(g: TfliteLowering, call: TfliteCall) -> str:
    key = _handle(g, call)
    first = g.initial.get(key)
    if first is not None and (first.shape, first.dtype) != (call.y.shape, g.type_of(call.y).numpy):
        raise damaged(f"the first value of {key} is not {call.y}")
    return g.variable(key, call.y, first).now


def assign_variable(g: TfliteLowering, call: TfliteCall) -> tuple[str, ...]:
    """Lower an assignment, which does nothing if the variable is never read."""
    key, value = _handle(g, call), call.operands[1]
    assert value is not None
    if key not in g.variables:
        g.variable(key, value, g.initial.get(key))
    kept = g.variables[key]
    if (g.shape(call.x(1)), g[call.x(1)].dtype) != (g.shape(kept.begin), g[kept.begin].dtype):
        raise damaged(f"{key} changes its shape or type")
    kept.now = call.x(1)
    return ()


def _handle(g: TfliteLowering, call: TfliteCall) -> str:
    t = call.operands[0]
    if t is None or t.index not in g.handles:
        raise damaged(f"{call.name} has no variable")
    return g.handles[t.index]


ROWS: dict[str, TfliteRow] = {
    "SVDF": TfliteRow(svdf, (Linear, Mul, Sum, LiteRtSvdf), "of 8 bits with a state of 8 or 16 bits, or float"),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": TfliteRow(lstm, (Lstm,), "as Keras makes it: no peepholes, no projection"),
    "CALL_ONCE": TfliteRow(call_once, (), "gives variables their first value"),
    "VAR_HANDLE": TfliteRow(var_handle),
    "READ_VARIABLE": TfliteRow(read_variable, (), "state"),
    "ASSIGN_VARIABLE": TfliteRow(assign_variable, (), "state"),
}
VARIABLES = frozenset(ROWS) - {"SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM"}  # which compute nothing
