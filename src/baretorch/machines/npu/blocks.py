"""Check how far an operation may run ahead of the one before it.

Operations are done in blocks of their output, depth first, then along rows, then down. With BLOCKDEP n, one may begin
while the last n blocks of the one before are not yet written: its block i must not read what block j from the end
writes, where i + j < n. A block of a convolution reads its input in blocks of depth, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from baretorch.machines.npu.commands import Do, Set
from baretorch.machines.npu.core import NpuCore
from baretorch.machines.npu.faults import FaultKind, NpuFault
from baretorch.machines.npu.memory import NpuAccess, Touched
from baretorch.machines.npu.registers import IFM, POINT, Ints, Shape, Window, element, ofm_shape, window
from baretorch.npu.accelerators import Family

SUM_OF_CHANNELS = 2  # of POOL


@dataclass(frozen=True)
class FinishedOperation:
    """An operation that wrote memory, as those after it see it."""

    writes: tuple[NpuAccess, ...]
    block: Shape
    turned: bool  # its output is not written in the order of its blocks


def _corners(shape: Shape, block: Shape, last: bool) -> Iterator[tuple[int, int, int]]:
    """Yield the corners of blocks, from the first or from the last one."""
    counts = [-(-n // b) for n, b in zip(shape, block, strict=True)]
    total = counts[0] * counts[1] * counts[2]
    for i in reversed(range(total)) if last else range(total):
        rest, z = divmod(i, counts[2])
        y, x = divmod(rest, counts[1])
        yield y * block[0], x * block[1], z * block[2]


def done(core: NpuCore, touched: Touched) -> FinishedOperation:
    r = core.registers
    block = (r[Set.OFM_BLK_HEIGHT_M1] + 1, r[Set.OFM_BLK_WIDTH_M1] + 1, r[Set.OFM_BLK_DEPTH_M1] + 1)
    turned = core.accelerator.family is Family.U85 and r.bits(Set.OFM_PRECISION, 9, 5) != 0
    return FinishedOperation(tuple(touched.writes), block, turned)


def check(core: NpuCore, touched: Touched, what: Do, parameter: int, before: FinishedOperation) -> None:
    """Check that the operation reads nothing that the one before may not have written yet."""
    ahead = core.registers[Set.BLOCKDEP]
    if not ahead or not any(a.meets(b) for a in touched.reads for b in before.writes):
        return
    if before.turned:
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


def _meet(one: Ints, other: Ints) -> bool:
    if not one.size or not other.size or one.max() < other.min() or other.max() < one.min():
        return False
    return bool(np.isin(one, other).any())


def _reads(core: NpuCore, touched: Touched, what: Do, parameter: int) -> Iterator[list[tuple[int, Ints]]]:
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


def _part(addresses: Ints, w: Window, y: int, x: int, block: Shape, channels: slice, upscale: int) -> Ints:
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
    """The depth in which an input is read."""
    wide = element(core.registers, IFM).size > 1
    if core.accelerator.family is not Family.U85:
        return 16 if w.part_kernel or wide else 32
    return 16 if w.part_kernel else 32 if core.accelerator.macs <= 256 else 64
