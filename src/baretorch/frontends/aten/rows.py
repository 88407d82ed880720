"""A row of the ATen table: what a PyTorch operator becomes."""

from __future__ import annotations

from dataclasses import dataclass

from baretorch.frontends.lowering import Build
from baretorch.ir.graph import Op


@dataclass(frozen=True)
class AtenRow:
    """`build` is a function of the lowering and the ATen operator's arguments in schema order: tensors arrive as names
    of Graph tensors, everything else as it is. It returns the name of the result, or one per result.

    `makes` are the Graph's operators that compute the result. What is moved or cast on the way, or computed of
    constants, is named only where nothing else is. A row that is `refused` only says why."""

    build: Build
    makes: tuple[type[Op], ...] = ()
    refused: bool = False


def rows(names: str, build: Build, *makes: type[Op], refused: bool = False) -> dict[str, AtenRow]:
    """Return the row of these operators of PyTorch, which are separated by spaces."""
    return {f"aten::{name}": AtenRow(build, makes, refused) for name in names.split()}
