"""choose: one of two tensors, by a condition known only when the model runs. What torch.cond becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from baretorch.ir.graph import Array, DType, Permuted, Shape, Signature, Tensor
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.kernel import Call, Kernel
from baretorch.ops.move import Assembled, Copy


@dataclass(frozen=True)
class Choose(Assembled, name="choose", computes=False, carried=slice(1, None)):
    """a if the condition, a single truth value, holds, else b. What only the other one needs is not computed."""

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        condition, a, b = inputs
        need(
            condition.dtype is DType.BOOL and condition.count == 1,
            self,
            "the condition is not a single truth value",
            inputs,
            "bool[] as first input",
        )
        alike = (a.shape, a.dtype) == (b.shape, b.dtype)
        need(alike, self, "the branches return different tensors", inputs, "the same shape and type from both")
        return (Signature(a.shape, a.dtype, a.quant),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        condition, a, b = inputs
        return (a.copy() if condition.all() else b.copy(),)

    def pieces(self, call: Call[Any]) -> tuple[Call[Any], ...]:
        """Return no steps: each side has one, which runs under a condition."""
        return ()

    def side(self, call: Call[Any], holds: bool) -> Call[Any]:
        """The step of a plan that takes a, if the condition holds, or b."""
        return Call(Copy(), (call.inputs[1 if holds else 2],), call.outputs)

    def permuted(self, dims: Shape, inputs: Sequence[Tensor]) -> Permuted | None:
        return Permuted(self, dims)


KERNELS: tuple[Kernel[Choose], ...] = ()  # the plan makes a copy of each side, or none
