"""Cases of the LSTM in LiteRT's arithmetic. The torch side follows docs/arithmetic.md, with 64-bit integers; that
LiteRT computes the same is tested in tests/frontends/test_litert_lstm.py."""

from __future__ import annotations

import numpy as np
import torch

from baretorch.ops.int8.litert_lstm import LiteRtLstm
from baretorch.ops.recurrent import Cell
from tests.ops.case import Case

FACTORS = [round(32768 * np.exp(-(2.0**k))) for k in range(-2, 4)]


def product(a: torch.Tensor, b: torch.Tensor | int) -> torch.Tensor:
    return torch.div(a * b + (1 << 14), 1 << 15, rounding_mode="floor")


def away(v: torch.Tensor, bits: int) -> torch.Tensor:
    """v / 2^bits, half away from zero."""
    return v.sign() * torch.div(2 * v.abs() + (1 << bits), 2 << bits, rounding_mode="floor")


def scaled(acc: torch.Tensor, multiplier: int, shift: int) -> torch.Tensor:
    whole = torch.div(acc * (1 << max(shift, 0)) * multiplier + (1 << 30), 1 << 31, rounding_mode="floor")
    return away(whole, max(-shift, 0))


def exp(v: torch.Tensor, bits: int) -> torch.Tensor:
    """e^v for v below 0."""
    quarter = 1 << (bits - 2)
    rest = v % quarter - quarter
    x = rest * (1 << (15 - bits)) + 4096
    x2 = product(x, x)
    part = product(away(product(x2, x2), 2) + product(x2, x), round(32768 / 3)) + x2
    constant = round(32768 * np.exp(-1 / 8))
    e, quarters = constant + product(x + away(part, 1), constant), (rest - v) // quarter
    for factor in FACTORS:
        e = torch.where(quarters % 2 == 1, product(e, factor), e)
        quarters = quarters // 2
    return torch.where(quarters > 0, 0, e)


def divided(e: torch.Tensor) -> torch.Tensor:
    half = torch.div(e + 32768, 2, rounding_mode="floor")
    x = 23130 + product(half, -15420)
    for _ in range(3):
        x = x + 4 * product(x, 8192 - product(half, x))
    return x


def sigmoid(v: torch.Tensor) -> torch.Tensor:
    y = (2 * divided(exp(-v.abs(), 12))).clamp(max=32767)
    return torch.where(v == 0, 16384, torch.where(v < 0, 32767 - y, y))


def tanh(v: torch.Tensor, bits: int) -> torch.Tensor:
    y = (4 * (divided(exp(-v.abs(), bits - 1)) - 8192)).clamp(max=32767)
    return v.sign() * y


def lstm(
    name: str,
    op: LiteRtLstm,
    time: int,
    batch: int,
    in_: int,
    hidden: int,
    shift: int = 0,
    lowest: int = -127,
    activations: int = 3,
) -> Case:
    def run(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x, h, c, w_ih, w_hh, biases, scales = (i.long() for i in inputs)
        x = x.transpose(0, 1) if op.batch_first else x
        y = []
        for now in x:
            gates = []
            for k in range(4):
                rows = slice(k * hidden, (k + 1) * hidden)
                a, a_shift, b, b_shift = scales[k].tolist()
                from_x = scaled(now @ w_ih[rows].T + biases[rows, 0], a, a_shift).clamp(-32768, 32767)
                from_h = scaled(h @ w_hh[rows].T + biases[rows, 1], b, b_shift)
                gates.append((from_x + from_h).clamp(-32768, 32767))
            i, f, g, o = sigmoid(gates[0]), sigmoid(gates[1]), tanh(gates[2], 12), sigmoid(gates[3])
            c = (away(f * c, 15) + away(i * g, 30 - op.cell.bits)).clamp(op.cell.lo, op.cell.hi)
            h = (scaled(o * tanh(c, op.cell.bits), op.multiplier, op.shift) + op.zero).clamp(-128, 127)
            y.append(h)
        return torch.stack(y, 1 if op.batch_first else 0).to(torch.int8), c.to(torch.int16)

    def build(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Gates from one end of the curves to the other."""
        n = 4 * hidden
        shape = (batch, time, in_) if op.batch_first else (time, batch, in_)
        multipliers = rng.integers(1 << 30, (1 << 31) - 1, (4, 2))
        shifts = shift + rng.integers(-2, 1, (4, 2))
        return (
            rng.integers(-128, 128, shape).astype(np.int8),
            rng.integers(-128, 128, (batch, hidden)).astype(np.int8),
            rng.integers(op.cell.lo, op.cell.hi + 1, (batch, hidden)).astype(np.int16),
            *(rng.integers(lowest, 128, (n, inner)).astype(np.int8) for inner in (in_, hidden)),
            rng.integers(-9000, 9000, (n, 2)).astype(np.int32),
            np.stack([multipliers, shifts], 2).reshape(4, 4).astype(np.int32),
        )

    return Case(f"litert_lstm {name}", op, build, run, activations)


OUTPUT = (1 << 30, -22)  # to a scale of 1/128

CASES = (
    lstm("one unit", LiteRtLstm(Cell(12), 0, *OUTPUT), 1, 1, 1, 1),
    lstm("some times", LiteRtLstm(Cell(12), 0, *OUTPUT), 6, 1, 9, 8),
    lstm("affine", LiteRtLstm(Cell(11), -30, 1413829461, -22), 4, 1, 7, 5),
    lstm("batch", LiteRtLstm(Cell(13), 3, *OUTPUT), 3, 2, 4, 6),
    lstm("batch first", LiteRtLstm(Cell(12), 3, *OUTPUT, batch_first=True), 3, 2, 5, 6),
    lstm("shifted left", LiteRtLstm(Cell(12), 0, *OUTPUT), 3, 1, 8, 4, shift=2),
    lstm("shifted right", LiteRtLstm(Cell(12), 0, *OUTPUT), 3, 1, 8, 7, shift=-3),
    lstm("large cells", LiteRtLstm(Cell(9), 0, *OUTPUT), 3, 1, 4, 32, shift=-2),
    lstm("small cells", LiteRtLstm(Cell(15), 0, *OUTPUT), 3, 1, 4, 32, shift=-2),
    lstm("limited cells", LiteRtLstm(Cell(12, -5000, 5000), 0, *OUTPUT), 3, 1, 4, 32, shift=-2),
    lstm("constant states", LiteRtLstm(Cell(12), 0, *OUTPUT), 3, 2, 5, 8, activations=1),
    lstm("weights of -128", LiteRtLstm(Cell(12), 0, *OUTPUT), 3, 1, 8, 8, lowest=-128),
)
