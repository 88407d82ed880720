"""Accelerator units: they compute operators instead of a core."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from baretorch.ir.graph import Op
from baretorch.ops.helpers.executor import Executor
from baretorch.ops.helpers.kernel import Call, Kernel


@dataclass(frozen=True)
class Unit:
    """An accelerator that computes operators instead of a core, which starts it and waits. All its operands are in one
    memory."""

    executor: Executor
    title: str  # for people
    base: int  # address of its registers
    memory: str
    products: int  # per cycle
    throughput: str  # the same for people
    takes: str  # the layers that it computes, for people
    kernels: Mapping[type[Op], Kernel[Any]]
    why_not: Callable[[Call[Any]], str | None]  # why it does not compute a call of an operator that has a kernel
    simulated_sizes: tuple[int, ...]  # for its C in machines/cluster/

    @property
    def name(self) -> str:
        return self.executor.name

    def kernel_of(self, call: Call[Any]) -> Kernel[Any] | None:
        """Return the kernel that calls the unit; None if the unit does not compute the call."""
        kernel = self.kernels.get(type(call.op))
        return kernel if kernel is not None and self.why_not(call) is None else None
