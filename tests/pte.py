"""Read, write and run `.pte` files, as tests need it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from baretorch.frontends.aten.program import AtenProgram
from baretorch.frontends.pte.reader import read_pte_methods
from baretorch.ir.graph import Array


def read_pte(data: bytes, name: str, method: str = "forward") -> AtenProgram:
    """Return the ATen program of one method."""
    return read_pte_methods(data, name, method)[method]


def write_pte(module: Any, inputs: Sequence[Any] | Mapping[str, Sequence[Any]], path: str | Path) -> Any:
    """Export `module` to `path`, for the example `inputs` of forward, or of each of several methods."""
    from baretorch.frontends.pte.export import write_programs
    from baretorch.frontends.torch.source import export_methods

    given = inputs if isinstance(inputs, Mapping) else {"forward": inputs}
    return write_programs(export_methods(copy.deepcopy(module), {m: tuple(x) for m, x in given.items()}), path)


def run_pte(path: Path, inputs: Sequence[Any], method: str = "forward") -> list[Array]:
    """Return what ExecuTorch's runtime computes."""
    from baretorch.frontends.pte.host import HostRuntime

    return HostRuntime(path.read_bytes()).run(inputs, method)
