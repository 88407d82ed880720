"""The attributes of ONNX's convolutions and pools, whose windows slide over the dimensions after batch and channels."""

from __future__ import annotations

from collections.abc import Sequence

from baretorch.errors import CompileError
from baretorch.frontends.onnx.call import OnnxCall
from baretorch.frontends.windows import Windows


def windows(call: OnnxCall, sizes: Sequence[int], kernel: Sequence[int]) -> Windows:
    """Return the windows over dimensions of these sizes."""
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
    """Return the padding before and after; the odd one goes to the end, or with SAME_LOWER to the beginning."""
    less, more = tuple(m // 2 for m in missing), tuple(m - m // 2 for m in missing)
    return (less, more) if mode == "SAME_UPPER" else (more, less)
