"""A part of an emulated chip that the hooks call, such as its clocks or a DMA engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from baretorch.machines.types import DeviceFault


class Stopped(Exception):
    """The chip does not continue."""

    def __init__(self, what: str, *have: str) -> None:
        super().__init__(what)
        self.have = have


class ChipDevice:
    """An exception cannot pass through the hooks. So a device keeps it as its `error`, and the emulation stops."""

    faults: ClassVar[Mapping[type[Exception], str]]  # the beginning of the message for each expected kind of error
    error: Exception | None = None

    def context(self) -> Sequence[str]:
        """Return the first lines of a fault's report."""
        return ()

    def fault(self, where: Sequence[str]) -> DeviceFault | None:
        """Return the fault for which the hooks stopped, if there is one. Raise an unexpected error."""
        if self.error is None:
            return None
        what = next((text for kind, text in self.faults.items() if isinstance(self.error, kind)), None)
        if what is None:
            raise self.error
        return DeviceFault(f"{what} {self.error}", have=[*self.context(), *getattr(self.error, "have", ()), *where])
