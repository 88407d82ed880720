"""Write the linker script of a board from its memory map, for GNU ld and LLD."""

from __future__ import annotations

from collections.abc import Sequence

from baretorch.errors import InternalError
from baretorch.escape import comment
from baretorch.targets.parts import MemoryBank
from baretorch.targets.types import Board, Chip

# What the boot ROM or the core wants to find at the start of the image, in order.
_HEAD: dict[str, str] = {
    "vectors": """\
    .vectors : { KEEP(*(.vectors)) } > {code}
""",
    "boot2": """\
    .boot2 : { KEEP(*(.boot2)) } > {code}
    ASSERT(SIZEOF(.boot2) == 256, "the RP2040's second stage boot loader must take exactly 256 bytes")
    .vectors : { KEEP(*(.vectors)) } > {code}
""",
    "image_def": """\
    .vectors : { KEEP(*(.vectors)) } > {code}
    .image_def : { KEEP(*(.image_def)) bt_image_def_end = .; } > {code}
    ASSERT(bt_image_def_end - ORIGIN({code}) <= 4096, "IMAGE_DEF must lie in the first 4 KiB of flash")
""",
    "image_def_riscv": """\
    .start : { KEEP(*(.start)) } > {code}
    .image_def : ALIGN(4) { KEEP(*(.image_def)) bt_image_def_end = .; } > {code}
    ASSERT(bt_image_def_end - ORIGIN({code}) <= 4096, "IMAGE_DEF must lie in the first 4 KiB of flash")
""",
    "riscv": """\
    .start : { KEEP(*(.start)) } > {code}
""",
}

_SECTIONS = """\
{ramcode}    .text : { *(.text .text.*) } > {code}
    .weights : ALIGN(16) { *(.rodata.bt_weights* .srodata.bt_weights*) } > {code}
    .rodata : ALIGN(16)
    {
        *(.rodata .rodata.* .srodata .srodata.*)
        . = ALIGN(4);
        bt_copies = .;
{copies}
        bt_weight_copies = .;
{weight_copies}
        bt_copies_end = .;
    } > {code}

{weights}
    .data : ALIGN(16)
    {
        bt_data_start = .;
        *(.data .data.*)
        PROVIDE(__global_pointer$ = . + 0x800);
        *(.sdata .sdata.*)
        . = ALIGN(4);
        bt_data_end = .;
    } > {data} AT > {code}

{arenas}
    .bss (NOLOAD) : ALIGN(16)
    {
        bt_bss_start = .;
        *(.sbss .sbss.* .bss .bss.* COMMON)
        . = ALIGN(4);
        bt_bss_end = .;
        *(.noinit)
        . = ALIGN(4);
    } > {data}
    bt_data_used = .;

    .stack ORIGIN({data}) + LENGTH({data}) - {stacks} (NOLOAD) :
    {
{core1}        bt_stack_limit = .;
        . += {stack};
        bt_stack_top = .;
    } > {data}
    ASSERT(bt_data_used <= ADDR(.stack), "{data} is too small for data, arena and {stacks} bytes of stack")

    /DISCARD/ : { *(.ARM.exidx* .ARM.extab* .eh_frame* .comment .note*) }
"""

# Flash and RAM are two address spaces, of which RAM's begins at 0x800000 in files. All that LPM reads, with pointers of
# 16 bits, comes first.
_AVR = """\
    .vectors : { KEEP(*(.vectors)) } > {code}
    .weights : { *(.progmem.data.bt_weights*) } > {code}
    .progmem : { *(.progmem .progmem.* .trampolines .trampolines.*) } > {code}

    .weights.{data} : { bt_data_start = .; *(.data.bt_weights.{data}.*) } > {data} AT > {code}
    .data : { *(.data .data.* .rodata .rodata.*) bt_data_end = .; } > {data} AT > {code}
    bt_data_load = LOADADDR(.weights.{data});
    ASSERT(LOADADDR(.data) - bt_data_load == ADDR(.data) - ADDR(.weights.{data}), "data are not together in flash")
    ASSERT(LOADADDR(.data) + SIZEOF(.data) <= {reach}, "{code} holds more than {reach} bytes of constants")
    .text : ALIGN(2) { *(.text .text.*) } > {code}

    .arena (NOLOAD) : { *(.bss.bt_arena*) } > {data}
    .bss (NOLOAD) : { bt_bss_start = .; *(.bss .bss.* COMMON) bt_bss_end = .; } > {data}
    bt_data_used = .;

    .stack ORIGIN({data}) + LENGTH({data}) - {stack} (NOLOAD) :
    {
        bt_stack_limit = .;
        . += {stack};
        bt_stack_top = .;
    } > {data}
    ASSERT(bt_data_used <= ADDR(.stack), "{data} is too small for data, arena and {stack} bytes of stack")

    /DISCARD/ : { *(.eh_frame* .comment .note*) }
"""

# Code that start-up code copies to RAM. It comes before other code: the first pattern that fits wins.
_CODE_IN_RAM = """\
    .ramcode : ALIGN(16)
    {
        bt_ramcode = .;
        *(.ramcode .ramcode.*)
{objects}        . = ALIGN(4);
    } > {data} AT > {code}
"""

# Core 1's stack ends where core 0's begins.
_CORE1_STACK = """\
        bt_core1_stack_limit = .;
        . += {stack};
        bt_core1_stack_top = .;
"""

# The stacks of all cores of a cluster but the first, whose stack ends where theirs begin.
_TEAM_STACKS = """\
        bt_team_stacks = .;
        . += {others} * {each};
        bt_team_stack_bytes = ABSOLUTE({each});
"""


def linker_script(board: Board, cores: int = 1, in_ram: Sequence[str] = ()) -> str:
    """Return the linker script for images of this board that use `cores` of its cores, each with a stack. Code of the
    object files `in_ram`, which are patterns, is copied to RAM.

    Weights (.rodata.bt_weights*, or .data.bt_weights.<BANK>* for those that are copied to RAM) and arenas
    (.bss.bt_arena*, or .bss.bt_arena.<BANK>* for another bank) have output sections of their own, so that sizes can be
    read off the ELF. Arenas are neither stored nor zeroed.
    """
    chip = board.chip
    if chip.cpu.flash_apart:
        return _wrap_sections(board, _fill(_AVR, chip))
    if chip.boot not in _HEAD:
        raise InternalError(f"board {board.name} has no linker script")
    ramcode = bool(in_ram) or chip.boot.startswith("image_def")  # which has some: boot/qmi.c
    copied = [*([".ramcode"] if ramcode else []), ".data"]
    weights = [f".weights.{bank}" for bank in _ram(chip)]
    sections = _HEAD[chip.boot] + _SECTIONS.replace("{arenas}", _arenas(chip))
    sections = sections.replace("{weights}", _weights(chip)).replace("{copies}", "\n".join(map(_copy, copied)))
    sections = sections.replace("{weight_copies}", "\n".join(map(_copy, weights)))
    objects = "".join(f"        {name}(.text .text.*)\n" for name in in_ram)
    sections = sections.replace("{ramcode}", _CODE_IN_RAM.replace("{objects}", objects) if ramcode else "")
    sections = sections.replace("{core1}", _other_stacks(chip, cores))
    sections = sections.replace("{stacks}", str(chip.stacks(cores)))
    return _wrap_sections(board, _fill(sections, chip))


def _other_stacks(chip: Chip, cores: int) -> str:
    if cores == 1:
        return ""
    if (cluster := chip.cluster) is None:
        return _CORE1_STACK
    return _TEAM_STACKS.replace("{others}", str(cores - 1)).replace("{each}", str(cluster.stack_bytes))


def _fill(sections: str, chip: Chip) -> str:
    values = {"code": chip.code, "data": chip.data, "stack": chip.stack_bytes, "reach": chip.cpu.flash_reach}
    for name, value in values.items():
        sections = sections.replace(f"{{{name}}}", str(value))
    return sections


def _wrap_sections(board: Board, sections: str) -> str:
    memories = "\n".join(_region(memory) for memory in board.chip.memories)
    return (
        f"{comment(f'{board.title}. Generated by Baretorch.')}\n"
        f"ENTRY(bt_reset)\n\nMEMORY\n{{\n{memories}\n}}\n\nSECTIONS\n{{\n{sections}}}\n"
    )


def _region(memory: MemoryBank) -> str:
    access = "rx" if memory.kind == "flash" else "rw"
    return f"    {memory.name} ({access}) : ORIGIN = 0x{memory.origin:08x}, LENGTH = 0x{memory.size:x}"


def _ram(chip: Chip) -> list[str]:
    return [memory.name for memory in chip.memories if memory.kind == "ram"]


def _copy(section: str) -> str:
    """Return the symbols of a section that start-up code copies: its source, its start and its end."""
    return f"        LONG(LOADADDR({section})) LONG(ADDR({section})) LONG(ADDR({section}) + SIZEOF({section}))"


def _weights(chip: Chip) -> str:
    """Return one section of weights per RAM bank. Their symbols keep empty sections."""
    return "".join(
        f"    .weights.{bank} : ALIGN(16)\n    {{\n        bt_weights_{bank} = .;\n"
        f"        *(.data.bt_weights.{bank}.*)\n        . = ALIGN(4);\n    }} > {bank} AT > {{code}}\n"
        for bank in _ram(chip)
    )


def _arenas(chip: Chip) -> str:
    """Return one arena section per RAM bank. The first matching pattern wins, so named banks come before the
    default."""
    others = [bank for bank in _ram(chip) if bank != chip.data]
    rows = [(f".arena.{bank}", f".bss.bt_arena.{bank}* .sbss.bt_arena.{bank}*", bank) for bank in others]
    rows.append((".arena", ".bss.bt_arena* .sbss.bt_arena*", chip.data))
    return "".join(f"    {name} (NOLOAD) : ALIGN(16) {{ *({pattern}) }} > {bank}\n" for name, pattern, bank in rows)
