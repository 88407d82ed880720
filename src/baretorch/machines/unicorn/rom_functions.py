"""Functions of the RP2040's and the RP2350's boot ROM, as far as images call them: one finds others by two letters,
and of those the one that restarts the chip into the USB boot loader is known.

The ROM is only there once somebody looks for a function. Before, address 0 is as empty as on chips without a ROM, so
that reading through a null pointer is noticed.
"""

from __future__ import annotations

import unicorn as uc
from unicorn import arm_const as arm

from baretorch.machines.types import DeviceFault

PAGE = 0x1000
TABLE, FIND, FOUND = 0x100, 0x200, 0x300  # addresses that ours happen to have
UNDEFINED = (0xDE00).to_bytes(2, "little")  # Unicorn stops there
# What each chip's start-up code is called: where the ROM says which function finds others, what the one that restarts
# is called, and what it must be told.
KINDS = {"boot2": (0x18, "UB", (0, 0)), "image_def": (0x16, "RB", (0x102, 10, 0, 0))}
ARGUMENTS = tuple(arm.UC_ARM_REG_R0 + i for i in range(4))


class Restarted(DeviceFault):
    """The chip has left the image for its boot loader, which is a USB drive."""


class RomFunctions:
    def __init__(self, boot: str) -> None:
        self._at, self._name, self._told = KINDS[boot]

    def appear(self, engine: uc.Uc, address: int) -> bool:
        """Whether somebody looks for a function there."""
        if address not in (0x14, self._at):
            return False
        rom = bytearray(PAGE)
        rom[0x14:0x16] = TABLE.to_bytes(2, "little")
        rom[self._at : self._at + 2] = (FIND | 1).to_bytes(2, "little")
        rom[FIND : FIND + 2] = rom[FOUND : FOUND + 2] = UNDEFINED
        engine.mem_map(0, PAGE, uc.UC_PROT_READ | uc.UC_PROT_EXEC)
        engine.mem_write(0, bytes(rom))
        return True

    def is_there(self, pc: int) -> bool:
        return pc & ~2 in (FIND, FOUND)

    def call(self, engine: uc.Uc) -> tuple[int, DeviceFault | None]:
        """Run a function: return the caller's next address, or what happens to the chip."""
        given = [engine.reg_read(register) for register in ARGUMENTS]
        back = engine.reg_read(arm.UC_ARM_REG_LR) & ~1
        if engine.reg_read(arm.UC_ARM_REG_PC) & ~2 == FIND:
            wanted = given[1] if self._name == "UB" else given[0]
            found = wanted == int.from_bytes(self._name.encode(), "little") and (self._name == "UB" or given[1] == 4)
            engine.reg_write(arm.UC_ARM_REG_R0, FOUND | 1 if found else 0)
            return back, None
        if tuple(given[: len(self._told)]) != self._told:
            return back, DeviceFault(f"the boot ROM's {self._name} is told {given}", need=str(self._told))
        return back, Restarted("the chip restarted into its boot loader")
