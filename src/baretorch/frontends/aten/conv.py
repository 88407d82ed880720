"""Rows of the ATen table: convolutions, of signals and of images, there and back."""

from __future__ import annotations

from baretorch.errors import CompileError
from baretorch.frontends.aten.rows import Row, Scales
from baretorch.frontends.aten.volumes import conv3d
from baretorch.frontends.lowering import TO_NHWC, Ints, Lowering, sides, spatial
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.conv_transpose2d import ConvTranspose2d
from baretorch.ops.depth_windows import DepthWindows
from baretorch.ops.helpers.window import Padding, Pair


def convolution(
    g: Lowering,
    x: str,
    weight: str,
    bias: str | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
) -> str:
    if transposed:
        return conv_transpose(g, x, weight, bias, stride, padding, output_padding, groups, dilation)
    forward = conv3d if len(g.shape(weight)) == 5 else conv
    return forward(g, x, weight, bias, stride, padding, dilation, groups)


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
    """conv1d or conv2d: the weight, of shape [O, C/groups, (KH,) K], tells."""
    dims = _dims(g, weight)
    reach = spatial(dilation, dims, 1)
    if isinstance(padding, str):
        kernel = spatial(g.shape(weight)[2:], dims, 1)
        around = _same(kernel, reach) if padding == "same" else (0, 0, 0, 0)
    else:
        around = sides(spatial(padding, dims, 0))
    return conv_image(g, Conv2d(spatial(stride, dims, 1), around, reach, groups), x, weight, bias)


def conv_image(g: Lowering, op: Conv2d, x: str, weight: str, bias: str | None) -> str:
    """A convolution of x[N, C, (H,) W] by a weight [O, C/groups, (KH,) K]."""
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
    """conv_transpose1d or 2d: the weight has shape [C, O/groups, (KH,) K]."""
    dims = _dims(g, weight)
    step, reach = spatial(stride, dims, 1), spatial(dilation, dims, 1)
    top, bottom, left, right = sides(spatial(padding, dims, 0))
    below, beside = spatial(output_padding, dims, 0)
    op = ConvTranspose2d(step, (top, bottom - below, left, right - beside), reach, groups)
    return conv_transpose_image(g, op, x, weight, bias)


def conv_transpose_image(g: Lowering, op: ConvTranspose2d, x: str, weight: str, bias: str | None) -> str:
    """The way back of x[N, C, (H,) W] by a weight [C, O/groups, (KH,) K]."""
    dims = _dims(g, weight)
    in_, out, *kernel = g.shape(weight)
    groups, size = op.groups, spatial(kernel, dims, 1)
    grouped = g.reshape(weight, (groups, in_ // groups, out, *size))
    last = g.reshape(g.permute(grouped, (0, 2, 3, 4, 1)), (groups * out, *size, in_ // groups))
    return g.nhwc(op, x, last, *((bias,) if bias else ()), dims=dims)


def _dims(g: Lowering, weight: str) -> int:
    dims = len(g.shape(weight)) - 2
    if dims not in (1, 2):
        raise CompileError(
            f"a convolution over {dims} dimensions is not supported",
            have=f"weight {g[weight].type}",
            need="conv1d, conv2d or conv3d, or the transposed forms of the first two",
        )
    return dims


def _same(kernel: Pair, dilation: Pair) -> Padding:
    """Padding that keeps the size at stride 1; PyTorch puts the odd one at the end."""
    h, w = (d * (k - 1) for d, k in zip(dilation, kernel, strict=True))
    return (h // 2, h - h // 2, w // 2, w - w // 2)


ROWS: dict[str, Row] = {
    "aten::convolution": Row(convolution, (Conv2d, ConvTranspose2d, DepthWindows)),
    "aten::conv1d": Row(conv, (Conv2d,), Scales.LAYER),
    "aten::conv2d": Row(conv, (Conv2d,), Scales.LAYER),
    "aten::conv3d": Row(conv3d, (Conv2d, DepthWindows), Scales.LAYER),
    "aten::conv_transpose1d": Row(conv_transpose, (ConvTranspose2d,), Scales.TRANSPOSED),
    "aten::conv_transpose2d": Row(conv_transpose, (ConvTranspose2d,), Scales.TRANSPOSED),
}
