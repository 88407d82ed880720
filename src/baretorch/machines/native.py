"""The image of board `host`: a program of this computer, for tests and sweeps. Instructions are not counted."""

from __future__ import annotations

import math
import os
import sys
from contextlib import suppress
from pathlib import Path

from baretorch.firmware.types import Image
from baretorch.machines.process import Process
from baretorch.machines.types import Driver

if sys.platform == "linux":
    import resource


class NativeMachine(Process):
    """Ends with its input and, on Linux, when it has computed for longer than the time limit, so that it ends even if
    this process dies suddenly."""

    name = "native"

    def __init__(self, image: Image) -> None:
        super().__init__([str(image.elf)])

    def read(self, timeout: float) -> bytes:
        if sys.platform == "linux":
            with suppress(FileNotFoundError, ProcessLookupError):  # it has ended, which the read reports
                seconds = math.ceil(self._cpu_seconds() + timeout) + 1
                resource.prlimit(self.pid, resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
        return super().read(timeout)

    def _cpu_seconds(self) -> float:
        """Return the CPU time that the process has used; proc(5) counts fields from 1, and the name (2) may hold
        spaces."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[14 - 3]) + int(fields[15 - 3])) / os.sysconf("SC_CLK_TCK")


DRIVER = Driver(lambda image, run_symbol, timed: NativeMachine(image))
