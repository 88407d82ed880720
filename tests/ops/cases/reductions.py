"""Cases of reductions, of operators along one axis, and of norms by the input's own statistics."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import inf, nan
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from baretorch.ir.graph import Array, Shape
from baretorch.ops.norm import GroupNorm, LayerNorm
from baretorch.ops.reduce import AllOf, Amax, Amin, AnyOf, LogSumExp, Mean, Prod, Reduction, Std, Sum, Var, VectorNorm
from baretorch.ops.scan import ArgMax, ArgMin, CumSum, TopK
from baretorch.ops.softmax import LogSoftmax, Softmax
from tests.ops.case import EXACT, Case, Inputs, counted, normal, spoiled, values

Axes = tuple[int, ...]

SUMS = (1e-6, 2e-6)  # of up to some hundred elements of about 1, in another order than PyTorch's
EXP = (2e-6, 1e-37)  # exp, sum and 1 / sum round; results below FLT_MIN may become 0
LOG = (1e-6, 1e-6)  # log, sum and two differences round
NORM = (2e-6, 3e-6)  # mean, variance, root and quotient round; differences from the mean cancel

TORCH: dict[type[Reduction], Callable[..., Any]] = {
    Sum: lambda op, x: torch.sum(x, op.axes, op.keepdim),
    Mean: lambda op, x: torch.mean(x, op.axes, op.keepdim),
    Prod: lambda op, x: torch.prod(x, op.axes[0], op.keepdim),
    Amax: lambda op, x: torch.amax(x, op.axes, op.keepdim),
    Amin: lambda op, x: torch.amin(x, op.axes, op.keepdim),
    AnyOf: lambda op, x: torch.any(x, op.axes, op.keepdim),
    AllOf: lambda op, x: torch.all(x, op.axes, op.keepdim),
    VectorNorm: lambda op, x: torch.linalg.vector_norm(x, op.ord, op.axes, op.keepdim),
    Var: lambda op, x: torch.var(x, op.axes, correction=op.correction, keepdim=op.keepdim),
    Std: lambda op, x: torch.std(x, op.axes, correction=op.correction, keepdim=op.keepdim),
    LogSumExp: lambda op, x: torch.logsumexp(x, op.axes, op.keepdim),
}


def reduce(name: str, op: Reduction, inputs: Inputs, tolerance: tuple[float, float] = SUMS) -> Case:
    def run(x: torch.Tensor) -> torch.Tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of var, that the correction leaves nothing
            result: torch.Tensor = TORCH[type(op)](op, x)
            return result

    return Case(f"{op.name} {name}", op, inputs, run, tolerance=tolerance)


def softmax(name: str, axis: int, inputs: Inputs) -> Case:
    return Case(f"softmax {name}", Softmax(axis), inputs, lambda x: torch.softmax(x, axis), tolerance=EXP)


def log_softmax(name: str, axis: int, inputs: Inputs) -> Case:
    return Case(f"log_softmax {name}", LogSoftmax(axis), inputs, lambda x: torch.log_softmax(x, axis), tolerance=LOG)


def arg(name: str, op: ArgMax, inputs: Inputs) -> Case:
    function = torch.argmin if isinstance(op, ArgMin) else torch.argmax
    return Case(f"{op.name} {name}", op, inputs, lambda x: function(x, op.axis, op.keepdim))


def cumsum(name: str, axis: int, inputs: Inputs) -> Case:
    return Case(f"cumsum {name}", CumSum(axis), inputs, lambda x: torch.cumsum(x, axis), tolerance=SUMS)


def topk(name: str, op: TopK, inputs: Inputs) -> Case:
    return Case(f"topk {name}", op, inputs, lambda x: tuple(torch.topk(x, op.k, op.axis, op.largest)))


def sort(name: str, op: TopK, inputs: Inputs) -> Case:
    """Sort all elements: only a stable sort defines the order of equal ones."""
    return Case(
        f"sort {name}", op, inputs, lambda x: tuple(torch.sort(x, dim=op.axis, descending=op.largest, stable=True))
    )


def layer_norm(name: str, op: LayerNorm, inputs: Inputs, tolerance: tuple[float, float] = NORM) -> Case:
    """PyTorch normalizes the last axes, so those of the operator are moved there and back. It computes in double
    precision: in float32 it loses digits of inputs that are far from zero, how many depends on the CPU."""

    def run(*inputs: torch.Tensor) -> torch.Tensor:
        x, weight, bias = (t.double() for t in inputs)
        end = tuple(range(x.dim() - len(op.axes), x.dim()))
        moved = x.movedim(op.axes, end)
        shape = moved.shape[end[0] :]
        if op.centred:
            y = F.layer_norm(moved, shape, weight.expand(shape), bias.expand(shape), op.eps)
        else:
            y = F.rms_norm(moved, shape, weight.expand(shape), op.eps) + bias
        return y.movedim(end, op.axes).float()

    return Case(f"layer_norm {name}", op, inputs, run, activations=1, tolerance=tolerance)


def group_norm(name: str, op: GroupNorm, inputs: Inputs, tolerance: tuple[float, float] = NORM) -> Case:
    def run(*inputs: torch.Tensor) -> torch.Tensor:
        x, weight, bias = (t.double() for t in inputs)
        moved = x.movedim(op.axis, 1)
        channels = moved.shape[1]
        y = F.group_norm(moved, op.groups, weight.expand(channels), bias.expand(channels), op.eps)
        return y.movedim(1, op.axis).float()

    return Case(f"group_norm {name}", op, inputs, run, activations=1, tolerance=tolerance)


def bits(*shape: int) -> Inputs:
    """Truth values, of which most rows hold both kinds and some only one."""

    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        x = rng.integers(0, 2, shape).astype(bool)
        x[0], x[-1] = False, True
        return (x,)

    return build


def ties(*shape: int) -> Inputs:
    """Many elements are equal."""
    return lambda rng: (rng.integers(0, 4, shape).astype(np.float32),)


def large(dtype: str, *shape: int) -> Inputs:
    """Integers near the ends of their type's range, whose int32 sums need more than 32 bits."""
    info = np.iinfo(dtype)
    return lambda rng: (rng.integers(info.min // 2, info.max // 2, shape, dtype),)


def shifted(by: float, *shapes: Shape) -> Inputs:
    """Far from zero: the mean is large against the deviations."""

    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        x, *rest = normal(*shapes)(rng)
        return (x + np.float32(by), *rest)

    return build


def level(*shapes: Shape) -> Inputs:
    """The first input has rows of one number each, whose sums are not exact in float32."""

    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        numbers = np.array([4095.7, 0.1, -1e10, 65535.1, 1e-20], np.float32)
        rows = numbers[: shapes[0][0]].reshape(-1, *(1,) * (len(shapes[0]) - 1))
        return (np.broadcast_to(rows, shapes[0]).copy(), *normal(*shapes[1:])(rng))

    return build


APART = (0, 2, 4)  # of six axes: three loops over what is kept and three over what is not

REDUCTIONS = (
    reduce("last", Mean((1,), False), normal((3, 7))),
    reduce("first, kept", Mean((0,), True), normal((5, 3))),
    reduce("middle", Mean((1, 2), False), normal((2, 4, 5, 6))),
    reduce("middle, kept", Mean((1, 2), True), normal((2, 4, 5, 6))),
    reduce("all", Mean((0, 1, 2), False), normal((2, 3, 4))),
    reduce("apart", Mean((0, 2), False), normal((3, 2, 4, 2))),
    reduce("apart but for ones", Mean((0, 2), False), normal((3, 1, 4, 2))),
    reduce("nothing but ones", Mean((1,), False), normal((3, 1, 2))),
    reduce("unordered axes", Mean((2, 1), False), normal((2, 4, 5))),
    reduce("long", Mean((0,), False), lambda rng: (rng.random(3000, "float32") * 2 - 1,)),
    reduce("nan and infinity", Mean((1,), False), spoiled((8, 5))),
    reduce("of nothing", Mean((1,), False), normal((2, 0))),
    reduce("last", Sum((1,), False), normal((3, 7))),
    reduce("of a scalar", Sum((), False), normal(())),
    reduce("three loops of each", Sum(APART, False), normal((2, 3, 2, 3, 2, 3))),
    reduce("three loops of the others", Sum((1, 3, 5), True), normal((2, 3, 2, 3, 2, 3))),
    reduce("long", Sum((0, 1), False), lambda rng: (rng.random((41, 100), "float32"),), (1e-6, 0.0)),
    reduce("nan and infinity", Sum((1,), False), spoiled((8, 5))),
    reduce("of nothing", Sum((1,), False), normal((2, 0, 3))),
    reduce("overflow", Sum((0,), False), values([3e38, 3e38])),
    reduce("int32", Sum((1,), False), large("int32", 3, 6)),
    reduce("int64", Sum((0, 2), True), counted("int64", (3, 2, 4))),
    reduce("int64 wraps around", Sum((0,), False), large("int64", 16)),
    reduce("bool", Sum((1,), False), bits(5, 130)),
    reduce("middle", Prod((1,), False), normal((2, 5, 3))),
    reduce("zero and infinity", Prod((1,), True), values([[0.0, inf], [2.0, inf], [-0.0, 3.0]])),
    reduce("of nothing", Prod((0,), False), normal((0, 2))),
    reduce("last", Amax((1,), False), normal((3, 7)), EXACT),
    reduce("apart, kept", Amax((0, 2), True), normal((3, 4, 5)), EXACT),
    reduce("nan and infinity", Amax((1,), False), spoiled((8, 5)), EXACT),
    reduce("minus infinity", Amax((0,), False), values([-inf, -inf]), EXACT),
    reduce("nan in the second block", Amax((0,), False), lambda rng: (np.r_[np.ones(70), nan, 2].astype("f4"),), EXACT),
    reduce("nan in the first block", Amax((0,), False), lambda rng: (np.r_[1, nan, np.ones(70)].astype("f4"),), EXACT),
    reduce("int32", Amax((0,), False), large("int32", 5, 3), EXACT),
    reduce("int64", Amax((1,), True), large("int64", 5, 3), EXACT),
    reduce("middle", Amin((1, 2), False), normal((2, 4, 5, 6)), EXACT),
    reduce("nan and infinity", Amin((1,), False), spoiled((8, 5)), EXACT),
    reduce("int32", Amin((0,), False), large("int32", 5, 3), EXACT),
    reduce("int64", Amin((1,), True), large("int64", 5, 3), EXACT),
    reduce("bool", AnyOf((1,), False), bits(5, 3), EXACT),
    reduce("bool, all axes", AnyOf((0, 1), True), bits(5, 3), EXACT),
    reduce("float32", AnyOf((1,), False), values([[0.0, -0.0], [0.0, nan], [1e-45, 0.0]]), EXACT),
    reduce("int32", AnyOf((0,), False), lambda rng: (np.array([[0, 256, 0], [0, 0, -1]], "int32"),), EXACT),
    reduce("int64", AnyOf((0,), False), lambda rng: (np.array([[0, 1 << 32], [0, 0]], "int64"),), EXACT),
    reduce("of nothing", AnyOf((1,), False), normal((2, 0)), EXACT),
    reduce("bool", AllOf((1,), False), bits(5, 3), EXACT),
    reduce("float32", AllOf((1,), False), values([[1.0, -0.0], [2.0, nan], [1e-45, 1.0]]), EXACT),
    reduce("int32", AllOf((0,), False), lambda rng: (np.array([[1, 256, 0], [2, 256, -1]], "int32"),), EXACT),
    reduce("int64", AllOf((0,), True), lambda rng: (np.array([[1, 1 << 32], [0, 1 << 40]], "int64"),), EXACT),
    reduce("of nothing", AllOf((1,), False), normal((2, 0)), EXACT),
    reduce("1", VectorNorm((1,), False, 1.0), normal((3, 7))),
    reduce("2", VectorNorm((1,), True, 2.0), normal((3, 7))),
    reduce("2, apart", VectorNorm((0, 2), False, 2.0), normal((3, 4, 5))),
    reduce("2, nan and infinity", VectorNorm((1,), False, 2.0), spoiled((8, 5))),
    reduce("inf", VectorNorm((1,), False, inf), spoiled((8, 5)), EXACT),
    reduce("-inf", VectorNorm((1,), False, -inf), spoiled((8, 5)), EXACT),
    reduce("last", Var((1,), False, 1.0), normal((3, 7))),
    reduce("of the population", Var((1, 2), True, 0.0), normal((2, 4, 5, 3))),
    reduce("far from zero", Var((0,), False, 1.0), shifted(1000.0, (200,)), (1e-5, 0.0)),
    reduce("level rows", Var((1,), False, 1.0), level((5, 48)), EXACT),
    reduce("of nothing", Var((1,), False, 1.0), normal((2, 0))),
    reduce("apart, correction 2.5", Var((0, 2), False, 2.5), normal((3, 4, 5))),
    reduce("of one", Var((1,), False, 1.0), normal((3, 1))),
    reduce("correction above the number", Var((1,), False, 3.0), normal((3, 2))),
    reduce("nan and infinity", Var((1,), False, 1.0), spoiled((8, 5))),
    reduce("last", Std((1,), False, 1.0), normal((3, 7))),
    reduce("level rows", Std((1,), False, 0.0), level((5, 48)), EXACT),
    reduce("all, of the population", Std((0, 1), True, 0.0), normal((3, 7))),
    reduce("last", LogSumExp((1,), False), normal((3, 7)), LOG),
    reduce("apart, kept", LogSumExp((0, 2), True), normal((3, 4, 5)), LOG),
    reduce("large", LogSumExp((1,), False), values([[1000.0, 1000.5], [-1000.0, -1001.0]]), LOG),
    reduce("infinities", LogSumExp((1,), False), values([[inf, 0.0], [-inf, -inf], [inf, -inf], [nan, inf]]), LOG),
    reduce("of nothing", LogSumExp((1,), False), normal((2, 0)), LOG),
)  # fmt: skip

SOFTMAX = (
    softmax("one", 0, normal((1,))),
    softmax("ten", 1, normal((1, 10))),
    softmax("first axis", 0, normal((7, 3))),
    softmax("middle axis", 1, normal((2, 5, 3))),
    softmax("large", 1, lambda rng: (rng.standard_normal((4, 33)).astype("float32") * 100,)),
    softmax("wide range", 0, values([-1e38, 0.0, -80.0, -87.5, -90.0, -104.0, 1.0])),
    softmax("far below zero", 1, lambda rng: (rng.standard_normal((2, 9)).astype("float32") - 500,)),
    softmax("one minus infinity", 0, values([0.5, -inf, 1.0])),
    softmax("all minus infinity", 1, values([[-inf, -inf], [0.0, -inf]])),
    softmax("plus infinity", 1, values([[0.0, inf, 1.0], [1.0, 2.0, 3.0]])),
    softmax("nan", 1, values([[0.0, nan, 1.0], [1.0, 2.0, 3.0]])),
    log_softmax("one", 0, normal((1,))),
    log_softmax("ten", 1, normal((1, 10))),
    log_softmax("middle axis", 1, normal((2, 5, 3))),
    log_softmax("wide range", 0, values([-1e38, 0.0, -80.0, -87.5, -90.0, -104.0, 1.0])),
    log_softmax("far from zero", 1, values([[1e6, 1e6 + 1, 1e6 - 2], [-500.0, -501.0, -502.0]])),
    log_softmax("infinities and nan", 1, values([[-inf, -inf], [0.0, -inf], [inf, 0.0], [nan, 0.0]])),
)

ALONG = (
    arg("last", ArgMax(1, False), normal((3, 7))),
    arg("middle, kept", ArgMax(1, True), normal((2, 5, 3))),
    arg("ties", ArgMax(1, False), ties(6, 9)),
    arg("nan and infinity", ArgMax(1, False), spoiled((8, 5))),
    arg("two nans", ArgMax(0, False), values([1.0, nan, inf, nan])),
    arg("minus infinity", ArgMax(0, False), values([-inf, -inf])),
    arg("int32", ArgMax(0, False), large("int32", 5, 3)),
    arg("int64", ArgMax(0, False), large("int64", 5, 3)),
    arg("last", ArgMin(1, False), normal((3, 7))),
    arg("ties, kept", ArgMin(0, True), ties(6, 9)),
    arg("nan and infinity", ArgMin(1, False), spoiled((8, 5))),
    arg("int32", ArgMin(0, False), large("int32", 5, 3)),
    arg("int64", ArgMin(0, False), large("int64", 5, 3)),
    cumsum("last", 1, normal((3, 50))),
    cumsum("middle", 1, normal((2, 5, 3))),
    cumsum("nan and infinity", 1, spoiled((8, 5))),
    cumsum("of nothing", 0, normal((0, 2))),
    cumsum("int32", 1, large("int32", 3, 6)),
    cumsum("int64", 0, counted("int64", (3, 2))),
    cumsum("bool", 1, bits(5, 4)),
    topk("one", TopK(1, 1), normal((3, 7))),
    topk("three of many", TopK(3, 1), normal((4, 40))),
    topk("none", TopK(0, 0), normal((5, 2))),
    topk("smallest, middle axis", TopK(2, 1, False), normal((2, 5, 3))),
    topk("nan and infinity", TopK(4, 0), values([1.0, nan, inf, -inf, 2.0])),
    topk("smallest, nan and infinity", TopK(4, 0, False), values([1.0, nan, inf, -inf, 2.0])),
    sort("up", TopK(9, 1, False), normal((3, 9))),
    sort("down, first axis", TopK(7, 0), normal((7, 3))),
    sort("up, ties", TopK(20, 0, False), ties(20)),
    sort("down, ties", TopK(20, 0), ties(20)),
    sort("up, nans", TopK(5, 0, False), values([nan, 2.0, -inf, nan, 1.0])),
    sort("down, nans", TopK(5, 0), values([nan, 2.0, inf, nan, 1.0])),
)

EPS = 1e-5
OFFSET = (1e-6, 2e-3)  # float32 has steps of 1e-3 around 1e4, and the mean is one of these numbers

NORMS = (
    layer_norm("last", LayerNorm((1,), EPS), normal((3, 16), (16,), (16,))),
    layer_norm("of one", LayerNorm((1,), EPS), normal((3, 1), (1,), (1,))),
    layer_norm("two axes", LayerNorm((1, 2), EPS), normal((2, 3, 5), (3, 5), (3, 5))),
    layer_norm("all axes", LayerNorm((0, 1), EPS), normal((3, 5), (3, 5), (3, 5))),
    layer_norm("first of three", LayerNorm((0,), EPS), normal((4, 3, 2), (4,), (4,))),
    layer_norm("apart", LayerNorm((0, 2), EPS), normal((3, 4, 5), (3, 5), (3, 5))),
    layer_norm("axes in another order", LayerNorm((3, 1, 2), 1e-3), normal((2, 3, 4, 5), (5, 3, 4), (5, 3, 4))),
    layer_norm("no weights", LayerNorm((2,), EPS), normal((2, 3, 8), (1,), (1,))),
    layer_norm("no bias", LayerNorm((2,), EPS), normal((2, 3, 8), (8,), (1,))),
    layer_norm("constant", LayerNorm((1,), EPS), lambda rng: tuple(np.full(s, 2, "f4") for s in ((2, 6), (6,), (6,)))),
    layer_norm("level rows", LayerNorm((1,), EPS), level((5, 48), (48,), (1,)), EXACT),
    layer_norm("level rows of 10", LayerNorm((1,), EPS), level((5, 10), (10,), (1,)), EXACT),
    layer_norm("offset", LayerNorm((1,), EPS), shifted(1e4, (3, 200), (200,), (200,)), OFFSET),
    layer_norm("nan and infinity", LayerNorm((1,), EPS), spoiled((8, 5), (5,), (5,))),
    layer_norm("rms", LayerNorm((1,), EPS, centred=False), normal((3, 16), (16,), (1,))),
    layer_norm("rms, two axes", LayerNorm((1, 2), EPS, centred=False), normal((2, 3, 5), (3, 5), (3, 5))),
    group_norm("two groups", GroupNorm(2, EPS), normal((2, 6, 4, 5), (6,), (6,))),
    group_norm("two groups, channels last", GroupNorm(2, EPS, 3), normal((2, 4, 5, 6), (6,), (6,))),
    group_norm("one group", GroupNorm(1, EPS), normal((2, 3, 4), (3,), (3,))),
    group_norm("a group per channel", GroupNorm(3, EPS), normal((2, 3, 4, 4), (3,), (3,))),
    group_norm("a group per channel, channels last", GroupNorm(3, EPS, 3), normal((1, 4, 4, 3), (3,), (1,))),
    group_norm("no weights", GroupNorm(3, EPS), normal((1, 6, 7), (1,), (1,))),
    group_norm("offset", GroupNorm(2, EPS), shifted(1e4, (1, 6, 20, 5), (6,), (6,)), OFFSET),
    group_norm("of rows", GroupNorm(2, EPS), normal((3, 8), (8,), (8,))),
    group_norm("nan and infinity", GroupNorm(2, EPS), spoiled((3, 4, 5), (4,), (4,))),
)  # fmt: skip

CASES = (*REDUCTIONS, *SOFTMAX, *ALONG, *NORMS)
