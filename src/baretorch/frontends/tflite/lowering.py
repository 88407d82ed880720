"""Converts a subgraph of a `.tflite` file to a Graph.

Tensors that the file has as int8, or as uint8, are float tensors of the Graph with their scale as a note, which
`to_int8` makes true; inputs and outputs of the model stay int8. Everything is channels last already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from baretorch.errors import CompileError, InternalError
from baretorch.frontends.lowering import DTYPES, UNFIT, Ints, Lowering, Result, known_value
from baretorch.frontends.tflite.call import NO_LIMITS, Limits, TfliteCall
from baretorch.frontends.tflite.schema import (
    GRAPH_TYPES,
    ONE_SIZE,
    UNSIGNED,
    Subgraph,
    TfModel,
    TfOperator,
    TfTensor,
    damaged,
)
from baretorch.ir.graph import Array, Builder, DType, Graph, Op, Origin, Quant, State
from baretorch.ir.verify import verify
from baretorch.ops.elementwise import Binary, Clamp, Unary
from baretorch.ops.int8.quantize import FINER, Dequantize, Dequantize16, Quantize, Quantize16

BYTES = ("int8", "uint8")
MOVES = frozenset({"CAST", "CONCATENATION", "EXPAND_DIMS", "RESHAPE", "SLICE", "SPLIT", "SQUEEZE", "STRIDED_SLICE"})
SHORTS = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"})  # operators with kernels for int16 activations


@dataclass
class Variable:
    """State of the model: its tensor at the start of a run, the tensor with its current value, and the initial
    value."""

    begin: str
    now: str
    initial: Array


@dataclass
class TfliteLowering(Lowering):
    """The Graph under construction for one subgraph of a file."""

    model: TfModel
    subgraph: Subgraph
    table: Mapping[str, TfliteRow] = field(default_factory=dict)
    depth: int = 0  # of subgraphs that call each other
    values: dict[int, str] = field(default_factory=dict)  # of the file's tensors, the Graph's
    variables: dict[str, Variable] = field(default_factory=dict)
    initial: dict[str, Array] = field(default_factory=dict)  # what CALL_ONCE assigns to variables, by their names
    handles: dict[int, str] = field(default_factory=dict)  # of resources, the variables they stand for
    notes: list[str] = field(default_factory=list)
    hybrid: list[str] = field(default_factory=list)  # float layers with int8 weights
    micro: list[str] = field(default_factory=list)  # layers that only LiteRT for microcontrollers has a kernel for
    bound: set[str] = field(default_factory=set)  # tensors of the Graph that stand for one of the file
    shorts: dict[str, tuple[str, float]] = field(default_factory=dict)  # of real numbers, the int16 and its scale

    def value(self, index: int) -> str:
        if index not in self.values:
            t = self.subgraph.tensors[index]
            if t.data is None:
                raise damaged(f"{t} is read before it is computed")
            self.values[index] = self.known(t)
        return self.values[index]

    def known(self, t: TfTensor) -> str:
        """Return a constant of the file."""
        graph_type_of(t)
        self.model.spend(t)
        data, quant = t.array().view(UNSIGNED.get(t.type, t.type)), stored_as(t)
        if t.type in (*BYTES, "int16", "int32", "int64") and t.quant is not None:
            scale, zero = _spread(t, t.quant.scale), _spread(t, t.quant.zero_point)
            data = ((data.astype(np.float64) - zero) * scale).astype(np.float32)
        name = self.b.const(label(t), data.astype(np.float32) if data.dtype == np.float16 else data, quant)
        self.bound.add(name)
        return name

    def constant(self, name: str | None, what: str) -> Array:
        """Return a constant, or a value computed from constants."""
        found = None if name is None else known_value(self, name)
        return super().constant(name, what) if found is None else found

    def ints(self, name: str, what: str) -> tuple[int, ...]:
        """Return the numbers of a tensor that must be known."""
        data = self.constant(name, what)
        if data.dtype.kind != "i":
            raise CompileError(f"{what} must be whole numbers", have=str(self[name]))
        return tuple(int(v) for v in data.reshape(-1))

    def note_scale(self, name: str, quant: Quant | None) -> str:
        """Annotate a tensor with this scale if it has none yet."""
        t = self[name]
        if quant is not None and t.quant is None and t.data is None:
            self.b.tensors[name] = replace(t, quant=quant)
        return name

    def reshape(self, x: str, shape: Ints) -> str:
        """Reshape, and keep the scale of x."""
        return self.note_scale(super().reshape(x, shape), self[x].quant)

    def permute(self, x: str, dims: Ints) -> str:
        """Permute, and keep the scale of x."""
        return self.note_scale(super().permute(x, dims), self[x].quant)

    def limit(self, name: str, limits: Limits, like: TfTensor) -> str:
        """Add limits after an operator without limits of its own."""
        if limits == NO_LIMITS:
            return name
        return self.b.add(Clamp(*limits), self.note_scale(name, stored_as(like)))

    def apply(self, op: Op, call: TfliteCall) -> str:
        """Apply the operator to all inputs of the call, whose number must match."""
        takes = 1 if isinstance(op, Unary) else 2 if isinstance(op, Binary) else len(call.inputs)
        if len(call.inputs) != takes:
            raise damaged(f"{call.name} has {len(call.inputs)} inputs instead of {takes}")
        return self.b.add(op, *call.given())

    def variable(self, key: str, t: TfTensor, initial: Array | None = None) -> Variable:
        """Return the state with this name; it starts with zeros unless there are initial values."""
        if key not in self.variables:
            dtype = DType.FLOAT32 if stored_as(t) or (t.type == "int16" and t.quant) else graph_type_of(t)
            dtype = dtype if initial is None else DType.of(initial.dtype.name) or dtype
            first = np.zeros(t.shape, dtype.numpy) if initial is None else initial
            name = self.b.input(label(t), t.shape, dtype)
            self.bound.add(name)
            self.variables[key] = Variable(name, name, first)
        return self.variables[key]

    def bind(self, operator: TfOperator, result: Result) -> None:
        """Record the Graph's tensors for the results of an operator of the file, and check shapes, types and scales."""
        results = (result,) if isinstance(result, str) else result
        outputs = [i for i in operator.outputs if self.subgraph.tensors[i].type != "resource"]
        if len(results) < len(outputs):
            raise damaged(f"{operator.name} has {len(outputs)} results")
        for index, made in zip(outputs, results, strict=False):
            t = self.subgraph.tensors[index]
            if self.shape(made) != t.shape:
                raise damaged(f"{operator.name} produces {self[made].type}, but the file states {t}")
            if self[made].dtype is not self.type_of(t):
                raise CompileError(f"{operator.name} with these types is not supported", have=f"the result {t}")
            quant = stored_as(t)
            if quant is not None and quant.bits == 16 and operator.name not in SHORTS:
                made = made if self.shorts.get(made, ("", 0.0))[1] == t.scale else self.round(made, quant)
            elif quant is not None and self[made].quant is None and made not in self.bound:
                self.note_scale(made, quant)
            elif quant is not None and self[made].quant != quant:
                made = self.note_scale(self.round(made, quant), quant)
            if quant is not None and quant.bits == 16 and operator.name in SHORTS:
                made = self.round(made, quant)  # without a scale, so that layers without int16 kernels compute in float
            self.bound.add(made)
            self.values[index] = made

    def round(self, x: str, quant: Quant) -> str:
        """Round the numbers to this scale."""
        return self.load(self.store(x, quant), quant)

    def store(self, x: str, quant: Quant) -> str:
        """Return real numbers as they are stored."""
        return self.int16(x, quant.scale[0] / FINER) if quant.bits == 16 else self.b.add(as_stored(quant), x)

    def load(self, stored: str, quant: Quant) -> str:
        """Return stored numbers as real ones."""
        if quant.bits == 16:
            return self.from_int16(stored, quant.scale[0] / FINER)
        self.b.tensors[stored] = replace(self[stored], quant=quant)
        return self.b.add(as_real(quant), stored)

    def int16(self, x: str, scale: float) -> str:
        """Return real numbers as int16 with this scale."""
        stored, have = self.shorts.get(x, ("", 0.0))
        return stored if have == scale else self.b.add(Quantize16(scale), x)

    def from_int16(self, stored: str, scale: float) -> str:
        """Return int16 with this scale as real numbers."""
        self.b.tensors[stored] = replace(self[stored], quant=Quant((scale,), (0,)))
        real = self.b.add(Dequantize16(scale), stored)
        self.shorts[real] = (stored, scale)
        return real

    def as_int16(self, t: TfTensor | None, name: str | None) -> str | None:
        """Return an int16 operand with its stored numbers; return any other operand unchanged."""
        if t is None or name is None or t.type != "int16" or t.quant is None or is_raw(t):
            return name
        return self.int16(name, t.scale) if t.data is None else self.b.const(f"{label(t)}_int16", t.array())

    def type_of(self, t: TfTensor) -> DType:
        if t.type == "float16":
            raise CompileError(
                "float16 activations are not supported",
                at=str(t),
                need="int8 or float32",
                try_="convert it with float16 weights only, which a DEQUANTIZE makes float32",
            )
        return DType.FLOAT32 if stored_as(t) is not None else graph_type_of(t)


def label(t: TfTensor) -> str:
    """Return a tensor's name in the Graph: letters, digits and _ of its name in the file."""
    name = "".join(c if c.isalnum() and c.isascii() else "_" for c in t.name).strip("_")[:60]
    return name if name and not name[0].isdigit() else f"t{t.index}_{name}".rstrip("_")


def layer_name(t: TfTensor) -> str:
    """Return the name of the layer that computes a tensor. Converters join the names of all fused layers with `;`, the
    last first; the first that is not a variable's is returned."""
    parts = [part for part in t.name.split(";") if part]
    return next((part for part in parts if not part.endswith("ReadVariableOp")), next(iter(parts), label(t)))


def stored_as(t: TfTensor) -> Quant | None:
    """Return the scale with which Baretorch stores an int8 or uint8 tensor as int8; for an int16 activation, the
    scale of its int8 form. Return None if the tensor is not quantized."""
    if t.quant is not None and t.type == "int16" and t.data is None and not t.variable:
        if t.quant.axis is not None:
            raise CompileError("an int16 activation with several scales is not supported", at=str(t), need="one scale")
        return None if is_raw(t) else Quant((FINER * t.scale,), (0,), bits=16)
    if t.quant is None or t.type not in BYTES:
        return None
    zeros = tuple(z - 128 if t.type == "uint8" else z for z in t.quant.zero_point)
    if t.data is None and t.quant.axis is not None:
        raise CompileError("an activation with several scales is not supported", at=str(t), need="one scale")
    if any(not -128 <= z <= 127 for z in zeros):
        raise damaged(f"{t} has the zero point {t.quant.zero_point[0]}")
    return replace(t.quant, zero_point=zeros)


def is_raw(t: TfTensor) -> bool:
    """Report whether a tensor is an int16 activation with a zero point, which the Graph has as its stored numbers."""
    return t.type == "int16" and t.quant is not None and t.quant.zero_point[0] != 0


def as_stored(quant: Quant) -> Op:
    """Return the op that converts real numbers to stored ones."""
    (scale,), (zero,) = quant.scale, quant.zero_point
    return Quantize16(scale / FINER) if quant.bits == 16 else Quantize(scale, zero)


def as_real(quant: Quant) -> Op:
    (scale,), (zero,) = quant.scale, quant.zero_point
    return Dequantize16(scale / FINER) if quant.bits == 16 else Dequantize(scale, zero)


def graph_type_of(t: TfTensor) -> DType:
    if t.type not in GRAPH_TYPES:
        raise CompileError(
            f"tensors of type {t.type} are not supported", at=str(t), need=DTYPES.removeprefix("one of ")
        )
    return GRAPH_TYPES[t.type]


def _spread(t: TfTensor, values: Sequence[float]) -> Array:
    """Return one number for all, or one per index of the axis of the scales."""
    assert t.quant is not None
    if t.quant.axis is None:
        return np.array(values[0], np.float64)
    return np.array(values, np.float64).reshape([-1 if d == t.quant.axis else 1 for d in range(len(t.shape))])


@dataclass(frozen=True)
class TfliteRow:
    """The row of an operator. `build` adds the Graph's nodes for a call and returns the name of each result. `makes`
    are the operators that compute it; operators that only move numbers are named if there is no other. `remark` is for
    the table in the docs.

    `sixteen` does the same for a call of 16 bits: its operands and results are the stored numbers. It returns None if
    the call is computed in float. `zeros`: the row also takes 16 bits with a zero point, as stored numbers.
    """

    build: Callable[[TfliteLowering, TfliteCall], Result]
    makes: tuple[type[Op], ...] = ()
    remark: str = ""
    sixteen: Callable[[TfliteLowering, TfliteCall], Result | None] | None = None
    zeros: bool = False


@dataclass(frozen=True, eq=False)
class LoweredFile:
    """A Graph, notes for users, the layers of which only the weights are int8, and those that LiteRT has no kernel for
    although it does not say so."""

    graph: Graph
    notes: tuple[str, ...]
    hybrid: tuple[str, ...]
    micro: tuple[str, ...]


def lower_operators(
    table: Mapping[str, TfliteRow],
    model: TfModel,
    subgraph: Subgraph,
    name: str,
    operators: Iterable[TfOperator],
    inputs: Sequence[int],
    outputs: Sequence[int],
) -> LoweredFile:
    """Return the Graph of some operators of a subgraph."""
    g = TfliteLowering(Builder(name), model, subgraph, table)
    given = []
    for index in inputs:
        t = subgraph.tensors[index]
        quant = _port_scale(t, "an input")
        stored = t.quant if quant is not None and quant.bits == 16 else quant
        dtype = DType.of("int16" if stored is not quant else "int8") if quant is not None else g.type_of(t)
        given.append(g.b.input(label(t), t.shape, dtype or DType.INT8, stored))
        g.values[index] = given[-1]
        if quant is not None:
            real = g.b.add(as_real(quant), given[-1], name=f"{label(t)}_real")
            g.values[index] = real if quant.bits == 16 else g.note_scale(real, quant)
        if quant is not None and quant.bits == 16:
            g.shorts[g.values[index]] = (given[-1], t.scale)
        g.bound.add(g.values[index])
    lower_all(g, operators)
    made = []
    for index in outputs:
        t, out = subgraph.tensors[index], g.value(index)
        quant = _port_scale(t, "an output")
        g.b.origin = Origin(layer_name(t))
        made.append(out if quant is None else _store(g, out, quant))
    state = [State(v.begin, v.now, v.initial) for v in g.variables.values()]
    graph = g.b.graph(given, made, state)
    labels = tuple(label(subgraph.tensors[i]) for i in outputs)
    whole = verify(replace(graph, labels=labels if len(set(labels)) == len(labels) else ()))
    return LoweredFile(whole, tuple(g.notes), tuple(g.hybrid), tuple(g.micro))


def lower_all(g: TfliteLowering, operators: Iterable[TfOperator]) -> None:
    """Add the nodes of operators of the lowering's subgraph."""
    for operator in operators:
        results = [g.subgraph.tensors[i] for i in operator.outputs]
        g.b.origin = Origin(layer_name(results[0]) if results else operator.name)
        _lower(g, g.table[operator.name], operator)


def _port_scale(t: TfTensor, role: str) -> Quant | None:
    """Return the scale of an input or output. Several scales, as for a weight, are an error."""
    if t.type in UNSIGNED:
        raise CompileError(f"{role} of type {t.type} is not supported", at=str(t), need=UNSIGNED[t.type])
    quant = stored_as(t)
    if quant is not None and quant.axis is not None:
        raise CompileError(f"{role} that has several scales is not supported", at=str(t), need="one scale")
    return quant


def _store(g: TfliteLowering, x: str, quant: Quant) -> str:
    """Return an output as int8; a constant is converted at once."""
    known, op = known_value(g, x), as_stored(quant)
    if known is not None:
        return g.b.const(x, op.reference(known)[0], op.infer([replace(g[x], data=None)])[0].quant)
    return g.store(x, quant)


def _lower(g: TfliteLowering, row: TfliteRow, operator: TfOperator) -> None:
    tensors = g.subgraph.tensors
    shown = f"{operator.name} {g.b.origin.path}".strip()
    operands = tuple(tensors[i] if i >= 0 else None for i in operator.inputs)
    try:
        known = [i if i >= 0 and not is_kept(tensors[i]) else -1 for i in operator.inputs]
        inputs = tuple(g.value(i) if i >= 0 else None for i in known)
        first = None if not operands or operands[0] is None else stored_as(operands[0])
        if operator.name in SHORTS and first is not None and first.bits == 16 and inputs[0] is not None:
            inputs = (g.note_scale(g.round(inputs[0], first), first), *inputs[1:])
        outputs = tuple(tensors[i] for i in operator.outputs)
        between = tuple(tensors[i] if i >= 0 else None for i in operator.between)
        _need_zero_points(operator.name, row, (*operands, *outputs))
        _check_unsigned(operator, (*operands, *outputs))
        options = (operator.options, between, operator.attributes)
        call = TfliteCall(operator.name, inputs, operands, outputs, *options)
        g.bind(operator, _build(g, row, call))
    except CompileError as error:
        error.at = error.at or (shown,)
        error.have = error.have or tuple(str(t) for t in operands if t is not None)[:6]
        if any(tensors[i].open for i in operator.outputs):
            error.need, error.try_ = ("sizes that the file states; here they are left open",), (ONE_SIZE,)
        raise
    except InternalError:
        raise
    except Exception as error:
        if not isinstance(error, UNFIT):
            raise InternalError(f"{shown}: {type(error).__name__}: {error}") from error
        raise CompileError(
            f"{operator.name} cannot be applied to its operands",
            at=shown,
            have=tuple(str(t) for t in operands if t is not None)[:6],
            try_=f"if LiteRT runs the file, report this as a bug in Baretorch: {type(error).__name__}: {error}",
        ) from error


def _build(g: TfliteLowering, row: TfliteRow, call: TfliteCall) -> Result:
    """Add the nodes of a call, of 16 bits if all that it computes with has them."""
    quants = [stored_as(t) for t in (*call.operands, *call.outputs) if t is not None and t.data is None]
    if row.sixteen is not None and len(quants) > 1 and all(q is not None and q.bits == 16 for q in quants):
        stored = tuple(g.as_int16(t, name) for t, name in zip(call.operands, call.inputs, strict=True))
        made = row.sixteen(g, replace(call, inputs=stored))
        if made is not None:
            results = (made,) if isinstance(made, str) else made
            return tuple(g.from_int16(y, t.scale) for y, t in zip(results, call.outputs, strict=False))
    return row.build(g, call)


def _need_zero_points(name: str, row: TfliteRow, tensors: Sequence[TfTensor | None]) -> None:
    """Raise CompileError if an operator has an int16 activation with a zero point that it cannot read or make."""
    for t in tensors:
        if t is not None and t.data is None and is_raw(t) and not row.zeros:
            raise CompileError(
                f"{name}: an int16 activation with a zero point is not supported",
                at=str(t),
                need="the zero point 0, except for QUANTIZE, for the results of SOFTMAX, and where numbers only move",
            )


def _check_unsigned(operator: TfOperator, tensors: Sequence[TfTensor | None]) -> None:
    """Raise CompileError if an operator would compute with unsigned numbers. They are stored as signed numbers with
    the same bits."""
    types = {t.type for t in tensors if t is not None}
    same = operator.name != "CAST" or types <= {"int32", "uint32"}
    for type in sorted(types.intersection(UNSIGNED)):
        if not operator.custom and not (operator.name in MOVES and same):
            raise CompileError(
                f"{operator.name} of {type} is not supported",
                need=f"{UNSIGNED[type]}, or an operator of TensorFlow Lite Micro's audio front end",
            )


def is_kept(t: TfTensor) -> bool:
    """Report whether a tensor is a variable or resource. These are not values of a run: their rows look them up."""
    return t.variable or t.type == "resource"
