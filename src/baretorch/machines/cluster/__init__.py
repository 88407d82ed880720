"""Simulate a cluster of RISC-V cores to the cycle."""

from __future__ import annotations

from baretorch.firmware.types import Image
from baretorch.machines.types import Driver, Machine


def _open(image: Image, run_symbol: str, timed: bool) -> Machine:
    from baretorch.machines.cluster.machine import ClusterMachine

    return ClusterMachine(image, run_symbol)


DRIVER = Driver(_open)
