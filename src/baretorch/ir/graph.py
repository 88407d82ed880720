"""Define the Graph: the computation, independent of the board.

A Graph is tensors by name and nodes in execution order. Everything is frozen: a pass takes a Graph and
returns another. `ir/verify.py` checks the grammar after every pass, `interpret` gives the meaning.
`ir/text.py` prints a Graph.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from itertools import count
from math import prod
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from baretorch.errors import InternalError

Array: TypeAlias = npt.NDArray[Any]
Shape: TypeAlias = tuple[int, ...]
Order: TypeAlias = tuple[int, ...]


class DType(Enum):
    """An element type: its name in PyTorch, and in C. Inputs and outputs may have the types of `HALVES`, whose bits are
    uint16_t in C and in NumPy; a Graph computes with their float32."""

    FLOAT32 = ("float32", "float")
    INT8 = ("int8", "int8_t")
    UINT8 = ("uint8", "uint8_t")
    INT16 = ("int16", "int16_t")
    INT32 = ("int32", "int32_t")
    INT64 = ("int64", "int64_t")
    BOOL = ("bool", "uint8_t")
    FLOAT16 = ("float16", "uint16_t")
    BFLOAT16 = ("bfloat16", "uint16_t")

    def __init__(self, label: str, c: str) -> None:
        self.label = label
        self.c = c

    @property
    def numpy(self) -> np.dtype[Any]:
        return np.dtype("uint16" if self.is_half else self.label)

    @property
    def is_half(self) -> bool:
        """Report whether it is a float type of 16 bits."""
        return self in (DType.FLOAT16, DType.BFLOAT16)

    @property
    def computed(self) -> DType:
        """Return the type in which a Graph computes with numbers of this type."""
        return DType.FLOAT32 if self.is_half else self

    @property
    def size(self) -> int:
        return int(self.numpy.itemsize)

    @classmethod
    def of(cls, label: str) -> DType | None:
        """Return the type called `label` ("float32") in which a Graph can compute, or None."""
        return next((d for d in cls if d.label == label and not d.is_half), None)


HALVES = {d.label: d for d in DType if d.is_half}


@dataclass(frozen=True)
class Quant:
    """Scale and zero point: real = scale * (stored - zero_point), one pair, or one per index of `axis`. If `cuts` is
    set, numbers outside the range of int8 are clipped even if the tensor stays float, because clipping may be the
    whole activation. Weights may have 4 `bits`, with a factor for each `group` of inputs. Activations may have
    16: int16 is then used too, with a scale 128 times finer and the zero point 0."""

    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int | None = None
    cuts: bool = field(default=False, compare=False)
    bits: int = field(default=8, compare=False)
    group: int = field(default=0, compare=False)

    @property
    def range(self) -> tuple[float, float]:
        """Return the smallest and the largest real number of a tensor with one scale."""
        (scale,), (zero,) = self.scale, self.zero_point
        return scale * (-128 - zero), scale * (127 - zero)


@dataclass(frozen=True)
class Origin:
    """The source of a tensor in the user's model: module path and source line, each may be empty."""

    path: str = ""
    source: str = ""

    def __str__(self) -> str:
        return f"{self.path}  ({self.source})" if self.path and self.source else self.path or self.source


NOWHERE = Origin()


PERMUTED = "_nhwc"  # suffix of the names of tensors in another order
CHOSEN = "--keep-float or the configuration keeps it in float"


@dataclass(frozen=True)
class InFloat:
    """The reason why an operator of an int8 model computes in float."""

    text: str
    has_form: bool = True  # the operator has an int8 form, which does not fit here
    spectrum: bool = False  # it is next to a Fourier transform
    chosen: bool = False  # the user keeps it in float, so it is no surprise


@dataclass(frozen=True, eq=False)
class Tensor:
    """A value of the graph. `data` is set for constants. `value` is set if a pass stores another value under this name,
    or the int8 form of a tensor: it is the name of the tensor that this one represents. `in_float` states why this
    tensor of an int8 model is computed in float."""

    name: str
    shape: Shape
    dtype: DType
    quant: Quant | None = None
    data: Array | None = None
    origin: Origin = NOWHERE
    value: str = ""
    in_float: InFloat | None = None

    @property
    def holds(self) -> str:
        """Return the name that this value had in the graph before all passes."""
        return self.value or self.name

    @property
    def layer(self) -> str:
        """Return the name that reports show for the layer that computes this: its path, or else the value's name."""
        return self.origin.path or self.holds.removesuffix(PERMUTED)

    @property
    def is_quantized(self) -> bool:
        """Report whether the tensor stores real numbers as int8 or int16, with the scale and zero point of `quant`."""
        return self.quant is not None and self.dtype in (DType.INT8, DType.INT16)

    @property
    def numbers(self) -> Array:
        """Return the data of a constant."""
        assert self.data is not None, f"{self} is not constant"
        return self.data

    @property
    def count(self) -> int:
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.count * self.dtype.size

    @property
    def type(self) -> str:
        """Return the type as text, as in `float32[1, 16]`."""
        return f"{self.dtype.label}[{', '.join(map(str, self.shape))}]"

    def __repr__(self) -> str:
        return f"{self.name} {self.type}"


@dataclass(frozen=True)
class Signature:
    """The shape and type of one output of an op."""

    shape: Shape
    dtype: DType
    quant: Quant | None = None


@dataclass(frozen=True)
class Permuted:
    """A replacement for an op that does not depend on the order of dimensions: applied to permuted inputs, it returns a
    value whose permutation by `dims` is the output."""

    op: Op
    dims: Shape


@dataclass(frozen=True)
class Span:
    """The range [start, stop) along an axis of a tensor."""

    axis: int
    start: int
    stop: int


@dataclass(frozen=True)
class Piece:
    """The computation of a part of an op's output: the op that computes it, and the part of each input that it reads
    (None: all of it). If it is `alike`, rows have the same distance in memory as in the whole output."""

    op: Op
    reads: tuple[Span | None, ...]
    alike: int | None = None


@dataclass(frozen=True)
class Op:
    """The operation of a node. There is one frozen dataclass per operator in `ops/`; its fields are its attributes. The
    methods describe properties that passes need; the defaults are those of an ordinary operator."""

    name: ClassVar[str]
    carried: ClassVar[slice] = slice(None)  # inputs with the output's dimensions; weights and indices have their own
    reordered: ClassVar[int] = 0  # number of leading inputs that can be read, with the output written, in any order
    values: ClassVar[slice] = slice(None)  # inputs that it computes with; the others select among them
    computes: ClassVar[bool] = True  # False: it moves or converts values, so float costs nothing in an int8 model
    overwrites: ClassVar[int | None] = None  # the input in whose memory its output may be, if nothing else reads it
    in_order: ClassVar[bool] = False  # its steps keep their order, because they have effects outside the model
    alignment: ClassVar[int] = 0  # its tensors are whole buffers at multiples of this many bytes; 0: no such rule
    by_column: ClassVar[bool] = False  # its second input has a column for each number of the first's last dimension

    def __init_subclass__(cls, **properties: Any) -> None:
        """Set class variables from the arguments of the class, as in `class Copy(Op, name="copy", computes=False)`."""
        super().__init_subclass__()
        for name, value in properties.items():
            if not any(name in base.__annotations__ for base in cls.__mro__[1:-1]):
                raise TypeError(f"{cls.__name__}: operators have no property {name}")
            setattr(cls, name, value)

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        """Return shapes and types of the outputs. Raises CompileError if the inputs do not fit together."""
        raise NotImplementedError

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        """Compute the outputs in NumPy. This simple and slow definition is the reference for every kernel."""
        raise NotImplementedError

    def view(self, inputs: Sequence[Tensor]) -> int | None:
        """Return the byte offset of the output in its first input's memory if it is a view; None if it must be
        computed."""
        return None

    def destination(self, inputs: Sequence[Tensor], y: Tensor) -> int | None:
        """Return the byte of its output's memory where its only input may already be, so that there is nothing to do;
        None if it does more than move that."""
        return None

    def is_empty(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> bool:
        """Return whether there is no element to compute or to move."""
        return not any(t.count for t in outputs)

    def permute(self, dims: Shape, inputs: Sequence[Tensor]) -> Permuted | None:
        """Return the equivalent op for its `carried` inputs permuted by `dims`; None if it depends on their order."""
        return None

    def with_orders(self, read: Sequence[Shape], write: Shape) -> Op:
        """Return the equivalent op for its `reordered` inputs permuted by `read` and its output permuted by `write`."""
        raise NotImplementedError

    def clamp(self, lo: float, hi: float) -> Op | None:
        """Return the op with its output also limited to [lo, hi]; None if it cannot have limits."""
        return None

    def takes_affine(self) -> bool:
        """Report whether y[..., out] is a sum of products with weight[out, ...], input 1, plus bias[out], input 2 if
        present, and nothing else. Such an op can have limits."""
        return False

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        """Return a piece that computes [start, stop) of the only output, y, along an axis; None if y cannot be split
        there."""
        return None

    def indices(self, inputs: Sequence[Tensor]) -> Mapping[int, int]:
        """Return which inputs are indices, and the number of entries that each can select."""
        return {}

    def layer(self, y: Tensor) -> str:
        """Return the name of the layer that makes the output y, or a part of it."""
        return y.name

    def macs(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> int:
        """Return the number of multiply-accumulates, as commonly counted."""
        return 0


@dataclass(frozen=True)
class Node:
    op: Op
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class State:
    """A value that outlives a run. `name` is its tensor at the start of a run; after the run it has the value of the
    tensor `next`. Before the first run it has the value `initial`."""

    name: str
    next: str
    initial: Array


@dataclass(frozen=True)
class Port:
    """An input or output as the caller sees it. `order` lists its dimensions from outermost to innermost in memory:
    (0, 1, 2, 3) is contiguous, (0, 2, 3, 1) channels last. The tensor has its dimensions in that order."""

    tensor: Tensor
    order: Order

    @property
    def shape(self) -> Shape:
        """Return the caller's shape: an image is NCHW, whatever its memory order."""
        return tuple(self.tensor.shape[self.order.index(d)] for d in range(len(self.order)))

    @property
    def dtype(self) -> DType:
        """Return the type of the caller's values: float32 for a tensor that is quantized or stores halves, else the
        tensor's own type."""
        return DType.FLOAT32 if self.tensor.is_quantized else self.tensor.dtype.computed

    def to_memory(self, x: Array) -> Array:
        """Convert the caller's array to the tensor's order, contiguous."""
        return np.array(x.transpose(self.order), order="C")  # a scalar stays one

    def from_memory(self, x: Array) -> Array:
        """Convert the tensor's values to the caller's order."""
        return x.transpose(np.argsort(self.order))


def _ports(tensors: Sequence[Tensor], orders: Sequence[Order]) -> tuple[Port, ...]:
    known = orders or [tuple(range(len(t.shape))) for t in tensors]
    return tuple(Port(t, order) for t, order in zip(tensors, known, strict=True))


@dataclass(frozen=True)
class Graph:
    """Nodes in execution order over named tensors."""

    name: str
    tensors: Mapping[str, Tensor]
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    state: tuple[State, ...] = ()
    labels: tuple[str, ...] = ()  # what the caller calls the outputs; empty: y, or y0, y1 …
    input_orders: tuple[
        Order, ...
    ] = ()  # the memory order of each input, as `Port.order`; empty: the order of their shapes
    output_orders: tuple[Order, ...] = ()

    def __repr__(self) -> str:
        return f"Graph({self.name}: {len(self.nodes)} nodes)"

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]

    def of(self, names: Iterable[str]) -> tuple[Tensor, ...]:
        return tuple(self.tensors[n] for n in names)

    def takes(self) -> tuple[Port, ...]:
        """Return the inputs, as the caller sees them."""
        return _ports(self.of(self.inputs), self.input_orders)

    def gives(self) -> tuple[Port, ...]:
        """Return the outputs, as the caller sees them."""
        return _ports(self.of(self.outputs), self.output_orders)

    @cached_property
    def kept(self) -> frozenset[str]:
        """Return the tensors that are read after the run: outputs, and the next values of state."""
        return frozenset((*self.outputs, *(s.next for s in self.state)))

    def producer(self) -> dict[str, Node]:
        return {name: node for node in self.nodes for name in node.outputs}

    def uses(self) -> dict[str, list[Node]]:
        """Return the nodes that read each tensor; a node that reads it twice is listed twice."""
        table: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in node.inputs:
                table.setdefault(name, []).append(node)
        return table

    @property
    def is_int8(self) -> bool:
        """Report whether any tensor stores int8, as after `to_int8`."""
        return any(t.dtype is DType.INT8 for t in self.tensors.values())

    @property
    def is_quantized(self) -> bool:
        """Report whether any tensor has a scale: it is still float before `to_int8`, and stores int8 after it."""
        return any(t.quant is not None for t in self.tensors.values())

    def macs(self) -> int:
        return sum(n.op.macs(self.of(n.inputs), self.of(n.outputs)) for n in self.nodes)

    def constants(self) -> tuple[Tensor, ...]:
        return tuple(t for t in self.tensors.values() if t.data is not None)


@dataclass
class Builder:
    """Makes a Graph node by node; output types come from the op, so they cannot disagree with it."""

    name: str = "model"
    tensors: dict[str, Tensor] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    origin: Origin = NOWHERE
    _numbers: dict[str, int] = field(default_factory=dict)

    def fresh(self, stem: str) -> str:
        """Return `stem`, or `stem_2`, `stem_3` … if it is in use."""
        if stem not in self.tensors and stem not in self._numbers:
            self._numbers[stem] = 1
            return stem
        n = self._numbers.get(stem, 1)
        while True:
            n += 1
            if f"{stem}_{n}" not in self.tensors:
                self._numbers[stem] = n
                return f"{stem}_{n}"

    def tensor(self, t: Tensor) -> str:
        if t.name in self.tensors:
            raise InternalError(f"two tensors are called {t.name}")
        self.tensors[t.name] = t
        return t.name

    def input(self, name: str, shape: Shape, dtype: DType, quant: Quant | None = None) -> str:
        return self.tensor(Tensor(self.fresh(name), shape, dtype, quant, origin=self.origin))

    def const(self, name: str, data: Array, quant: Quant | None = None) -> str:
        dtype = DType.of(data.dtype.name)
        if dtype is None:
            raise InternalError(f"constant {name} has type {data.dtype}")
        data = np.ascontiguousarray(data).reshape(data.shape)
        return self.tensor(Tensor(self.fresh(name), data.shape, dtype, quant, data, self.origin))

    def add(self, op: Op, *inputs: str, name: str | None = None) -> str:
        """Append a node with one output and return that output's name."""
        (out,) = self.add_many(op, *inputs, names=(name,) if name else ())
        return out

    def add_many(self, op: Op, *inputs: str, names: Sequence[str] = ()) -> tuple[str, ...]:
        signatures = op.infer([self.tensors[i] for i in inputs])
        outs = []
        for i, s in enumerate(signatures):
            stem = names[i] if i < len(names) else self.origin.path.replace(".", "_") or op.name
            outs.append(self.tensor(Tensor(self.fresh(stem), s.shape, s.dtype, s.quant, origin=self.origin)))
        self.nodes.append(Node(op, inputs, tuple(outs)))
        return tuple(outs)

    def graph(self, inputs: Sequence[str], outputs: Sequence[str], state: Sequence[State] = ()) -> Graph:
        return Graph(self.name, dict(self.tensors), tuple(self.nodes), tuple(inputs), tuple(outputs), tuple(state))


def interpret(
    graph: Graph, inputs: Sequence[Array], keep: bool = False, memory: dict[str, Array] | None = None
) -> dict[str, Array]:
    """Run the graph with the NumPy references and return the outputs by name; with `keep`, every tensor. `memory` holds
    the state between runs: a run reads it if it is not empty, and stores the next state in it."""
    values: dict[str, Array] = {n: t.data for n, t in graph.tensors.items() if t.data is not None}
    values |= {s.name: s.initial for s in graph.state} | (memory or {})
    for name, value in zip(graph.inputs, inputs, strict=True):
        t = graph[name]
        if value.shape != t.shape or value.dtype != t.dtype.numpy:
            raise InternalError(f"input {t} was given {value.dtype}{list(value.shape)}")
        values[name] = value
    last = {} if keep else {name: node for node in graph.nodes for name in node.inputs}
    needed = graph.kept
    for node in graph.nodes:
        results = node.op.reference(*(values[n] for n in node.inputs))
        for name, result in zip(node.outputs, results, strict=True):
            t = graph[name]
            values[name] = np.asarray(result, dtype=t.dtype.numpy).reshape(t.shape)
        for name in {n for n in node.inputs if last.get(n) is node} - needed:
            del values[name]  # large models have many
    if memory is not None:
        memory.update({s.name: values[s.next] for s in graph.state})
    return values if keep else {n: values[n] for n in graph.outputs}


def fresh(graph: Graph, taken: Container[str], stem: str) -> str:
    """Return a tensor name that is not in use."""
    return next(name for name in numbered(stem) if name not in graph.tensors and name not in taken)


def numbered(stem: str) -> Iterator[str]:
    """Yield `stem`, `stem_2`, `stem_3` … without end."""
    yield stem
    yield from (f"{stem}_{n}" for n in count(2))


def with_data(t: Tensor, data: Array) -> Tensor:
    """Return the tensor as a constant with other data (and the data's shape)."""
    return replace(t, data=np.ascontiguousarray(data, dtype=t.dtype.numpy).reshape(data.shape), shape=data.shape)
