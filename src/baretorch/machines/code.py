"""The addresses in an image's code that emulators need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

from baretorch.firmware.calls import LABEL
from baretorch.firmware.elf import EXECUTE, FUNC, Elf, read_elf
from baretorch.firmware.sizes import CODE_IN_RAM, STACK
from baretorch.firmware.types import Image

MEET = "bt_meet"  # of kernels/cores.h


@dataclass(frozen=True)
class Code:
    """The code in an image's flash, and the addresses between which a call of the model runs."""

    elf: Elf
    addresses: range
    in_ram: range  # addresses of the code that start-up code copies to RAM
    run: int  # the run function
    returned: int  # where its caller continues
    home: tuple[int, int, int, int]  # two ranges: the run function, and the part of it that calls the layers
    core1_home: tuple[int, int, int, int]  # the same for core 1: the function that calls its layers, and none
    parts: tuple[tuple[int, int], ...]  # ranges: the functions that call the layers of a cluster's cores 1, 2 …
    meets: tuple[tuple[int, int], ...]  # ranges: where cores wait for each other
    stacks: tuple[int, int]  # a range: of all cores

    def stretches(self) -> Iterator[tuple[int, bytes]]:
        """Yield the code and its address when it runs."""
        for section in self.elf.sections:
            if section.flags & EXECUTE:
                yield section.address, section.data

    def function_at(self, address: int) -> str:
        """Return the name of the function at an address, for people."""
        for symbol in self.elf.symbols:
            if symbol.type == FUNC and symbol.address <= address < symbol.address + max(symbol.size, 2):
                return symbol.name
        return "no known function"


def read_code(image: Image, run_symbol: str) -> Code:
    elf = read_elf(image.elf.read_bytes())
    flash = image.board.chip.memory(image.board.chip.code)
    sections = [s for s in elf.sections if s.flags & EXECUTE and s.size and flash.holds(s.address)]
    return Code(
        elf=elf,
        addresses=range(min(s.address for s in sections), max(s.address + s.size for s in sections)),
        in_ram=_in_ram(elf),
        run=elf.symbol(run_symbol).address,
        home=(*_range(elf, run_symbol), *_range(elf, f"{run_symbol}_in")),
        returned=elf.symbol(LABEL).address & ~1,
        parts=_parts(elf, run_symbol.removesuffix("_run")),
        core1_home=(*_range(elf, f"{run_symbol.removesuffix('_run')}_core1"), 0, 0),
        meets=tuple((s.address, s.address + s.size) for s in elf.symbols if s.name == MEET and s.type == FUNC),
        stacks=_stacks(elf),
    )


def _parts(elf: Elf, prefix: str) -> tuple[tuple[int, int], ...]:
    found = (_range(elf, f"{prefix}_part{core}") for core in range(1, 8))
    return tuple(takewhile(lambda part: part != (0, 0), found))


def _in_ram(elf: Elf) -> range:
    found = next((s for s in elf.sections if s.name == CODE_IN_RAM), None)
    return range(0) if found is None else range(found.address, found.address + found.size)


def _stacks(elf: Elf) -> tuple[int, int]:
    found = next((s for s in elf.sections if s.name == STACK), None)
    return (0, 0) if found is None else (found.address, found.address + found.size)


def _range(elf: Elf, name: str) -> tuple[int, int]:
    """Return the first address and the end of a function; an empty range if there is none of that name."""
    found = next((s for s in elf.symbols if s.name == name and s.defined), None)
    return (0, 0) if found is None else (found.address, found.address + found.size)
