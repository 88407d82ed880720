"""Check that a command stream waits where operations could get into each other's way.

Kernels and DMA run at the same time. A stream orders them by waits: KERNEL_WAIT n and DMA_WAIT n continue when at most
n of them are left. The hardware has queues for a few of each; one more operation waits for the oldest.

Kernels overlap, too. They compute blocks of their output, depth first, then along rows, then down. With BLOCKDEP n, one
may begin while the last n blocks of the one before are not yet written: its block i must not read what block j from the
end writes, where i + j < n. A block of a convolution reads its input in blocks of depth, one after the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from baretorch.machines.npu.commands import Do, Set
from baretorch.machines.npu.core import NpuCore
from baretorch.machines.npu.faults import FaultKind, NpuFault
from baretorch.machines.npu.memory import NpuAccess, Touched
from baretorch.machines.npu.registers import IFM, POINT, BlockShape, Int64s, Window, element, ofm_shape, window
from baretorch.npu.accelerators import Family

MOST_KERNELS = 2
MOST_DMAS = {Family.U55: 1, Family.U65: 2, Family.U85: 4}
SUM_OF_CHANNELS = 2  # of POOL


class Queues:
    """The kernels and DMA transfers that may still run."""

    def __init__(self, family: Family) -> None:
        self._kernels: deque[Touched] = deque(maxlen=MOST_KERNELS)
        self._dmas: deque[Touched] = deque(maxlen=MOST_DMAS[family])
        self._before: FinishedOperation | None = None

    def kernel(self, core: NpuCore, touched: Touched, what: Do, parameter: int) -> None:
        if self._before is not None:
            _check_blocks(core, touched, what, parameter, self._before)
        if touched.writes:
            self._before = _finish(core, touched)
        elif not core.registers[Set.BLOCKDEP]:  # else the next one is a part of the same
            self._before = None
        for other in self._dmas:
            _check(touched, other, f"{what.name} runs during a DMA transfer, without a DMA_WAIT between them")
        self._kernels.append(touched)

    def dma(self, touched: Touched) -> None:
        for other in self._kernels:
            _check(touched, other, "DMA runs during an operation, without a KERNEL_WAIT between them")
        for other in self._dmas:
            _check(touched, other, "two DMA transfers run at the same time, without a DMA_WAIT between them")
        self._dmas.append(touched)

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
        met = _find_overlap(ours, theirs)
        if met is not None:
            raise NpuFault(FaultKind.STRICT, f"{what}: it {how}, around {met.low:#x}")


def _find_overlap(ours: list[NpuAccess], theirs: list[NpuAccess]) -> NpuAccess | None:
    return next((a for a in ours for b in theirs if a.meets(b)), None)


@dataclass(frozen=True)
class FinishedOperation:
    """The facts about an operation that wrote memory, for the check of the next one."""

    writes: tuple[NpuAccess, ...]
    block: BlockShape
    transposed: bool  # its output is not written in the order of its blocks


def _corners(shape: BlockShape, block: BlockShape, last: bool) -> Iterator[tuple[int, int, int]]:
    """Yield the corners of blocks, from the first or from the last one."""
    counts = [-(-n // b) for n, b in zip(shape, block, strict=True)]
    total = counts[0] * counts[1] * counts[2]
    for i in reversed(range(total)) if last else range(total):
        rest, z = divmod(i, counts[2])
        y, x = divmod(rest, counts[1])
        yield y * block[0], x * block[1], z * block[2]


def _finish(core: NpuCore, touched: Touched) -> FinishedOperation:
    r = core.registers
    block = (r[Set.OFM_BLK_HEIGHT_M1] + 1, r[Set.OFM_BLK_WIDTH_M1] + 1, r[Set.OFM_BLK_DEPTH_M1] + 1)
    transposed = core.accelerator.family is Family.U85 and r.bits(Set.OFM_PRECISION, 9, 5) != 0
    return FinishedOperation(tuple(touched.writes), block, transposed)


def _check_blocks(core: NpuCore, touched: Touched, what: Do, parameter: int, before: FinishedOperation) -> None:
    """Check that the operation reads nothing that the one before may not have written yet."""
    ahead = core.registers[Set.BLOCKDEP]
    if not ahead or not any(a.meets(b) for a in touched.reads for b in before.writes):
        return
    if before.transposed:
        raise NpuFault(FaultKind.STRICT, f"{what.name} reads what the operation before writes in another order")
    jobs = list(islice(_reads(core, touched, what, parameter), ahead))
    for write in before.writes:
        height, width, depth = write.addresses.shape[:3]
        ends = islice(_corners((height, width, depth), before.block, last=True), ahead)
        for j, (y, x, z) in enumerate(ends):
            b = before.block
            written = write.addresses[y : y + b[0], x : x + b[1], z : z + b[2]]
            for i, job in enumerate(jobs[: ahead - j]):
                if any(_meet(read, written) for space, read in job if space == write.space):
                    raise NpuFault(
                        FaultKind.STRICT,
                        f"{what.name} may run {ahead} blocks ahead (BLOCKDEP), and its block {i} reads what block "
                        f"{j} from the end of the operation before writes",
                    )


def _meet(one: Int64s, other: Int64s) -> bool:
    if not one.size or not other.size or one.max() < other.min() or other.max() < one.min():
        return False
    return bool(np.isin(one, other).any())


def _reads(core: NpuCore, touched: Touched, what: Do, parameter: int) -> Iterator[list[tuple[int, Int64s]]]:
    """Yield the space and the addresses of feature maps that each step reads."""
    r = core.registers
    out = ofm_shape(r)
    block = (r[Set.OFM_BLK_HEIGHT_M1] + 1, r[Set.OFM_BLK_WIDTH_M1] + 1, r[Set.OFM_BLK_DEPTH_M1] + 1)
    maps = [read for read in touched.reads if read.addresses.ndim == 4]
    whole = what is Do.CONV or (what is Do.POOL and parameter == SUM_OF_CHANNELS)
    w = POINT if what in (Do.ELEMENTWISE, Do.RESIZE) else window(r)
    deep = _input_block(core, w)
    for y, x, z in _corners(out, block, last=False):
        depth = maps[0].addresses.shape[2] if maps and whole else 1
        for begin in range(0, depth, deep) if whole else (0,):
            channels = slice(begin, begin + deep) if whole else slice(z, z + block[2])
            yield [(m.space, _part(m.addresses, w, y, x, block, channels, r[Set.IFM_UPSCALE])) for m in maps]


def _part(addresses: Int64s, w: Window, y: int, x: int, block: BlockShape, channels: slice, upscale: int) -> Int64s:
    """Return the part of a feature map that a block is computed from; all of it if it is broadcast."""
    rows = _span(y, block[0], w.stride_y, (w.height - 1) * w.dilation_y + 1, w.top, upscale)
    columns = _span(x, block[1], w.stride_x, (w.width - 1) * w.dilation_x + 1, w.left, upscale)
    height, width, depth = addresses.shape[:3]
    return addresses[
        rows if height > 1 else slice(None),
        columns if width > 1 else slice(None),
        channels if depth > 1 else slice(None),
    ]


def _span(at: int, block: int, stride: int, kernel: int, padding: int, upscale: int) -> slice:
    begin = at * stride - padding
    end = begin + (block - 1) * stride + kernel
    scale = 2 if upscale else 1
    return slice(max(0, begin) // scale, max(0, -(-end // scale)))


def _input_block(core: NpuCore, w: Window) -> int:
    """Return the depth of the blocks in which an input is read."""
    wide = element(core.registers, IFM).size > 1
    if core.accelerator.family is not Family.U85:
        return 16 if w.part_kernel or wide else 32
    return 16 if w.part_kernel else 32 if core.accelerator.macs <= 256 else 64
