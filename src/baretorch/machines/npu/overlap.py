"""Track the operations that may still run when the next one begins.

Kernels and DMA run at the same time. A stream orders them by waits: KERNEL_WAIT n and DMA_WAIT n go on when no more
than n of them are left. There is room for a few of each; one more waits for the oldest.
"""

from __future__ import annotations

from collections import deque

from baretorch.machines.npu.blocks import FinishedOperation, done
from baretorch.machines.npu.blocks import check as check_blocks
from baretorch.machines.npu.commands import Do, Set
from baretorch.machines.npu.core import NpuCore
from baretorch.machines.npu.faults import FaultKind, NpuFault
from baretorch.machines.npu.memory import NpuAccess, Touched
from baretorch.npu.accelerators import Family

MOST_KERNELS = 2
MOST_DMAS = {Family.U55: 1, Family.U65: 2, Family.U85: 4}


class Queues:
    def __init__(self, family: Family) -> None:
        self._kernels: deque[Touched] = deque()
        self._dmas: deque[Touched] = deque()
        self._most_dmas = MOST_DMAS[family]
        self._before: FinishedOperation | None = None

    def kernel(self, core: NpuCore, touched: Touched, what: Do, parameter: int) -> None:
        if self._before is not None:
            check_blocks(core, touched, what, parameter, self._before)
        if touched.writes:
            self._before = done(core, touched)
        elif not core.registers[Set.BLOCKDEP]:  # else the next one goes on with it, as a part of the same
            self._before = None
        for other in self._dmas:
            _check(touched, other, f"{what.name} runs during a DMA transfer, without a DMA_WAIT between them")
        self._kernels.append(touched)
        while len(self._kernels) > MOST_KERNELS:
            self._kernels.popleft()

    def dma(self, touched: Touched) -> None:
        for other in self._kernels:
            _check(touched, other, "DMA runs during an operation, without a KERNEL_WAIT between them")
        for other in self._dmas:
            _check(touched, other, "two DMA transfers run at the same time, without a DMA_WAIT between them")
        self._dmas.append(touched)
        while len(self._dmas) > self._most_dmas:
            self._dmas.popleft()

    def wait_kernel(self, left: int) -> None:
        if left == 0:
            self._before = None
        while len(self._kernels) > left:
            self._kernels.popleft()

    def wait_dma(self, left: int) -> None:
        while len(self._dmas) > left:
            self._dmas.popleft()


def _check(now: Touched, before: Touched, what: str) -> None:
    for ours, theirs, how in (
        (now.reads, before.writes, "reads what the other writes"),
        (now.writes, before.reads, "writes what the other reads"),
        (now.writes, before.writes, "writes what the other writes"),
    ):
        met = _meeting(ours, theirs)
        if met is not None:
            raise NpuFault(FaultKind.STRICT, f"{what}: it {how}, around {met.low:#x}")


def _meeting(ours: list[NpuAccess], theirs: list[NpuAccess]) -> NpuAccess | None:
    return next((a for a in ours for b in theirs if a.meets(b)), None)
