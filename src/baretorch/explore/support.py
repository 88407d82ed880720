"""List the supported operators, from the tables of operators and of ATen rows."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from baretorch.frontends.aten.table import TABLE
from baretorch.ir.graph import DType
from baretorch.ops import OPS, OpRow
from baretorch.ops.helpers.kernel import Kernel
from baretorch.targets.types import Chip
from baretorch.units import units_of

# As the symbols of kernels spell them.
_TYPES = {
    "f32": DType.FLOAT32,
    "s8": DType.INT8,
    "u8": DType.UINT8,
    "s16": DType.INT16,
    "s32": DType.INT32,
    "s64": DType.INT64,
    "bool": DType.BOOL,
}


@dataclass(frozen=True)
class OpSupport:
    """An operator of the Graph: its meaning, its kernels and the ATen operators that become it."""

    name: str
    meaning: str
    kernels: tuple[Kernel[Any], ...]
    aten: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        kernels = [
            {"symbol": k.symbol, "source": k.source, "dtypes": types_of(k), "needs": k.needs.names()}
            | ({"unit": k.unit} if k.unit else {})
            for k in self.kernels
        ]
        return {"name": self.name, "meaning": self.meaning, "kernels": kernels, "aten": list(self.aten)}


def support(chip: Chip | None = None) -> tuple[OpSupport, ...]:
    """Return all operators, in the order of OPS. With a chip, only with kernels of its CPU and its units."""
    units = units_of(chip) if chip is not None else ()

    def own(row: OpRow) -> Iterator[Kernel[Any]]:
        yield from (unit.kernels[row.op] for unit in units if row.op in unit.kernels)
        yield from (k for k in row.kernels if chip is None or k.needs.met_by(chip.cpu.features))

    made = {target.removeprefix("aten::"): row.makes for target, row in TABLE.items()}
    return tuple(
        OpSupport(
            row.op.name,
            inspect.getdoc(row.op) or "",
            tuple(own(row)),
            tuple(sorted(target for target, ops in made.items() if row.op in ops)),
        )
        for row in OPS
    )


def aten_names() -> tuple[str, ...]:
    """Return all ATen operators that can be read, including those that disappear, such as clone and dropout."""
    return tuple(sorted(target.removeprefix("aten::") for target, row in TABLE.items() if not row.refused))


def types_of(kernel: Kernel[Any]) -> list[str]:
    """Return the element types that a kernel computes, which its symbol names."""
    parts = kernel.symbol.split("_")
    return [t.label for part, t in _TYPES.items() if part in parts]
