"""List the features of CPUs, and combinations that kernels need.

Operators say what their kernels need with this file, so it knows nothing else of targets.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from enum import Enum


class Feature(Enum):
    """The instructions of a core, as far as kernels use them."""

    V6M = "v6m"  # Armv6-M
    V7M = "v7m"  # Thumb-2: Armv7-M, Armv8-M Mainline
    DSP = "dsp"  # Armv7E-M: two products of 16 bits at a time
    FPU = "fpu"  # single precision in hardware
    DP = "dp"  # double precision too
    MVE = "mve"  # Helium: vectors of 128 bits, integer and float
    RV32 = "rv32"
    XCV = "xcv"  # CORE-V's own: four products of 8 bits at a time, loads that increment, hardware loops
    VECTORS = "vectors"  # of four floats, as a computer has
    AVR = "avr"  # 8 bits, with the multiplier


def feature_names(features: Set[Feature]) -> list[str]:
    return sorted(f.value for f in features)


@dataclass(frozen=True)
class Needs:
    """Alternative sets of features; a CPU needs all features of one set. Without sets any CPU is sufficient."""

    alternatives: tuple[frozenset[Feature], ...] = ()

    def __or__(self, other: Needs) -> Needs:
        """Return needs that either of both sets of features meets."""
        return Needs(self.alternatives + other.alternatives)

    def __bool__(self) -> bool:
        return bool(self.alternatives)

    def met_by(self, features: Set[Feature]) -> bool:
        return not self.alternatives or any(needed <= features for needed in self.alternatives)

    def names(self) -> list[list[str]]:
        """Return the features of each alternative, for --json."""
        return [feature_names(needed) for needed in self.alternatives]

    def __str__(self) -> str:
        return " or ".join(" + ".join(needed) for needed in self.names()) or "any CPU"


def needs(*features: Feature) -> Needs:
    """Return Needs for all of these features."""
    return Needs((frozenset(features),))


ANY_CPU = Needs()

# What the files of these names below kernels/ ask of a CPU.
DSP = needs(Feature.DSP)
FPU = needs(Feature.V7M, Feature.FPU)
FPU_DSP = needs(Feature.DSP, Feature.FPU)
MVE = needs(Feature.MVE)
XCV = needs(Feature.XCV)
VECTORS = needs(Feature.VECTORS)
TRIPLES = needs(Feature.V6M) | needs(Feature.V7M) | needs(Feature.RV32)  # multiplies 32 bits; needs no DSP extension
AVR = needs(Feature.AVR)
SOFT = needs(Feature.V6M)  # never has an FPU
