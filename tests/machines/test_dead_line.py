"""A UART that never takes a byte loses what is put, and the image goes on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from baretorch.machines.frames import RUN as RUN_FRAME
from baretorch.machines.frames import Frame, encode_frame
from baretorch.machines.types import DeviceHang
from baretorch.machines.unicorn import drivers
from baretorch.machines.unicorn.machine import UnicornMachine
from tests.machines.images import RUN, image

FULL = {  # the offset of a status register, and what it reads as more, or less, on a dead line
    "pico": ("pl011", 0x18, 1 << 5, 0),
    "nucleo-wb55rg": ("stm32_usart", 0x1C, 0, 1 << 7),
    "microbit": ("nrf_uart", 0x11C, 0, 1),
}


@pytest.mark.parametrize("board", FULL)
def test_a_line_that_takes_nothing(board: str, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, at, more, less = FULL[board]

    def dead(value: int) -> int:
        return (value | more) & ~less

    rows = tuple(
        replace(r, empty=dead(r.empty), filled=dead(r.filled)) if r.address == at else r
        for r in drivers.UARTS[driver].registers
    )
    monkeypatch.setitem(drivers.UARTS, driver, replace(drivers.UARTS[driver], registers=rows))
    machine = UnicornMachine(image(board), RUN, timed=False)
    for runs in (1, 2):
        machine.write(encode_frame(Frame(RUN_FRAME, runs, bytes(16))))
        with pytest.raises(DeviceHang, match="waits for input"):
            while True:
                machine.read(60)
        assert len(machine.instructions()) == runs
