"""Lowers the nodes of an ONNX graph in order: each becomes a constant, or the result of its row in the Graph."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any, TypeAlias

import numpy as np

from baretorch.errors import CompileError, InternalError
from baretorch.frontends.aten import elementwise
from baretorch.frontends.aten.promotion import cast
from baretorch.frontends.lowering import DTYPES, UNFIT, Build, Lowering, Result, unsupported
from baretorch.frontends.onnx.call import OnnxCall, key
from baretorch.frontends.onnx.definitions import (
    GROWS,
    OnnxFunction,
    check_growth,
    computes,
    fold,
    has_meaning,
    schema_function,
)
from baretorch.frontends.onnx.interface import OnnxInput
from baretorch.frontends.onnx.proto import array_of, attribute_value, attributes_of, with_attributes
from baretorch.frontends.untrusted import ROOM, too_large
from baretorch.ir.graph import Array, DType, Node, Origin, Quant
from baretorch.ops.int8.quantize import Dequantize, Quantize


@dataclass(frozen=True)
class Absent:
    """A value that could not be computed, with the reason; without a reason, it was already reported."""

    reason: str = ""


OMITTED = Absent("an input that is left out")  # an optional input of a function
Value: TypeAlias = str | Array | Absent  # a Graph tensor's name, a constant that is not in the Graph yet, or neither


@dataclass(frozen=True)
class StoredInt8:
    """An int8 tensor of the Graph that holds a file's int8 numbers, or its uint8 numbers minus 128. `zero` is the
    file's zero point."""

    scale: float
    zero: int
    unsigned: bool


@dataclass
class Scope:
    """The values of a graph's names. A graph inside a node sees those of its parents; a function does not."""

    values: dict[str, Value]
    outer: Scope | None = None
    prefix: str = ""  # of names of layers
    attributes: Mapping[str, Any] = field(default_factory=dict)  # of a function: AttributeProtos of the call
    opsets: Mapping[str, int] = field(default_factory=dict)
    depth: int = 0

    def holder(self, name: str) -> Scope | None:
        """Return the innermost scope that contains a name."""
        if name in self.values:
            return self
        return self.outer.holder(name) if self.outer else None


MOST = 20_000  # nodes, loops and functions written out
DEEPEST = 32  # graphs and functions within each other
AS_BYTES = {"int4": "int8", "int2": "int8", "uint4": "uint8", "uint2": "uint8"}
MOVES = frozenset(  # they only move numbers, so they can move real ones instead of stored ones
    {
        *("Identity", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Concat", "Split", "Slice", "Gather"),
        *("Expand", "Tile", "DepthToSpace", "SpaceToDepth", "MaxPool"),
    }
)
BYTES = (DType.INT8, DType.UINT8)
AS_FLOAT32 = ("float16", "bfloat16", "float64")  # constants of these types become float32


@dataclass
class OnnxLowering(Lowering):
    """A Lowering with the rows, the model's own functions by domain and name, and notes for the user."""

    rows: Mapping[str, OnnxRow]
    functions: Mapping[tuple[str, str, str], Any]
    integers: Collection[str]  # operators whose rows handle quantized tensors themselves
    left: int = MOST  # how many more nodes are allowed
    room: int = ROOM  # bytes of constants that may still be computed
    inputs: list[str] = field(default_factory=list)  # of the Graph
    notes: list[str] = field(default_factory=list)
    unsupported: list[tuple[str, str]] = field(default_factory=list)  # operator, node
    wrong: CompileError | None = None  # the first error of a row
    scope: Scope = field(default_factory=lambda: Scope({}))
    fixed: set[str] = field(default_factory=set)  # tensors that depend on constants only
    stored: dict[str, StoredInt8] = field(default_factory=dict)  # quantized tensors

    # --- for rows -------------------------------------------------------------------------------------------

    def ints(self, name: str | None, what: str) -> tuple[int, ...]:
        """Return whole numbers that must be known before the image is built: a shape, axes, sizes."""
        data = self.constant(name, what)
        if data.dtype.kind not in "iub":
            raise CompileError(f"{what} must be integers", have=str(name and self[name]))
        return tuple(int(v) for v in data.reshape(-1))

    def note(self, text: str) -> None:
        """Add a note for the user, once."""
        if text not in self.notes:
            self.notes.append(text)

    def known(self, name: str | None) -> Array | None:
        """Return a tensor's value if it is a constant."""
        return None if name is None else self[name].data

    def add_input(self, i: OnnxInput) -> str:
        """Add an input of the Graph, and return its value."""
        return self.port(i, i.dtype)

    def port(self, i: OnnxInput, dtype: DType, quant: Quant | None = None) -> str:
        """Add an input of the Graph as this type."""
        self.inputs.append(self.b.input(i.name, i.shape, dtype, quant))
        return self.inputs[-1]

    def as_in_file(self, x: str) -> str:
        """Return a tensor in the file's form: uint8 numbers are uint8 again."""
        known = self.stored.get(x)
        if known is None or not known.unsigned:
            return x
        return cast(self, elementwise.add(self, cast(self, x, DType.INT32), 128), DType.UINT8)

    def lower(self, graph: Any, inputs: Sequence[Value], prefix: str) -> list[Value]:
        """Return the outputs of a graph inside the node that is being lowered, for these inputs."""
        outer = self.scope
        inside = Scope(
            dict(zip((i.name for i in graph.input), inputs, strict=True)),
            outer,
            prefix,
            outer.attributes,
            outer.opsets,
            outer.depth + 1,
        )
        self._run(graph.node, graph.initializer, inside)
        return [self.read(inside, o.name) for o in graph.output]

    def name_of(self, value: Value, name: str = "constant") -> str:
        """Convert a value to a Graph tensor."""
        if isinstance(value, Absent):
            raise CompileError(value.reason)
        return value if isinstance(value, str) else self.b.const(name, self._convert_constant(value, name))

    # --- the walk -------------------------------------------------------------------------------------------

    def read(self, scope: Scope, name: str) -> Value:
        holder = scope.holder(name)
        if holder is None:
            raise CompileError(f"the value {name!r} is read before anything makes it")
        return holder.values[name]

    def tensor(self, scope: Scope, name: str) -> str:
        """Convert a named value to a Graph tensor permanently."""
        value = self.read(scope, name)
        if not isinstance(value, str):
            holder = scope.holder(name)
            assert holder is not None
            holder.values[name] = value = self.name_of(value, name)
        return value

    def run(self, nodes: Iterable[Any], initializers: Iterable[Any], scope: Scope) -> None:
        """Lower all nodes of a graph; one error names everything that cannot be lowered."""
        self._run(nodes, initializers, scope)
        if self.unsupported:
            raise _unsupported(self.unsupported)
        if self.wrong is not None:
            raise self.wrong

    def _run(self, nodes: Iterable[Any], initializers: Iterable[Any], scope: Scope) -> None:
        if scope.depth > DEEPEST:
            raise CompileError(f"more than {DEEPEST} graphs and functions are nested")
        for tensor in initializers:
            scope.values[tensor.name] = array_of(tensor)
        before = self.scope, self.b.origin
        self.scope = scope
        for i, node in enumerate(nodes):
            name = scope.prefix + (node.name or next(filter(None, node.output), f"{node.op_type}_{i}"))
            self.b.origin = Origin(name)
            self.left -= 1
            if self.left < 0:
                raise too_large(f"it has more than {MOST:,} nodes")
            try:
                made = self._lower_node(node, name, scope)
            except CompileError as error:
                if not error.at:
                    error.at = (f"{name}: {node.op_type}",)
                self.wrong = self.wrong or error
                made = [Absent()] * len(node.output)
            for i, output in enumerate(node.output):
                if output:
                    scope.values[output] = made[i] if i < len(made) else Absent(_unusable_output(node, len(made)))
        self.scope, self.b.origin = before

    def _lower_node(self, node: Any, name: str, scope: Scope) -> Sequence[Value]:
        """Return a node's outputs."""
        node = with_attributes(node, scope.attributes)
        names = [n if n and self.read(scope, n) is not OMITTED else None for n in node.input]
        values = [self.read(scope, n) if n else None for n in names]
        for value in values:
            if isinstance(value, Absent) and value.reason:
                raise CompileError(value.reason)
        own = node.domain in ("", "ai.onnx")
        broken = any(isinstance(value, Absent) for value in values)
        if own and not broken:
            constants = self._constant(node, values, scope)
            if constants is not None:
                return constants
        row = self.rows.get(key(node.op_type, node.domain))
        version = scope.opsets.get("" if own else node.domain, 0)
        function = None if row else self._function(node, version, values)
        if row is None and function is None and not (broken and own and has_meaning(node.op_type, version)):
            self.unsupported.append((key(node.op_type, node.domain), name))
        if broken or (row is None and function is None):
            return [Absent()] * len(node.output)
        if function is not None:
            return self._call(function, node, values, name, scope)
        assert row is not None
        if own and node.op_type in GROWS:
            arrays = [self._like(v) for v in values]
            check_growth(node, arrays, [isinstance(v, np.ndarray) for v in values], version)
        inputs = tuple(self.tensor(scope, n) if n else None for n in names)
        call = OnnxCall(node.op_type, node.domain, version, name, inputs, len(node.output), attributes_of(node))
        try:
            return self._build(row, call)
        except CompileError as error:
            error.have = error.have or (self._describe_inputs(call),)
            raise
        except InternalError:
            raise
        except Exception as error:
            if not isinstance(error, UNFIT) or (own and computes(node, [self._like(v) for v in values], version)):
                raise InternalError(f"{node.op_type} {name}: {type(error).__name__}: {error}") from error
            raise CompileError(
                f"{node.op_type} cannot be applied to its inputs", have=self._describe_inputs(call)
            ) from error

    def _build(self, row: OnnxRow, call: OnnxCall) -> Sequence[str]:
        start = len(self.b.nodes)
        result = self._on_real(row, call) if any(x in self.stored for x in call.inputs) else row.build(self, call)
        self._count(self.b.nodes[start:], f"{call.name}: {call.op}")
        return (result,) if isinstance(result, str) else result

    def _describe_inputs(self, call: OnnxCall) -> str:
        return ", ".join(str(self[x]) for x in call.inputs if x) or "no inputs"

    def _count(self, nodes: Sequence[Node], at: str) -> None:
        """Raise CompileError if these nodes of the Graph would allocate an unreasonable amount, mainly of constants."""
        for node in nodes:
            fixed = all(self[x].data is not None or x in self.fixed for x in node.inputs)
            for output in node.outputs:
                size = self[output].bytes
                if max(size, *self.shape(output), 0) > ROOM:  # some other size may be 0
                    raise too_large(f"{node.op.name} makes {size:,} bytes", at)
                if fixed:
                    self.fixed.add(output)
                    self._use_room(size, at)

    def _use_room(self, size: int, at: str) -> None:
        """Count bytes of new constants."""
        self.room -= size
        if self.room < 0:
            raise too_large("constants make too many constants", at)

    def _on_real(self, row: OnnxRow, call: OnnxCall) -> Result:
        """Apply an operator to the real values of quantized tensors if it only moves them; else to the stored ones."""
        marks = {self.stored[x] for x in call.inputs if x in self.stored}
        others = [x for x in call.inputs if x and x not in self.stored and self[x].dtype in BYTES]
        if call.op not in MOVES or len(marks) > 1 or any(self[x].data is None for x in others):
            if key(call.op, call.domain) in self.integers:
                return row.build(self, call)
            return row.build(self, replace(call, inputs=tuple(x and self.as_in_file(x) for x in call.inputs)))
        (mark,) = marks
        op = mark.scale, mark.zero - 128 * mark.unsigned
        meant = {x: self.b.add(Dequantize(*op), x) for x in call.inputs if x in self.stored}
        meant |= {x: self._real_constant(x, mark) for x in others}
        made = row.build(self, replace(call, inputs=tuple(x and meant.get(x, x) for x in call.inputs)))
        again = [self.b.add(Quantize(*op), y) for y in ((made,) if isinstance(made, str) else made)]
        self.stored |= dict.fromkeys(again, mark)
        return tuple(again)

    def _real_constant(self, x: str, mark: StoredInt8) -> str:
        """Return the real value of a stored constant, for use with tensors that are stored in the same way."""
        real = (self.constant(x, "bytes").astype(np.float64) - mark.zero) * mark.scale
        quant = Quant((mark.scale,), (mark.zero - 128 * mark.unsigned,))
        return self.b.const(f"{x}_real", real.astype(np.float32), quant)

    def _constant(self, node: Any, values: Sequence[Value | None], scope: Scope) -> tuple[Array, ...] | None:
        """Return the node's result if it can be computed now."""
        if node.op_type in ("Shape", "Size") and isinstance(values[0], str):
            return (self._shape(node, self.shape(values[0])),)
        inputs = [self.b.tensors[v].data if isinstance(v, str) else v for v in values]
        noted = any(isinstance(v, str) and self[v].quant is not None for v in values)
        missing = any(x is None for x, v in zip(inputs, values, strict=True) if v is not None)
        if noted or missing:
            return None
        if node.op_type == "Constant":
            return (self._constant_value(node),)
        arrays = [x for x in inputs if not isinstance(x, Absent)]
        made = fold(node, arrays, scope.opsets.get("", 0))
        if made is None:
            return None
        self._use_room(sum(y.nbytes for y in made), f"{node.name}: {node.op_type}")
        return made

    def _shape(self, node: Any, shape: tuple[int, ...]) -> Array:
        if node.op_type == "Size":
            return np.array(np.prod(shape, dtype=np.int64))
        limits = attributes_of(node)
        return np.array(shape[slice(limits.get("start"), limits.get("end"))], np.int64)

    def _constant_value(self, node: Any) -> Array:
        if len(node.attribute) != 1:
            raise CompileError("Constant has no value")
        (attribute,) = node.attribute
        value = attribute_value(attribute)
        if attribute.name not in ("value", "value_float", "value_floats", "value_int", "value_ints"):
            raise CompileError(f"Constant: {attribute.name} is not supported", need="a dense tensor of numbers")
        return np.asarray(value, {"f": np.float32, "i": np.int64}.get(attribute.name[6:7]))

    def _convert_constant(self, data: Array, name: str) -> Array:
        """Return a constant in a type that Graphs support."""
        if data.dtype.name in AS_FLOAT32:
            self.note(f"{data.dtype.name} constants are taken as float32")
            return data.astype(np.float32)
        if data.dtype.name in AS_BYTES:
            return data.astype(AS_BYTES[data.dtype.name])
        if DType.of(data.dtype.name) is None:
            raise CompileError(
                f"the constant {name!r} has the type {data.dtype.name}, which is not supported", need=DTYPES
            )
        return data

    # --- functions ------------------------------------------------------------------------------------------

    def _function(self, node: Any, version: int, values: Sequence[Value | None]) -> OnnxFunction | None:
        """Return the body of a function of the model, or of an operator that ONNX defines by others."""
        own = self.functions.get((node.domain, node.op_type, node.overload))
        if own is not None:
            return OnnxFunction(own)
        if any(isinstance(value, Absent) for value in values):
            return None
        types = [self._type(value) for value in values]
        return schema_function(node, version, types)

    def _type(self, value: Value | None) -> str | None:
        if value is None or isinstance(value, Absent):
            return None
        return self[value].dtype.label if isinstance(value, str) else value.dtype.name

    def _like(self, value: Value | None) -> Array | None:
        """Return an array of a value's shape and type, without its bytes."""
        if isinstance(value, str):
            return np.broadcast_to(np.zeros((), self[value].dtype.numpy), self.shape(value))
        return None if isinstance(value, Absent) else value

    def _call(
        self, function: OnnxFunction, node: Any, values: Sequence[Value | None], name: str, scope: Scope
    ) -> Sequence[Value]:
        body = function.proto
        attributes = {a.name: a for a in (*function.defaults, *body.attribute_proto)}
        attributes |= {a.name: a for a in node.attribute}
        opsets = {
            **scope.opsets,
            **opsets_of(body),
        }  # ONNX's bodies do not list versions that they share with the model
        bound = dict(zip(body.input, (v if v is not None else OMITTED for v in values), strict=False))
        bound |= {n: OMITTED for n in body.input if n not in bound}
        inside = Scope(bound, None, f"{name}/", attributes, opsets, scope.depth + 1)
        self._run(body.node, (), inside)
        return [self.read(inside, n) for n in body.output]


@dataclass(frozen=True)
class OnnxRow:
    """The row of an operator. `build` returns the name of the result, or one per result. A `refused` row only raises
    the reason."""

    build: Callable[[OnnxLowering, OnnxCall], Result]
    refused: bool = False


def row(function: Build) -> OnnxRow:
    """Return the row of a function. Its positional parameters are the operator's inputs; optional inputs may be None.
    Its keyword parameters are attributes, with ONNX's defaults, and perhaps `call`, the whole call."""
    parameters = list(signature(function).parameters.values())[1:]
    inputs = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]

    def build(g: OnnxLowering, call: OnnxCall) -> Result:
        given = [call.input(i) if p.default is None else call.need(i) for i, p in enumerate(inputs)]
        known = {**call.attributes, "call": call}
        return function(g, *given, **{name: known[name] for name in named if name in known})

    return OnnxRow(build)


def opsets_of(proto: Any) -> dict[str, int]:
    """Return the opset versions of a model or function by domain; ONNX's own domain is empty."""
    return {"" if o.domain == "ai.onnx" else o.domain: int(o.version) for o in proto.opset_import}


def _unusable_output(node: Any, count: int) -> str:
    return f"{node.op_type}: only its first {count if count > 1 else ''} output{'s' * (count > 1)} can be used"


def _unsupported(found: Sequence[tuple[str, str]]) -> CompileError:
    names = sorted({op for op, _ in found})
    hint = "docs/reference/onnx.md lists the supported operators, and why others are not supported"
    return unsupported(names, [f"{op}: {node}" for op, node in found[:20]], hint)
