"""Rows of the ATen table: convolutions and transposed convolutions, of signals and of images."""

from __future__ import annotations

from baretorch.errors import CompileError
from baretorch.frontends.aten.rows import AtenRow, rows
from baretorch.frontends.aten.volumes import conv3d
from baretorch.frontends.lowering import TO_NHWC, Ints, Lowering, sides, spatial
from baretorch.frontends.windows import Windows, make_windows
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.conv_transpose2d import ConvTranspose2d
from baretorch.ops.layout import DepthWindows


def conv(
    g: Lowering,
    x: str,
    weight: str,
    bias: str | None = None,
    stride: Ints = (1,),
    padding: Ints | str = (0,),
    dilation: Ints = (1,),
    groups: int = 1,
) -> str:
    """Lower conv1d, conv2d or conv3d: the weight has the shape [O, C/groups, K, ...]."""
    _dims(g, weight, most=3)
    return convolve(g, x, weight, bias, make_windows(g.shape(weight)[2:], stride, padding, dilation), groups)


def convolve(g: Lowering, x: str, weight: str, bias: str | None, w: Windows, groups: int) -> str:
    """Lower a convolution with these windows over signals, images or volumes."""
    if w.dims == 3:
        return conv3d(g, x, weight, bias, w, groups)
    return conv_image(g, Conv2d(w.step, w.around, w.reach, groups), x, weight, bias)


def conv_image(g: Lowering, op: Conv2d, x: str, weight: str, bias: str | None) -> str:
    """Lower a convolution of x[N, C, (H,) W] by a weight [O, C/groups, (KH,) K]."""
    dims = _dims(g, weight)
    out, depth, *kernel = g.shape(weight)
    image = g.reshape(weight, (out, depth, *spatial(kernel, dims, 1)))
    return g.nhwc(op, x, g.permute(image, TO_NHWC), *((bias,) if bias else ()), dims=dims)


def conv_transpose(
    g: Lowering,
    x: str,
    weight: str,
    bias: str | None = None,
    stride: Ints = (1,),
    padding: Ints = (0,),
    output_padding: Ints = (0,),
    groups: int = 1,
    dilation: Ints = (1,),
) -> str:
    """Lower conv_transpose1d or 2d: the weight has the shape [C, O/groups, (KH,) K]."""
    dims = _dims(g, weight)
    step, reach = spatial(stride, dims, 1), spatial(dilation, dims, 1)
    top, bottom, left, right = sides(spatial(padding, dims, 0))
    below, beside = spatial(output_padding, dims, 0)
    op = ConvTranspose2d(step, (top, bottom - below, left, right - beside), reach, groups)
    return conv_transpose_image(g, op, x, weight, bias)


def conv_transpose_image(g: Lowering, op: ConvTranspose2d, x: str, weight: str, bias: str | None) -> str:
    """Lower a transposed convolution of x[N, C, (H,) W] by a weight [C, O/groups, (KH,) K]."""
    dims = _dims(g, weight)
    in_, out, *kernel = g.shape(weight)
    groups, size = op.groups, spatial(kernel, dims, 1)
    grouped = g.reshape(weight, (groups, in_ // groups, out, *size))
    last = g.reshape(g.permute(grouped, (0, 2, 3, 4, 1)), (groups * out, *size, in_ // groups))
    return g.nhwc(op, x, last, *((bias,) if bias else ()), dims=dims)


def _dims(g: Lowering, weight: str, most: int = 2) -> int:
    dims = len(g.shape(weight)) - 2
    if not 1 <= dims <= most:
        raise CompileError(
            f"a convolution over {dims} dimensions is not supported",
            have=f"weight {g[weight].type}",
            need="conv1d, conv2d or conv3d, or the transposed forms of the first two",
        )
    return dims


ROWS: dict[str, AtenRow] = {
    **rows(
        "convolution",
        lambda g, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups: (
            conv_transpose(g, x, weight, bias, stride, padding, output_padding, groups, dilation)
            if transposed
            else conv(g, x, weight, bias, stride, padding, dilation, groups)
        ),
        Conv2d,
        ConvTranspose2d,
        DepthWindows,
    ),
    **rows("conv1d conv2d", conv, Conv2d),
    **rows("conv3d", conv, Conv2d, DepthWindows),
    **rows("conv_transpose1d conv_transpose2d", conv_transpose, ConvTranspose2d),
}
