"""Rows of the ATen table: convolutions and transposed convolutions, of signals, images and volumes."""

from __future__ import annotations

from dataclasses import replace

from baretorch.errors import CompileError
from baretorch.frontends.aten.rows import AtenRow, rows
from baretorch.frontends.aten.volumes import conv3d, conv_transpose3d
from baretorch.frontends.lowering import TO_NHWC, Ints, Lowering, spatial
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
    _need_dims(g, weight)
    return convolve(g, x, weight, bias, make_windows(g.shape(weight)[2:], stride, padding, dilation), groups)


def convolve(g: Lowering, x: str, weight: str, bias: str | None, w: Windows, groups: int) -> str:
    """Lower a convolution with these windows over signals, images or volumes."""
    if w.dims == 3:
        return conv3d(g, x, weight, bias, w, groups)
    return conv_image(g, Conv2d(w.step, w.around, w.reach, groups), x, weight, bias)


def conv_image(g: Lowering, op: Conv2d, x: str, weight: str, bias: str | None) -> str:
    """Lower a convolution of x[N, C, (H,) W] by a weight [O, C/groups, (KH,) K]."""
    out, depth, *kernel = g.shape(weight)
    dims = len(kernel)
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
    """Lower conv_transpose1d, 2d or 3d: the weight has the shape [C, O/groups, K, ...]. Output padding is padding that
    is not cut off."""
    _need_dims(g, weight)
    w = make_windows(g.shape(weight)[2:], stride, padding, dilation)
    extra = output_padding if len(output_padding) == w.dims else (*output_padding,) * w.dims
    after = tuple(a - e for a, e in zip(w.after, extra, strict=True))
    return convolve_transposed(g, x, weight, bias, replace(w, after=after), groups)


def convolve_transposed(g: Lowering, x: str, weight: str, bias: str | None, w: Windows, groups: int) -> str:
    """Lower a transposed convolution of signals, images or volumes by a weight [C, O/groups, K, ...]."""
    if w.dims == 3:
        return conv_transpose3d(g, x, weight, bias, w, groups)
    op, dims = ConvTranspose2d(w.step, w.around, w.reach, groups), w.dims
    in_, out, *kernel = g.shape(weight)
    size = spatial(kernel, dims, 1)
    grouped = g.reshape(weight, (groups, in_ // groups, out, *size))
    last = g.reshape(g.permute(grouped, (0, 2, 3, 4, 1)), (groups * out, *size, in_ // groups))
    return g.nhwc(op, x, last, *((bias,) if bias else ()), dims=dims)


def _need_dims(g: Lowering, weight: str) -> None:
    dims = len(g.shape(weight)) - 2
    if not 1 <= dims <= 3:
        raise CompileError(
            f"a convolution over {dims} dimensions is not supported", have=f"weight {g[weight].type}", need="1 to 3"
        )


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
    **rows("conv_transpose1d conv_transpose2d conv_transpose3d", conv_transpose, ConvTranspose2d),
}
