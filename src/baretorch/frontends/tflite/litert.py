"""Runs LiteRT's interpreter with its reference kernels, and returns its results tensor by tensor."""

from __future__ import annotations

from collections.abc import Collection
from importlib.util import find_spec

from baretorch.frontends.runtimes.process import OpenModel

PACKAGE = "ai_edge_litert"
LIBRARY = "LiteRT"


def is_installed() -> bool:
    return find_spec(PACKAGE) is not None


class LiteRt(OpenModel[int]):
    """An interpreter of the first subgraph; its variables start with zeros. Tensors have numbers."""

    def __init__(self, data: bytes, operators: Collection[str]) -> None:
        super().__init__(LIBRARY, data, tuple(operators))
