"""Cases of matrix products, recurrent layers and attention."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
import torch
import torch.nn.functional as F

from baretorch.ir.graph import Array, Shape
from baretorch.ops.attention import Attention
from baretorch.ops.matmul import Matmul
from baretorch.ops.recurrent import Gru, Lstm, Recurrent, Rnn
from tests.ops.case import Case, Inputs, normal, spoiled

SUMS = (1e-5, 1e-5)  # of some dozens of products of about 1, in another order than PyTorch's
GATES = (1e-5, 2e-6)  # results below 1 that went through several times


def moved(x: torch.Tensor, dims: tuple[int, ...]) -> torch.Tensor:
    return x.permute(dims) if dims else x


def matmul(name: str, op: Matmul, inputs: Inputs) -> Case:
    def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return moved((moved(a, op.a_dims) @ moved(b, op.b_dims)).clamp(op.lo, op.hi), op.y_dims)

    return Case(f"matmul {name}", op, inputs, run, tolerance=SUMS)


MATMUL = (
    matmul("one by one", Matmul(), normal((1, 1), (1, 1))),
    matmul("plain", Matmul(), normal((3, 5), (5, 7))),
    matmul("row times column", Matmul(), normal((1, 9), (9, 1))),
    matmul("batch", Matmul(), normal((4, 3, 5), (4, 5, 2))),
    matmul("batch repeats on the right", Matmul(), normal((2, 3, 4, 5), (5, 6))),
    matmul("batch repeats on the left", Matmul(), normal((4, 5), (2, 3, 5, 6))),
    matmul("both repeat", Matmul(), normal((2, 1, 4, 5), (3, 5, 2))),
    matmul("three loops of matrices", Matmul(), normal((2, 1, 2, 2, 3), (1, 3, 2, 3, 2))),
    matmul("transposed", Matmul(b_dims=(0, 2, 1)), normal((2, 3, 5), (2, 4, 5))),
    matmul("both transposed", Matmul(a_dims=(1, 0), b_dims=(1, 0)), normal((5, 3), (4, 5))),
    matmul(
        "heads inside",
        Matmul(a_dims=(0, 2, 1, 3), b_dims=(0, 2, 3, 1), y_dims=(0, 2, 1, 3)),
        normal((2, 3, 2, 4), (2, 5, 2, 4)),
    ),
    matmul("relu6", Matmul(lo=0.0, hi=6.0), normal((4, 33), (33, 5))),
    matmul("wide", Matmul(hi=1.0), normal((2, 5, 7), (2, 7, 27))),
    matmul("wide, transposed", Matmul(a_dims=(0, 2, 1), lo=0.0), normal((2, 7, 5), (2, 7, 16))),
    matmul("long, transposed", Matmul(b_dims=(1, 0)), normal((3, 29), (5, 29))),
    matmul("nothing to add, wide", Matmul(), normal((2, 0), (0, 9))),
    matmul("nothing to add", Matmul(), normal((2, 0), (0, 3))),
    matmul("nan and infinity", Matmul(lo=-1.0), spoiled((6, 5), (5, 3))),
)


def attention(name: str, inputs: Inputs, op: Attention) -> Case:
    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        q, k, v = moved(q, op.q_dims), moved(k, op.k_dims), moved(v, op.v_dims)
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):  # the fast one loses NaN
            y = F.scaled_dot_product_attention(q, k, v, mask, is_causal=op.causal, scale=op.scale)
        return moved(y, op.y_dims)

    return Case(f"attention {name}", op, inputs, run, tolerance=SUMS)


def masked(mask: Shape, kind: str, *shapes: Shape) -> Inputs:
    """q, k, v, and a mask that leaves the first query nothing."""

    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        keep = rng.random(mask) < 0.6
        keep[..., 0, :] = False
        added = np.where(keep, rng.standard_normal(mask), -inf).astype(np.float32)
        return (*normal(*shapes)(rng), keep if kind == "bool" else added)

    return build


def qkv(batch: Shape, queries: int, keys: int, width: int, v_width: int) -> tuple[Shape, Shape, Shape]:
    return (*batch, queries, width), (*batch, keys, width), (*batch, keys, v_width)


ATTENTION = (
    attention("one of all", normal(*qkv((), 1, 1, 1, 1)), Attention(1.0)),
    attention("one head", normal(*qkv((1,), 4, 6, 8, 8)), Attention(1 / sqrt(8))),
    attention("odd sizes", normal(*qkv((2, 3), 5, 7, 3, 9)), Attention(0.7)),
    attention("causal", normal(*qkv((1, 2), 5, 5, 4, 4)), Attention(0.5, causal=True)),
    attention("causal, more queries", normal(*qkv((2,), 7, 4, 4, 4)), Attention(0.5, causal=True)),
    attention("causal, more keys", normal(*qkv((2,), 3, 6, 4, 4)), Attention(0.5, causal=True)),
    attention("shared keys", normal((2, 3, 4, 8), (2, 1, 5, 8), (2, 1, 5, 8)), Attention(0.3)),
    attention("groups of heads", normal((2, 2, 3, 4, 5), (2, 2, 1, 6, 5), (2, 2, 1, 6, 5)), Attention(0.3)),
    attention(
        "heads inside",
        normal((2, 4, 3, 8), (2, 5, 3, 8), (2, 5, 3, 6)),
        Attention(0.35, False, (0, 2, 1, 3), (0, 2, 1, 3), (0, 2, 1, 3), (0, 2, 1, 3)),
    ),
    attention(
        "heads inside, time first",
        normal((4, 2, 3, 8), (5, 2, 3, 8), (5, 2, 3, 6)),
        Attention(0.35, True, (1, 2, 0, 3), (1, 2, 0, 3), (1, 2, 0, 3), (2, 0, 1, 3)),
    ),
    attention("mask", masked((4, 6), "float", *qkv((2, 3), 4, 6, 5, 5)), Attention(0.5)),
    attention("mask per batch", masked((2, 1, 1, 6), "float", *qkv((2, 3), 4, 6, 5, 5)), Attention(0.5)),
    attention("mask of truths", masked((3, 4, 6), "bool", *qkv((2, 3), 4, 6, 5, 5)), Attention(0.5)),
    attention("mask of truths per query", masked((2, 3, 4, 1), "bool", *qkv((2, 3), 4, 6, 5, 5)), Attention(0.5)),
    attention("large scores", lambda rng: tuple(30 * a for a in normal(*qkv((2,), 4, 6, 8, 8))(rng)), Attention(1.0)),
    attention("nan and infinity", spoiled(*qkv((2,), 9, 3, 4, 4)), Attention(0.5)),
)


def recurrent(name: str, op: Recurrent, time: int, batch: int, width: int, hidden: int, given: bool = False) -> Case:
    x = (batch, time, width) if op.batch_first else (time, batch, width)
    weights = (op.gates * hidden, width), (op.gates * hidden, hidden), (op.biases * hidden,)
    states = [(batch, hidden)] * op.states if given else []

    def run(x: torch.Tensor, *rest: torch.Tensor) -> tuple[torch.Tensor, ...]:
        *state, w_ih, w_hh, bias = rest
        split = [op.gates * hidden, bias.numel() - op.gates * hidden]  # gru has a second bias for its candidate
        b_ih, second = bias.split(split)
        b_hh = torch.cat([torch.zeros(op.gates * hidden - second.numel()), second])
        x = x.transpose(0, 1) if op.batch_first else x
        first = [s[None] for s in state] or [torch.zeros(1, batch, hidden)] * op.states
        function = {Lstm: torch.lstm, Gru: torch.gru}.get(type(op), torch.rnn_tanh)
        if isinstance(op, Rnn) and op.relu:
            function = torch.rnn_relu
        hx = first if isinstance(op, Lstm) else first[0]
        x = x.flip(0) if op.reverse else x
        y, *last = function(x, hx, [w_ih, w_hh, b_ih, b_hh], True, 1, 0.0, False, False, False)
        y = y.flip(0) if op.reverse else y
        return (y.transpose(0, 1) if op.batch_first else y, *(s[0] for s in last))

    inputs = normal(x, *states, *weights)
    return Case(f"{op.name} {name}", op, inputs, run, activations=1 + len(states), tolerance=GATES)


def limited_lstm(name: str, op: Lstm, time: int, batch: int, width: int, hidden: int) -> Case:
    """An LSTM whose cells have limits, which PyTorch's do not have."""

    def run(x: torch.Tensor, h: torch.Tensor, c: torch.Tensor, *weights: torch.Tensor) -> tuple[torch.Tensor, ...]:
        w_ih, w_hh, bias = weights
        y = []
        for now in x:
            i, f, g, o = (now @ w_ih.T + h @ w_hh.T + bias).chunk(4, 1)
            c = (f.sigmoid() * c + i.sigmoid() * g.tanh()).clamp(-op.clip, op.clip)
            h = o.sigmoid() * c.tanh()
            y.append(h)
        return torch.stack(y), h, c

    shapes = (time, batch, width), (batch, hidden), (batch, hidden), (4 * hidden, width), (4 * hidden, hidden)
    return Case(f"lstm {name}", op, normal(*shapes, (4 * hidden,)), run, activations=3, tolerance=GATES)


PLAIN = tuple(
    case
    for op, back, word in (
        (Lstm(), Lstm(reverse=True, batch_first=True), ""),
        (Gru(), Gru(reverse=True, batch_first=True), ""),
        (Rnn(), Rnn(reverse=True, batch_first=True), "tanh "),
        (Rnn(relu=True), Rnn(reverse=True, batch_first=True, relu=True), "relu "),
    )
    for case in (
        recurrent(f"{word}one of all", op, 1, 1, 1, 1),
        recurrent(f"{word}one time, states", op, 1, 3, 5, 4, given=True),
        recurrent(f"{word}odd sizes", op, 5, 1, 3, 7),
        recurrent(f"{word}backwards, batch first, states", back, 4, 3, 10, 9, given=True),
    )
)
RECURRENT = (limited_lstm("limited", Lstm(clip=0.25), 5, 2, 3, 7), *PLAIN)

CASES = (*MATMUL, *ATTENTION, *RECURRENT)
