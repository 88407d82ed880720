"""Units of a chip that compute operators beside its cores. The chip's TOML says what a unit can do, and a file here how
it is used: what it takes (a matcher), how it wants constants (packing), and the call. docs/how-to/your-own-unit.md
tells how to add one."""

from __future__ import annotations

from baretorch.targets.types import Chip
from baretorch.units.gemm import gemm_unit
from baretorch.units.types import Unit


def units_of(chip: Chip) -> tuple[Unit, ...]:
    """The units of a chip; each kind that there is has a line here."""
    cluster = chip.cluster
    return (gemm_unit(cluster, cluster.gemm),) if cluster is not None and cluster.gemm is not None else ()


__all__ = ["Unit", "units_of"]
