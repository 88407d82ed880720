"""How an operator reaches C: a Kernel row names a function, says where it fits, and prepares its arguments.

A kernel is called as

    symbol(&params, activations…, constants…, outputs…[, scratch])

with the node's non-constant inputs in order, then the constants that `pack` makes, then the outputs.
Without `pack`, inputs keep their order whether constant or not; so do the first `as_they_are` inputs with it.

Input and output may share bytes as far as the kernel allows. `overlap` gives, for each non-constant input, the least
distance d >= 0 in bytes such that the result is right wherever

    address of the input - address of the output >= d

holds for every output, whatever the other inputs and the scratch are, as long as they lie apart; None says that this
input must lie apart from the outputs. The input's own bytes need not survive. A kernel that goes forward through
memory, and reads the last of an input byte before it writes that far, has a small d: 0 is "in place". For every d an
input that ends before the output begins is right too, so an answer is always safe when it is larger than needed.
A kernel with several outputs may name pairs of an input and an output that may be one: `renews`.

A kernel that makes one channel after the other, each from that channel alone, reads bytes that the others have written
behind it, unless input and output lie whole pixels apart: then channels do not meet. `nearer` names a smaller distance
for that, of a kernel with one activation.

Where outputs always begin before their inputs, a row of layers wanders through memory. So a kernel may have a function
`back` that goes from the last byte to the first: it is right wherever the output begins at least so far behind the
input as `behind` says, or apart from it.

`splits` tells where a kernel can make a part of its output alone: see cut.py. The part is another call of the same
kernel, whether it would `fit` by itself or not, and all parts together are the output, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from baretorch.ir.graph import Array, Op, Tensor
from baretorch.ops.helpers.executor import CORE0, Executor
from baretorch.targets.features import ANY_CPU, Needs

Literal: TypeAlias = int | float | tuple[int, ...]
Fields: TypeAlias = tuple[tuple[str, Literal], ...]
O = TypeVar("O", bound=Op)


@dataclass(frozen=True)
class Params:
    """A C struct and the value of each of its fields, in the struct's order."""

    struct: str
    fields: Fields


@dataclass(frozen=True, eq=False)
class Call(Generic[O]):
    """An op applied to its tensors: all that choosing and preparing a kernel may look at. Compared by identity."""

    op: O
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    pitch: int = 0  # elements from one row of y's last axis to the next, if that is more than a row; see `y_pitch`

    @property
    def y_pitch(self) -> int:
        """Elements from one row of y's last axis to the next. y may be some channels of a wider tensor."""
        return self.pitch or self.y.shape[-1]

    @property
    def x(self) -> Tensor:
        return self.inputs[0]

    @property
    def y(self) -> Tensor:
        return self.outputs[0]


@dataclass(frozen=True)
class Packed:
    """A constant as the kernel wants it; `role` becomes part of its C name ("weight", "bias"). The kernel's C declares
    it BT_FLASH."""

    role: str
    data: Array

    @cached_property
    def content(self) -> tuple[str, bytes]:
        """Its type and bytes, by which it is known."""
        return self.data.dtype.name, self.data.tobytes()


Distances: TypeAlias = tuple[int | None, ...]


def apart(call: Call[O]) -> Distances:
    """No input may share a byte with an output."""
    return tuple(None for t in call.inputs if t.data is None)


@dataclass(frozen=True)
class Lattice:
    """A distance that will do where input and output lie a multiple of `step` bytes apart."""

    distance: int
    step: int

    def holds(self, ahead: int) -> bool:
        """Whether an input may begin so far behind the output."""
        return ahead >= self.distance and ahead % self.step == 0


@dataclass(frozen=True)
class Split:
    """The output may be cut along `axis`, at multiples of `step`. Where each channel is made from one of the input, a
    part reads some channels of a `wide` input, with the output's pitch."""

    axis: int
    step: int = 1
    wide: bool = False

    def places(self, y: Tensor) -> range:
        """Where y may be cut, its ends excepted."""
        return range(self.step, y.shape[self.axis], self.step)


def nowhere(call: Call[O]) -> tuple[Split, ...]:
    """The output is made as a whole."""
    return ()


@dataclass(frozen=True)
class Kernel(Generic[O]):
    """One C function for an operator. The first row of an op whose `needs` and `fits` hold is used."""

    symbol: str  # C function, for example "bt_linear_f32_ref"
    source: str  # file below kernels/, for example "linear/ref.c"; its header is linear/linear.h
    params: Callable[[Call[O]], Params]
    needs: Needs = ANY_CPU
    fits: Callable[[Call[O]], bool] = lambda call: True
    pack: Callable[[Call[O]], tuple[Packed, ...]] | None = None
    scratch: Callable[[Call[O]], int] = lambda call: 0  # bytes, 4-byte aligned
    overlap: Callable[[Call[O]], Distances] = apart  # see above
    nearer: Callable[[Call[O]], Lattice | None] = lambda call: None
    renews: tuple[tuple[int, int], ...] = ()  # (input, output) that may be the very same memory
    back: str = ""  # C function that does the same from the last byte to the first, where `behind` is not None
    behind: Callable[[Call[O]], Distances] = apart
    splits: Callable[[Call[O]], tuple[Split, ...]] = nowhere  # where op.cut allows it too
    channels: str = ""  # C function for a call with a pitch; whose struct is `with_pitch`
    as_they_are: int = 0  # how many of the first inputs are read as activations even where they are constants
    skips: Callable[[Call[O]], int] = lambda call: 0  # bytes of the first input, behind which its pointer points
    executor: Executor = CORE0  # what computes: any core, an NPU or an accelerator unit
    begins: str = ""  # C function that has a unit begin only, and for its number, the params' `unit`, one that waits
    awaits: str = ""
    cycles: Callable[[Call[O]], float] = lambda call: 0.0  # that a unit takes

    def function(self, call: Call[O]) -> str:
        """The C function of a call."""
        assert self.channels or not call.pitch, f"{self.symbol} knows no pitch"
        return self.channels if call.pitch else self.symbol

    @cached_property
    def unit(self) -> str:
        """The name of the accelerator unit that computes; empty if none does."""
        return self.executor.name if self.executor.is_unit else ""

    @property
    def variant(self) -> str:
        """`ref`, `fpu`: the file it stands in."""
        return self.source.rpartition("/")[2].removesuffix(".c")

    def for_cpu(self, variant: str, needs: Needs, **changes: Any) -> Kernel[O]:
        """Return the row of another variant of a portable kernel, which is next to it and has the same parameters."""
        symbol, source = (text.replace("ref", variant) for text in (self.symbol, self.source))
        return replace(self, symbol=symbol, source=source, needs=needs, **changes)

    @property
    def header(self) -> str:
        folder = self.source.split("/", 1)[0]
        return f"{folder}/{folder}.h"


def with_pitch(struct: str, params: Params, call: Call[O]) -> Params:
    """What a call with a pitch needs more: a struct that has the other one as `layer`."""
    if not call.pitch:
        return params
    layer = tuple((f"layer.{name}", value) for name, value in params.fields)
    return Params(struct, (*layer, ("y_stride", call.pitch)))


def fields_of(op: Op, *names: str) -> Fields:
    """Return attributes of the op as fields of its parameters."""
    values = ((name, getattr(op, name)) for name in names)
    return tuple((name, int(value) if isinstance(value, bool) else value) for name, value in values)


def has_constants(call: Call[Any], first: int = 1) -> bool:
    """Return whether all inputs from the one with this number on are constants."""
    return all(t.data is not None for t in call.inputs[first:])


def pack_inputs(call: Call[Any], *roles: str, first: int = 1) -> tuple[Packed, ...]:
    """Return constant inputs as they are, from the one with the number `first` on."""
    return tuple(Packed(role, data_of(call.inputs, i)) for i, role in enumerate(roles, first))


def bias_of(call: Call[Any]) -> Array:
    """Return the bias of a float layer, or zeros if it has none."""
    return data_of(call.inputs, 2) if len(call.inputs) > 2 else np.zeros(call.inputs[1].shape[0], np.float32)


def data_of(tensors: Sequence[Tensor], index: int) -> Array:
    """The constant data of input `index`."""
    data = tensors[index].data
    assert data is not None, f"{tensors[index]} is not constant"
    return data


def in_eights(rows: Array) -> Array:
    """[out, in] -> [out // 8, in, 8], then the rows left over as they are: kernels compute eight outputs together."""
    out, in_ = rows.shape
    full = out - out % 8
    eights = rows[:full].reshape(full // 8, 8, in_).transpose(0, 2, 1)
    return np.concatenate([eights.reshape(-1), rows[full:].reshape(-1)])
