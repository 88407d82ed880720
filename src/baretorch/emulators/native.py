"""The image of board `host`: a program of this computer, for tests and sweeps. Instructions are not counted."""

from __future__ import annotations

import math
import sys

from baretorch.emulators.process import Process
from baretorch.firmware.types import Image


class NativeMachine(Process):
    """Ends with its input, and (on Linux) when it has computed for longer than anybody would wait, so that
    not even the sudden death of this process leaves it behind."""

    name = "native"

    def __init__(self, image: Image) -> None:
        super().__init__([str(image.elf)])
        self._seconds = 0.0

    def read(self, timeout: float) -> bytes:
        self._seconds += timeout
        self._limit(math.ceil(self._seconds) + 1)
        return super().read(timeout)

    def instructions(self) -> tuple[int, ...]:
        return ()

    def _limit(self, seconds: int) -> None:
        if sys.platform == "linux":
            import resource

            resource.prlimit(self.pid, resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
