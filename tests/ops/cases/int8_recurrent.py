"""Cases of int8 recurrent layers and of the fixed-point states around them. The torch side follows docs/arithmetic.md,
with 64-bit integers."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from baretorch.ir import Shape
from baretorch.ops.fixed_point import FromFixed, ToFixed
from baretorch.ops.qrecurrent import QGru, QLstm, QRecurrent, QRnn
from tests.ops.case import Case, Inputs, values


def floor_shift(v: torch.Tensor, bits: int) -> torch.Tensor:
    """v / 2^bits, half up."""
    return torch.div(v + (1 << (bits - 1)), 1 << bits, rounding_mode="floor")


@cache
def pieces() -> tuple[torch.Tensor, torch.Tensor]:
    """Words and slopes of the 256 straight pieces, as docs/arithmetic.md tells them."""
    best = []
    for v in torch.arange(-32768, 32768, dtype=torch.float64).reshape(256, 256):
        exact, u = 2.0**29 * torch.sigmoid(v / 4096) + 2**15, v + 1
        near = torch.div((exact - ((exact[-1] - exact[0]) / 255).round() * u).mean(), 65536, rounding_mode="floor")
        tried = []
        for offset in (float(near), float(near) + 1):
            rest = exact - offset * 65536
            slope = float(((rest * u).sum() / (u * u).sum()).round().clamp(0, 32767))
            tried.append((float((rest - slope * u).square().sum()), int(offset * 65536 + slope), int(slope)))
        best.append(min(tried)[1:])
    return torch.tensor([word for word, _ in best]), torch.tensor([slope for _, slope in best])


def sigmoid_word(v: torch.Tensor) -> torch.Tensor:
    words, slopes = pieces()
    at = torch.div(v, 256, rounding_mode="floor") + 128
    return words[at] + slopes[at] * v


def sigmoid(v: torch.Tensor) -> torch.Tensor:
    return sigmoid_word(v) >> 16


def half_tanh(v: torch.Tensor) -> torch.Tensor:
    """tanh of v / 2, with 12 fractional bits."""
    return (sigmoid_word(v) - 2**28) >> 16


def tanh(v: torch.Tensor) -> torch.Tensor:
    """The same with 13."""
    return (sigmoid_word(v) - 2**28 - 2**14) >> 15


def short(v: torch.Tensor) -> torch.Tensor:
    return v.clamp(-32768, 32767)


def lstm_step(x: torch.Tensor, h: torch.Tensor, state: list[torch.Tensor]) -> list[torch.Tensor]:
    i, f, g, o = short(x + h).chunk(4, 1)
    c = short(floor_shift(2 * sigmoid(f) * state[1] + sigmoid(i) * half_tanh(g), 14))
    return [floor_shift(sigmoid(o) * half_tanh(short(4 * c)), 12), c]


def gru_step(x: torch.Tensor, h: torch.Tensor, state: list[torch.Tensor]) -> list[torch.Tensor]:
    (r_x, z_x, n_x), (r_h, z_h, n_h) = x.chunk(3, 1), h.chunk(3, 1)
    r, z = sigmoid(short(r_x + r_h)), sigmoid(short(z_x + z_h))
    n = tanh(short(2 * (n_x + floor_shift(r * short(n_h), 13))))
    return [n + floor_shift(z * (state[0] - n), 13)]


def rnn_step(x: torch.Tensor, h: torch.Tensor, state: list[torch.Tensor]) -> list[torch.Tensor]:
    return [tanh(short(x + h))]


STEPS = {QLstm: lstm_step, QGru: gru_step, QRnn: rnn_step}


def recurrent(
    name: str,
    op: QRecurrent,
    time: int,
    batch: int,
    in_: int,
    hidden: int,
    given: bool = False,
    lowest: bool = False,
    fine: bool = False,
) -> Case:
    """`fine`: multipliers are not those of 256, which not every kernel takes."""
    step = STEPS[type(op)]

    def run(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x, *state, w_ih, w_hh, rows = (i.long() for i in inputs)
        x = x.transpose(0, 1) if op.batch_first else x
        state = state or [torch.zeros(batch, hidden, dtype=torch.long)] * len(op.bits)
        stored = (floor_shift(state[0] * op.multiplier, 32) + op.zero).clamp(-128, 127)
        y = {}
        for t in range(time)[:: -1 if op.reverse else 1]:
            from_x = floor_shift((x[t] @ w_ih.T + rows[:, 0]) * (1 << op.shift_ih) * rows[:, 1], 32)
            from_h = floor_shift((stored @ w_hh.T + rows[:, 2]) * (1 << op.shift_hh) * rows[:, 3], 32)
            state = step(from_x, from_h, state)
            y[t] = stored = (floor_shift(state[0] * op.multiplier, 32) + op.zero).clamp(-128, 127)
        out = torch.stack([y[t] for t in range(time)], 1 if op.batch_first else 0)
        return (out.to(torch.int8), *(s.to(torch.int16) for s in state))

    def build(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Gates from one end of the table to the other."""
        n = op.gates * hidden
        shape = (batch, time, in_) if op.batch_first else (time, batch, in_)
        limits = [min(32767, 5 << bits) for bits in op.bits] if given else []
        step = 1 if fine else 256
        columns = [(rng.integers(-60000, 60000, n), rng.uniform(0.1, 0.9, n) * 2**31 / (1 << shift) // step * step)
                   for shift in (op.shift_ih, op.shift_hh)]  # fmt: skip
        return (
            rng.integers(-128, 128, shape).astype(np.int8),
            *(rng.integers(-limit, limit, (batch, hidden)).astype(np.int16) for limit in limits),
            *(_weights(rng, (n, inner), lowest) for inner in (in_, hidden)),
            np.stack([c for pair in columns for c in pair], 1).astype(np.int32),
        )

    return Case(f"{op.name} {name}", op, build, run, activations=1 + len(op.bits) * given)


def _weights(rng: np.random.Generator, shape: Shape, lowest: bool) -> np.ndarray:
    """Random bytes; with `lowest`, every other one is -128."""
    weights = rng.integers(-127, 128, shape)
    return (np.where(rng.random(shape) < 0.5, -128, weights) if lowest else weights).astype(np.int8)


def fixed(name: str, bits: int) -> Case:
    numbers = values([-np.inf, -9.0, -1.0, -1 / 3, -0.0, 2**-16, 3 * 2**-16, 0.999, 1.0, 7.9, np.inf, np.nan])

    def run(x: torch.Tensor) -> torch.Tensor:
        return (x.double() * 2**bits).nan_to_num(0.0, torch.inf, -torch.inf).round().clamp(-32768, 32767).short()

    return Case(f"to_fixed {name}", ToFixed(bits), numbers, run)


def shorts(*shape: int) -> Inputs:
    return lambda rng: (rng.integers(-32768, 32768, shape).astype(np.int16),)


UNIT = 1 << 26  # from the hidden state to a scale of 1/128

CASES = (
    recurrent("one unit", QLstm(0, UNIT), 1, 1, 1, 1),
    recurrent("some times", QLstm(0, UNIT), 5, 1, 9, 8),
    recurrent("affine", QLstm(-30, UNIT + UNIT // 3), 4, 1, 7, 5),
    recurrent("batch", QLstm(3, UNIT), 3, 2, 4, 6),
    recurrent("batch first", QLstm(3, UNIT, batch_first=True), 3, 2, 5, 6),
    recurrent("reverse", QLstm(0, UNIT, reverse=True), 4, 1, 6, 7),
    recurrent("shifted", QLstm(0, UNIT, shift_ih=2, shift_hh=3), 3, 1, 8, 4),
    recurrent("states given", QLstm(0, UNIT), 3, 2, 4, 8, given=True),
    recurrent("weights of -128", QLstm(0, UNIT), 3, 1, 8, 8, lowest=True),
    recurrent("weights of -128", QGru(0, UNIT), 3, 1, 8, 8, lowest=True),
    recurrent("fine multipliers", QLstm(0, UNIT), 2, 1, 5, 4, fine=True),
    recurrent("one unit", QGru(0, UNIT), 1, 1, 1, 1),
    recurrent("some times", QGru(0, UNIT), 5, 1, 9, 8),
    recurrent("affine", QGru(-30, UNIT + UNIT // 3), 4, 1, 7, 5),
    recurrent("batch first", QGru(3, UNIT, batch_first=True), 3, 2, 5, 6),
    recurrent("reverse", QGru(0, UNIT, reverse=True), 4, 1, 6, 7),
    recurrent("shifted", QGru(0, UNIT, shift_ih=2, shift_hh=3), 3, 1, 8, 4),
    recurrent("state given", QGru(0, UNIT), 3, 2, 4, 8, given=True),
    recurrent("one unit", QRnn(0, UNIT), 1, 1, 1, 1),
    recurrent("some times", QRnn(0, UNIT), 5, 1, 17, 12),
    recurrent("reverse", QRnn(-30, UNIT + UNIT // 3, reverse=True), 4, 2, 6, 7),
    recurrent("shifted", QRnn(0, UNIT, shift_ih=2, shift_hh=3), 3, 1, 8, 4),
    recurrent("state given", QRnn(0, UNIT, batch_first=True), 3, 2, 4, 8, given=True),
    fixed("below one", 15),
    fixed("cell", 11),
    Case("from_fixed", FromFixed(11), shorts(3, 5), lambda x: x.float() / 2048),
)
