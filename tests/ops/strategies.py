"""Cases of arbitrary shape for Hypothesis, small and full of ones."""

from __future__ import annotations

from hypothesis import assume
from hypothesis import strategies as st

from baretorch.ops.conv2d import Conv2d
from baretorch.ops.elementwise import Add, Mul
from baretorch.ops.layout import Pad
from baretorch.ops.norm import LayerNorm
from baretorch.ops.pool import AvgPool2d, MaxPool2d
from baretorch.ops.reduce import Amin, Sum, VectorNorm
from tests.ops.case import Case, normal, spoiled
from tests.ops.cases import elementwise, index, layers, layout, pools, reductions


def pairs(low: int, high: int) -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.integers(low, high), st.integers(low, high))


builders = st.sampled_from([normal, spoiled])


@st.composite
def conv2d(draw: st.DrawFn) -> Case:
    kernel, dilation, pool = draw(pairs(1, 4)), draw(pairs(1, 3)), draw(pairs(1, 3))
    padding = (*draw(pairs(0, 4)), *draw(pairs(0, 4)))
    groups, depth, multiple = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    op = Conv2d(draw(pairs(1, 4)), padding, dilation, groups, pool=pool)
    height, width = draw(pairs(1, 9))
    rows = height + padding[0] + padding[1] - dilation[0] * (kernel[0] - 1)
    columns = width + padding[2] + padding[3] - dilation[1] * (kernel[1] - 1)
    assume(rows > (pool[0] - 1) * op.stride[0] and columns > (pool[1] - 1) * op.stride[1])
    x = (draw(st.integers(1, 2)), height, width, groups * depth)
    weight = (groups * multiple, *kernel, depth)
    bias = draw(st.sampled_from([(), ((groups * multiple,),)]))
    return layers.conv2d(f"of {x}, {weight}", op, normal(x, weight, *bias))


@st.composite
def max_pool2d(draw: st.DrawFn) -> Case:
    kernel, dilation = draw(pairs(1, 4)), draw(pairs(1, 3))
    top, left = draw(st.integers(0, kernel[0] // 2)), draw(st.integers(0, kernel[1] // 2))
    op = MaxPool2d(kernel, draw(pairs(1, 4)), (top, top, left, left), dilation, draw(st.booleans()))
    height, width = draw(pairs(1, 9))
    assume(height + 2 * top > dilation[0] * (kernel[0] - 1) and width + 2 * left > dilation[1] * (kernel[1] - 1))
    x = (draw(st.integers(1, 2)), height, width, draw(st.integers(1, 3)))
    return pools.max_pool2d(f"of {x}", op, draw(builders)(x))


@st.composite
def avg_pool2d(draw: st.DrawFn) -> Case:
    kernel = draw(pairs(1, 4))
    top, left = draw(st.integers(0, kernel[0] // 2)), draw(st.integers(0, kernel[1] // 2))
    divisor = draw(st.sampled_from([0, 0, 3]))
    op = AvgPool2d(kernel, draw(pairs(1, 4)), (top, top, left, left), draw(st.booleans()), draw(st.booleans()), divisor)
    height, width = draw(pairs(1, 9))
    assume(height + 2 * top >= kernel[0] and width + 2 * left >= kernel[1])
    x = (draw(st.integers(1, 2)), height, width, draw(st.integers(1, 3)))
    return pools.avg_pool2d(f"of {x}", op, draw(builders)(x))


@st.composite
def broadcast(draw: st.DrawFn) -> Case:
    out = draw(st.lists(st.integers(1, 4), max_size=4))
    keep = st.tuples(*(st.booleans() for _ in out))
    a, b = (tuple(n if k else 1 for n, k in zip(out, draw(keep), strict=True)) for _ in range(2))
    b = b[draw(st.integers(0, len(b))) :]
    op = draw(st.sampled_from([Add(), Mul(), Add(lo=0.0), Mul(lo=-1.0, hi=0.5)]))
    return elementwise.binary(f"of {a}, {b}", op, draw(builders)(a, b))


@st.composite
def reduction(draw: st.DrawFn) -> Case:
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=6)))
    axes = tuple(sorted(draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))))
    keepdim = draw(st.booleans())
    op = draw(st.sampled_from([Sum(axes, keepdim), Amin(axes, keepdim), VectorNorm(axes, keepdim, 2.0)]))
    return reductions.reduce(f"of {shape}", op, draw(builders)(shape))


@st.composite
def layer_norm(draw: st.DrawFn) -> Case:
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=6)))
    axes = tuple(draw(st.permutations(range(len(shape))))[: draw(st.integers(1, len(shape)))])
    weight, bias = (draw(st.sampled_from([tuple(shape[a] for a in axes), (1,)])) for _ in range(2))
    return reductions.layer_norm(f"of {shape}", LayerNorm(axes, 0.1, draw(st.booleans())), normal(shape, weight, bias))


types = st.sampled_from(["float32", "int64", "int16", "bool"])


@st.composite
def moving(draw: st.DrawFn) -> Case:
    """permute, expand, flip, slice, pad, cat and slice_scatter."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    axis, dtype = draw(st.integers(0, len(shape) - 1)), draw(types)
    length = shape[axis]
    start, step = draw(st.integers(0, length - 1)), draw(st.integers(1, 3))
    count = draw(st.integers(1, -(-(length - start) // step)))
    part = (*shape[:axis], count, *shape[axis + 1 :])
    match draw(st.integers(0, 6)):
        case 0:
            return layout.permute(shape, tuple(draw(st.permutations(range(len(shape))))), dtype)
        case 1:
            to = tuple(n if n > 1 else draw(st.integers(1, 3)) for n in shape)
            return layout.expand(shape, (*draw(st.lists(st.integers(1, 3), max_size=2)), *to), dtype)
        case 2:
            return layout.flip(shape, tuple(a for a in range(len(shape)) if draw(st.booleans())), dtype)
        case 3:
            return layout.slice_(axis, start, draw(st.integers(start, length)), step, shape, dtype)
        case 4:
            sides = tuple(draw(pairs(-(n // 2), 3)) for n in shape)
            return layout.pad(f"{shape} by {sides}", Pad(sides, 1.0), shape, dtype)
        case 5:
            return layout.cat(axis, shape, part, shape, dtype=dtype)
        case _:
            return layout.slice_scatter(axis, start, step, shape, part, dtype)


@st.composite
def indexing(draw: st.DrawFn) -> Case:
    """index_select, gather, index_put and scatter."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    axis = draw(st.integers(0, len(shape) - 1))
    by, add = draw(st.sampled_from(["int32", "int64"])), draw(st.booleans())
    dtype = draw(st.sampled_from(["float32", "int32"]) if add else types)
    count = draw(st.integers(1, 5 if add else shape[axis]))
    match draw(st.integers(0, 3)):
        case 0:
            return index.select(axis, shape, tuple(draw(st.lists(st.integers(1, 3), max_size=2))), dtype, by)
        case 1:
            return index.gather(axis, shape, draw(st.integers(1, 5)), dtype, by)
        case 2:
            return index.put(axis, shape, (count,), dtype, by, add)
        case _:
            return index.scatter(axis, shape, count, dtype, by, add)
