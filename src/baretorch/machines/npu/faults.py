"""Faults of a command stream, or of the memory that it uses."""

from __future__ import annotations

from enum import Enum


class FaultKind(Enum):
    """The kind of a fault, by the reaction of the hardware."""

    PARSE = "illegal command"  # STATUS reports it, and the NPU stops
    BUS = "bus error"  # the same
    DECODER = "weight decoder fault"  # the same, but the U85 has no bit for it
    BRANCH = "branch fault"  # the same, U85 only
    MODEL = "not modelled"  # the hardware may support it; here it ends the run
    STRICT = "unsafe stream"  # the hardware would continue, with a result that depends on chance


class NpuFault(Exception):
    """A fault of a stream. `at` is the position of the command, in bytes from the beginning of the stream."""

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

    def at_position(self, at: int, layer: str | None) -> NpuFault:
        """Return the fault with its position, unless it has one."""
        return NpuFault(self.kind, self.what, at if self.at is None else self.at, layer)
