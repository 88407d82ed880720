"""Executors run kernels: cores, NPUs, DMA engines and accelerator units. The file that describes a unit names it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Executor:
    """Something that runs steps one after the other."""

    kind: str
    number: int = 0

    @property
    def name(self) -> str:
        return f"{self.kind}{self.number}"

    @property
    def is_core(self) -> bool:
        return self.kind == "core"

    @property
    def is_unit(self) -> bool:
        """Return whether it is an accelerator unit, which computes single layers instead of a core."""
        return self not in (NPU, DMA) and not self.is_core

    @property
    def host(self) -> Executor:
        """Return the core whose code starts its steps and waits for them."""
        return self if self.is_core else CORE0


CORE0 = Executor("core")
NPU = Executor("npu")
DMA = Executor("dma")
