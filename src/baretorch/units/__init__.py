"""Describe accelerator units of a chip: what they support, how they want constants, and the call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from baretorch.targets.parts import Cluster
from baretorch.targets.types import Chip
from baretorch.units.gemm import gemm_unit
from baretorch.units.types import Unit

# Each kind of unit by the name of its table in a chip's TOML, of its Executor and of its simulation's C file.
KINDS: Mapping[str, Callable[[Cluster, Any], Unit]] = {"gemm": gemm_unit}


def units_of(chip: Chip) -> tuple[Unit, ...]:
    """Return the units of a chip."""
    cluster = chip.cluster
    tables = cluster.units if cluster is not None else {}
    return tuple(make(cluster, tables[name]) for name, make in KINDS.items() if cluster is not None and name in tables)


__all__ = ["KINDS", "Unit", "units_of"]
