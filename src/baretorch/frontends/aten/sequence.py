"""Rows of the ATen table: recurrent layers and attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, sqrt

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import shapes
from baretorch.frontends.aten.rows import AtenRow, rows
from baretorch.frontends.lowering import Lowering
from baretorch.ops.attention import Attention
from baretorch.ops.elementwise import Add
from baretorch.ops.move import Cat
from baretorch.ops.recurrent import Gru, Lstm, Recurrent, Rnn

# --- recurrent layers --------------------------------------------------------------------------------------


def _add_layers(
    g: Lowering,
    op: Recurrent,
    x: str,
    states: Sequence[str],
    weights: Sequence[str],
    has_biases: bool | float,
    layers_: bool | float,
    dropout: bool | float,
    train: bool | float,
    bidirectional: bool | float,
    batch_first: bool | float,
) -> tuple[str, ...]:
    """Add a node per layer and direction. The states of all are stacked, layer by layer, directions inside."""
    if train and dropout:
        raise CompileError(f"{op.name} is in training mode", try_="call model.eval() before returning the model")
    directions, each = 1 + bool(bidirectional), 4 if has_biases else 2
    if len(weights) != each * int(layers_) * directions:
        raise CompileError(
            f"{op.name}: proj_size is not supported", need="proj_size 0", try_="an nn.Linear after the layer"
        )
    given = [s for s in states if not is_zero(g, s)]
    final: list[list[str]] = [[] for _ in states]
    for layer in range(int(layers_)):
        ways = []
        for way in range(directions):
            index = layer * directions + way
            begins = [shapes.select(g, s, 0, index) for s in states] if given else []
            some = weights[index * each : (index + 1) * each]
            here = replace(op, reverse=way == 1, batch_first=bool(batch_first))
            y, *ends = g.b.add_many(here, x, *begins, *some[:2], _bias(g, op, some))
            ways.append(y)
            for list_, end in zip(final, ends, strict=True):
                list_.append(end)
        x = shapes.cat(g, ways, 2)
    return (x, *(shapes.stack(g, list_) for list_ in final))


def is_zero(g: Lowering, name: str) -> bool:
    data = g[name].data
    return data is not None and not data.any()


def _bias(g: Lowering, op: Recurrent, weights: Sequence[str]) -> str:
    """Return PyTorch's two biases as one, or zeros."""
    hidden = g.shape(weights[1])[1]
    if len(weights) < 4:
        return g.b.const("bias", np.zeros(op.biases * hidden, np.float32))
    return join_biases(g, op, weights[2], weights[3], hidden)


def join_biases(g: Lowering, op: Recurrent, b_ih: str, b_hh: str, hidden: int) -> str:
    """Combine two biases into one. Those of gru's candidate stay separate, because the reset gate is between them."""
    if not isinstance(op, Gru):
        return g.b.add(Add(), b_ih, b_hh)
    (gates, candidate), (gates_hh, reset) = (shapes.split(g, b, (2 * hidden, hidden)) for b in (b_ih, b_hh))
    return g.b.add(Cat(0), g.b.add(Add(), gates, gates_hh), candidate, reset)


def lstm_cell(
    g: Lowering, x: str, states: tuple[str, str], w_ih: str, w_hh: str, b_ih: str | None = None, b_hh: str | None = None
) -> tuple[str, ...]:
    return _cell(g, Lstm(), x, states, (w_ih, w_hh, b_ih, b_hh))


def _cell(g: Lowering, op: Recurrent, x: str, states: Sequence[str], weights: Sequence[str | None]) -> tuple[str, ...]:
    """Lower a layer over one time step; its states are the result."""
    some = [w for w in weights if w is not None]
    begins = [] if all(is_zero(g, s) for s in states) else states
    _, *ends = g.b.add_many(op, shapes.unsqueeze(g, x, 0), *begins, *some[:2], _bias(g, op, some))
    return tuple(ends)


# --- attention ---------------------------------------------------------------------------------------------


def attention(
    g: Lowering,
    q: str,
    k: str,
    v: str,
    mask: str | None = None,
    dropout: float = 0.0,
    causal: bool = False,
    scale: float | None = None,
    grouped: bool = False,
) -> str:
    if dropout:
        raise CompileError(
            f"scaled_dot_product_attention: dropout_p {dropout} is not supported",
            need="dropout_p 0.0",
            try_="dropout_p=self.p if self.training else 0.0",
        )
    if mask is not None and _is_causal(g, mask):
        mask, causal = None, True
    scale = 1 / sqrt(g.shape(q)[-1]) if scale is None else scale
    shape = g.shape(q)
    folded = grouped and shape[-3] != g.shape(k)[-3]
    if folded:  # neighbouring heads share keys and values: a dimension that repeats
        heads, shared = shape[-3], g.shape(k)[-3]
        q = shapes.reshape(g, q, (*shape[:-3], shared, heads // shared, *shape[-2:]))
        k, v = (shapes.unsqueeze(g, t, -3) for t in (k, v))
        if mask is not None and len(g.shape(mask)) > 2:
            *outer, rows, columns = g.shape(mask)
            split = (shared, heads // shared) if outer[-1] == heads else (1, 1)
            mask = shapes.reshape(g, mask, (*outer[:-1], *split, rows, columns))
    if mask is not None and len(g.shape(mask)) < 2:
        mask = shapes.unsqueeze(g, mask, 0)
    y = g.b.add(Attention(scale, causal), q, k, v, *((mask,) if mask else ()))
    return shapes.reshape(g, y, (*shape[:-1], g.shape(v)[-1])) if folded else y


def _is_causal(g: Lowering, mask: str) -> bool:
    """Report whether a constant mask hides the later keys and does nothing else."""
    data = g[mask].data
    if data is None or data.ndim < 2 or data.size != data.shape[-2] * data.shape[-1]:
        return False
    seen = np.tri(*data.shape[-2:], dtype=np.bool_)
    wanted = seen if data.dtype == np.bool_ else np.where(seen, np.float32(0), np.float32(-inf))
    return bool(np.array_equal(data.reshape(seen.shape), wanted))


ROWS: dict[str, AtenRow] = {
    **rows("lstm", lambda g, x, states, *rest: _add_layers(g, Lstm(), x, states, *rest), Lstm),
    **rows("gru", lambda g, x, state, *rest: _add_layers(g, Gru(), x, (state,), *rest), Gru),
    **rows("rnn_tanh", lambda g, x, state, *rest: _add_layers(g, Rnn(relu=False), x, (state,), *rest), Rnn),
    **rows("rnn_relu", lambda g, x, state, *rest: _add_layers(g, Rnn(relu=True), x, (state,), *rest), Rnn),
    **rows("lstm_cell", lstm_cell, Lstm),
    **rows("gru_cell", lambda g, x, state, *weights: _cell(g, Gru(), x, (state,), weights)[0], Gru),
    **rows("rnn_tanh_cell", lambda g, x, state, *weights: _cell(g, Rnn(relu=False), x, (state,), weights)[0], Rnn),
    **rows("rnn_relu_cell", lambda g, x, state, *weights: _cell(g, Rnn(relu=True), x, (state,), weights)[0], Rnn),
    **rows("scaled_dot_product_attention", attention, Attention),
}
