"""Faults of a command stream, or of the memory that it uses."""

from __future__ import annotations

from enum import Enum


class FaultKind(Enum):
    """The reaction of the hardware, if there is one."""

    PARSE = "illegal command"  # STATUS says so, and the NPU stops
    BUS = "bus error"  # the same
    DECODER = "weight decoder fault"  # the same, but the U85 has no bit for it
    BRANCH = "branch fault"  # the same, U85 only
    MODEL = "not modelled"  # the hardware may know better; here it ends the run
    STRICT = "unsafe stream"  # the hardware would go on, and compute something that depends on chance


class NpuFault(Exception):
    """`at` is the position of the command, in bytes from the beginning of the stream."""

    def __init__(self, kind: FaultKind, what: str, at: int | None = None, layer: str | None = None) -> None:
        super().__init__(what)
        self.kind = kind
        self.what = what
        self.at = at
        self.layer = layer

    def __str__(self) -> str:
        place = "" if self.at is None else f", at byte {self.at:#x} of the command stream"
        layer = "" if self.layer is None else f", in {self.layer}"
        return f"{self.kind.value}: {self.what}{place}{layer}"

    def placed(self, at: int, layer: str | None) -> NpuFault:
        """The same, with its place."""
        return NpuFault(self.kind, self.what, at if self.at is None else self.at, layer)
