"""What the emulators must know of an image's code."""

from __future__ import annotations

from dataclasses import dataclass

from baretorch.firmware.elf import EXECUTE, FUNC, Elf, read_elf
from baretorch.firmware.returns import LABEL
from baretorch.firmware.types import Image


@dataclass(frozen=True)
class Code:
    """The code in an image's flash, and the addresses between which a call of the model runs."""

    elf: Elf
    addresses: range
    run: int  # the run function
    returned: int  # where its caller goes on

    def function_at(self, address: int) -> str:
        """The name of the function there, for people."""
        for symbol in self.elf.symbols:
            if symbol.type == FUNC and symbol.address <= address < symbol.address + max(symbol.size, 2):
                return symbol.name
        return "no known function"


def read_code(image: Image, run_symbol: str) -> Code:
    elf = read_elf(image.elf.read_bytes())
    flash = image.board.chip.memory(image.board.chip.code)
    inside = range(flash.origin, flash.origin + flash.size)
    sections = [s for s in elf.sections if s.flags & EXECUTE and s.size and s.address in inside]
    return Code(
        elf=elf,
        addresses=range(min(s.address for s in sections), max(s.address + s.size for s in sections)),
        run=elf.symbol(run_symbol).address,
        returned=elf.symbol(LABEL).address & ~1,
    )
