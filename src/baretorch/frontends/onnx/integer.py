"""Lowers integer networks: ONNX files whose float tensors hold whole numbers, with operators of QuantLib's domain.

The files state no integer types. Here each tensor has the range of numbers that it can hold, from those of the inputs
on; the range decides whether a tensor is stored in bytes, and that 32 bits hold every sum. `integer_rows` has the rows
of QuantLib's operators, `integer_layers` those of ONNX's own, `integer_forms` the int8 layers that an operator and the
requantization after it become.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from onnx import defs

from baretorch.errors import CompileError
from baretorch.frontends.aten.promotion import cast
from baretorch.frontends.lowering import Result
from baretorch.frontends.onnx.call import OnnxCall
from baretorch.frontends.onnx.definitions import OnnxFunction
from baretorch.frontends.onnx.interface import OnnxInput
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow, Value
from baretorch.ir.graph import Array, DType, Quant
from baretorch.ops.elementwise import Add
from baretorch.ops.int8.integer import IntTable, RequantShift
from baretorch.ops.int8.lookup import Lookup
from baretorch.ops.int8.rules import EVERY

DOMAIN = "PACTOps"  # as QuantLib calls it
OPERATORS = frozenset(
    {
        *("RequantShift", "IntegerDiv", "TrueIntegerDiv", "IntegerMean", "iGELU", "iHardswish", "iSoftmax", "ITAMax"),
        *("ITAPartialMax", "iLayerNorm", "iRMSNorm", "iNoNorm"),
    }
)
OTHERS = ("", "ai.onnx", "ai.onnx.contrib")  # domains in which files have them
LEAST, MOST = -(1 << 31), (1 << 31) - 1  # of an int32


def is_integer(model: Any) -> bool:
    """Report whether a model has operators of integer networks."""
    return any(node.domain == DOMAIN for node in model.graph.node)


def adopt(model: Any) -> None:
    """Move operators of integer networks that a file has in another domain to their own. Most files call them as ONNX's
    own operators, which ONNX does not have."""
    some = False
    for node in model.graph.node:
        if node.op_type in OPERATORS and node.domain in OTHERS and not defs.has(node.op_type):
            node.domain, some = DOMAIN, True
    if some and all(o.domain != DOMAIN for o in model.opset_import):
        model.opset_import.add(domain=DOMAIN, version=1)


@dataclass(frozen=True)
class Range:
    """The least and the greatest number that a tensor can hold."""

    lo: int
    hi: int

    @property
    def zero(self) -> int | None:
        """Return the number that bytes store for 0; None if bytes cannot hold the range."""
        if self.lo >= -128 and self.hi <= 127:
            return 0
        return -128 if self.lo >= 0 and self.hi <= 255 else None

    def including(self, value: int) -> Range:
        return Range(min(self.lo, value), max(self.hi, value))


SIGNED, UNSIGNED, WIDE = Range(-128, 127), Range(0, 255), Range(LEAST, MOST)
DECLARED = {DType.INT8: SIGNED, DType.UINT8: UNSIGNED, DType.INT16: Range(-(1 << 15), (1 << 15) - 1), DType.INT32: WIDE}


def ranges_of(inputs: Sequence[OnnxInput], examples: Sequence[Sequence[Array]] | None) -> dict[str, Range]:
    """Return the ranges of inputs: the range of the input's type, or for float inputs the range of the integer type
    that holds the examples. An int32 input whose examples are bytes has the range of bytes."""
    found = {}
    for i, x in enumerate(inputs):
        stated = examples is not None and x.dtype is DType.INT32 and _stated_range(examples[i])
        if stated:
            found[x.name] = stated
        elif x.dtype is DType.FLOAT32:
            if examples is None:
                raise CompileError(
                    f"the range of the input {x.name!r} is not known: the file stores integers as float32",
                    need="example inputs, whose type or range is that of the input",
                    try_="a file inputs.npz next to the model, or inputs() in a Python file that names it",
                )
            found[x.name] = _range_of(x.name, examples[i])
        elif x.dtype in DECLARED:
            found[x.name] = DECLARED[x.dtype]
    return found


def _range_of(name: str, examples: Sequence[Array]) -> Range:
    """Return the range of the smallest type that holds these numbers. int8 and uint8 state it."""
    stated = _stated_range(examples)
    if stated is not None:
        return stated
    seen = Range(0, 0)
    for x in examples:
        values = whole(x, f"the input {name!r}")
        seen = seen.including(int(values.min(initial=0))).including(int(values.max(initial=0)))
    return next(kind for kind in (UNSIGNED, SIGNED, WIDE) if kind.lo <= seen.lo and seen.hi <= kind.hi)


def _stated_range(examples: Sequence[Array]) -> Range | None:
    """Return the range that the type of examples states, if they are bytes."""
    types = {x.dtype.name for x in examples}
    return SIGNED if types == {"int8"} else UNSIGNED if types == {"uint8"} else None


def describe(ranges: Mapping[str, Range]) -> str:
    """Return a note for the user with the ranges of the inputs."""
    kinds = dict.fromkeys(ranges.values())
    parts = [(kind, [name for name, own in ranges.items() if own == kind]) for kind in kinds]
    return "integer network: " + "; ".join(f"{_few(names)} from {kind.lo} to {kind.hi}" for kind, names in parts)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def whole(data: Array, what: str) -> Array:
    """Return whole numbers as int64."""
    with np.errstate(all="ignore"):
        valid = data.dtype.kind in "iufb" and bool(np.isfinite(data).all())
        rounded = np.rint(data) if valid else data
        valid = valid and bool(((rounded == data) & (rounded >= LEAST) & (rounded <= MOST)).all())
    if not valid:
        raise CompileError(
            f"{what} must be whole numbers of 32 bits", need="an integer network, as QuantLib exports it"
        )
    return rounded.astype(np.int64)


class Form:
    """The computation that made a tensor, so that a requantization after it can become a part of that."""

    def requantize(self, g: IntegerLowering, by: Requant) -> str | None:
        """Return the requantized tensor, or None if no int8 operator computes exactly that."""
        raise NotImplementedError

    def need_requant(self) -> None:
        """Raise CompileError if the tensor has only a meaning for a requantization that limits it."""


@dataclass(frozen=True, eq=False)
class Requant:
    """y = clamp((x * factor + offset + half) >> shift) within `to`. The constants broadcast to x."""

    factor: Array
    offset: Array
    shift: int
    to: Range

    @property
    def half(self) -> int:
        return (1 << self.shift) >> 1

    @property
    def zero(self) -> int:
        assert self.to.zero is not None
        return self.to.zero

    @property
    def limits(self) -> tuple[int, int]:
        """Return the limits as bytes store them."""
        return self.to.lo + self.zero, self.to.hi + self.zero

    def apply(self, x: Array) -> Array:
        """Return the result for int64."""
        return np.asarray(np.clip((x * self.factor + self.offset + self.half) >> self.shift, self.to.lo, self.to.hi))

    def add(self, g: IntegerLowering, x: str) -> str:
        """Add the operator itself, for a tensor of int32."""
        op = RequantShift(self.shift, self.zero, *self.limits)
        return g.b.add(op, x, g.ints32(self.factor), g.ints32(self.offset))


@dataclass
class IntegerLowering(OnnxLowering):
    """A lowering whose tensors hold whole numbers. `ranges` are those of computed tensors of the Graph, `forms` the
    computations that made some of them."""

    given: Mapping[str, Range] = field(default_factory=dict)  # of inputs, by name
    ranges: dict[str, Range] = field(default_factory=dict)
    forms: dict[str, Form] = field(default_factory=dict)

    def add_input(self, i: OnnxInput) -> str:
        """Add an input of the Graph. Numbers of a float input are stored as bytes if their range allows it."""
        known = self.given.get(i.name)
        if known is None:
            return super().add_input(i)
        if i.dtype is DType.FLOAT32 or (i.dtype is DType.INT32 and known.zero is not None):
            quant = None if known.zero is None else Quant((1.0,), (known.zero,))
            return self.hold(self.port(i, DType.INT32 if quant is None else DType.INT8, quant), known)
        x = self.port(i, i.dtype)
        if i.dtype is DType.UINT8:
            x = cast(self, self.b.add(Add(), cast(self, x, DType.INT32), self.ints32(np.array(-128))), DType.INT8)
        return self.hold(cast(self, x, DType.INT32) if i.dtype is DType.INT16 else x, known)

    def as_in_file(self, x: str) -> str:
        """Return an output: bytes have a scale of 1 and their zero, so that they are whole numbers to the caller."""
        if x in self.forms and x not in self.ranges:
            self.forms[x].need_requant()
        known = self.ranges.get(x)
        if known is None or self[x].dtype is not DType.INT8:
            return x
        assert known.zero is not None
        self.b.tensors[x] = replace(self[x], quant=Quant((1.0,), (known.zero,)))
        return x

    def _build(self, row: OnnxRow, call: OnnxCall) -> Sequence[str]:
        for y in (made := super()._build(row, call)):
            if self[y].data is None and y not in self.ranges and y not in self.forms:
                raise CompileError(f"{call.op} is not supported in an integer network")
        return made

    def _function(self, node: Any, version: int, values: Sequence[Value | None]) -> OnnxFunction | None:
        """Return the body of a function of the model. ONNX's own bodies are for real numbers."""
        own = (node.domain, node.op_type, node.overload) in self.functions
        return super()._function(node, version, values) if own else None

    # --- for rows -------------------------------------------------------------------------------------------

    def hold(self, x: str, held: Range, form: Form | None = None) -> str:
        """Record the range of a computed tensor, and its form."""
        self.ranges[x] = held
        if form is not None:
            self.forms[x] = form
        return x

    def need_32_bits(self, what: str, lo: int, hi: int) -> Range:
        """Return a range that int32 holds; raise CompileError if it does not."""
        if lo < LEAST or hi > MOST:
            raise CompileError(
                f"{what}: its result can leave 32 bits",
                have=f"{lo:,} to {hi:,}",
                try_="requantize before it, or inputs with a smaller range",
            )
        return Range(lo, hi)

    def range_of(self, x: str) -> Range:
        """Return the range of a tensor, which may be constant."""
        data = self[x].data
        if data is not None:
            values = whole(data, f"the constant {x!r}")
            return Range(int(values.min(initial=0)), int(values.max(initial=0)))
        if x in self.forms and x not in self.ranges:
            self.forms[x].need_requant()
        if x not in self.ranges:
            raise CompileError("its input does not hold whole numbers of the network", have=str(self[x]))
        return self.ranges[x]

    def ints32(self, data: Array) -> str:
        return self.b.const("integers", data.astype(np.int32))

    def bytes_of(self, x: str, op: str) -> tuple[str, Range]:
        """Return a tensor as bytes, and its range."""
        held = self.range_of(x)
        if held.zero is None:
            raise CompileError(
                f"{op}: an input exceeds 8 bits", have=f"{held.lo:,} to {held.hi:,}", need="a RequantShift"
            )
        return self.store_as(x, held.zero), held

    def store_as(self, x: str, zero: int | None) -> str:
        """Return a tensor as bytes with this number for 0, or as int32 for None."""
        data, own = self[x].data, self.range_of(x).zero
        if data is not None:
            values = whole(data, f"the constant {x!r}")
            return self.ints32(values) if zero is None else self.b.const(f"{x}_bytes", (values + zero).astype(np.int8))
        if own == zero:
            return x
        assert own is not None, "a wide tensor is stored in bytes"
        values = EVERY.astype(np.int32) - own
        if zero is None:
            return self.b.add(IntTable(), x, self.ints32(values))
        return self.b.add(Lookup(), x, self.b.const("table", np.clip(values + zero, -128, 127).astype(np.int8)))

    def result(self, made: Result, held: Range) -> Result:
        """Record the range of a row's results."""
        for y in (made,) if isinstance(made, str) else made:
            self.hold(y, held)
        return made
