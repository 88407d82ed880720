"""The content of an ExecuTorch `.pte` file as typed values: the required tables of its flatbuffer.

The layout is ExecuTorch's `schema/program.fbs` (file identifier ET12); a slot number below is the place of a field in
its table there, where a union takes two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from struct import Struct
from typing import TypeAlias

from baretorch.errors import CompileError
from baretorch.frontends.flatbuffer import Bytes, Table
from baretorch.frontends.untrusted import damaged_file
from baretorch.ir.graph import DType, Shape

IDENTIFIER = b"ET12"
HEADER = Struct("<4sIQQ")  # "eh00", header length, program size, start of the segments
SCALAR_TYPES = {
    0: DType.UINT8,
    1: DType.INT8,
    2: DType.INT16,
    3: DType.INT32,
    4: DType.INT64,
    5: DType.FLOAT16,
    6: DType.FLOAT32,
    11: DType.BOOL,
    15: DType.BFLOAT16,
}
OTHER_SCALAR_TYPES = {7: "float64", 27: "uint16", 28: "uint32", 29: "uint64"}
OTHER_CALLS = {3: "MoveCall", 4: "JumpFalseCall", 5: "FreeCall"}
MAX_RANK = 16
damaged = partial(damaged_file, ".pte")


@dataclass(frozen=True)
class TensorValue:
    """A tensor of a method: its type, and the place of its bytes."""

    index: int
    shape: Shape
    scalar_type: int
    order: tuple[int, ...]  # dimensions from outermost to innermost in memory
    buffer: int  # which constant, or if it has `memory` which initial value; 0 for none
    memory: tuple[int, int] | None  # bank and byte offset of the memory plan
    dynamic: bool
    key: str  # the parameter's name where the file keeps it
    external: bool  # the data is found by `key`
    initial_list: int = 0  # which of the file's lists of initial values `buffer` counts in

    @property
    def constant(self) -> bool:
        return self.external or (self.memory is None and self.buffer != 0)

    @property
    def dtype(self) -> DType:
        if self.scalar_type not in SCALAR_TYPES:
            raise CompileError(
                f"tensors of type {self.type_name} are not supported",
                at=str(self),
                need=", ".join(t.label for t in SCALAR_TYPES.values()),
            )
        return SCALAR_TYPES[self.scalar_type]

    @property
    def type_name(self) -> str:
        known = SCALAR_TYPES.get(self.scalar_type)
        return known.label if known else OTHER_SCALAR_TYPES.get(self.scalar_type, f"number {self.scalar_type}")

    @property
    def bytes(self) -> int:
        return prod(self.shape) * self.dtype.size

    def __str__(self) -> str:
        return f"v{self.index} {self.type_name}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Items:
    """A list of values, by index. `of` is their kind: int, Tensor or Tensor?, where -1 represents None."""

    indices: tuple[int, ...]
    of: str


Value: TypeAlias = TensorValue | Items | bool | int | float | str | tuple[float, ...] | tuple[bool, ...] | None


@dataclass(frozen=True)
class KernelCall:
    operator: str
    overload: str
    args: tuple[int, ...]

    @property
    def in_place(self) -> bool:
        """Report whether it changes its first argument, which it then returns. Before ExecuTorch 1.1 what it returns is
        a tensor of its own, which nothing writes to."""
        return self.operator.endswith("_") and len(self.args) > 1


@dataclass(frozen=True)
class DelegateCall:
    """A call of a delegate, by its number in the method."""

    delegate: int
    args: tuple[int, ...]


@dataclass(frozen=True)
class OtherCall:
    """An instruction that is not an operator: `kind` is its name in the schema."""

    kind: str


@dataclass(frozen=True)
class BackendDelegate:
    """A delegate: the backend's name, and the place of its data in the file."""

    backend: str
    in_segment: bool
    index: int


@dataclass(frozen=True)
class PteMethod:
    name: str
    values: tuple[Value, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    instructions: tuple[KernelCall | DelegateCall | OtherCall, ...]
    delegates: tuple[BackendDelegate, ...]
    banks: tuple[int, ...]  # bytes of each bank of planned memory


Parts: TypeAlias = tuple[int, tuple[int, ...]]  # a segment, and where in it each constant begins


class Program:
    """An open `.pte` file: the names of its `methods`, `method` to read one, `data_of` to read a constant or initial
    value."""

    def __init__(self, data: bytes) -> None:
        self._file = Bytes(data, ".pte", IDENTIFIER, "an ExecuTorch program")
        self._segment_base = 0
        if len(data) >= 8 + HEADER.size and data[8:12] == b"eh00":
            _, _, size, self._segment_base = HEADER.unpack_from(data, 8)
            self._file.slice(0, size, "the program")
        root = Table(self._file, self._file.integer("I", 0))
        self._plans = {plan.text(0): plan for plan in root.tables(1)}
        self._inline = root.tables(2)
        self._delegated = root.tables(3)
        self._segments = tuple((s.integer(0, "Q"), s.integer(1, "Q")) for s in root.tables(4))
        constants = root.table(5)
        self._constants = _parts(constants) if constants else (0, ())
        self._initial = tuple(map(_parts, root.tables(6)))
        self._named = {n.text(0): n.integer(1, "I") for n in root.tables(7)}

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(self._plans)

    def require(self, name: str) -> None:
        if name not in self._plans:
            raise CompileError(
                f"the program has no method {name!r}",
                have=", ".join(self.methods) or "no method at all",
                try_="name one of these",
            )

    def method(self, name: str) -> PteMethod:
        plan = self._plans[name]
        operators = tuple((o.text(0), o.text(1)) for o in plan.tables(6))
        return PteMethod(
            name,
            tuple(_value(i, *v.union(0)) for i, v in enumerate(plan.tables(2))),
            plan.integers(3, "i"),
            plan.integers(4, "i"),
            tuple(_instruction(operators, *i.union(0)) for c in plan.tables(5) for i in c.tables(2)),
            tuple(map(_delegate, plan.tables(7))),
            plan.integers(8, "q"),
        )

    def spend(self, items: int) -> None:
        """Count work of a method's reader beyond reading each value once."""
        self._file.spend(items)

    def data_of(self, tensor: TensorValue) -> memoryview:
        """Return the bytes of a constant, or the initial ones of a mutable buffer, in memory order."""
        if tensor.external:
            if tensor.key not in self._named:
                raise CompileError(
                    f"the data of {tensor.key or tensor} is not in this file",
                    need="a .pte that holds its weights",
                    try_="export without external constants (.ptd)",
                )
            source = self._segment(self._named[tensor.key])
        elif tensor.memory:
            if tensor.initial_list >= len(self._initial):
                raise damaged(f"{tensor} has its initial value in list {tensor.initial_list} of {len(self._initial)}")
            source = self._part(self._initial[tensor.initial_list], tensor)
        elif self._constants[1]:
            source = self._part(self._constants, tensor)
        else:
            if tensor.buffer >= len(self._inline):
                raise damaged(f"{tensor} is constant {tensor.buffer} of {len(self._inline)}")
            source = self._inline[tensor.buffer].span(0)
        if len(source) < tensor.bytes:
            raise damaged(f"{tensor} needs {tensor.bytes} bytes, its data ends after {len(source)}")
        self._file.spend(tensor.bytes)
        return source[: tensor.bytes]

    def delegate_data(self, delegate: BackendDelegate) -> bytes:
        """Return the data of a delegate."""
        if delegate.in_segment:
            data = self._segment(delegate.index)
        elif delegate.index < len(self._delegated):
            data = self._delegated[delegate.index].span(0)
        else:
            raise damaged(f"a delegate is given blob {delegate.index} of {len(self._delegated)}")
        self._file.spend(len(data))
        return bytes(data)

    def _part(self, parts: Parts, tensor: TensorValue) -> memoryview:
        """Return a segment from the start of the tensor's data."""
        segment, offsets = parts
        if tensor.buffer >= len(offsets):
            raise damaged(f"{tensor} is constant {tensor.buffer} of {len(offsets)}")
        return self._segment(segment)[offsets[tensor.buffer] :]

    def _segment(self, index: int) -> memoryview:
        if index >= len(self._segments):
            raise damaged(f"it refers to segment {index} of {len(self._segments)}")
        offset, size = self._segments[index]
        return self._file.slice(self._segment_base + offset, size, f"segment {index}")


def _parts(table: Table) -> Parts:
    return table.integer(0, "I"), table.integers(1, "Q")


def _value(index: int, kind: int, table: Table) -> Value:
    match kind:
        case 1:
            return None
        case 2:
            return table.integer(0, "q")
        case 3:
            return table.integer(0, "B") != 0
        case 4:
            return table.real(0, "d")
        case 5:
            return _tensor(index, table)
        case 6:
            return table.text(0)
        case 7:
            return Items(table.integers(0, "q"), "int")
        case 8:
            return table.reals(0, "d")
        case 9:
            return tuple(b != 0 for b in table.integers(0, "B"))
        case 10 | 11:
            return Items(table.integers(0, "i"), "Tensor" if kind == 10 else "Tensor?")
    raise damaged(f"v{index} is of the unknown kind {kind}")


def _tensor(index: int, table: Table) -> TensorValue:
    shape = table.integers(2, "i")
    order = table.integers(3, "B")
    if len(shape) > MAX_RANK or min(shape, default=0) < 0 or sorted(order) != list(range(len(shape))):
        raise damaged(f"v{index} has sizes {_short(shape)} in the order {_short(order)}")
    if table.integer(1, "i"):
        raise damaged(f"v{index} begins inside its own storage")
    plan, extra = table.table(6), table.table(9)
    return TensorValue(
        index,
        shape,
        table.integer(0, "b"),
        order,
        table.integer(5, "I"),
        (plan.integer(0, "I"), plan.integer(1, "I") | plan.integer(2, "I") << 32) if plan else None,
        table.integer(8, "b") != 0,
        extra.text(1) if extra else "",
        extra is not None and extra.integer(2, "b") == 1,
        extra.integer(0, "Q") if extra else 0,
    )


def _delegate(table: Table) -> BackendDelegate:
    data = table.table(1)
    if data is None:
        raise damaged(f"the delegate {table.text(0)!r} is given nothing")
    return BackendDelegate(table.text(0), data.integer(0, "b") == 1, data.integer(1, "I"))


def _instruction(
    operators: tuple[tuple[str, str], ...], kind: int, table: Table
) -> KernelCall | DelegateCall | OtherCall:
    if kind == 2:
        return DelegateCall(table.integer(0, "i"), table.integers(1, "i"))
    if kind != 1:
        if kind not in OTHER_CALLS:
            raise damaged(f"it has an instruction of the unknown kind {kind}")
        return OtherCall(OTHER_CALLS[kind])
    operator = table.integer(0, "i")
    if not 0 <= operator < len(operators):
        raise damaged(f"it calls operator {operator} of {len(operators)}")
    return KernelCall(*operators[operator], table.integers(1, "i"))


def _short(items: tuple[int, ...]) -> str:
    return f"{list(items[:MAX_RANK])}{' and more' if len(items) > MAX_RANK else ''}"


def memory_order(shape: Shape, order: Sequence[int]) -> tuple[int, ...]:
    """Return `order` in its usual form. Dimensions of size 1 can be anywhere, so contiguous is preferred, then channels
    last."""
    contiguous = tuple(range(len(shape)))
    channels_last = (0, *contiguous[2:], 1) if len(shape) > 2 else contiguous
    for usual in (contiguous, channels_last):
        if [d for d in usual if shape[d] != 1] == [d for d in order if shape[d] != 1]:
            return usual
    return tuple(order)


def order_of(t: TensorValue) -> tuple[int, ...]:
    return memory_order(t.shape, t.order)


def is_contiguous(t: TensorValue) -> bool:
    return order_of(t) == tuple(range(len(t.shape)))


def same_layout(a: TensorValue, b: TensorValue) -> bool:
    return a.shape == b.shape and memory_order(a.shape, a.order) == memory_order(b.shape, b.order)
