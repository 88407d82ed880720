"""The configurations of Ethos-U that Vela compiles for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Family(Enum):
    """The product, as the configuration register's product field encodes it."""

    U55 = 0
    U65 = 1
    U85 = 2


@dataclass(frozen=True)
class Accelerator:
    """A configuration of Ethos-U."""

    name: str  # Vela's name
    family: Family
    macs: int  # per cycle, all cores together
    cores: int  # each with a weight decoder of its own
    config: int  # the value of register CONFIG; a payload has the same word
    arch: int  # the highest 16 bits of the payload's id word: the architecture's version
    lut: int  # where lookup tables begin in internal memory, in bytes
    internal: int  # bytes of internal memory that DMA can access


ACCELERATORS: tuple[Accelerator, ...] = (
    Accelerator("ethos-u55-32", Family.U55, 32, 1, 0x1005, 0x1006, 14 << 10, 16 << 10),
    Accelerator("ethos-u55-64", Family.U55, 64, 1, 0x1006, 0x1006, 14 << 10, 16 << 10),
    Accelerator("ethos-u55-128", Family.U55, 128, 1, 0x1807, 0x1006, 22 << 10, 24 << 10),
    Accelerator("ethos-u55-256", Family.U55, 256, 1, 0x3008, 0x1006, 46 << 10, 48 << 10),
    Accelerator("ethos-u65-256", Family.U65, 256, 1, 0x1000_3008, 0x1006, 46 << 10, 48 << 10),
    Accelerator("ethos-u65-512", Family.U65, 512, 2, 0x1000_6009, 0x1006, 46 << 10, 48 << 10),
    Accelerator("ethos-u85-128", Family.U85, 128, 1, 0x2000_0117, 0x2000, 0, 2 << 10),
    Accelerator("ethos-u85-256", Family.U85, 256, 1, 0x2000_0118, 0x2000, 0, 2 << 10),
    Accelerator("ethos-u85-512", Family.U85, 512, 2, 0x2000_1119, 0x2000, 0, 2 << 10),
    Accelerator("ethos-u85-1024", Family.U85, 1024, 4, 0x2000_251A, 0x2000, 0, 2 << 10),
    Accelerator("ethos-u85-2048", Family.U85, 2048, 4, 0x2000_261B, 0x2000, 0, 2 << 10),
)


ACCELERATORS_BY_NAME = {a.name: a for a in ACCELERATORS}


def by_config(word: int) -> Accelerator | None:
    """Return the accelerator whose register CONFIG has this value."""
    return next((a for a in ACCELERATORS if a.config == word), None)
