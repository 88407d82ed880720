"""Emulate the boot ROM of the RP2040 and the RP2350: the start of core 1, and the functions that images call.

Core 1 runs the ROM until core 0 has sent the start address. It returns each word that core 0 sends. At anything
unexpected it starts again with a 0: at a 0 instead of an address, or at another command than 1. So the words 0, 0, 1,
vector table, stack pointer, entry start core 1 from any state.

One function finds others by two letters; the only other one restarts the chip into the USB boot loader. The ROM appears
when code looks for a function. Before that, address 0 is empty, as on chips without a ROM, so that reads through a null
pointer are detected.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import unicorn as uc
from unicorn import arm_const as arm

from baretorch.machines.types import DeviceFault

PAGE = 0x1000
TABLE, FIND, FOUND = 0x100, 0x200, 0x300  # addresses in the emulated ROM
UNDEFINED = (0xDE00).to_bytes(2, "little")  # Unicorn stops there
# By the kind of start-up code: the address at which the ROM names the function that finds others, the name of the one
# that restarts the chip, and its arguments.
KINDS = {"boot2": (0x18, "UB", (0, 0)), "image_def": (0x16, "RB", (0x102, 10, 0, 0))}
ARGUMENTS = tuple(arm.UC_ARM_REG_R0 + i for i in range(4))
WANTED = "0, 0, 1, vector table, stack pointer, entry"


@dataclass(frozen=True)
class Launch:
    """The words that core 1 received."""

    vectors: int
    stack: int
    entry: int


class Mailbox(Protocol):
    """Core 1's end of the FIFOs between the cores."""

    def has_mail(self) -> bool: ...

    def take(self) -> int: ...

    def has_room(self) -> bool: ...

    def send(self, word: int) -> None:
        """Send a word and wake core 0."""


Waiting: TypeAlias = Generator[None, None, int]


def boot_rom(mailbox: Mailbox) -> Generator[None, None, Launch]:
    """Run the ROM. It yields whenever it waits for an event."""
    while True:
        while mailbox.has_mail():
            mailbox.take()
        if (yield from _answer(mailbox, 0)) != 1:
            continue
        if not (vectors := (yield from _answer(mailbox, 1))):
            continue
        if not (stack := (yield from _answer(mailbox, vectors))):
            continue
        if not (entry := (yield from _answer(mailbox, stack))):
            continue
        yield from _send(mailbox, entry)
        return Launch(vectors, stack, entry)


def _send(mailbox: Mailbox, word: int) -> Generator[None, None, None]:
    while not mailbox.has_room():
        yield
    mailbox.send(word)


def _answer(mailbox: Mailbox, word: int) -> Waiting:
    """Send `word`, and return the next word. It sleeps before it reads, so that core 0 must signal that it has sent a
    word."""
    yield from _send(mailbox, word)
    while True:
        yield
        if mailbox.has_mail():
            return mailbox.take()


class Restarted(DeviceFault):
    """The chip has left the image for its boot loader, which is a USB drive."""


class RomFunctions:
    def __init__(self, boot: str) -> None:
        self._at, self._name, self._arguments = KINDS[boot]

    def appear(self, engine: uc.Uc, address: int) -> bool:
        """Map the ROM if the address is one where code looks for a function; return whether it is."""
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
            code = given[1] if self._name == "UB" else given[0]
            found = code == int.from_bytes(self._name.encode(), "little") and (self._name == "UB" or given[1] == 4)
            engine.reg_write(arm.UC_ARM_REG_R0, FOUND | 1 if found else 0)
            return back, None
        if tuple(given[: len(self._arguments)]) != self._arguments:
            return back, DeviceFault(f"the boot ROM's {self._name} is called with {given}", need=str(self._arguments))
        return back, Restarted("the chip restarted into its boot loader")
