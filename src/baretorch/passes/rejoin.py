"""Join what exporters decomposed: a linear layer and its bias, attention, gelu, silu.

Only in float: parts that have scales of their own stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import isclose, sqrt

import numpy as np

from baretorch.ir.graph import Graph, Node, Op, Tensor, fresh
from baretorch.ops.activations import Gelu, Silu
from baretorch.ops.attention import Attention
from baretorch.ops.elementwise import Add, Div, Mul
from baretorch.ops.functions import Erf, Sigmoid
from baretorch.ops.layout import Permute
from baretorch.ops.linear import Linear
from baretorch.ops.matmul import Matmul
from baretorch.ops.softmax import Softmax
from baretorch.passes.rewrite import rebuild


def rejoin(graph: Graph) -> Graph:
    """Replace decomposed layers by whole ones."""
    parts = _Parts(graph)
    nodes: list[Node] = []
    for node in graph.nodes:
        whole = parts.linear(node) or parts.gelu(node) or parts.silu(node) or parts.attention(node)
        nodes += whole or [node]
    return rebuild(graph, nodes, parts.new.values()) if parts.found else graph


@dataclass
class _Parts:
    graph: Graph
    new: dict[str, Tensor] = field(default_factory=dict)
    found: bool = False

    def __post_init__(self) -> None:
        self.makers = self.graph.producer()
        self.readers = self.graph.uses()
        self.kept = self.graph.kept

    def part(self, name: str, op: Op | type[Op]) -> Node | None:
        """Return the node that computes a tensor, if it has this operator, its only reader is known, and it has no
        scale."""
        node = self.makers.get(name)
        alone = name not in self.kept and len(self.readers.get(name, ())) == 1 and self.graph[name].quant is None
        same = node is not None and (isinstance(node.op, op) if isinstance(op, type) else node.op == op)
        return node if alone and same else None

    def number(self, name: str) -> float | None:
        """Return the number that all elements of a constant have."""
        data = self.graph[name].data
        one = data is not None and data.size > 0 and data.dtype == np.float32 and (data == data.flat[0]).all()
        return float(data.flat[0]) if data is not None and one else None

    def sides(self, node: Node | None, op: Op) -> Iterator[tuple[str, str]]:
        """Yield the operands of such a node, in both orders."""
        if node is not None and node.op == op:
            a, b = node.inputs
            yield from ((a, b), (b, a))

    # --- x W^T + b ------------------------------------------------------------------------------------------

    def linear(self, node: Node) -> list[Node] | None:
        for x, bias in self.sides(node, Add()):
            layer = self.part(x, Linear())
            if layer is None or len(layer.inputs) > 2 or self.graph[bias].data is None:
                continue
            rows = self.graph[layer.inputs[1]].shape[:1]
            if self.graph[bias].shape == rows and self.graph[node.outputs[0]].shape == self.graph[x].shape:
                self.found = True
                return [Node(Linear(), (*layer.inputs, bias), node.outputs)]
        return None

    # --- x (1 + erf(x / sqrt 2)) / 2 ------------------------------------------------------------------------

    def gelu(self, node: Node) -> list[Node] | None:
        """Match gelu. The factor 1/2 may be at any of the factors."""
        for product, half in self.sides(node, Mul()):
            x = self._gelu_of(self.part(product, Mul())) if self._is(half, 0.5) else None
            x = x or self._find_half(product, half)
            if x is not None and self.graph[x].shape == self.graph[node.outputs[0]].shape:
                self.found = True
                return [Node(Gelu(), (x,), node.outputs)]
        return None

    def _gelu_of(self, product: Node | None) -> str | None:
        """Return the x of x * (1 + erf(x / sqrt 2))."""
        return next((x for x, other in self.sides(product, Mul()) if self._one_and_erf(other) == x), None)

    def _find_half(self, half: str, other: str) -> str | None:
        """Return the x of (x / 2) * (1 + erf(x / sqrt 2))."""
        for x, number in self.sides(self.part(half, Mul()), Mul()):
            if self._is(number, 0.5) and self._one_and_erf(other) == x:
                return x
        return None

    def _one_and_erf(self, name: str) -> str | None:
        """Return the x of 1 + erf(x / sqrt 2)."""
        for erf, one in self.sides(self.part(name, Add()), Add()):
            inside = self.part(erf, Erf())
            if inside is not None and self._is(one, 1.0):
                return self._find_scaled(inside.inputs[0], 1 / sqrt(2))
        return None

    def _find_scaled(self, name: str, factor: float) -> str | None:
        """Return the x of x * factor."""
        x, found = self._times(name)
        return x if isclose(found, factor, rel_tol=1e-5) else None

    def _is(self, name: str, number: float) -> bool:
        return self.number(name) == number

    # --- x sigmoid(x) ---------------------------------------------------------------------------------------

    def silu(self, node: Node) -> list[Node] | None:
        for x, factor in self.sides(node, Mul()):
            sigmoid = self.part(factor, Sigmoid)
            if sigmoid is not None and sigmoid.inputs == (x,):
                self.found = True
                return [Node(Silu(), (x,), node.outputs)]
        return None

    # --- softmax(scale q k^T + mask) v ----------------------------------------------------------------------

    def attention(self, node: Node) -> list[Node] | None:
        if node.op != Matmul():
            return None
        softmax = self.part(node.inputs[0], Softmax)
        if softmax is None or not isinstance(softmax.op, Softmax):
            return None
        scores, mask = self._find_mask(softmax.inputs[0])
        scores, factor = self._times(scores)
        product = self.part(scores, Matmul())
        rank = len(self.graph[scores].shape)
        if product is None or softmax.op.axis != rank - 1 or self._has_scale(product, node):
            return None
        (q, q_factor), (k, k_factor) = (self._times(name) for name in product.inputs)
        swap = (*range(rank - 2), rank - 1, rank - 2)
        if len(self.graph[k].shape) != rank:
            return None
        turned = replace(
            self.graph[k],
            name=fresh(self.graph, self.new, f"{k}_turned"),
            shape=tuple(self.graph[k].shape[i] for i in swap),
            data=None,
        )
        op = Attention(factor * q_factor * k_factor)
        inputs = (q, turned.name, node.inputs[1], *((mask,) if mask else ()))
        fits = op.result([turned if n == turned.name else self.graph[n] for n in inputs])
        if fits != self.graph[node.outputs[0]].shape:
            return None
        self.new[turned.name], self.found = turned, True
        return [Node(Permute(swap), (k,), (turned.name,)), Node(op, inputs, node.outputs)]

    def _find_mask(self, scores: str) -> tuple[str, str | None]:
        """Return scores without the constant mask that is added to them. A mask that hides a whole row is not
        attention's."""
        for inside, mask in self.sides(self.part(scores, Add()), Add()):
            data = self.graph[mask].data
            if data is not None and data.ndim > 1 and not (data == -np.inf).all(axis=-1).any():
                return inside, mask
        return scores, None

    def _times(self, name: str) -> tuple[str, float]:
        """Return a tensor without the number that it is multiplied or divided by, and that number."""
        for x, factor in self.sides(self.part(name, Mul()), Mul()):
            number = self.number(factor)
            if number is not None and self.graph[x].shape == self.graph[name].shape:
                return x, number
        node = self.part(name, Div())
        number = self.number(node.inputs[1]) if node else None
        if node is None or not number or self.graph[node.inputs[0]].shape != self.graph[name].shape:
            return name, 1.0
        return node.inputs[0], 1 / number

    def _has_scale(self, product: Node, last: Node) -> bool:
        """Return whether some tensor has a measured scale: then the parts are quantized one by one."""
        return any(self.graph[n].quant is not None for n in (*product.inputs, last.inputs[1], last.outputs[0]))
