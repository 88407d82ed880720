"""A program of an SDK on the emulated chip: Unicorn has its clocks, its UART and its memories."""

from __future__ import annotations

from pathlib import Path

from baretorch.firmware.boot import sign_boot2
from baretorch.firmware.types import FlashUse, Image, RamUse
from baretorch.machines.types import DeviceHang
from baretorch.machines.unicorn.machine import UnicornMachine
from baretorch.options import Console
from baretorch.targets.types import Board


def said_on_chip(elf: Path, model: str, board: Board, end: str, times: int = 1) -> str:
    """Return the text that the chip sends over the UART until `end` has occurred `times` times."""
    if board.chip.boot == "boot2":  # which SDKs do behind the linker, too
        elf.write_bytes(sign_boot2(elf.read_bytes()))
    sizes = FlashUse(0, 0, 0, 0), RamUse(0, 0, 0, 0, 0, 0, 0)
    image = Image(model, board.with_console(Console.UART), "gcc", elf, None, None, None, elf, *sizes)
    machine = UnicornMachine(image, f"{model}_run")
    said = b""
    try:
        while said.count(end.encode()) < times:
            said += machine.read(60)
    except DeviceHang as hang:
        raise AssertionError(f"{said.decode()}\n{hang}") from hang
    finally:
        machine.close()
    return said.decode()
