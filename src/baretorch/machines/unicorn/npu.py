"""Connect an emulated Ethos-U to a chip on Unicorn: its page of registers, the memory that it reaches, its interrupt
line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from baretorch.machines.npu.device import SIZE, Misuse, NpuBank, NpuDevice
from baretorch.machines.npu.faults import NpuFault
from baretorch.machines.npu.memory import NpuRegion
from baretorch.machines.unicorn.core import Core, SharedMemory
from baretorch.machines.unicorn.device import ChipDevice
from baretorch.machines.unicorn.state import NEVER, ChipState, StopReason
from baretorch.npu.accelerators import ACCELERATORS_BY_NAME
from baretorch.targets.parts import Npu
from baretorch.targets.types import Chip


class NpuPort(ChipDevice):
    """The NPU of a chip, mapped for its cores."""

    faults: ClassVar[Mapping[type[Exception], str]] = {Misuse: "the NPU is used wrongly:", NpuFault: "the NPU:"}

    def __init__(self, npu: Npu, chip: Chip, memories: Sequence[SharedMemory], state: ChipState) -> None:
        reached = {npu.ram, npu.constants}
        banks = [
            NpuBank(m.origin, NpuRegion(np.frombuffer(m.bytes, np.uint8), constant=chip.memory(m.name).kind == "flash"))
            for m in memories
            if m.name in reached
        ]
        self.device = NpuDevice(ACCELERATORS_BY_NAME[npu.accelerator], banks)
        self._npu, self._state = npu, state

    def attach(self, core: Core) -> None:
        def read(_uc: object, offset: int, size: int, _data: object) -> int:
            return self._do(core, lambda: self.device.read(_word(offset, size)))

        def write(_uc: object, offset: int, size: int, value: int, _data: object) -> None:
            self._do(core, lambda: self.device.write(_word(offset, size), value))

        core.uc.mmio_map(self._npu.base, SIZE, read, None, write, None)
        core.before_sleep = lambda: self._sleep(core)

    def _sleep(self, core: Core) -> None:
        """Let the NPU compute while the core sleeps. If it does not end, the image does not wait for input, but for its
        alarm."""
        self._do(core, self.device.work)
        if self.device.busy:
            self._state.idle_until = NEVER

    def _do(self, core: Core, act: Callable[[], int | None]) -> int:
        try:
            value = act() or 0
        except Exception as error:
            self.error = error
            self._state.stopped = StopReason.CHIP_CHANGED
            core.uc.emu_stop()
            return 0
        if self._npu.irq is not None:
            bit = 1 << self._npu.irq % 32
            lines = self._state.lines
            lines[self._npu.irq // 32] = lines[self._npu.irq // 32] & ~bit | (bit if self.device.irq else 0)
        return value


def _word(offset: int, size: int) -> int:
    if size != 4 or offset % 4:
        raise Misuse(f"{size} bytes at {offset:#05x} are not a word")
    return offset
