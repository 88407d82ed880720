"""TOSA 1.0 files: a block of operators over named tensors, written as a flatbuffer of Arm's public schema (tosa.fbs).

Only what `to_tosa.py` uses is here. A value of an enum is its number in the schema; the number of an operator is also
that of its attribute table, whose fields are given in the table's order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeAlias

import flatbuffers
import numpy as np

from baretorch.ir.graph import Array, Shape

VERSION = (1, 0, 0)
SINGLE_ROUND = 1  # RoundingMode of RESCALE: half up, once
PROPAGATE = 1  # NanPropagationMode, which integers must state but do not use

Field: TypeAlias = bool | int | bytes | Sequence[int]


class TosaKind(IntEnum):
    """The element type of a tensor."""

    INT8 = 3
    INT32 = 5

    @property
    def numpy(self) -> np.dtype[Any]:
        return np.dtype(self.name.lower())


class Operator(IntEnum):
    CONV2D = 3
    DEPTHWISE_CONV2D = 5
    MATMUL = 7
    MAX_POOL2D = 8
    TRANSPOSE_CONV2D = 10
    CLAMP = 11
    ADD = 15
    ARITHMETIC_RIGHT_SHIFT = 16
    LOGICAL_LEFT_SHIFT = 22
    MAXIMUM = 26
    MINIMUM = 27
    MUL = 28
    SUB = 30
    TABLE = 31
    CLZ = 35
    REDUCE_MAX = 51
    REDUCE_SUM = 54
    CONCAT = 55
    PAD = 56
    RESHAPE = 57
    REVERSE = 58
    SLICE = 59
    TILE = 60
    TRANSPOSE = 61
    RESCALE = 66
    CONST = 67
    CONST_SHAPE = 75


@dataclass(frozen=True)
class TosaValue:
    """A tensor of the block."""

    name: str
    shape: Shape
    kind: TosaKind


@dataclass(frozen=True)
class _Row:
    """An operator of the block."""

    operator: Operator
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    fields: tuple[Field, ...]


@dataclass
class TosaBlock:
    """The single block of a file, under construction. Tensors are named by numbers: users' names are not the business
    of other compilers."""

    tensors: dict[str, tuple[TosaValue, bytes | None]] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    rows: list[_Row] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

    def input(self, shape: Shape, kind: TosaKind) -> TosaValue:
        value = self._tensor(shape, kind)
        self.inputs.append(value.name)
        return value

    def const(self, data: Array, kind: TosaKind) -> TosaValue:
        stored = np.ascontiguousarray(data, kind.numpy)
        value = self._tensor(stored.shape, kind, stored.tobytes())
        self.rows.append(_Row(Operator.CONST, (), (value.name,), ()))
        return value

    def add(
        self,
        operator: Operator,
        shape: Shape,
        kind: TosaKind,
        *inputs: TosaValue | Sequence[int],
        fields: Sequence[Field] = (),
    ) -> TosaValue:
        """Add an operator with one output, and return the output. Inputs that are numbers become TOSA shapes."""
        names = tuple(x.name if isinstance(x, TosaValue) else self._shape(x) for x in inputs)
        value = self._tensor(shape, kind)
        self.rows.append(_Row(operator, names, (value.name,), tuple(fields)))
        return value

    def maker(self, value: TosaValue) -> Operator | None:
        """Return the operator that computes a value, skipping reshapes; None if it is an input."""
        name = value.name
        while (row := next((r for r in self.rows if name in r.outputs), None)) is not None:
            if row.operator is not Operator.RESHAPE:
                return row.operator
            name = row.inputs[0]
        return None

    def _tensor(self, shape: Shape, kind: TosaKind, data: bytes | None = None) -> TosaValue:
        value = TosaValue(f"t{len(self.tensors)}", shape, kind)
        self.tensors[value.name] = (value, data)
        return value

    def _shape(self, numbers: Sequence[int]) -> str:
        name = f"s{len(self.shapes)}"
        self.shapes[name] = tuple(numbers)
        self.rows.append(_Row(Operator.CONST_SHAPE, (), (name,), ()))
        return name

    def file(self) -> bytes:
        """Return the bytes of the TOSA file."""
        return _Writer().file(self)


class _Writer:
    """Writes tables of a flatbuffer; tables that they refer to are written before them."""

    def __init__(self) -> None:
        self.b: Any = flatbuffers.Builder(1 << 16)

    def file(self, block: TosaBlock) -> bytes:
        b = self.b
        operators = self.offsets([self.operator(row) for row in block.rows])
        tensors = self.offsets([self.tensor(*t) for t in block.tensors.values()])
        shapes = self.offsets([self.shape(*s) for s in block.shapes.items()])
        name, ins, outs = b.CreateString("main"), self.strings(block.inputs), self.strings(block.outputs)
        body = self.table([("o", name), ("o", operators), ("o", tensors), ("o", ins), ("o", outs), ("o", shapes)])
        region = self.table([("o", b.CreateString("main")), ("o", self.offsets([body]))])
        regions = self.offsets([region])
        b.StartObject(4)
        for slot, number in enumerate(VERSION):
            b.PrependInt32Slot(slot, number, -1)
        b.PrependBoolSlot(3, False, True)
        version = b.EndObject()
        root = self.table([("o", version), ("o", regions)])
        b.Finish(root, b"TOSA")
        return bytes(b.Output())

    def operator(self, row: _Row) -> int:
        attribute = self.attribute(row.fields)
        inputs, outputs = self.strings(row.inputs), self.strings(row.outputs)
        number = int(row.operator)
        return self.table([("u", number), ("b", number), ("o", attribute), ("o", inputs), ("o", outputs)])

    def attribute(self, fields: Sequence[Field]) -> int:
        made: list[tuple[str, int]] = []
        for value in fields:
            if isinstance(value, bool):
                made.append(("?", value))
            elif isinstance(value, int):
                made.append(("i", value))
            elif isinstance(value, bytes):
                made.append(("o", self.bytes(value)))
            else:
                made.append(("o", self.numbers(value)))
        return self.table(made)

    def tensor(self, value: TosaValue, data: bytes | None) -> int:
        name, shape = self.b.CreateString(value.name), self.numbers(value.shape)
        fields = [("o", name), ("o", shape), ("u", int(value.kind))]
        return self.table(fields if data is None else [*fields, ("o", self.bytes(data))])

    def shape(self, name: str, numbers: Sequence[int]) -> int:
        data = self.bytes(np.array(numbers, np.int64).tobytes())
        return self.table([("o", self.b.CreateString(name)), ("u", len(numbers)), ("o", data)])

    def table(self, fields: Sequence[tuple[str, int]]) -> int:
        """Write a table with these fields, by slot: offset, int32, uint32, byte or bool."""
        b = self.b
        b.StartObject(len(fields))
        for slot, (how, value) in enumerate(fields):
            match how:
                case "o":
                    b.PrependUOffsetTRelativeSlot(slot, value, 0)
                case "i":
                    b.PrependInt32Slot(slot, value, 0)
                case "u":
                    b.PrependUint32Slot(slot, value, 0)
                case "b":
                    b.PrependUint8Slot(slot, value, 0)
                case _:
                    b.PrependBoolSlot(slot, value, False)
        return int(b.EndObject())

    def offsets(self, values: Sequence[int]) -> int:
        self.b.StartVector(4, len(values), 4)
        for value in reversed(values):
            self.b.PrependUOffsetTRelative(value)
        return int(self.b.EndVector())

    def strings(self, values: Sequence[str]) -> int:
        return self.offsets([self.b.CreateString(value) for value in values])

    def numbers(self, values: Sequence[int]) -> int:
        return int(self.b.CreateNumpyVector(np.array(values, np.int32)))

    def bytes(self, data: bytes) -> int:
        """Write data aligned to eight bytes, because readers access it as words of any size."""
        b = self.b
        b.StartVector(1, len(data), 8)
        b.head -= len(data)
        b.Bytes[b.head : b.head + len(data)] = data
        return int(b.EndVector())
