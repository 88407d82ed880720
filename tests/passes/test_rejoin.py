"""Operators that exporters decomposed are joined again, unless an intermediate value is read elsewhere or has a
scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from baretorch.ir.graph import Builder, DType, Graph, Quant, interpret
from baretorch.ir.verify import verify
from baretorch.ops.elementwise import Add, Div, Mul
from baretorch.ops.functions import Erf, Sigmoid
from baretorch.ops.linear import Linear
from baretorch.ops.matmul import Matmul
from baretorch.ops.softmax import Softmax
from baretorch.passes.rejoin import rejoin


def number(b: Builder, value: float) -> str:
    return b.const("number", np.array(value, np.float32))


def joined(graph: Graph) -> list[str]:
    """The operators after the pass, whose answers are those before it."""
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(t.shape).astype(np.float32) for t in graph.of(graph.inputs)]
    done = verify(rejoin(verify(graph)))
    before, after = interpret(graph, inputs), interpret(done, inputs)
    for a, b in zip(graph.outputs, done.outputs, strict=True):
        np.testing.assert_allclose(after[b], before[a], rtol=1e-5, atol=1e-6)
    return [n.op.name for n in done.nodes]


def biased(turned: bool) -> Graph:
    b = Builder()
    x = b.input("x", (2, 3), DType.FLOAT32)
    y = b.add(Linear(), x, b.const("w", np.arange(12, dtype=np.float32).reshape(4, 3)))
    bias = b.const("bias", np.float32([1, 2, 3, 4]))
    return b.graph([x], [b.add(Add(), *((bias, y) if turned else (y, bias)))])


@pytest.mark.parametrize("turned", [False, True])
def test_a_linear_layer_and_its_bias(turned: bool) -> None:
    assert joined(biased(turned)) == ["linear"]


def test_a_bias_of_another_shape_stays() -> None:
    b = Builder()
    x = b.input("x", (4, 3), DType.FLOAT32)
    y = b.add(Linear(), x, b.const("w", np.ones((4, 3), np.float32)))
    graph = b.graph([x], [b.add(Add(), y, b.const("bias", np.ones((4, 1), np.float32)))])
    assert joined(graph) == ["linear", "add"]


def test_what_is_read_elsewhere_or_has_a_scale_stays() -> None:
    graph = biased(False)
    layer = graph.nodes[0].outputs[0]
    assert joined(replace(graph, outputs=(*graph.outputs, layer))) == ["linear", "add"]
    noted = {**graph.tensors, layer: replace(graph[layer], quant=Quant((0.1,), (0,)))}
    assert joined(replace(graph, tensors=noted)) == ["linear", "add"]


def erf_part(b: Builder, x: str, factor: float = 2**-0.5) -> str:
    return b.add(Add(), b.add(Erf(), b.add(Mul(), x, number(b, factor))), number(b, 1.0))


GELUS: dict[str, Callable[[Builder, str], str]] = {
    "half_last": lambda b, x: b.add(Mul(), b.add(Mul(), x, erf_part(b, x)), number(b, 0.5)),
    "half_first": lambda b, x: b.add(Mul(), b.add(Mul(), x, number(b, 0.5)), erf_part(b, x)),
    "divided": lambda b, x: b.add(
        Mul(),
        number(b, 0.5),
        b.add(Mul(), x, b.add(Add(), number(b, 1.0), b.add(Erf(), b.add(Div(), x, number(b, 2**0.5))))),
    ),
}


@pytest.mark.parametrize("name", GELUS)
def test_gelu(name: str) -> None:
    b = Builder()
    x = b.input("x", (2, 3), DType.FLOAT32)
    assert joined(b.graph([x], [GELUS[name](b, x)])) == ["gelu"]


@pytest.mark.parametrize("turned", [False, True])
def test_silu(turned: bool) -> None:
    b = Builder()
    x = b.input("x", (2, 3), DType.FLOAT32)
    sigmoid = b.add(Sigmoid(), x)
    assert joined(b.graph([x], [b.add(Mul(), *((sigmoid, x) if turned else (x, sigmoid)))])) == ["silu"]


def test_a_gate_of_another_tensor_is_no_silu() -> None:
    b = Builder()
    x, y = b.input("x", (2, 3), DType.FLOAT32), b.input("y", (2, 3), DType.FLOAT32)
    assert joined(b.graph([x, y], [b.add(Mul(), x, b.add(Sigmoid(), y))])) == ["sigmoid", "mul"]


def test_no_gelu() -> None:
    b = Builder()
    x = b.input("x", (2, 3), DType.FLOAT32)
    y = b.add(Mul(), b.add(Mul(), x, erf_part(b, x, 0.5)), number(b, 0.5))
    assert "gelu" not in joined(b.graph([x], [y]))


def attention(mask: np.ndarray | None, axis: int = 2, divided: bool = False) -> Graph:
    b = Builder()
    q, k, v = (b.input(n, s, DType.FLOAT32) for n, s in (("q", (2, 5, 4)), ("k", (2, 4, 5)), ("v", (2, 5, 3))))
    scores = b.add(Matmul(), b.add(Mul(), q, number(b, 0.5)), b.add(Mul(), k, number(b, 0.25)))
    scores = b.add(Div(), scores, number(b, 2.0)) if divided else scores
    if mask is not None:
        scores = b.add(Add(), scores, b.const("mask", mask))
    return b.graph([q, k, v], [b.add(Matmul(), b.add(Softmax(axis), scores), v)])


@pytest.mark.parametrize("divided", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_attention(masked: bool, divided: bool) -> None:
    mask = np.where(np.tri(5, dtype=bool), 0, -np.inf).astype(np.float32) if masked else None
    assert joined(attention(mask, divided=divided)) == ["permute", "attention"]


def test_no_attention() -> None:
    """Softmax over queries, and a mask that hides a row: attention gives zeros there, softmax no number."""
    assert "attention" not in joined(attention(None, axis=1))
    hidden = np.zeros((5, 5), np.float32)
    hidden[2] = -np.inf
    assert "attention" not in joined(attention(hidden))
