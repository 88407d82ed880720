"""The results of a build: an Image with its files and its sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from baretorch.targets.types import Board


@dataclass(frozen=True)
class FlashUse:
    """Bytes of flash. model_code: functions and constants reachable from the run function, without weights."""

    model_code: int
    code: int  # the whole image without weights
    weights: int
    total: int


@dataclass(frozen=True)
class RamUse:
    """Bytes of RAM. stack: bound from the compiler's stack usage data, of all cores together."""

    arena: int
    weights: int  # those that are copied from flash at start-up
    code: int  # the model's, if it is in RAM
    model_static: int  # the model's own static data without the arena
    static: int  # all .data and .bss without the arena, and start-up code in RAM
    stack: int
    total: int


@dataclass(frozen=True)
class Image:
    """A linked firmware image. The same ELF (and UF2) is flashed and emulated."""

    name: str
    board: Board
    toolchain: str  # "gcc" or "zig"
    elf: Path
    bin: Path | None
    hex: Path | None
    uf2: Path | None
    map: Path
    flash: FlashUse
    ram: RamUse
    cores: int = 1  # the number of cores that it uses
    run_stack: int | None = None  # a bound on what a call of the run function needs

    def move_to(self, folder: Path) -> Image:
        """Return the image after all of its files were moved to another folder."""

        def there(path: Path | None) -> Path | None:
            return folder / path.name if path else None

        elf, map_ = folder / self.elf.name, folder / self.map.name
        return replace(self, elf=elf, map=map_, bin=there(self.bin), hex=there(self.hex), uf2=there(self.uf2))
