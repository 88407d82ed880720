"""Cases of int8 recurrent layers and of the fixed-point states around them. The torch side follows docs/arithmetic.md,
with 64-bit integers."""

from __future__ import annotations

from functools import cache
from typing import Protocol

import numpy as np
import torch

from baretorch.ir.graph import Shape
from baretorch.ops.int8.qrecurrent import QGru, QLstm, QRecurrent, QRnn
from baretorch.ops.int8.quantize import FromFixed, ToFixed
from tests.ops.case import Case, Inputs, values


class Gate(Protocol):
    """The results of some gates' rows, for input and hidden state, or one of them."""

    def __call__(self, first: int, last: int, of: str = "xh") -> torch.Tensor: ...


def floor_shift(v: torch.Tensor, bits: int) -> torch.Tensor:
    """v / 2^bits, half up."""
    return torch.div(v + (1 << (bits - 1)), 1 << bits, rounding_mode="floor")


@cache
def pieces() -> tuple[torch.Tensor, torch.Tensor]:
    """Return words and slopes of the 256 straight pieces, as docs/arithmetic.md defines them."""
    best = []
    for v in torch.arange(-32768, 32768, dtype=torch.float64).reshape(256, 256):
        exact, u = 2.0**29 * torch.sigmoid(v / 4096) + 2**15, v + 1
        near = torch.div((exact - ((exact[-1] - exact[0]) / 255).round() * u).mean(), 65536, rounding_mode="floor")
        tried = []
        for offset in (float(near), float(near) + 1):
            rest = exact - offset * 65536
            slope = float(((rest * u).sum() / (u * u).sum()).round().clamp(0, 32767))
            tried.append((float((rest - slope * u).square().sum()), int(offset * 65536 + slope), int(slope)))
        flat = int(exact.mean()) >> 16 << 16  # at both ends
        best.append(min(tried)[1:] if abs(v.mean()) < 32512 else (flat, 0))
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
    """Return tanh with 13 fractional bits."""
    return (sigmoid_word(v) - 2**28 - 2**14) >> 15


def short(v: torch.Tensor) -> torch.Tensor:
    return v.clamp(-32768, 32767)


def lstm_step(gate: Gate, state: list[torch.Tensor]) -> list[torch.Tensor]:
    i, f, g, o = short(gate(0, 4)).chunk(4, 1)
    c = short(floor_shift(2 * sigmoid(f) * state[1] + sigmoid(i) * half_tanh(g), 14))
    return [floor_shift(sigmoid(o) * half_tanh(short(4 * c)), 12), c]


def gru_step(gate: Gate, state: list[torch.Tensor]) -> list[torch.Tensor]:
    r, z = sigmoid(short(gate(0, 2))).chunk(2, 1)
    n = tanh(short(2 * (gate(2, 3, of="x") + floor_shift(r * short(gate(2, 3, of="h")), 13))))
    return [n + floor_shift(z * short(state[0] - n), 13)]


def rnn_step(gate: Gate, state: list[torch.Tensor]) -> list[torch.Tensor]:
    return [tanh(short(gate(0, 1)))]


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
    wide: bool = False,
    activations: int | None = None,
) -> Case:
    """`wide`: input and output are int16. With fewer `activations` than inputs and states, the rest are constants."""
    step, dtype, n = STEPS[type(op)], torch.int16 if wide else torch.int8, op.gates * hidden
    largest = 3 if wide else 255  # factor of a row

    def run(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x, *state, w_ih, w_hh, rows = (i.long() for i in inputs)
        x = x.transpose(0, 1) if op.batch_first else x
        state = state or [torch.zeros(batch, hidden, dtype=torch.long)] * len(op.bits)
        y = {}
        for t in range(time)[:: -1 if op.reverse else 1]:
            sums = {
                "x": x[t] @ w_ih.T * (rows[:, 2] // 256) + rows[:, 0],
                "h": state[0] @ w_hh.T * (rows[:, 2] % 256) + rows[:, 1],
            }

            def gate(first: int, last: int, of: str = "xh", sums: dict[str, torch.Tensor] = sums) -> torch.Tensor:
                part = slice(first * hidden, last * hidden)
                total = sum((sums[k][:, part] for k in of), torch.zeros(1, dtype=torch.long))
                return floor_shift(total * (1 << op.shift) * rows[part, 3], 32)

            state = step(gate, state)
            given_y = floor_shift(state[0] * (1 << op.y_shift) * op.multiplier, 32) + op.zero
            y[t] = given_y.clamp(torch.iinfo(dtype).min, torch.iinfo(dtype).max)
        out = torch.stack([y[t] for t in range(time)], 1 if op.batch_first else 0)
        return (out.to(dtype), *(s.to(torch.int16) for s in state))

    def build(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Gates from one end of the table to the other."""
        shape = (batch, time, in_) if op.batch_first else (time, batch, in_)
        limits = [min(32767, 5 << bits) for bits in op.bits] if given else []
        x = rng.integers(-128, 128, shape) * (256 if wide else 1) + rng.integers(0, 2, shape)
        added = rng.integers(-60000, 60000, (n, 2))
        factors = rng.integers(1, largest + 1, (n, 1)) * 256 + rng.integers(1, 4, (n, 1))
        factor = rng.uniform(0.1, 0.9, (n, 1)) * 2 ** (25 if wide else 27) / (1 << op.shift)
        return (
            x.clip(-32768 if wide else -128, 32767 if wide else 127).astype(np.int16 if wide else np.int8),
            *(rng.integers(-limit, limit, (batch, hidden)).astype(np.int16) for limit in limits),
            *(_weights(rng, (n, inner), lowest) for inner in (in_, hidden)),
            np.concatenate([added, factors, factor], 1).astype(np.int32),
        )

    return Case(
        f"{op.name} {name}",
        op,
        build,
        run,
        activations=1 + len(op.bits) * given if activations is None else activations,
    )


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
    recurrent("shifted", QLstm(0, UNIT, shift=2), 3, 1, 8, 4),
    recurrent("states given", QLstm(0, UNIT), 3, 2, 4, 8, given=True),
    recurrent("constant states", QLstm(0, UNIT), 3, 2, 4, 8, given=True, activations=1),
    recurrent("constant cell state", QLstm(0, UNIT), 3, 2, 4, 8, given=True, activations=2),
    recurrent("of int16, constant states", QLstm(0, UNIT, y_shift=7), 2, 1, 4, 7, given=True, wide=True, activations=1),
    recurrent("weights of -128", QLstm(0, UNIT), 3, 1, 8, 8, lowest=True),
    recurrent("weights of -128", QGru(0, UNIT), 3, 1, 8, 8, lowest=True),
    recurrent("many inputs", QLstm(0, UNIT), 2, 1, 70, 6),
    recurrent("of int16", QLstm(0, UNIT, y_shift=7), 4, 1, 9, 8, wide=True),
    recurrent("of int16, states given", QLstm(0, UNIT, y_shift=6), 3, 2, 5, 7, given=True, wide=True),
    recurrent("one unit", QGru(0, UNIT), 1, 1, 1, 1),
    recurrent("some times", QGru(0, UNIT), 5, 1, 9, 8),
    recurrent("affine", QGru(-30, UNIT + UNIT // 3), 4, 1, 7, 5),
    recurrent("batch first", QGru(3, UNIT, batch_first=True), 3, 2, 5, 6),
    recurrent("reverse", QGru(0, UNIT, reverse=True), 4, 1, 6, 7),
    recurrent("shifted", QGru(0, UNIT, shift=2), 3, 1, 8, 4),
    recurrent("state given", QGru(0, UNIT), 3, 2, 4, 8, given=True),
    recurrent("many inputs", QGru(0, UNIT), 2, 1, 70, 26),
    recurrent("of int16", QGru(0, UNIT, y_shift=7), 4, 1, 9, 8, wide=True),
    recurrent("constant state", QGru(0, UNIT), 3, 2, 4, 8, given=True, activations=1),
    recurrent("constant state, one unit", QGru(0, UNIT), 2, 1, 4, 1, given=True, activations=1),
    recurrent("of int16, constant state", QGru(0, UNIT, y_shift=7), 3, 1, 4, 6, given=True, wide=True, activations=1),
    recurrent("of int16, odd", QGru(0, UNIT, y_shift=7, reverse=True), 3, 1, 4, 3, wide=True),
    recurrent("one unit", QRnn(0, UNIT), 1, 1, 1, 1),
    recurrent("some times", QRnn(0, UNIT), 5, 1, 17, 12),
    recurrent("reverse", QRnn(-30, UNIT + UNIT // 3, reverse=True), 4, 2, 6, 7),
    recurrent("shifted", QRnn(0, UNIT, shift=2), 3, 1, 8, 4),
    recurrent("state given", QRnn(0, UNIT, batch_first=True), 3, 2, 4, 8, given=True),
    recurrent("of int16", QRnn(0, UNIT, y_shift=7), 4, 1, 9, 8, wide=True),
    recurrent("constant state", QRnn(0, UNIT), 3, 2, 4, 8, given=True, activations=1),
    recurrent("of int16, constant state", QRnn(0, UNIT, y_shift=7), 2, 1, 4, 6, given=True, wide=True, activations=1),
    fixed("below one", 15),
    fixed("cell", 11),
    Case("from_fixed", FromFixed(11), shorts(3, 5), lambda x: x.float() / 2048),
)
