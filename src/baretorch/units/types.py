"""What a unit is: an operator's work in the place of a core."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from baretorch.ir.graph import Op
from baretorch.ops.helpers.executor import Executor
from baretorch.ops.helpers.kernel import Call, Kernel


@dataclass(frozen=True)
class Unit:
    """What computes operators in the place of a core, which starts it and waits. All that it works with lies in one
    memory."""

    executor: Executor
    memory: str
    takes: str  # what it computes, for people
    kernels: Mapping[type[Op], Kernel[Any]]
    why_not: Callable[[Call[Any]], str | None]  # of an operator that has a kernel: why the unit does not take it

    @property
    def name(self) -> str:
        return self.executor.name

    def kernel_of(self, call: Call[Any]) -> Kernel[Any] | None:
        """The kernel that calls the unit, if it takes this."""
        kernel = self.kernels.get(type(call.op))
        return kernel if kernel is not None and self.why_not(call) is None else None
