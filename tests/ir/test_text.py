"""The text form of a graph prints and parses back; what is not one is refused with its line."""

from __future__ import annotations

from dataclasses import astuple, replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from baretorch.errors import CompileError
from baretorch.frontends import from_module
from baretorch.ir.graph import Builder, DType, Origin, Quant, State, interpret
from baretorch.ir.text import to_text
from baretorch.ops.elementwise import Add, Clamp
from baretorch.ops.linear import Linear
from baretorch.passes.order import lower_graph
from tests.graph_text import parse
from tests.models import cnn, cnn_input


def small() -> str:
    b = Builder("small")
    x = b.input("x", (1, 2), DType.FLOAT32)
    w = b.const("net.weight", np.array([[1, 2], [3, -4]], np.float32))
    y = b.add(Linear(lo=0.0), x, w, name="y")
    return to_text(b.graph([x], [y]))


def test_text_of_a_small_graph() -> None:
    assert small() == (
        "graph small\n"
        "input  x: float32[1, 2]\n"
        "const  net.weight: float32[2, 2] = AACAPwAAAEAAAEBAAACAwA==\n"
        "y: float32[1, 2] = linear(x, net.weight) lo=0.0\n"
        "output y\n"
    )


@pytest.mark.parametrize("passes", [False, True])
def test_a_real_graph_parses_back(passes: bool) -> None:
    source = from_module(cnn(), (cnn_input(),), "cnn")
    graph = source.graph
    graph = lower_graph(graph) if passes else graph
    again = parse(to_text(graph))
    assert to_text(again) == to_text(graph)
    for a, b in zip(
        interpret(graph, source.examples).values(), interpret(again, source.examples).values(), strict=True
    ):
        assert np.array_equal(a, b)


def test_memory_orders_survive_passes_and_text() -> None:
    class Both(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return torch.relu(x), x.flatten(1)

    image = torch.randn(1, 3, 4, 5).to(memory_format=torch.channels_last)
    graph = lower_graph(from_module(Both(), (image,), "both").graph)
    text = to_text(graph)
    assert "orders (0, 2, 3, 1) -> (0, 2, 3, 1), (0, 1)\n" in text
    for g in (graph, parse(text)):
        (x,), (y, flat) = g.takes(), g.gives()
        assert (x.shape, x.tensor.shape, x.dtype) == ((1, 3, 4, 5), (1, 4, 5, 3), DType.FLOAT32)
        assert (y.shape, flat.shape) == ((1, 3, 4, 5), (1, 60))
        found = interpret(g, [x.to_memory(image.numpy())])
        want = Both()(image)
        for port, right in zip((y, flat), want, strict=True):
            assert np.array_equal(port.from_memory(found[port.tensor.name]), right.numpy())


@pytest.mark.parametrize("orders", ["(1, 1) -> (0, 1)", "(0, 1), (0, 1) -> (0, 1)", "(0,) -> (0, 1)", "(0, -1) -> x"])
def test_orders_that_are_none_are_refused(orders: str) -> None:
    with pytest.raises(CompileError):
        parse(small() + f"orders {orders}\n")
    assert parse(small() + "orders (1, 0) -> (0, 1)\n").takes()[0].shape == (2, 1)


@pytest.mark.parametrize("more", [{"bits": 4, "group": 32}, {"cuts": True}, {"bits": 16, "cuts": True}, {}])
def test_all_of_a_scale_survives(more: dict[str, Any]) -> None:
    graph = parse(small())
    quant = Quant((0.5, 0.25), (0, 0), 0, **more)
    tensors = {**graph.tensors, "net.weight": replace(graph["net.weight"], quant=quant)}
    again = parse(to_text(replace(graph, tensors=tensors)))["net.weight"].quant
    assert again is not None and astuple(again) == astuple(quant)  # == compares no precision


@given(st.floats(width=32, allow_nan=False), st.floats(width=32, allow_nan=False))
def test_attributes_survive(lo: float, hi: float) -> None:
    b = Builder("one")
    x = b.input("x", (3,), DType.FLOAT32)
    graph = b.graph([x], [b.add(Clamp(lo, hi), x)])
    assert parse(to_text(graph)).nodes == graph.nodes


@given(st.lists(st.text(), min_size=6, max_size=6, unique=True))
def test_any_names_survive(names: list[str]) -> None:
    a, c, w, y, path, source = names
    b = Builder(path, origin=Origin(path, source))
    b.input(a, (1, 2), DType.FLOAT32)
    b.input(c, (1, 2), DType.FLOAT32)
    b.const(w, np.ones((2, 2), np.float32))
    y = b.add(Add(), a, c, name=y)
    last = b.add(Linear(), y, w, name=y)
    plain = b.graph([a], [y, last], [State(c, y, np.ones((1, 2), np.float32))])
    graph = replace(plain, labels=(path, source))
    text = to_text(graph)
    assert text.replace("\n", "").isprintable()
    again = parse(text)
    assert (again.name, again.inputs, again.nodes, again.outputs, again.labels) == (
        *(graph.name, graph.inputs, graph.nodes, graph.outputs, graph.labels),
    )
    assert [(s.name, s.next) for s in again.state] == [(c, y)]
    assert again[y].origin == Origin(path, source)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("y: float32[1, 2] = conv9d(x)", "line 4 is not a graph line: no operator is called conv9d"),
        ("y: float33[1, 2] = linear(x)", "line 4 is not a graph line: no type is called float33"),
        ("nonsense", "line 4 is not a graph line: substring not found"),
    ],
)
def test_bad_lines_are_named(line: str, text: str) -> None:
    broken = small().splitlines()
    broken[3] = line
    with pytest.raises(CompileError) as caught:
        parse("\n".join(broken))
    assert caught.value.what == text


@given(st.text(max_size=200))
def test_any_text_parses_or_is_refused(text: str) -> None:
    from baretorch.errors import InternalError

    try:
        parse(text)
    except (CompileError, InternalError) as error:
        assert str(error)
