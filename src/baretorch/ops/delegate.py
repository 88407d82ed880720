"""delegate: a region of a Graph that an NPU computes. Only plans for chips that have one hold it."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import ClassVar

import numpy as np

from baretorch.ir import Array, DType, Graph, Op, Shape, Signature, Tensor, interpret
from baretorch.ops.check import need
from baretorch.ops.kernel import Call, Kernel, Params, data_of

ALIGNED = 16  # what an NPU reads and writes begins at a multiple of that


@dataclass(frozen=True)
class Part:
    """An input or output of a region: so many bytes into the delegate's own."""

    shape: Shape
    offset: int

    @property
    def end(self) -> int:
        return self.offset + prod(self.shape)


@dataclass(frozen=True)
class Delegate(Op):
    """x int8, commands int32[words], weights uint8[bytes] -> what `region` makes of x, int8.

    A region with one input and one output takes and gives them as they are. Of several, x is a row of bytes in which
    each has its place, and so is the result; what lies between them does not matter.

    All of it lies in the bank of RAM `bank`, and so does the scratch of so many bytes. The NPU must be the one that
    calls itself `config`."""

    name: ClassVar[str] = "delegate"
    layers: tuple[str, ...]  # what the region does, for people
    scratch: int
    bank: str
    config: int = field(repr=False)
    region: Graph = field(repr=False)
    inputs: tuple[Part, ...] = field(repr=False)
    outputs: tuple[Part, ...] = field(repr=False)

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        types = tuple(t.dtype for t in inputs)
        right = types == (DType.INT8, DType.INT32, DType.UINT8) and inputs[0].shape == _whole(self.inputs)
        need(right, self, "the inputs are not those of a delegate", inputs, f"x int8{list(_whole(self.inputs))}")
        return (Signature(_whole(self.outputs), DType.INT8),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        """The region, as it is interpreted: commands and weights must mean the same."""
        flat = inputs[0].reshape(-1)
        values = interpret(self.region, [flat[p.offset : p.end].reshape(p.shape) for p in self.inputs])
        if len(self.outputs) == 1:
            return (values[self.region.outputs[0]],)
        made = np.zeros(_whole(self.outputs), np.int8)
        for part, name in zip(self.outputs, self.region.outputs, strict=True):
            made[part.offset : part.end] = values[name].reshape(-1)
        return (made,)

    def macs(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> int:
        return self.region.macs()


def _whole(parts: Sequence[Part]) -> Shape:
    return parts[0].shape if len(parts) == 1 else (max(p.end for p in parts),)


def _params(call: Call[Delegate]) -> Params:
    commands, weights = (data_of(call.inputs, i).tobytes() for i in (1, 2))
    crc = zlib.crc32(weights, zlib.crc32(commands))
    sizes = (("command_bytes", len(commands)), ("weight_bytes", len(weights)))
    return Params("bt_npu_job", (("config", call.op.config), *sizes, ("crc", crc)))


KERNELS: tuple[Kernel[Delegate], ...] = (
    Kernel("bt_delegate_npu", "delegate/npu.c", _params, scratch=lambda call: max(call.op.scratch, ALIGNED)),
)
