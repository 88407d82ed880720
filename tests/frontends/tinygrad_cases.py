"""Functions of Tensors, for every row of tinygrad's table: by the method's name, the shapes of its inputs, and code."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

Case = tuple[str, tuple[tuple[int, ...], ...], Callable[..., Any]]

V = ((2, 3),)
TWO = ((2, 3), (2, 3))
IMAGE = ((1, 2, 5, 6),)


def constant(*shape: int, offset: float = 0.0) -> Any:
    """Numbers between -1 and 1."""
    import numpy as np
    from tinygrad import Tensor

    return Tensor(np.random.default_rng(len(shape)).uniform(-1, 1, shape).astype(np.float32) + np.float32(offset))


@cache
def layer(name: str, *args: Any, **named: Any) -> Any:
    """A layer of tinygrad.nn with numbers that need no random generator, which is slow without a compiler."""
    from tinygrad import Tensor, nn
    from tinygrad.nn.state import get_state_dict

    made = getattr(nn, name)(*args, **named)
    for key, t in get_state_dict(made).items():
        if t.shape:
            t.replace(constant(*t.shape, offset=1.5 if "var" in key else 0.0))
        else:
            t.replace(Tensor(0))
    return made


def einsum(formula: str, *operands: Any) -> Any:
    from tinygrad import Tensor

    return Tensor.einsum(formula, *operands)


def index(*numbers: int) -> Any:
    from tinygrad import Tensor, dtypes

    return Tensor(list(numbers), dtype=dtypes.int)


CASES: tuple[Case, ...] = (
    ("add", TWO, lambda x, y: x + y),
    ("add", V, lambda x: 1 + x),
    ("sub", TWO, lambda x, y: x - y),
    ("sub", V, lambda x: 1 - x),
    ("mul", TWO, lambda x, y: x * y),
    ("div", TWO, lambda x, y: x / (y.abs() + 1)),
    ("div", V, lambda x: (x * 7).div(2, rounding_mode="floor")),
    ("div", V, lambda x: 1 / (x.square() + 2)),
    ("mod", V, lambda x: (x * 7) % 3),
    ("fmod", V, lambda x: (x * 7).fmod(3)),
    ("pow", V, lambda x: (x + 3) ** 2.5),
    ("pow", V, lambda x: 2**x),
    ("maximum", TWO, lambda x, y: x.maximum(y)),
    ("minimum", V, lambda x: x.minimum(0.5)),
    ("bitwise_and", TWO, lambda x, y: ((x > 0) & (y > 0)).float()),
    ("bitwise_or", TWO, lambda x, y: ((x > 0) | (y > 0)).int()),
    ("bitwise_xor", TWO, lambda x, y: ((x > 0) ^ (y > 0)).long()),
    ("neg", V, lambda x: -x),
    ("abs", V, lambda x: x.abs()),
    ("sign", V, lambda x: x.sign()),
    ("floor", V, lambda x: (x * 3).floor()),
    ("ceil", V, lambda x: (x * 3).ceil()),
    ("trunc", V, lambda x: (x * 3).trunc()),
    ("round", V, lambda x: (x * 3).round()),
    ("square", V, lambda x: x.square()),
    ("sqrt", V, lambda x: (x + 3).sqrt()),
    ("rsqrt", V, lambda x: (x + 3).rsqrt()),
    ("reciprocal", V, lambda x: (x + 3).reciprocal()),
    ("exp", V, lambda x: x.exp()),
    ("exp2", V, lambda x: x.exp2()),
    ("log", V, lambda x: (x + 3).log()),
    ("log2", V, lambda x: (x + 3).log2()),
    ("sin", V, lambda x: x.sin()),
    ("cos", V, lambda x: x.cos()),
    ("tan", V, lambda x: x.tan()),
    ("tanh", V, lambda x: x.tanh()),
    ("sigmoid", V, lambda x: x.sigmoid()),
    ("erf", V, lambda x: x.erf()),
    ("relu", V, lambda x: x.relu()),
    ("relu6", V, lambda x: (x * 9).relu6()),
    ("clamp", V, lambda x: x.clamp(-0.5, 0.25)),
    ("clip", V, lambda x: x.clip(max_=0.25)),
    ("hardtanh", V, lambda x: (x * 2).hardtanh()),
    ("hardsigmoid", V, lambda x: (x * 4).hardsigmoid()),
    ("hardsigmoid", V, lambda x: (x * 4).hardsigmoid(0.2, 0.4)),
    ("hardswish", V, lambda x: (x * 4).hardswish()),
    ("leaky_relu", V, lambda x: x.leaky_relu(0.2)),
    ("elu", V, lambda x: x.elu(0.7)),
    ("celu", V, lambda x: x.celu(0.7)),
    ("selu", V, lambda x: x.selu()),
    ("gelu", V, lambda x: x.gelu()),
    ("gelu", V, lambda x: x.gelu("none")),
    ("silu", V, lambda x: x.silu()),
    ("swish", V, lambda x: x.swish()),
    ("mish", V, lambda x: x.mish()),
    ("softplus", V, lambda x: x.softplus(2.0)),
    ("logsigmoid", V, lambda x: x.logsigmoid()),
    ("eq", V, lambda x: x.sign() == 1),
    ("ne", V, lambda x: x.sign() != 1),
    ("__lt__", TWO, lambda x, y: x < y),
    ("__le__", V, lambda x: x <= 0),
    ("__gt__", V, lambda x: x > 0.1),
    ("__ge__", TWO, lambda x, y: x >= y),
    ("isnan", V, lambda x: (x - 3).sqrt().isnan()),
    ("isinf", V, lambda x: (1 / x.relu()).isinf()),
    ("isinf", V, lambda x: (1 / x.relu()).isinf(detect_negative=False)),
    ("isfinite", V, lambda x: (1 / x.relu()).isfinite()),
    ("logical_not", V, lambda x: (x > 0).logical_not()),
    ("where", TWO, lambda x, y: (x > 0).where(y, -1)),
    ("masked_fill", V, lambda x: x.masked_fill(x > 0, 3)),
    ("cast", V, lambda x: (x * 9).cast("int32")),
    ("float", V, lambda x: (x > 0).float()),
    ("int", V, lambda x: (x * 9).int()),
    ("bool", V, lambda x: x.bool()),
    ("long", V, lambda x: (x * 9).long()),
    ("sum", V, lambda x: x.sum(1)),
    ("sum", V, lambda x: (x > 0).sum()),
    ("prod", V, lambda x: x.prod(0, keepdim=True)),
    ("mean", IMAGE, lambda x: x.mean((2, 3))),
    ("mean", V, lambda x: (x + 1).mean(())),
    ("max", V, lambda x: x.max(-1)),
    ("min", V, lambda x: x.min()),
    ("any", V, lambda x: (x > 0.5).any(1)),
    ("all", V, lambda x: (x > -0.5).all(1)),
    ("var", V, lambda x: x.var(1)),
    ("std", V, lambda x: x.std(correction=0)),
    ("logsumexp", V, lambda x: x.logsumexp(1)),
    ("softmax", V, lambda x: x.softmax(0)),
    ("log_softmax", V, lambda x: x.log_softmax()),
    ("argmax", V, lambda x: x.argmax(1)),
    ("argmin", V, lambda x: x.argmin()),
    ("cumsum", V, lambda x: x.cumsum(1)),
    ("topk", V, lambda x: x.topk(2)),
    ("sort", V, lambda x: x.sort(descending=True)),
    ("argsort", V, lambda x: x.argsort()),
    ("reshape", V, lambda x: x.reshape(3, -1)),
    ("view", V, lambda x: x.view((6,))),
    ("expand", ((2, 1),), lambda x: x.expand(2, 4)),
    ("permute", IMAGE, lambda x: x.permute(0, 2, 3, 1)),
    ("transpose", V, lambda x: x.T),
    ("flatten", IMAGE, lambda x: x.flatten(1)),
    ("unflatten", ((2, 6),), lambda x: x.unflatten(1, (2, 3))),
    ("squeeze", ((2, 1, 3),), lambda x: x.squeeze(1)),
    ("unsqueeze", V, lambda x: x.unsqueeze(1)),
    ("flip", V, lambda x: x.flip(1)),
    ("pad", V, lambda x: x.pad((1, 2, -1, 0), value=0.5)),
    ("pad", V, lambda x: x.pad((None, (1, 1)), mode="reflect")),
    ("shrink", V, lambda x: x.shrink((None, (1, 3)))),
    ("stack", TWO, lambda x, y: x.stack(y, dim=1)),
    ("cat", TWO, lambda x, y: x.cat(y, dim=-1)),
    ("cat", V, lambda x: x.cat((x * 9).int())),
    ("split", IMAGE, lambda x: x.split([2, 4], 3)),
    ("chunk", IMAGE, lambda x: x.chunk(2, 1)),
    ("repeat", V, lambda x: x.repeat(2, 1, 3)),
    ("repeat_interleave", V, lambda x: x.repeat_interleave(2, 1)),
    ("roll", V, lambda x: x.roll(1, 1)),
    ("unfold", V, lambda x: x.unfold(1, 2, 1)),
    ("gather", V, lambda x: x.gather(1, index(0, 2).reshape(2, 1))),
    ("one_hot", V, lambda x: x.argmax(1).one_hot(3)),
    ("triu", ((3, 3),), lambda x: x.triu()),
    ("tril", ((3, 3),), lambda x: x.tril(1)),
    ("diagonal", ((3, 3),), lambda x: x.diagonal()),
    ("interpolate", IMAGE, lambda x: x.interpolate((10, 9))),
    ("interpolate", IMAGE, lambda x: x.interpolate((10, 12), mode="nearest")),
    ("interpolate", IMAGE, lambda x: x.interpolate((3,), mode="nearest-exact")),
    ("__getitem__", IMAGE, lambda x: x[0, :, ::2, None, -2]),
    ("__getitem__", IMAGE, lambda x: x[..., ::-1]),
    ("__getitem__", V, lambda x: x[:, [0, 2]]),
    ("__getitem__", V, lambda x: x[:, index(2, 0, 1)]),
    ("__getitem__", ((3, 4, 5),), lambda x: x[index(0, -1), [1, 2]]),
    ("__getitem__", ((2, 3, 4, 5),), lambda x: x[:, x[0, 0, 0, :2].argmax().reshape(1), 1:3, index(4, 0, 0)]),
    ("__getitem__", ((3, 4, 5),), lambda x: x[[0, 2], 1, None, index(3, 4)]),
    ("contiguous", V, lambda x: x.contiguous() + 1),
    ("contiguous_backward", V, lambda x: x.contiguous_backward() + 1),
    ("detach", V, lambda x: x.detach() + 1),
    ("clone", V, lambda x: x.clone() + 1),
    ("to", V, lambda x: x.to(x.device) + 1),
    ("dot", ((2, 3), (3, 4)), lambda x, y: x.dot(y)),
    ("matmul", ((2, 2, 3), (2, 3, 4)), lambda x, y: x @ y),
    ("matmul", V, lambda x: x @ constant(3, 4)),
    ("linear", V, lambda x: layer("Linear", 3, 4)(x)),
    ("linear", V, lambda x: x.linear(constant(3), constant(3))),
    ("einsum", ((2, 3, 4), (2, 5, 4)), lambda x, y: einsum("bij,bkj->bik", x, y)),
    ("einsum", ((2, 3, 4),), lambda x: einsum("...ij,kj->...ki", x, constant(5, 4))),
    ("einsum", TWO, lambda x, y: einsum("ij,ij->", x, y)),
    ("einsum", TWO, lambda x, y: einsum("ij,kl,jl->ki", x, y, constant(3, 3))),
    ("conv2d", IMAGE, lambda x: layer("Conv2d", 2, 4, 3, padding=1, groups=2)(x)),
    ("conv2d", IMAGE, lambda x: layer("Conv2d", 2, 3, (3, 2), stride=(2, 1), padding=(1, 0, 2, 1))(x)),
    ("conv2d", IMAGE, lambda x: layer("Conv2d", 2, 3, 2, dilation=2, padding="same", bias=False)(x)),
    ("conv2d", ((1, 2, 7),), lambda x: layer("Conv1d", 2, 3, 3, padding=1)(x)),
    ("conv2d", ((1, 2, 3, 3, 3),), lambda x: x.conv2d(constant(2, 2, 2, 2, 2))),
    ("conv_transpose2d", IMAGE, lambda x: layer("ConvTranspose2d", 2, 3, 3, 2, 1, 1)(x)),
    ("max_pool2d", IMAGE, lambda x: x.max_pool2d()),
    ("max_pool2d", IMAGE, lambda x: x.max_pool2d((3, 2), 2, padding=(0, 1, 1, 0), ceil_mode=True)),
    ("max_pool2d", V, lambda x: x.max_pool2d((2,), 1)),
    ("avg_pool2d", IMAGE, lambda x: x.avg_pool2d(3, 2, padding=1)),
    ("avg_pool2d", IMAGE, lambda x: x.avg_pool2d(3, 2, padding=1, count_include_pad=False)),
    ("layernorm", V, lambda x: x.layernorm()),
    ("layernorm", IMAGE, lambda x: x.layernorm(axis=1)),
    ("batchnorm", IMAGE, lambda x: layer("BatchNorm", 2)(x)),
    ("batchnorm", IMAGE, lambda x: layer("BatchNorm", 2, affine=False, track_running_stats=False)(x)),
    ("scaled_dot_product_attention", ((1, 2, 3, 4),), lambda x: x.scaled_dot_product_attention(x, x, is_causal=True)),
    ("LSTMCell", V, lambda x: layer("LSTMCell", 3, 4)(x)),
    ("LSTMCell", ((2, 3), (2, 4)), lambda x, h: layer("LSTMCell", 3, 4)(x, (h, h))),
    ("Embedding", V, lambda x: layer("Embedding", 5, 4)(x.argmax(1))),
    ("GroupNorm", ((1, 4, 3),), lambda x: layer("GroupNorm", 2, 4)(x)),
    ("InstanceNorm", IMAGE, lambda x: layer("InstanceNorm", 2)(x)),
    ("LayerNorm", V, lambda x: layer("LayerNorm", 3)(x)),
    ("LayerNorm", IMAGE, lambda x: layer("LayerNorm2d", 2)(x)),
    ("RMSNorm", V, lambda x: layer("RMSNorm", 3)(x)),
    # looked into: these have no row, and what they call has
    ("lerp", TWO, lambda x, y: x.lerp(y, 0.25)),
    ("quick_gelu", V, lambda x: x.quick_gelu()),
    ("asinh", V, lambda x: x.asinh()),
    ("softsign", V, lambda x: x.softsign()),
    ("rearrange", IMAGE, lambda x: x.rearrange("b c h w -> b (h w) c")),
    ("normalize", V, lambda x: x.normalize(dim=1)),
    ("sequential", V, lambda x: x.sequential([lambda t: t.relu(), lambda t: t + 1])),
)
