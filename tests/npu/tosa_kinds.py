"""Kinds of random TOSA graphs: mostly one operator with the rescales around it that exporters write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.npu.tosa_builder import Array, Builder


def scales(b: Builder, count: int, terms: int, kind: str) -> list[float]:
    base = {"int8": 1.0, "int16": 60.0}[kind] / (terms**0.5 * 70)
    return [float(base * b.pick.uniform(0.3, 1.5)) for _ in range(count)]


def weights(b: Builder, shape: Sequence[int], axis: int = -1) -> Array:
    """Random weights of several kinds, so that every form of compression is met."""
    kind = b.pick.randrange(6)
    values = b.rng.integers(-127, 128, shape)
    if kind == 1:
        values = b.rng.integers(-2, 3, shape)
    if kind == 2:
        values = np.where(b.rng.random(shape) < 0.8, 0, values)
    if kind == 3:
        values = np.clip(np.rint(b.rng.normal(0, 20, shape)), -127, 127).astype(np.int64)
    if kind == 4:
        values = b.rng.choice(b.rng.integers(-127, 128, 12), shape)
    if kind == 5:  # 2:4 sparse along the input channels
        keep = (
            np.argsort(b.rng.random((*np.moveaxis(values, axis, -1).shape[:-1], -(-shape[axis] // 4), 4)), axis=-1) < 2
        )
        flat = keep.reshape(*keep.shape[:-2], -1)[..., : shape[axis]]
        values = np.moveaxis(np.moveaxis(values, axis, -1) * flat, -1, axis)
    return values


def conv(b: Builder, kind: str = "int8") -> Any:
    big = b.pick.random() < 0.15
    kh, kw = b.pick.choice([(1, 1), (1, 1), (3, 3), (3, 3), (5, 5), (1, 3), (3, 1), (2, 2), (7, 7), (9, 3), (4, 10)])
    sy, sx = b.pick.choice([(1, 1), (1, 1), (2, 2), (2, 1), (1, 2), (3, 3)])
    dy, dx = b.pick.choice([(1, 1), (1, 1), (1, 1), (2, 2), (1, 2)]) if max(kh, kw) < 6 else (1, 1)
    pads = [b.pick.randrange(0, k) for k in (kh, kh, kw, kw)]
    c, o = b.pick.choice([1, 3, 5, 8, 16, 17, 24, 40, 70]), b.pick.choice([1, 4, 7, 16, 19, 33, 48])
    if big:
        c, o = b.pick.choice([64, 128, 130, 200]), b.pick.choice([64, 100, 150])
    oh, ow = (1, 1) if b.pick.random() < 0.15 else (b.pick.randrange(1, 9), b.pick.randrange(1, 12))
    h = (oh - 1) * sy + (kh - 1) * dy + 1 - pads[0] - pads[1]
    w = (ow - 1) * sx + (kw - 1) * dx + 1 - pads[2] - pads[3]
    if h < 1 or w < 1:
        pads, h, w = [0] * 4, (oh - 1) * sy + (kh - 1) * dy + 1, (ow - 1) * sx + (kw - 1) * dx + 1
    wide = kind == "int16"
    x = b.input((1, h, w, c), kind)
    zero = 0 if wide else b.pick.randrange(-128, 128)
    acc = "int48" if wide else "int32"
    bias = b.rng.integers(-(2**14), 2**14, o) * (64 if wide else 1)
    y = b.add("CONV2D", [x, b.const(weights(b, (o, kh, kw, c)), "int8"), b.const(bias, acc),
                         b.const([zero], kind), b.const([0], "int8")],
              (1, oh, ow, o), acc, pads, [sy, sx], [dy, dx], False, b.dtype(acc))  # fmt: skip
    factor = scales(b, o, kh * kw * c, "int8")
    out = 0 if wide else b.pick.randrange(-128, 128)
    return b.rescale(y, kind, [f / (2 if wide else 1) for f in factor], 0, out, b.pick.random() < 0.3)


def depthwise(b: Builder, kind: str = "int8") -> Any:
    kh, kw = b.pick.choice([(1, 1), (3, 3), (3, 3), (5, 5), (1, 3), (2, 2), (7, 1), (9, 9)])
    sy, sx = b.pick.choice([(1, 1), (1, 1), (2, 2), (2, 1), (1, 3)])
    dy, dx = b.pick.choice([(1, 1), (1, 1), (2, 2)]) if max(kh, kw) < 6 else (1, 1)
    c, m = b.pick.choice([1, 3, 8, 16, 17, 33, 64]), b.pick.choice([1, 1, 1, 1, 2])
    if m > 1:
        c = 1
        m = b.pick.choice([2, 8, 16])
    oh, ow = b.pick.randrange(1, 10), b.pick.randrange(1, 10)
    pads = [b.pick.randrange(0, k) for k in (kh, kh, kw, kw)]
    h = (oh - 1) * sy + (kh - 1) * dy + 1 - pads[0] - pads[1]
    w = (ow - 1) * sx + (kw - 1) * dx + 1 - pads[2] - pads[3]
    if h < 1 or w < 1:
        pads, h, w = [0] * 4, (oh - 1) * sy + (kh - 1) * dy + 1, (ow - 1) * sx + (kw - 1) * dx + 1
    wide = kind == "int16"
    acc = "int48" if wide else "int32"
    x = b.input((1, h, w, c), kind)
    zero = 0 if wide else b.pick.randrange(-128, 128)
    y = b.add("DEPTHWISE_CONV2D", [x, b.const(weights(b, (kh, kw, c, m)), "int8"),
                                   b.const(b.rng.integers(-9999, 9999, c * m), acc),
                                   b.const([zero], kind), b.const([0], "int8")],
              (1, oh, ow, c * m), acc, pads, [sy, sx], [dy, dx], False, b.dtype(acc))  # fmt: skip
    out = 0 if wide else b.pick.randrange(-128, 128)
    return b.rescale(y, kind, scales(b, c * m, kh * kw, "int8"), 0, out, b.pick.random() < 0.3)


def transpose_conv(b: Builder, kind: str = "int8") -> Any:
    k, s = b.pick.choice([(2, 2), (3, 2), (4, 2), (3, 1), (1, 1)])
    c, o, h, w = (
        b.pick.choice([1, 4, 16, 20]),
        b.pick.choice([1, 5, 16]),
        b.pick.randrange(1, 6),
        b.pick.randrange(1, 6),
    )
    pads = [0, 0, 0, 0] if s == 1 or b.pick.random() < 0.5 else [0, -(k - s), 0, -(k - s)]
    oh, ow = (h - 1) * s + k + pads[0] + pads[1], (w - 1) * s + k + pads[2] + pads[3]
    x = b.input((1, h, w, c), kind)
    y = b.add("TRANSPOSE_CONV2D", [x, b.const(weights(b, (o, k, k, c)), "int8"),
                                   b.const(b.rng.integers(-999, 999, o), "int32"),
                                   b.const([b.pick.randrange(-128, 128)], kind), b.const([0], "int8")],
              (1, oh, ow, o), "int32", pads, [s, s], False, b.dtype("int32"))  # fmt: skip
    return b.rescale(y, kind, scales(b, o, k * k * c, "int8"), 0, b.pick.randrange(-128, 128))


def matmul(b: Builder) -> Any:
    n, h, c, w = (
        b.pick.choice([1, 1, 2, 3]),
        b.pick.randrange(1, 12),
        b.pick.choice([1, 7, 16, 33]),
        b.pick.randrange(1, 20),
    )
    x, z = b.input((n, h, c)), b.input((n, c, w))
    zeros = [b.const([b.pick.randrange(-128, 128)], "int8") for _ in range(2)]
    y = b.add("MATMUL", [x, z, *zeros], (n, h, w), "int32")
    return b.rescale(y, "int8", scales(b, 1, c, "int8")[0], 0, b.pick.randrange(-128, 128))


def window(b: Builder) -> tuple[list[int], list[int], list[int], int, int, int, int]:
    kh, kw = b.pick.choice([(2, 2), (3, 3), (1, 3), (4, 2), (5, 5), (8, 8)])
    sy, sx = b.pick.choice([(1, 1), (2, 2), (2, 1), (3, 3)])
    pads = [b.pick.randrange(0, k) for k in (kh, kh, kw, kw)] if b.pick.random() < 0.6 else [0] * 4
    oh, ow = b.pick.randrange(1, 8), b.pick.randrange(1, 8)
    h, w = (oh - 1) * sy + kh - pads[0] - pads[1], (ow - 1) * sx + kw - pads[2] - pads[3]
    if h < 1 or w < 1:
        pads, h, w = [0] * 4, (oh - 1) * sy + kh, (ow - 1) * sx + kw
    return [kh, kw], [sy, sx], pads, h, w, oh, ow


def max_pool(b: Builder, kind: str = "int8") -> Any:
    kernel, stride, pads, h, w, oh, ow = window(b)
    c = b.pick.choice([1, 3, 16, 21, 40])
    return b.add("MAX_POOL2D", [b.input((1, h, w, c), kind)], (1, oh, ow, c), kind, kernel, stride, pads, 1)


def max_pool_steps(b: Builder) -> Any:
    """Make max pools with strides for which Vela uses several operations, each of which continues the previous
    result."""
    (kh, kw), (sy, sx) = b.pick.choice([(1, 5), (5, 2), (6, 6)]), b.pick.choice([(2, 4), (4, 1), (5, 4)])
    oh, ow, c = b.pick.randrange(1, 4), b.pick.randrange(1, 5), b.pick.choice([1, 4, 17])
    pads = [0, b.pick.randrange(0, kh), b.pick.randrange(0, kw), 0]
    h, w = (oh - 1) * sy + kh - pads[0] - pads[1], (ow - 1) * sx + kw - pads[2] - pads[3]
    return b.add("MAX_POOL2D", [b.input((1, h, w, c))], (1, oh, ow, c), "int8", [kh, kw], [sy, sx], pads, 1)


def avg_pool(b: Builder, kind: str = "int8") -> Any:
    kernel, stride, pads, h, w, oh, ow = window(b)
    c = b.pick.choice([1, 3, 16, 21, 40])
    zeros = [0 if kind == "int16" else b.pick.randrange(-128, 128)] * 2
    x = b.input((1, h, w, c), kind)
    return b.add("AVG_POOL2D", [x, b.const([zeros[0]], kind), b.const([zeros[1]], kind)], (1, oh, ow, c), kind,
                 kernel, stride, pads, b.dtype("int32"))  # fmt: skip


def broadcast(b: Builder, kind: str = "int8") -> tuple[Any, Any, list[int]]:
    shape = [1, b.pick.randrange(1, 7), b.pick.randrange(1, 7), b.pick.choice([1, 3, 16, 20])]
    other = [1 if b.pick.random() < 0.3 else n for n in shape]
    pair = [shape, other] if b.pick.random() < 0.5 else [other, shape]
    x = b.input(pair[0], kind)
    if b.pick.random() < 0.25:
        info = np.iinfo(kind)
        z = b.const(b.rng.integers(info.min, info.max + 1, pair[1]), kind)
    else:
        z = b.input(pair[1], kind)
    return x, z, shape


def sums(b: Builder, op: str, kind: str = "int8") -> Any:
    x, z, shape = broadcast(b, kind)
    wide = kind == "int16"
    zero = [0 if wide else b.pick.randrange(-128, 128) for _ in range(3)]
    up = 2.0 ** (10 if wide else 20)
    left = b.rescale(x, "int32", up * b.pick.uniform(0.3, 0.99), zero[0], 0)
    right = b.rescale(z, "int32", up * b.pick.uniform(0.3, 0.99), zero[1], 0)
    y = b.add(op, [left, right], shape, "int32")
    return b.rescale(y, kind, b.pick.uniform(0.4, 1.2) / up, 0, zero[2], b.pick.random() < 0.3)


def mul(b: Builder, kind: str = "int8") -> Any:
    x, z, shape = broadcast(b, kind)
    wide = kind == "int16"
    zero = [0 if wide else b.pick.randrange(-128, 128) for _ in range(3)]
    left, right = b.rescale(x, "int32", 1.0, zero[0], 0), b.rescale(z, "int32", 1.0, zero[1], 0)
    y = b.add("MUL", [left, right, b.const([0], "int8")], shape, "int32")
    return b.rescale(y, kind, b.pick.uniform(0.2, 2.0) / (32768 if wide else 128), 0, zero[2], b.pick.random() < 0.3)


def table8(b: Builder) -> Any:
    shape = [1, b.pick.randrange(1, 7), b.pick.randrange(1, 7), b.pick.choice([1, 5, 16, 20])]
    return b.add("TABLE", [b.input(shape), b.const(b.rng.integers(-128, 128, 256), "int8")], shape, "int8")


def table16(b: Builder) -> Any:
    shape = [1, b.pick.randrange(1, 7), b.pick.randrange(1, 7), b.pick.choice([1, 5, 16, 20])]
    curve = np.rint(32767 * np.tanh(np.linspace(-4, 4, 513) * b.pick.uniform(0.3, 2)))
    y = b.add("TABLE", [b.input(shape, "int16"), b.const(curve, "int16")], shape, "int32")
    return b.rescale(y, "int16", 1 / 128, 0, 0)


def reduce(b: Builder, op: str) -> Any:
    shape = [b.pick.randrange(1, 6) for _ in range(3)] + [b.pick.choice([1, 5, 16, 30])]
    shape[0] = 1
    axis = b.pick.randrange(1, 4)
    small = [1 if i == axis else n for i, n in enumerate(shape)]
    if op == "REDUCE_SUM":
        x = b.rescale(b.input(shape), "int32", 1.0, b.pick.randrange(-128, 128), 0)
        return b.rescale(b.add(op, [x], small, "int32", axis), "int8", 0.9 / shape[axis], 0, b.pick.randrange(-99, 99))
    return b.add(op, [b.input(shape)], small, "int8", axis, 1)


def argmax(b: Builder) -> Any:
    shape = [1, b.pick.randrange(1, 8), b.pick.randrange(1, 8), b.pick.choice([2, 5, 16, 40])]
    axis = 3
    return b.add("ARGMAX", [b.input(shape)], [n for i, n in enumerate(shape) if i != axis], "int32", axis, 1)


def transpose(b: Builder) -> Any:
    shape = [1, b.pick.randrange(1, 9), b.pick.randrange(1, 9), b.pick.choice([1, 5, 16, 20])]
    perms = [0, *b.pick.sample([1, 2, 3], 3)]
    kind = b.pick.choice(["int8", "int8", "int16", "int32"])
    return b.add("TRANSPOSE", [b.input(shape, kind)], [shape[p] for p in perms], kind, perms)


def concat(b: Builder) -> Any:
    axis = b.pick.randrange(1, 4)
    shape = [1, b.pick.randrange(1, 6), b.pick.randrange(1, 6), b.pick.choice([3, 8, 16, 24])]
    parts = [
        [b.pick.randrange(1, 20) if i == axis else n for i, n in enumerate(shape)]
        for _ in range(b.pick.randrange(2, 4))
    ]
    whole = [sum(p[i] for p in parts) if i == axis else n for i, n in enumerate(shape)]
    y = b.add("CONCAT", [b.input(p) for p in parts], whole, "int8", axis)
    if b.pick.random() < 0.5:
        y = b.add("TABLE", [y, b.const(b.rng.integers(-128, 128, 256), "int8")], whole, "int8")
    return y


def slices(b: Builder) -> Any:
    shape = [1, b.pick.randrange(2, 9), b.pick.randrange(2, 9), b.pick.choice([4, 16, 20])]
    start = [0, *(b.pick.randrange(0, n - 1) for n in shape[1:])]
    size = [n - s - b.pick.randrange(0, n - s) if i else 1 for i, (n, s) in enumerate(zip(shape, start, strict=True))]
    x = b.add("TABLE", [b.input(shape), b.const(b.rng.integers(-128, 128, 256), "int8")], shape, "int8")
    return b.add("SLICE", [x, b.shape(start), b.shape(size)], size, "int8")


def pad(b: Builder) -> Any:
    shape = [1, b.pick.randrange(1, 6), b.pick.randrange(1, 6), b.pick.choice([4, 16, 20])]
    pads = [0, 0, *(b.pick.randrange(0, 3) for _ in range(6))]
    out = [n + pads[2 * i] + pads[2 * i + 1] for i, n in enumerate(shape)]
    return b.add("PAD", [b.input(shape), b.shape(pads), b.const([b.pick.randrange(-128, 128)], "int8")], out, "int8")


def reverse(b: Builder) -> Any:
    shape = [1, b.pick.randrange(1, 9), b.pick.randrange(1, 9), b.pick.choice([1, 5, 16, 20])]
    return b.add("REVERSE", [b.input(shape)], shape, "int8", b.pick.randrange(1, 4))


def tile(b: Builder) -> Any:
    shape = [1, b.pick.randrange(1, 5), b.pick.randrange(1, 5), b.pick.choice([1, 5, 16])]
    times = [1, *(b.pick.randrange(1, 3) for _ in range(3))]
    return b.add("TILE", [b.input(shape), b.shape(times)], [n * t for n, t in zip(shape, times, strict=True)], "int8")


def resize(b: Builder) -> Any:
    h, w, c = b.pick.randrange(1, 7), b.pick.randrange(1, 7), b.pick.choice([1, 5, 16, 20])
    n, d = b.pick.choice([(2, 1), (4, 1), (4, 2), (8, 4), (6, 2), (5, 2)])
    offset = b.pick.choice([0, 0, -(n - d) // 2])
    border = b.pick.choice([0, n // 2]) if n % 2 == 0 and offset == 0 else 0
    border = (-((h - 1) * n - offset + border)) % d + border
    mode = b.pick.choice([1, 2])  # nearest, bilinear
    oh, ow = ((h - 1) * n - offset + border) // d + 1, ((w - 1) * n - offset + border) // d + 1
    if ((w - 1) * n - offset + border) % d:
        w, ow = h, oh
    kind = "int32" if mode == 2 else "int8"
    y = b.add("RESIZE", [b.input((1, h, w, c)), b.shape([n, d, n, d]), b.shape([offset] * 2), b.shape([border] * 2)],
              (1, oh, ow, c), kind, mode)  # fmt: skip
    return b.rescale(y, "int8", 1.0 / (n * n), 0, 0) if mode == 2 else y


def integers(b: Builder, op: str) -> Any:
    """An operation of int32, between rescales from and to int8."""
    shape = [1, b.pick.randrange(1, 7), b.pick.randrange(1, 7), b.pick.choice([1, 5, 16])]
    x = b.rescale(b.input(shape), "int32", b.pick.choice([1.0, 0.5]), b.pick.randrange(-128, 128), 0)
    if op in ("ABS", "CLZ", "NEGATE"):
        more = [b.const([0], "int32"), b.const([0], "int32")] if op == "NEGATE" else []
        y = b.add(op, [x, *more], shape, "int32")
    elif op in ("MAXIMUM", "MINIMUM"):
        z = b.rescale(b.input(shape), "int32", b.pick.choice([1.0, 0.5]), b.pick.randrange(-128, 128), 0)
        y = b.add(op, [x, z], shape, "int32", 1)
    else:
        z = b.input(shape, "int32", 0, 12)
        y = b.add(op, [x, z], shape, "int32", *([b.pick.random() < 0.5] if op.startswith("ARITH") else []))
    return (
        b.rescale(y, "int8", b.pick.choice([1.0, 0.25]), 0, b.pick.randrange(-50, 50)) if b.pick.random() < 0.7 else y
    )


def bits(b: Builder) -> Any:
    op = b.pick.choice(["BITWISE_AND", "BITWISE_OR", "BITWISE_XOR", "BITWISE_NOT"])
    kind = b.pick.choice(["int8", "int32"])
    shape = [1, b.pick.randrange(1, 7), b.pick.randrange(1, 7), b.pick.choice([1, 5, 16])]
    inputs = [b.input(shape, kind) for _ in range(1 if op == "BITWISE_NOT" else 2)]
    return b.add(op, inputs, shape, kind)


def compare(b: Builder) -> Any:
    op = b.pick.choice(["EQUAL", "GREATER", "GREATER_EQUAL"])
    shape = [1, b.pick.randrange(1, 7), b.pick.randrange(1, 7), b.pick.choice([1, 5, 16])]
    y = b.add(op, [b.input(shape, "int32", -3, 3), b.input(shape, "int32", -3, 3)], shape, "bool")
    if b.pick.random() < 0.5:
        y = b.add("SELECT", [y, b.input(shape), b.input(shape)], shape, "int8")
    return y


def gather(b: Builder) -> Any:
    n, k, w, c = (
        b.pick.choice([1, 1, 2]),
        b.pick.randrange(1, 12),
        b.pick.randrange(1, 9),
        b.pick.choice([1, 5, 16, 33]),
    )
    kind = b.pick.choice(["int8", "int16"])
    return b.add("GATHER", [b.input((n, k, c), kind), b.input((n, w), "int32", 0, k - 1)], (n, w, c), kind)


def clamp(b: Builder, kind: str = "int8") -> Any:
    shape = [1, b.pick.randrange(1, 7), b.pick.randrange(1, 7), b.pick.choice([1, 5, 16])]
    y = conv(b, kind) if b.pick.random() < 0.7 else b.input(shape, kind)
    low = b.pick.randrange(-100, 20)
    ends = np.array([low, low + b.pick.randrange(1, 90)]).astype(kind)
    return b.add("CLAMP", [y], y.shape, kind, b.graph.builder, ends[:1].tobytes(), ends[1:].tobytes(), 1)


def softmax(b: Builder) -> Any:
    """Make a softmax like exporters: the difference from the maximum, a table of 16 bits, a sum, a reciprocal by a
    table."""
    n, c = b.pick.randrange(1, 9), b.pick.randrange(2, 30)
    x = b.input((1, 1, n, c))
    wide = b.rescale(x, "int32", 1.0, 0, 0)
    top = b.rescale(b.add("REDUCE_MAX", [x], (1, 1, n, 1), "int8", 3, 1), "int32", 1.0, 0, 0)
    d = b.rescale(b.add("SUB", [wide, top], (1, 1, n, c), "int32"), "int16", 128.0, 0, 0)
    curve = np.rint(32767 * np.exp(np.minimum(np.linspace(-256, 256, 513), 0) / 40))
    e = b.add("TABLE", [d, b.const(curve, "int16")], (1, 1, n, c), "int32")
    e = b.add("ARITHMETIC_RIGHT_SHIFT", [e, b.const(np.full((1, 1, 1, 1), 12), "int32")], (1, 1, n, c), "int32", True)
    total = b.add("REDUCE_SUM", [e], (1, 1, n, 1), "int32", 3)
    lead = b.add("CLZ", [total], (1, 1, n, 1), "int32")
    shifted = b.add("LOGICAL_LEFT_SHIFT", [total, lead], (1, 1, n, 1), "int32")
    y = b.add("SUB", [e, b.add("ARITHMETIC_RIGHT_SHIFT", [shifted, b.const(np.full((1, 1, 1, 1), 24), "int32")],
                               (1, 1, n, 1), "int32", False)], (1, 1, n, c), "int32")  # fmt: skip
    return b.rescale(y, "int8", 0.2, 0, 3)


def then(b: Builder, make: Callable[[Builder], Any]) -> Any:
    """One operator after another, as networks have them: with a residual, an activation by table, a pool."""
    y = make(b)
    for _ in range(b.pick.randrange(1, 4)):
        shape = list(y.shape)
        step = b.pick.randrange(4)
        if step == 0:
            y = b.add("TABLE", [y, b.const(b.rng.integers(-128, 128, 256), "int8")], shape, "int8")
        elif step == 1:
            o, c = b.pick.choice([4, 16, 24]), shape[3]
            bias = b.const(b.rng.integers(-99, 99, o), "int32")
            z = b.add("CONV2D", [y, b.const(weights(b, (o, 3, 3, c)), "int8"), bias,
                                 b.const([3], "int8"), b.const([0], "int8")],
                      (*shape[:3], o), "int32", [1, 1, 1, 1], [1, 1], [1, 1], False, b.dtype("int32"))  # fmt: skip
            y = b.rescale(z, "int8", scales(b, o, 9 * c, "int8"), 0, b.pick.randrange(-128, 128))
        elif step == 2:
            z = b.input(shape)
            up = 2.0**20
            total = b.add(
                "ADD", [b.rescale(y, "int32", up * 0.7, 5, 0), b.rescale(z, "int32", up * 0.9, -7, 0)], shape, "int32"
            )
            y = b.rescale(total, "int8", 1 / up, 0, -3)
        else:
            ends = np.array([b.pick.randrange(-100, 0), b.pick.randrange(1, 100)]).astype("int8")
            y = b.add("CLAMP", [y], shape, "int8", b.graph.builder, ends[:1].tobytes(), ends[1:].tobytes(), 1)
    return y


KINDS: dict[str, Callable[[Builder], Any]] = {
    "conv": conv,
    "conv16": lambda b: conv(b, "int16"),
    "depthwise": depthwise,
    "depthwise16": lambda b: depthwise(b, "int16"),
    "transpose_conv": transpose_conv,
    "matmul": matmul,
    "max_pool": max_pool,
    "max_pool16": lambda b: max_pool(b, "int16"),
    "avg_pool": avg_pool,
    "avg_pool16": lambda b: avg_pool(b, "int16"),
    "add": lambda b: sums(b, "ADD"),
    "sub": lambda b: sums(b, "SUB"),
    "add16": lambda b: sums(b, "ADD", "int16"),
    "mul": mul,
    "mul16": lambda b: mul(b, "int16"),
    "table8": table8,
    "table16": table16,
    "reduce_sum": lambda b: reduce(b, "REDUCE_SUM"),
    "reduce_max": lambda b: reduce(b, "REDUCE_MAX"),
    "reduce_min": lambda b: reduce(b, "REDUCE_MIN"),
    "argmax": argmax,
    "transpose": transpose,
    "concat": concat,
    "slice": slices,
    "pad": pad,
    "reverse": reverse,
    "tile": tile,
    "resize": resize,
    "abs": lambda b: integers(b, "ABS"),
    "clz": lambda b: integers(b, "CLZ"),
    "negate": lambda b: integers(b, "NEGATE"),
    "maximum": lambda b: integers(b, "MAXIMUM"),
    "minimum": lambda b: integers(b, "MINIMUM"),
    "shift_left": lambda b: integers(b, "LOGICAL_LEFT_SHIFT"),
    "shift_right": lambda b: integers(b, "ARITHMETIC_RIGHT_SHIFT"),
    "bits": bits,
    "compare": compare,
    "gather": gather,
    "clamp": clamp,
    "softmax": softmax,
    "chain": lambda b: then(b, conv),
    "chain_pool": lambda b: then(b, max_pool),
    "chain_depthwise": lambda b: then(b, depthwise),
    "max_pool_steps": max_pool_steps,
}
