"""Matrix products, recurrent layers and attention, from the functions a user writes to the Graph after all passes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.frontends.lower import check_module, names
from torch import Tensor, nn

from baretorch.errors import CompileError
from baretorch.frontends import from_module
from baretorch.ir.graph import interpret
from baretorch.passes.order import lower_graph


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def r(*shape: int) -> Tensor:
    return torch.randn(*shape)


# --- matrix products ---------------------------------------------------------------------------------------

PRODUCTS: dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...], list[str]]] = {
    "two matrices": (torch.matmul, (r(3, 4), r(4, 5)), ["matmul"]),
    "mm": (torch.mm, (r(3, 4), r(4, 5)), ["matmul"]),
    "bmm": (torch.bmm, (r(2, 3, 4), r(2, 4, 5)), ["matmul"]),
    "broadcast": (torch.matmul, (r(2, 1, 3, 4), r(5, 4, 2)), ["matmul"]),
    "two vectors": (torch.matmul, (r(5), r(5)), ["reshape", "reshape", "matmul", "reshape"]),
    "dot": (torch.dot, (r(5), r(5)), ["reshape", "reshape", "matmul", "reshape"]),
    "mv": (torch.mv, (r(3, 5), r(5)), ["reshape", "matmul", "reshape"]),
    "vector and matrices": (torch.matmul, (r(4), r(2, 4, 3)), ["reshape", "matmul", "reshape"]),
    "addmm": (torch.addmm, (r(3, 5), r(3, 4), r(4, 5)), ["matmul", "add"]),
    "addmm with factors": (
        lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2.0),
        (r(5), r(3, 4), r(4, 5)),
        ["matmul", "mul", "mul", "add"],
    ),
    "addmm without c": (
        lambda c, a, b: torch.addmm(c, a, b, beta=0),
        (torch.full((5,), torch.nan), r(3, 4), r(4, 5)),
        ["matmul"],
    ),
    "baddbmm": (torch.baddbmm, (r(2, 1, 5), r(2, 3, 4), r(2, 4, 5)), ["matmul", "add"]),
    "addmv": (torch.addmv, (r(3), r(3, 4), r(4)), ["reshape", "matmul", "reshape", "add"]),
    "linear of a computed weight": (F.linear, (r(2, 3, 4), r(5, 4), r(5)), ["matmul", "add"]),
    "transposed": (lambda a, b: a @ b.transpose(-1, -2), (r(2, 3, 4), r(2, 5, 4)), ["matmul"]),
    "relu": (lambda a, b: F.relu(a @ b), (r(3, 4), r(4, 5)), ["matmul"]),
    "result transposed": (lambda a, b: (a.mT @ b).mT, (r(2, 4, 3), r(2, 4, 5)), ["matmul"]),
    "einsum": (lambda a, b: torch.einsum("bhld,bhsd->bhls", a, b), (r(2, 3, 4, 5), r(2, 3, 6, 5)), []),
    "einsum, heads inside": (lambda a, b: torch.einsum("blhd,bshd->bhls", a, b), (r(1, 4, 3, 5), r(1, 6, 3, 5)), []),
    "einsum, sum over the batch": (lambda a, b: torch.einsum("bi,bj->ij", a, b), (r(4, 3), r(4, 5)), []),
    "tensordot": (lambda a, b: torch.tensordot(a, b, dims=1), (r(2, 3), r(3, 4)), ["matmul"]),
    "inner": (torch.inner, (r(2, 3), r(4, 3)), ["matmul"]),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    function, inputs, wanted = PRODUCTS[name]
    made = names(check_module(function, *inputs))
    if wanted:
        assert made == wanted
    else:  # einsum: dimensions are moved for nothing but the product
        assert set(made) == {"matmul", "reshape"}


def test_a_constant_on_the_right_is_a_linear_layer() -> None:
    weight, bias = r(4, 5), r(5)
    assert names(check_module(lambda x: x @ weight, r(2, 3, 4))) == ["linear"]
    assert names(check_module(lambda x: x @ weight.t().contiguous().t(), r(2, 3, 4))) == ["linear"]
    assert names(check_module(lambda x: torch.addmm(bias, x, weight, beta=2.0, alpha=0.5), r(3, 4))) == ["linear"]
    assert names(check_module(lambda x: weight.t() @ x, r(4, 3))) == ["matmul"]


# --- recurrent layers --------------------------------------------------------------------------------------

KINDS: dict[str, Callable[..., nn.Module]] = {
    "lstm": nn.LSTM,
    "gru": nn.GRU,
    "rnn": nn.RNN,
    "rnn relu": lambda *a, **k: nn.RNN(*a, nonlinearity="relu", **k),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch_first", [False, True])
def test_one_layer_is_one_node(kind: str, batch_first: bool) -> None:
    graph = check_module(KINDS[kind](3, 7, batch_first=batch_first), r(5, 4, 3))
    assert names(graph) == [kind.split()[0], *["reshape"] * (2 if kind == "lstm" else 1)]


@pytest.mark.parametrize("kind", KINDS)
def test_layers_directions_and_states(kind: str) -> None:
    module = KINDS[kind](3, 5, num_layers=2, bidirectional=True, dropout=0.5)
    states = (r(4, 2, 5), r(4, 2, 5)) if kind == "lstm" else r(4, 2, 5)

    class Given(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, x: Tensor, h: Any) -> Any:
            return self.module(x, h)

    assert names(check_module(Given(), r(6, 2, 3), states)).count(kind.split()[0]) == 4
    assert names(check_module(module, r(6, 2, 3))).count(kind.split()[0]) == 4


@pytest.mark.parametrize("kind", KINDS)
def test_no_bias_and_no_batch(kind: str) -> None:
    check_module(KINDS[kind](3, 5, bias=False), r(1, 2, 3))
    check_module(KINDS[kind](3, 5), r(4, 3))


@pytest.mark.parametrize("cell", [nn.LSTMCell, nn.GRUCell, nn.RNNCell, lambda i, h: nn.RNNCell(i, h, False, "relu")])
def test_cells(cell: Callable[..., nn.Module]) -> None:
    module = cell(3, 5)

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, x: Tensor) -> Any:
            return self.module(x, self.module(x))

    check_module(Twice(), r(2, 3))
    check_module(module, r(3))


def test_a_learned_initial_state_is_given() -> None:
    class Learned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(3, 4)
            self.h, self.c = nn.Parameter(r(1, 2, 4)), nn.Parameter(r(1, 2, 4))

        def forward(self, x: Tensor) -> Any:
            return self.lstm(x, (self.h, self.c))[0]

    assert names(check_module(Learned(), r(5, 2, 3))) == ["lstm"]


def test_a_streaming_gru_remembers() -> None:
    class Streaming(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru, self.out = nn.GRU(3, 5, batch_first=True), nn.Linear(5, 2)
            self.register_buffer("h", 0.1 * torch.ones(1, 1, 5))

        def forward(self, x: Tensor) -> Tensor:
            y, h = self.gru(x, self.h)
            self.h.copy_(h)
            return self.out(y)

    chunks = [r(1, 4, 3) for _ in range(3)]
    module = Streaming().eval()
    graph = lower_graph(from_module(module, (chunks[0],), "m").graph)
    assert [s.name for s in graph.state] == ["h"]
    whole = r(0)
    with torch.no_grad():
        y, _ = module.gru(torch.cat(chunks, 1), 0.1 * torch.ones(1, 1, 5))
        whole = module.out(y)
    memory: dict[str, Any] = {}
    parts = [interpret(graph, [c.numpy()], memory=memory)[graph.outputs[0]] for c in chunks]
    np.testing.assert_allclose(np.concatenate(parts, 1), whole.numpy(), rtol=1e-5, atol=1e-6)


def test_refusals() -> None:
    with warnings.catch_warnings(), pytest.raises(CompileError, match="proj_size"):
        warnings.simplefilter("ignore")  # PyTorch's own, about the speed of proj_size
        check_module(nn.LSTM(3, 4, proj_size=2), r(5, 2, 3))
    with pytest.raises(CompileError, match=r"dropout_p 0\.1"):
        check_module(lambda q: F.scaled_dot_product_attention(q, q, q, dropout_p=0.1), r(1, 3, 4))


def test_macs() -> None:
    assert check_module(nn.LSTM(3, 4, num_layers=2), r(5, 2, 3)).macs() == 5 * 2 * 16 * (3 + 4 + 4 + 4)
    assert check_module(nn.GRU(3, 4, bidirectional=True), r(5, 2, 3)).macs() == 2 * 5 * 2 * 12 * (3 + 4)
    assert check_module(torch.matmul, r(2, 3, 4), r(4, 5)).macs() == 2 * 3 * 4 * 5
    q, k, v = r(2, 3, 4), r(2, 6, 4), r(2, 6, 5)
    assert check_module(F.scaled_dot_product_attention, q, k, v).macs() == 2 * 3 * 6 * (4 + 5)


# --- attention ---------------------------------------------------------------------------------------------


def test_attention() -> None:
    q, k, v = r(2, 3, 5, 4), r(2, 3, 6, 4), r(2, 3, 6, 4)
    attend = F.scaled_dot_product_attention
    assert names(check_module(attend, q, k, v)) == ["attention"]
    assert names(check_module(lambda q, k, v: attend(q, k, v, is_causal=True, scale=0.3), q, k, v)) == ["attention"]
    assert names(check_module(attend, q, k, v, r(5, 6))) == ["attention"]
    assert names(check_module(attend, q, k, v, r(2, 1, 1, 6) > 0)) == ["attention"]
    keep = r(5, 6) > -0.5
    assert names(check_module(lambda q, k, v: attend(q, k, v, keep), q, k, v)) == ["attention"]


def test_groups_of_heads() -> None:
    q, k, v = r(2, 6, 3, 4), r(2, 2, 5, 4), r(2, 2, 5, 4)
    check_module(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True), q, k, v)
    check_module(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m, enable_gqa=True), q, k, v, r(2, 6, 3, 5))
    check_module(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m, enable_gqa=True), q, k, v, r(1, 3, 5))


def test_attention_to_keys_of_more_batches_than_queries() -> None:
    check_module(F.scaled_dot_product_attention, r(2, 3, 4), r(3, 2, 5, 4), r(3, 2, 5, 6))


def test_a_causal_mask_is_not_stored() -> None:
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    graph = check_module(lambda q: F.scaled_dot_product_attention(q, q, q, mask), r(1, 2, 5, 4))
    assert names(graph) == ["attention"] and not graph.constants()


class SelfAttention(nn.Module):
    def __init__(self, weights: bool, mask: Tensor | None = None, batch_first: bool = True) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=batch_first)
        self.weights, self.mask = weights, mask

    def forward(self, x: Tensor) -> Any:
        made, weights = self.attention(x, x, x, need_weights=self.weights, attn_mask=self.mask)
        return (made, weights) if self.weights else made


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize(
    "mask", [None, nn.Transformer.generate_square_subsequent_mask(5), torch.ones(5, 5).tril() == 0]
)
@pytest.mark.parametrize("weights", [False, True])
def test_multihead_attention(weights: bool, mask: Tensor | None, batch_first: bool) -> None:
    check_module(SelfAttention(weights, mask, batch_first), r(2, 5, 8) if batch_first else r(5, 2, 8))


def test_multihead_attention_moves_nothing() -> None:
    """Heads are read and written where they lie, and the projection is three that write where they are read."""
    made = names(check_module(SelfAttention(False), r(1, 5, 8)))
    assert set(made) == {"linear", "attention", "reshape"}


def test_attention_to_another_sequence() -> None:
    class Cross(nn.Module):
        def __init__(self, **sizes: int) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True, **sizes)

        def forward(self, x: Tensor, y: Tensor) -> Any:
            return self.attention(x, y, y)

    check_module(Cross(), r(2, 3, 8), r(2, 4, 8))
    check_module(Cross(kdim=6, vdim=6), r(2, 3, 8), r(2, 4, 6))


@pytest.mark.parametrize("norm_first", [False, True])
def test_transformer_encoder(norm_first: bool) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=norm_first)
    graph = check_module(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), r(1, 5, 8))
    assert names(graph).count("attention") == 2
    assert "permute" not in names(graph)


def test_padding_mask_of_a_transformer() -> None:
    class Padded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

        def forward(self, x: Tensor, padding: Tensor) -> Any:
            return self.layer(x, src_key_padding_mask=padding)

    check_module(Padded(), r(2, 3, 8), torch.tensor([[False, False, True], [False, True, True]]))
