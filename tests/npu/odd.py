"""NPUs that differ from a normal chip, for tests of drivers."""

from __future__ import annotations

from dataclasses import dataclass

from baretorch.machines.npu import device as npu
from baretorch.machines.npu.device import NpuDevice


@dataclass(frozen=True)
class OddNpu:
    """The differences from a normal chip."""

    stuck: bool = False  # it never ends
    config: int = 0  # bits of its CONFIG in addition to those of the accelerator
    id: int | None = None  # its ID
    prot: int | None = None  # its PROT after each reset, whatever the driver demands
    ecc: bool = False  # its internal memory fails
    cuts_power: bool = False  # its power is cut as soon as it is idle, if power gating is enabled


class OddDevice(NpuDevice):
    """A device with a `variant`."""

    variant: OddNpu
    _powered = True  # until CMD is written

    def read(self, offset: int) -> int:
        self._cut_power()
        resetting = self._status & npu.RESETTING
        value = super().read(offset)
        if offset == npu.CONFIG and not resetting:
            value |= self.variant.config
        if offset == npu.ID and not resetting and self.variant.id is not None:
            value = self.variant.id
        return value

    def write(self, offset: int, value: int) -> None:
        self._cut_power()
        super().write(offset, value)

    def work(self) -> None:
        if self.busy and self.variant.ecc and not self.variant.stuck:
            self._state = npu.Progress.IDLE
            self._status = self._status & ~npu.RUNNING | npu.ECC_FAULT | npu.IRQ
        elif not self.variant.stuck:
            super().work()

    def _reset(self, prot: int) -> None:
        super()._reset(prot if self.variant.prot is None else self.variant.prot)
        self._powered = True

    def _command(self, value: int) -> None:
        super()._command(value)
        self._powered = False

    def _cut_power(self) -> None:
        idle = not self.busy and not self._powered and not self._status & npu.IRQ
        if self.variant.cuts_power and idle and self._gating & npu.POWER_GATING:
            self._reset(0)
            self._status, self._fresh = 0, True


def make_odd(device: NpuDevice, variant: OddNpu) -> None:
    """Give a device, which has not been used, a variant."""
    device.__class__ = OddDevice
    assert isinstance(device, OddDevice)
    device.variant = variant
