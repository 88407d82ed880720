"""How an operator reaches C: a Kernel row names a function, its conditions, and how its arguments are prepared.

A kernel is called as

    symbol(&params, activations…, constants…, outputs…[, scratch])

with the node's non-constant inputs in order, then the constants that `pack` returns, then the outputs.
Without `pack`, inputs keep their order whether constant or not; with it, the first `as_they_are` inputs do.

Input and output may share bytes as far as the kernel allows. `overlap` returns, for each non-constant input, the least
distance d >= 0 in bytes such that the result is right wherever

    address of the input - address of the output >= d

holds for every output, for all addresses of the other inputs and the scratch that are apart from them. None means that
this input must be apart from the outputs. The input's own bytes need not survive. A kernel that goes forward through
memory, and reads the last of an input byte before it writes that far, has a small d: 0 is "in place". An input that
ends before the output begins is right for every d, so a larger distance than needed is always safe.
A kernel with several outputs may list pairs of an input and an output that may share their memory: `renews`.

A kernel that computes channel after channel, each from one channel alone, reads bytes that earlier channels have
overwritten, unless input and output are whole pixels apart: then channels do not meet. `nearer` returns a smaller
distance for this case, for a kernel with one activation.

If outputs always begin before their inputs, the tensors of a chain of layers move through memory. So a kernel may have
a function `back` that goes from the last byte to the first: it is right wherever the output begins at least `behind`
bytes after the input, or apart from it.

`splits` lists where a kernel can compute a part of its output alone: see cut.py. The part is another call of the same
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
    """An op applied to its tensors: everything that choosing and preparing a kernel may depend on. Calls are compared
    by identity."""

    op: O
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    pitch: int = 0  # elements from one row of y's last axis to the next, if that is more than a row; see `y_pitch`

    @property
    def y_pitch(self) -> int:
        """Return the elements from one row of y's last axis to the next. y may be some channels of a wider tensor."""
        return self.pitch or self.y.shape[-1]

    @property
    def x(self) -> Tensor:
        return self.inputs[0]

    @property
    def y(self) -> Tensor:
        return self.outputs[0]


@dataclass(frozen=True)
class Packed:
    """A constant in the layout of the kernel; `role` becomes part of its C name ("weight", "bias"). The kernel's C
    declares it BT_FLASH."""

    role: str
    data: Array

    @cached_property
    def content(self) -> tuple[str, bytes]:
        """Return its type and bytes, which identify it."""
        return self.data.dtype.name, self.data.tobytes()


Distances: TypeAlias = tuple[int | None, ...]


def apart(call: Call[O]) -> Distances:
    """Return that no input may share a byte with an output."""
    return tuple(None for t in call.inputs if t.data is None)


@dataclass(frozen=True)
class Lattice:
    """A distance that is valid if input and output are a multiple of `step` bytes apart."""

    distance: int
    step: int

    def holds(self, ahead: int) -> bool:
        """Return whether an input may begin `ahead` bytes after the output."""
        return ahead >= self.distance and ahead % self.step == 0


@dataclass(frozen=True)
class Split:
    """An axis along which the output may be cut, at multiples of `step`. If each channel depends on one input channel,
    a part reads some channels of a `wide` input, with the output's pitch."""

    axis: int
    step: int = 1
    wide: bool = False

    def places(self, y: Tensor) -> range:
        """Return where y may be cut, without its ends."""
        return range(self.step, y.shape[self.axis], self.step)


def nowhere(call: Call[O]) -> tuple[Split, ...]:
    """Return no split: the output is computed as a whole."""
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
    back: str = ""  # C function that goes from the last byte to the first, where `behind` is not None
    behind: Callable[[Call[O]], Distances] = apart
    splits: Callable[[Call[O]], tuple[Split, ...]] = nowhere  # where op.cut allows it too
    channels: str = ""  # C function for a call with a pitch; whose struct is `with_pitch`
    as_they_are: int = 0  # how many of the first inputs are read as activations even where they are constants
    skips: Callable[[Call[O]], int] = lambda call: 0  # byte offset added to the first input's pointer
    executor: Executor = CORE0  # any core, an NPU or an accelerator unit
    begins: str = ""  # C function that starts the unit without waiting; its params name the `unit`
    awaits: str = ""  # C function that waits for that unit
    cycles: Callable[[Call[O]], float] = lambda call: 0.0  # that a unit takes

    def function(self, call: Call[O]) -> str:
        """Return the C function of a call."""
        assert self.channels or not call.pitch, f"{self.symbol} knows no pitch"
        return self.channels if call.pitch else self.symbol

    @cached_property
    def unit(self) -> str:
        """Return the name of the accelerator unit that computes, or nothing if none does."""
        return self.executor.name if self.executor.is_unit else ""

    @property
    def variant(self) -> str:
        """Return the variant, `ref` or `fpu`: the name of its file."""
        return self.source.rpartition("/")[2].removesuffix(".c")

    def for_cpu(self, variant: str, needs: Needs, **changes: Any) -> Kernel[O]:
        """Return the row of a variant of a portable kernel, which is in the same folder and has the same parameters."""
        symbol, source = self.symbol.removesuffix("ref"), self.source.removesuffix("ref.c")
        return replace(self, symbol=f"{symbol}{variant}", source=f"{source}{variant}.c", needs=needs, **changes)

    @property
    def header(self) -> str:
        folder = self.source.split("/", 1)[0]
        return f"{folder}/{folder}.h"


def with_pitch(struct: str, params: Params, call: Call[O]) -> Params:
    """Return the parameters of a call that may have a pitch: a struct that contains the other one as `layer`."""
    if not call.pitch:
        return params
    layer = tuple((f"layer.{name}", value) for name, value in params.fields)
    return Params(struct, (*layer, ("y_stride", call.pitch)))


def fields_of(op: Op, *names: str) -> Fields:
    """Return attributes of the op as fields of its parameters."""
    values = ((name, getattr(op, name)) for name in names)
    return tuple((name, int(value) if isinstance(value, bool) else value) for name, value in values)


def has_constants(call: Call[Any], first: int = 1) -> bool:
    """Return whether all inputs from number `first` on are constants."""
    return all(t.data is not None for t in call.inputs[first:])


def pack_inputs(call: Call[Any], *roles: str, first: int = 1) -> tuple[Packed, ...]:
    """Return the constant inputs from number `first` on as they are."""
    return tuple(Packed(role, data_of(call.inputs, i)) for i, role in enumerate(roles, first))


def bias_of(call: Call[Any]) -> Array:
    """Return the bias of a float layer, or zeros if it has none."""
    return data_of(call.inputs, 2) if len(call.inputs) > 2 else np.zeros(call.inputs[1].shape[0], np.float32)


def data_of(tensors: Sequence[Tensor], index: int) -> Array:
    """Return the constant data of input `index`."""
    return tensors[index].numbers


def in_eights(rows: Array) -> Array:
    """Reorder [out, in] to [out // 8, in, 8], then the remaining rows as they are: kernels compute eight outputs
    together."""
    out, in_ = rows.shape
    full = out - out % 8
    eights = rows[:full].reshape(full // 8, 8, in_).transpose(0, 2, 1)
    return np.concatenate([eights.reshape(-1), rows[full:].reshape(-1)])
