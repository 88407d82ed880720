"""What convolutions and pools of the ONNX table share: the attributes of windows that slide over the dimensions behind
batch and channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from baretorch.errors import CompileError
from baretorch.frontends.lowering import spatial
from baretorch.frontends.onnx.rows import Call
from baretorch.ops.helpers.window import Padding, Pair


@dataclass(frozen=True)
class Windows:
    """One number per dimension each."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def dims(self) -> int:
        return len(self.kernel)

    @property
    def size(self) -> Pair:
        """The kernel, as that of an image."""
        return spatial(self.kernel, self.dims, 1)

    @property
    def step(self) -> Pair:
        return spatial(self.strides, self.dims, 1)

    @property
    def reach(self) -> Pair:
        return spatial(self.dilations, self.dims, 1)

    @property
    def around(self) -> Padding:
        """The padding, as that of an image."""
        top, left = spatial(self.before, self.dims, 0)
        bottom, right = spatial(self.after, self.dims, 0)
        return (top, bottom, left, right)


def windows(call: Call, sizes: Sequence[int], kernel: Sequence[int]) -> Windows:
    """Over dimensions of these sizes."""
    dims = len(sizes)
    strides = tuple(call.attribute("strides", (1,) * dims))
    dilations = tuple(call.attribute("dilations", (1,) * dims))
    if not len(kernel) == len(strides) == len(dilations) == dims:
        raise CompileError(f"{call.op}: the windows have {len(kernel)} dimensions", have=f"{dims} to slide over")
    pads = tuple(call.attribute("pads", (0,) * 2 * dims))
    before, after = pads[:dims], pads[dims:]
    mode = call.attribute("auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        missing = []
        for n, k, s, d in zip(sizes, kernel, strides, dilations, strict=True):
            missing.append(max((-(-n // s) - 1) * s + d * (k - 1) + 1 - n, 0))
        before, after = halves(missing, mode)
    elif mode == "VALID":
        before = after = (0,) * dims
    return Windows(tuple(kernel), strides, dilations, before, after)


def halves(missing: Sequence[int], mode: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Before and after; the odd one goes to the end, or with SAME_LOWER to the beginning."""
    less, more = tuple(m // 2 for m in missing), tuple(m - m // 2 for m in missing)
    return (less, more) if mode == "SAME_UPPER" else (more, less)
