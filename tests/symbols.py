"""The addresses that the linker gave to the symbols of an image."""

from __future__ import annotations

from pathlib import Path

from baretorch.firmware.elf import LOCAL, UNDEFINED, Elf, read_elf


def symbols_of(elf: Elf | Path) -> dict[str, int]:
    """Return the address of each global symbol, with the Thumb bit cleared."""
    read = elf if isinstance(elf, Elf) else read_elf(elf.read_bytes())
    return {s.name: s.address for s in read.symbols if s.binding != LOCAL and s.section != UNDEFINED and s.name}
