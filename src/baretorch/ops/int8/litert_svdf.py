"""litert_svdf: SVDF of int8 numbers in the integer arithmetic of LiteRT (states of 16 bits) and of LiteRT for
microcontrollers (states of 8 bits). See docs/arithmetic.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from baretorch.ir.graph import Array, DType, Op, Signature, Tensor
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.kernel import Call, Kernel, Packed, Params, fields_of, has_constants, pack_inputs
from baretorch.ops.int8.litert import scaled


@dataclass(frozen=True)
class LiteRtSvdf(Op, name="litert_svdf"):
    """x int8[N, I], state[N, F * M], features int8[F, I], feature_bias int32[F], times[F, M], bias int32[F / rank] ->
    y int8[N, F / rank] and the next state. State and times are both int8 or both int16. The biases have the zero points
    folded in."""

    rank: int
    state_multiplier: int
    state_shift: int
    state_zero: int
    multiplier: int
    shift: int
    zero: int

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        x, state, _, _, times, _ = inputs
        (batch, in_), (filters, memory) = (*x.shape, 0, 0)[:2], (*times.shape, 0, 0)[:2]
        wanted = [(batch, filters * memory), (filters, in_), (filters,), (filters, memory), (filters // self.rank,)]
        types = [DType.INT8, state.dtype, DType.INT8, DType.INT32, state.dtype, DType.INT32]
        need(
            [t.shape for t in inputs[1:]] == wanted
            and [t.dtype for t in inputs] == types
            and state.dtype in (DType.INT8, DType.INT16)
            and len(x.shape) == 2
            and filters * memory > 0
            and filters % self.rank == 0,
            self,
            "the inputs are not those of LiteRT's SVDF",
            inputs,
            "x int8[N, I], state[N, F * M], features int8[F, I], times[F, M] of the state's type, int32 biases",
        )
        return (Signature((batch, filters // self.rank), DType.INT8), Signature(state.shape, state.dtype))

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x, state, features, feature_bias, times, bias = (i.astype(np.int64) for i in inputs)
        limits = np.iinfo(inputs[1].dtype)
        newest = scaled(x @ features.T + feature_bias, self.state_multiplier, self.state_shift) + self.state_zero
        newest = np.clip(newest, limits.min, limits.max)
        last = np.concatenate([state.reshape(len(x), *times.shape)[:, :, 1:], newest[:, :, np.newaxis]], axis=2)
        sums = (last * times).sum(axis=2).reshape(len(x), -1, self.rank).sum(axis=2) + bias
        y = scaled(sums.astype(np.int32).astype(np.int64), self.multiplier, self.shift) + self.zero
        return np.clip(y, -128, 127).astype(np.int8), last.reshape(state.shape).astype(inputs[1].dtype)

    def macs(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> int:
        return inputs[0].shape[0] * (inputs[2].count + inputs[4].count)


def _params(call: Call[LiteRtSvdf]) -> Params:
    (batch, in_), (filters, memory) = call.x.shape, call.inputs[4].shape
    sizes = (("batch", batch), ("in", in_), ("filters", filters), ("memory", memory))
    names = ("rank", "state_multiplier", "state_shift", "state_zero", "multiplier", "shift", "zero")
    return Params("bt_litert_svdf", (*sizes, *fields_of(call.op, *names)))


def _pack(call: Call[Any]) -> tuple[Packed, ...]:
    return pack_inputs(call, "features", "feature_bias", "times", "bias", first=2)


def _kernel(bits: int, state: DType) -> Kernel[LiteRtSvdf]:
    return Kernel(
        f"bt_litert_svdf{bits}_ref",
        "litert/ref.c",
        _params,
        fits=lambda call: has_constants(call, 2) and call.inputs[1].dtype is state,
        pack=_pack,
        as_they_are=2,
        renews=((1, 1),),
    )


KERNELS = (_kernel(8, DType.INT8), _kernel(16, DType.INT16))
