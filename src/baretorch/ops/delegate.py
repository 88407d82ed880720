"""delegate: a region of a Graph that an NPU computes. Plans for chips with an NPU contain it, and files may contain
one."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

import numpy as np

from baretorch.ir.graph import Array, DType, Graph, Op, Shape, Signature, Tensor, interpret
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.executor import NPU
from baretorch.ops.helpers.kernel import Call, Kernel, Literal, Params, data_of

ALIGNED = 16  # bytes: alignment of everything that an NPU reads and writes
MOST_PARTS = 8  # inputs, or outputs, of a region that lie inside its scratch

Computes: TypeAlias = Callable[[Sequence[Array]], Sequence[Array]]


@dataclass(frozen=True)
class DelegatePort:
    """An input or output of a region, at a byte offset in the delegate's own. With `scratch`, the commands expect it at
    that offset of the scratch, and it is copied to or from there."""

    shape: Shape
    offset: int
    scratch: int | None = None

    @property
    def end(self) -> int:
        return self.offset + prod(self.shape)


@dataclass(frozen=True)
class Delegate(Op, name="delegate", alignment=ALIGNED):
    """x int8, commands int32[words], weights uint8[bytes] -> the outputs of `region` for x, int8.

    A region with one input and one output takes and returns them as they are. If it has several, x is a row of bytes in
    which each has its place, and so is the result; bytes between them do not matter.

    All tensors are in the RAM bank `bank`, and so is the scratch of `scratch` bytes. The NPU's configuration must be
    `config`.

    Only the inputs and outputs of a delegate from a file are known: the emulated NPU, `emulated`, computes its results.
    It has no `bank` until a board is chosen.
    """

    layers: tuple[str, ...]  # the layers of the region, for reports
    scratch: int
    bank: str
    config: int = field(repr=False)
    region: Graph = field(repr=False)
    inputs: tuple[DelegatePort, ...] = field(repr=False)
    outputs: tuple[DelegatePort, ...] = field(repr=False)
    emulated: Computes | None = field(default=None, repr=False, compare=False)

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        types = tuple(t.dtype for t in inputs)
        right = types == (DType.INT8, DType.INT32, DType.UINT8) and inputs[0].shape == _whole(self.inputs)
        need(right, self, "the inputs are not those of a delegate", inputs, f"x int8{list(_whole(self.inputs))}")
        return (Signature(_whole(self.outputs), DType.INT8),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        """Interpret the region: commands and weights must mean the same."""
        flat = inputs[0].reshape(-1)
        given = [flat[p.offset : p.end].reshape(p.shape) for p in self.inputs]
        answers = self._interpret(given) if self.emulated is None else self.emulated(given)
        if len(self.outputs) == 1:
            return (answers[0],)
        made = np.zeros(_whole(self.outputs), np.int8)
        for part, y in zip(self.outputs, answers, strict=True):
            made[part.offset : part.end] = y.reshape(-1)
        return (made,)

    def _interpret(self, inputs: Sequence[Array]) -> list[Array]:
        values = interpret(self.region, inputs)
        return [values[name] for name in self.region.outputs]

    def macs(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> int:
        return self.region.macs()


def _whole(parts: Sequence[DelegatePort]) -> Shape:
    return parts[0].shape if len(parts) == 1 else (max(p.end for p in parts),)


def _copies(call: Call[Delegate]) -> bool:
    return any(p.scratch is not None for p in (*call.op.inputs, *call.op.outputs))


def _params(call: Call[Delegate]) -> Params:
    commands, weights = (data_of(call.inputs, i).tobytes() for i in (1, 2))
    crc = zlib.crc32(weights, zlib.crc32(commands))
    sizes = (("command_bytes", len(commands)), ("weight_bytes", len(weights)))
    return Params("bt_npu_job", (("config", call.op.config), *sizes, ("crc", crc)))


def _copied_params(call: Call[Delegate]) -> Params:
    def moves(name: str, parts: Sequence[DelegatePort]) -> tuple[tuple[str, Literal], ...]:
        places, sizes = tuple(p.scratch or 0 for p in parts), tuple(prod(p.shape) for p in parts)
        return ((f"{name}s", len(parts)), (f"{name}_places", places), (f"{name}_bytes", sizes))

    fields = (*_params(call).fields, *moves("input", call.op.inputs), *moves("output", call.op.outputs))
    return Params("bt_delegate_copied_params", fields)


def _scratch(call: Call[Delegate]) -> int:
    return max(call.op.scratch, ALIGNED)


KERNELS: tuple[Kernel[Delegate], ...] = (
    Kernel("bt_delegate_copied", "delegate/copied.c", _copied_params, fits=_copies, scratch=_scratch, executor=NPU),
    Kernel("bt_delegate_npu", "delegate/npu.c", _params, scratch=_scratch, executor=NPU),
)
