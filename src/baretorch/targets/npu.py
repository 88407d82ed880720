"""[npu] of a chip's TOML: an Arm Ethos-U, and what of the chip's memory it reaches."""

from __future__ import annotations

import re

from baretorch.errors import CompileError
from baretorch.npu.accelerators import ACCELERATORS
from baretorch.targets.toml import Table
from baretorch.targets.types import Chip, Npu


def read_npu(table: Table, irq: int | None) -> Npu:
    npu = Npu(
        driver=table.source("driver", "npu"),
        accelerator=table.word("accelerator", tuple(a.name for a in ACCELERATORS)),
        base=table.number("base"),
        system_config=_vela_word(table, "system_config"),
        memory_mode=_vela_word(table, "memory_mode"),
        ram=table.take("ram", str),
        constants=table.take("constants", str),
        irq=irq,
    )
    table.end()
    return npu


def _vela_word(table: Table, key: str) -> str:
    """The name of a section of Vela's configuration file."""
    word: str = table.take(key, str)
    if not re.fullmatch(r"[A-Za-z]\w{0,99}", word):
        raise CompileError(
            f"{key} = {word!r} is no name that Vela can know",
            at=table.where,
            try_="`vela --list-configs Arm/vela.ini` lists them",
        )
    return word


def check_npu(chip: Chip, where: str) -> None:
    """It reaches banks that there are."""
    npu = chip.npu
    if npu is None:
        return
    rams = [m.name for m in chip.memories if m.kind == "ram"]
    for key, bank, known in (("ram", npu.ram, rams), ("constants", npu.constants, [*rams, chip.code])):
        if bank not in known:
            raise CompileError(
                f"[npu] {key} = {bank!r} names no memory that it can be", at=where, need=f"one of: {', '.join(known)}"
            )
    if npu.irq is not None and (chip.interrupts is None or chip.uart.irq is None or chip.alarm is None):
        raise CompileError(
            "[npu] has an irq, and nothing takes it",
            at=where,
            need="[interrupts], [alarm], and [uart] with an irq of its own; or no irq: the core looks again and again",
        )
