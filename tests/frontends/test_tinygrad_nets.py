"""Networks as tinygrad's users write them: layers stay whole, and the Graph gives tinygrad's answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.frontends.tinygrad_cases import constant, layer

from baretorch.frontends.tinygrad.hook import watch_tinygrad
from baretorch.frontends.tinygrad.source import from_callable
from baretorch.pipeline import lower


class Digits:
    """Convolutions, batch norm and pools in a list."""

    def __init__(self) -> None:
        from tinygrad import Tensor

        self.layers = [
            layer("Conv2d", 1, 4, 5),
            Tensor.relu,
            layer("BatchNorm", 4),
            Tensor.max_pool2d,
            layer("Conv2d", 4, 8, 3),
            layer("BatchNorm", 8),
            Tensor.relu,
            Tensor.max_pool2d,
            lambda x: x.flatten(1),
            layer("Linear", 200, 10),
        ]

    def __call__(self, x: Any) -> Any:
        return x.sequential(self.layers)


class Encoder:
    """A block of a transformer over words."""

    def __init__(self) -> None:
        self.words = layer("Embedding", 10, 8)
        self.places = constant(1, 4, 8)
        self.q, self.k, self.v, self.out = (layer("Linear", 8, 8, bias=b) for b in (True, False, True, False))
        self.first, self.second = layer("LayerNorm", 8), layer("RMSNorm", 8)
        self.up, self.down = layer("Linear", 8, 16), layer("Linear", 16, 8)

    def attend(self, x: Any) -> Any:
        q, k, v = (y(x).reshape(1, 4, 2, 4).transpose(1, 2) for y in (self.q, self.k, self.v))
        return self.out(q.scaled_dot_product_attention(k, v, is_causal=True).transpose(1, 2).reshape(1, 4, 8))

    def __call__(self, x: Any) -> Any:
        x = self.words(x) + self.places
        x = x + self.attend(self.first(x)).dropout(0.1)
        x = x + self.down(self.up(self.second(x)).gelu())
        return x[:, -1].log_softmax()


class Mobile:
    """Depthwise convolutions, a residual, a way back up, and three outputs."""

    def __init__(self) -> None:
        self.stem = layer("Conv2d", 3, 6, 3, padding=1, stride=2)
        self.depth = layer("Conv2d", 6, 6, 3, padding=1, groups=6, bias=False)
        self.point, self.norm = layer("Conv2d", 6, 6, 1), layer("BatchNorm", 6)
        self.up = layer("ConvTranspose2d", 6, 3, 2, 2)

    def __call__(self, x: Any) -> Any:
        y = self.stem(x).relu6()
        y = y + self.norm(self.point(self.depth(y))).hardswish()
        z = self.up(y)
        return (x + z).pad(((0, 0), (0, 0), (1, 1), (1, 1))).avg_pool2d(2), y.mean((2, 3)).softmax(), z


class Recurrent:
    def __init__(self) -> None:
        self.cell, self.out = layer("LSTMCell", 3, 4), layer("Linear", 4, 2)

    def __call__(self, x: Any) -> Any:
        states = None
        for t in range(x.shape[1]):
            states = self.cell(x[:, t], states)
        assert states is not None
        return self.out(states[0])


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)


def check(net: Callable[[], Any], x: np.ndarray) -> set[tuple[str, str]]:
    """Names of layers and their operators, after all passes, which are held against tinygrad's answers."""
    with watch_tinygrad():
        graph = lower(from_callable(net(), {"forward": (x,)}, "net")).graph
    return {(graph[node.outputs[0]].origin.path, node.op.name) for node in graph.nodes}


def test_recurrent() -> None:
    found = check(Recurrent, floats(1, 3, 3))
    assert found >= {("cell", "lstm"), ("cell_2", "lstm"), ("cell_3", "lstm"), ("out", "linear")}


@pytest.mark.slow
def test_digits() -> None:
    found = check(Digits, floats(1, 1, 28, 28))
    assert found >= {("layers.0", "conv2d"), ("layers.4", "conv2d"), ("layers.9", "linear")}
    assert "layers.5" not in {name for name, _ in found}, "it is folded into the convolution"


@pytest.mark.slow
def test_encoder() -> None:
    found = check(Encoder, np.array([[3, 1, 4, 1]], np.int32))
    assert found >= {("first", "layer_norm"), ("second", "layer_norm"), ("up", "linear"), ("down", "linear")}
    assert ("scaled_dot_product_attention", "attention") in found


@pytest.mark.slow
def test_mobile() -> None:
    found = check(Mobile, floats(1, 3, 8, 8))
    assert found >= {("stem", "conv2d"), ("depth", "conv2d"), ("point", "conv2d"), ("up", "conv_transpose2d")}
