"""Print where each section of an image is: `python examples/teach/sections.py MODEL BOARD [OPTION=VALUE…]`."""

from __future__ import annotations

import sys
from typing import Any

import baretorch
from baretorch.firmware.elf import ALLOC, EXECUTE, WRITE, read_elf
from baretorch.targets.boards import load_board


def main(model: str, board: str, *given: str) -> None:
    options: dict[str, Any] = dict(option.split("=") for option in given)
    compiled = baretorch.compile(model, board=board, **options)
    banks = load_board(board).chip.memories
    elf = read_elf(compiled.build().elf.read_bytes())
    print(f"{'section':<24}{'address':<12}{'bytes':>8}  bank     holds")
    for section in sorted(elf.sections, key=lambda s: s.address):
        if section.flags & ALLOC and section.size:
            bank = next((m.name for m in banks if 0 <= section.address - m.origin < m.size), "–")
            kind = "code" if section.flags & EXECUTE else "variables" if section.flags & WRITE else "constants"
            print(f"{section.name:<24}{section.address:#010x}  {section.size:>8,}  {bank:<8} {kind}")
    compiled.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
