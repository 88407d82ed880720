"""Describe accelerators of a chip other than its cores: what they support, how they want constants, and the call."""

from __future__ import annotations

from baretorch.targets.types import Chip
from baretorch.units.gemm import gemm_unit
from baretorch.units.types import Unit


def units_of(chip: Chip) -> tuple[Unit, ...]:
    """The units of a chip; each kind that there is has a line here."""
    cluster = chip.cluster
    return (gemm_unit(cluster, cluster.gemm),) if cluster is not None and cluster.gemm is not None else ()


__all__ = ["Unit", "units_of"]
