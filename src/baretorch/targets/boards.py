"""Boards and chips from TOML: read, checked key by key, and refused with the place and the remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from baretorch.errors import CompileError
from baretorch.options import Console, Emulator
from baretorch.targets.cluster import check_cluster, read_cluster
from baretorch.targets.cpus import CPUS
from baretorch.targets.flash import read_flash_path
from baretorch.targets.fvp import read_fvp
from baretorch.targets.npu import check_npu, read_npu
from baretorch.targets.silicon import load_silicon, silicon_names
from baretorch.targets.toml import ADDRESSES, BOARDS, Table, place, read, short, unknown
from baretorch.targets.types import (
    Alarm,
    Avrdude,
    Board,
    Chip,
    Cores,
    Counter,
    Cpu,
    FlashDma,
    Interrupts,
    MemoryBank,
    Npu,
    Uart,
    Usb,
    Watchdog,
)

_CHIPS = BOARDS / "chips"

_BOOTS = ("vectors", "boot2", "image_def", "image_def_riscv", "riscv", "avr", "host")
_EMULATORS = tuple(map(str, Emulator))
_FLASH_METHODS = ("uf2", "pyocd", "avrdude")
IRQS = 256
DREQS = 64
TICKS = 1000  # per second, of an alarm: it is set in milliseconds
MOST_PINS = 256
_LINKER_WORDS = """
    ABSOLUTE ADDR ALIGN ALIGNOF AS_NEEDED ASSERT AT BIND BLOCK BYTE COMMON CONSTANT CONSTRUCTORS DEFINED DISCARD ENTRY
    EXCLUDE_FILE EXTERN FILL FORMAT GROUP HIDDEN INCLUDE INFO INPUT KEEP L LEN LENGTH LOADADDR LOG2CEIL LONG MAX
    MEMORY MIN NEXT NOCROSSREFS NOLOAD O ONLY_IF_RO ONLY_IF_RW ORG ORIGIN OUTPUT OVERLAY PHDRS PROVIDE QUAD READONLY
    REGION_ALIAS SECTIONS SHORT SIZEOF SIZEOF_HEADERS SORT SPECIAL SQUAD STARTUP SUBALIGN TARGET TYPE VERSION
"""


# What to do for boards that have no TOML here: by the beginning of their names.
IN_SDKS = {
    "esp32c": "`baretorch project MODEL --sdk esp-idf --board virt-rv32 --out DIR` writes a project for ESP-IDF",
    "esp": "`baretorch project MODEL --sdk esp-idf --board host --out DIR` writes a project for ESP-IDF",
}


def board_names() -> tuple[str, ...]:
    """The boards that come with Baretorch, sorted."""
    return tuple(sorted(path.stem for path in BOARDS.glob("*.toml")))


def load_board(name_or_path: str) -> Board:
    """The board of that name, or the one described by the user's own TOML file."""
    path = Path(name_or_path)
    if path.suffix != ".toml":
        if name_or_path not in board_names():
            near = next((text for prefix, text in IN_SDKS.items() if name_or_path.lower().startswith(prefix)), None)
            unknown("board", name_or_path, board_names(), at=None, try_=near)
        path = BOARDS / f"{name_or_path}.toml"
    return _board(path)


def _board(path: Path) -> Board:
    table = read(path)
    _check_name("board", path.stem, table.where)
    chip = _chip(table.take("chip", str), beside=path)
    board = Board(
        name=path.stem,
        title=table.take("title", str),
        chip=chip,
        emulators=table.words("emulators", _EMULATORS),
        qemu_machine=table.argument("qemu_machine"),
        flash_methods=table.words("flash_methods", _FLASH_METHODS),
        pyocd_target=table.argument("pyocd_target"),
        notes=table.take("notes", str),
        simavr_mcu=table.argument("simavr_mcu"),
        fvp=read_fvp(table.table("fvp")) if "fvp" in table.rows else None,
        avrdude=_avrdude(table.table("avrdude")) if "avrdude" in table.rows else None,
        console=Console.UART if chip.usb is None else Console.USB,
        pins=tuple(_pins(table.table("pins"))) if "pins" in table.rows else (),
    )
    table.end()
    if "qemu" in board.emulators and board.qemu_machine is None:
        raise CompileError(
            "emulator qemu needs qemu_machine", at=table.where, need='such as qemu_machine = "mps2-an385"'
        )
    if "fvp" in board.emulators and board.fvp is None:
        raise CompileError(
            "emulator fvp needs [fvp]", at=table.where, need="program and terminal, as Arm's FVP has them"
        )
    if "unicorn" in board.emulators and chip.cpu.unicorn is None:
        raise CompileError(f"Unicorn has no {chip.cpu.name}", at=table.where, try_='remove "unicorn" from emulators')
    if "rp2040js" in board.emulators and chip.boot != "boot2":
        raise CompileError(
            f"rp2040js does not have the chip {chip.name!r}",
            at=table.where,
            need='an RP2040: boot = "boot2" in its TOML',
        )
    if "native" in board.emulators and chip.boot != "host":
        raise CompileError(
            f"chip {chip.name!r} does not run natively", at=table.where, need='boot = "host" in its TOML'
        )
    if "cluster" in board.emulators and chip.cluster is None:
        raise CompileError(
            f"the emulator cluster does not have the chip {chip.name!r}",
            at=table.where,
            need="[cluster] in its TOML: cores, scratchpad, what the units can do",
        )
    if "pyocd" in board.flash_methods and board.pyocd_target is None:
        raise CompileError("flash method pyocd needs pyocd_target", at=table.where, try_="`pyocd list --targets`")
    if "simavr" in board.emulators and (board.simavr_mcu is None or not chip.cpu.flash_apart):
        raise CompileError(
            "emulator simavr needs an AVR and simavr_mcu", at=table.where, need='such as simavr_mcu = "atmega328p"'
        )
    if "avrdude" in board.flash_methods and board.avrdude is None:
        raise CompileError(
            "flash method avrdude needs [avrdude]",
            at=table.where,
            need="part, programmer and baud, as avrdude has them",
        )
    if "uf2" in board.flash_methods and chip.uf2_family is None:
        raise CompileError(
            f"chip {chip.name!r} does not take UF2", at=table.where, need="uf2_family in the chip's TOML"
        )
    return board


def _pins(parts: Table) -> Iterator[tuple[str, str, int]]:
    """What is wired to which pin: a table per part of the board."""
    for part in parts.rows:
        table = parts.table(part)
        for name in table.rows:
            for word in (part, name):
                if not re.fullmatch("[a-z][a-z0-9_]{0,31}", word):
                    raise CompileError(
                        f"{short(repr(word))} is no name for a pin or what has pins",
                        at=table.where,
                        need="small letters, digits and _, as sda; at most 32",
                    )
            pin = table.number(name)
            if pin >= MOST_PINS:
                raise CompileError(f"there is no pin {pin}", at=table.where, need=f"a number below {MOST_PINS}")
            yield part, name, pin


def _avrdude(table: Table) -> Avrdude:
    part, programmer = table.argument("part"), table.argument("programmer")
    if part is None or programmer is None:
        raise CompileError("[avrdude] needs part and programmer", at=table.where, need='such as part = "m328p"')
    found = Avrdude(part, programmer, table.rate("baud"))
    table.end()
    return found


def _chip(name: str, beside: Path) -> Chip:
    """The chip a board names: a TOML next to the user's board, or one of ours."""
    shipped = tuple(sorted(path.stem for path in _CHIPS.glob("*.toml")))
    _check_name("chip", name, place(beside))
    own = beside.with_name(f"{name}.toml")
    if beside.parent != BOARDS and own != beside and own.is_file():
        table = read(own)
    elif name in shipped:
        table = read(_CHIPS / f"{name}.toml")
    else:
        unknown("chip", name, shipped, at=place(beside))
    chip = Chip(
        name=name,
        cpu=_cpu(table),
        memories=tuple(_memory(row) for row in table.tables("memory")),
        code=table.take("code", str),
        data=table.take("data", str),
        uart=_uart(table.table("uart")),
        counter=_counter(table.table("counter")),
        clock_hz=table.rate("clock_hz"),
        init=table.source("init", "chip"),
        boot=table.word("boot", _BOOTS),
        stack_bytes=table.number("stack_bytes"),
        uf2_family=table.number("uf2_family") if "uf2_family" in table.rows else None,
        peripherals=tuple(_range(table.where, entry) for entry in table.take("peripherals", list)),
        silicon=load_silicon(table.word("silicon", silicon_names())) if "silicon" in table.rows else None,
        cores=_cores(table.table("cores")) if "cores" in table.rows else None,
        interrupts=_interrupts(table.table("interrupts")) if "interrupts" in table.rows else None,
        watchdog=_watchdog(table.table("watchdog")) if "watchdog" in table.rows else None,
        alarm=_alarm(table.table("alarm")) if "alarm" in table.rows else None,
        usb=_usb(table.table("usb")) if "usb" in table.rows else None,
        npu=_npu(table.table("npu")) if "npu" in table.rows else None,
        cluster=read_cluster(table.table("cluster")) if "cluster" in table.rows else None,
        dma=_dma(table.table("dma")) if "dma" in table.rows else None,
    )
    if "flash_path" in table.rows:
        chip = replace(chip, flash_path=read_flash_path(table.table("flash_path"), chip))
    table.end()
    _check_memories(chip, table.where)
    _check_registers(chip, table.where)
    check_npu(chip, table.where)
    check_cluster(chip, table.where)
    return chip


def _cpu(table: Table) -> Cpu:
    name = table.word("cpu", tuple(cpu.name for cpu in CPUS))
    return next(cpu for cpu in CPUS if cpu.name == name)


def _memory(table: Table) -> MemoryBank:
    memory = MemoryBank(
        name=table.take("name", str),
        kind=table.word("kind", ("flash", "ram")),
        origin=table.number("origin"),
        size=table.number("size"),
        slow=table.maybe("slow", str) or "",
    )
    table.end()
    if (
        not re.fullmatch("[A-Z][A-Z0-9_]*", memory.name)
        or memory.name in _LINKER_WORDS.split()
        or len(memory.name) > 32
    ):
        raise CompileError(
            f"{memory.name!r} is no name for a memory",
            at=table.where,
            need="capital letters, digits and _, as SRAM2; no word that linker scripts use",
        )
    if memory.size == 0 or memory.origin + memory.size > ADDRESSES:
        raise CompileError(
            f"memory {memory.name} does not fit the 32-bit address space",
            at=table.where,
            have=f"origin 0x{memory.origin:08x}, size 0x{memory.size:x}",
        )
    return memory


def _uart(table: Table) -> Uart:
    driver = table.source("driver", "uart")
    rate = table.number if driver == "host" else table.rate
    uart = Uart(driver, table.number("base"), rate("clock_hz"), rate("baud"), _fallback(table), _irq(table))
    table.end()
    return uart


def _usb(table: Table) -> Usb:
    usb = Usb(table.source("driver", "usb"), table.number("base"), _irq_number(table))
    table.end()
    return usb


def _npu(table: Table) -> Npu:
    return read_npu(table, _irq(table))


def _dma(table: Table) -> FlashDma:
    driver, base = table.source("driver", "dma"), table.number("base")
    dma = FlashDma(driver, base, table.number("stream"), table.number("fifo"), table.number("dreq"))
    table.end()
    if dma.dreq >= DREQS:
        raise CompileError(f"there is no request {dma.dreq}", at=table.where, need=f"a number below {DREQS}")
    return dma


def _irq(table: Table) -> int | None:
    """The number of an interrupt."""
    return _irq_number(table) if "irq" in table.rows else None


def _irq_number(table: Table) -> int:
    irq = table.number("irq")
    if irq >= IRQS:
        raise CompileError(f"there is no interrupt {irq}", at=table.where, need=f"a number below {IRQS}")
    return irq


def _fallback(table: Table) -> int | None:
    return table.rate("fallback_hz") if "fallback_hz" in table.rows else None


def _counter(table: Table) -> Counter:
    driver = table.source("driver", "counter")
    counter = Counter(driver, table.number("base"), table.rate("hz"), _fallback(table), _irq(table))
    table.end()
    return counter


def _interrupts(table: Table) -> Interrupts:
    interrupts = Interrupts(table.source("driver", "interrupts"), table.number("base"))
    table.end()
    return interrupts


def _alarm(table: Table) -> Alarm:
    driver = table.source("driver", "alarm")
    alarm = Alarm(driver, table.number("base"), table.rate("hz"), _irq(table), _fallback(table))
    table.end()
    for key, hz in (("hz", alarm.hz), ("fallback_hz", alarm.fallback_hz)):
        if hz is not None and hz < TICKS:
            raise CompileError(
                f"{key} is too slow for an alarm", at=table.where, have=f"{key} = {hz}", need=f"at least {TICKS}"
            )
    return alarm


def _watchdog(table: Table) -> Watchdog:
    watchdog = Watchdog(table.source("driver", "watchdog"), table.rate("hz"), table.rate("most"))
    table.end()
    return watchdog


def _cores(table: Table) -> Cores:
    cores = Cores(table.number("count"), table.source("driver", "cores"), table.number("base"))
    table.end()
    if cores.count != 2:
        raise CompileError(
            f"{cores.count} cores are not supported",
            at=table.where,
            need="count = 2, or no [cores] at all for a chip of which one core is used",
        )
    return cores


def _range(where: str, entry: object) -> tuple[int, int]:
    match entry:
        case [int(origin), int(size)] if origin >= 0 and size > 0 and origin + size <= ADDRESSES:
            return origin, size
    raise CompileError(f"peripherals: {entry!r} is no address range", at=where, need="[origin, size]")


def _check_memories(chip: Chip, where: str) -> None:
    names = [memory.name for memory in chip.memories]
    for name in names:
        if names.count(name) > 1:
            raise CompileError(f"two memories are called {name}", at=where)
    for a, b in combinations(sorted(chip.memories, key=lambda m: m.origin), 2):
        if b.origin < a.origin + a.size:
            raise CompileError(
                f"memories {a.name} and {b.name} overlap",
                at=where,
                have=[f"{m.name} 0x{m.origin:08x} .. 0x{m.origin + m.size - 1:08x}" for m in (a, b)],
            )
    for role, bank, kind in (("code", chip.code, "flash"), ("data", chip.data, "ram")):
        fitting = [memory.name for memory in chip.memories if memory.kind == kind]
        if bank not in fitting:
            raise CompileError(
                f"{role} = {bank!r} names no {kind} memory", at=where, need=f"one of: {', '.join(fitting) or 'none'}"
            )
    if chip.stack_bytes % 8 or not 0 <= chip.stack_bytes < chip.memory(chip.data).size:
        raise CompileError(
            f"a stack of {chip.stack_bytes} bytes is not possible",
            at=where,
            need=f"a multiple of 8 below the {chip.memory(chip.data).size} bytes of {chip.data}",
        )


def _check_registers(chip: Chip, where: str) -> None:
    """Register space lies beside the memories, and covers what start-up code touches; base 0 means no registers."""
    for origin, size in chip.peripherals:
        for memory in chip.memories:
            if origin < memory.origin + memory.size and memory.origin < origin + size:
                raise CompileError(
                    f"peripherals [0x{origin:08x}, 0x{size:x}] overlap memory {memory.name}",
                    at=where,
                    have=f"{memory.name} 0x{memory.origin:08x} .. 0x{memory.origin + memory.size - 1:08x}",
                )
    registers = [("uart", chip.uart.base)]
    if chip.interrupts is not None:
        registers.append(("interrupts", chip.interrupts.base))
    if chip.alarm is not None:
        registers.append(("alarm", chip.alarm.base))
    if chip.uart.irq is None and chip.usb is None:
        if chip.alarm is not None:
            raise CompileError(
                "[alarm] is of no use: nothing sleeps", at=where, need="[uart] with an irq, or no [alarm]"
            )
    elif chip.interrupts is None:
        raise CompileError(
            f"[{'uart' if chip.usb is None else 'usb'}] has an irq, and nothing takes it",
            at=where,
            need="[interrupts] with driver and base, or no irq",
        )
    if chip.usb is not None:
        registers += [("usb", chip.usb.base)]
    if chip.npu is not None:
        registers.append(("npu", chip.npu.base))
    if chip.cluster is not None:
        units = (("cluster.dma", chip.cluster.dma), ("cluster.gemm", chip.cluster.gemm))
        registers += [("cluster.events", chip.cluster.barrier)]
        registers += [(name, unit.base) for name, unit in units if unit is not None]
    if chip.dma is not None:
        registers += [("dma", chip.dma.base), ("dma stream", chip.dma.stream)]
        if chip.flash_path is None:
            raise CompileError("[dma] copies from slow flash", at=where, need="a [flash_path]", try_="remove [dma]")
    if chip.cores is not None:
        registers.append(("cores", chip.cores.base))
        if chip.boot in ("image_def_riscv", "riscv", "avr", "host"):
            raise CompileError("[cores] is for Arm only", at=where, have=f'boot = "{chip.boot}"', try_="remove [cores]")
    if chip.watchdog is not None and chip.alarm is None:
        raise CompileError(
            "[watchdog] needs an [alarm], which wakes the core to feed it",
            at=where,
            try_="add one, or remove [watchdog]",
        )
    for name, address in registers:
        if address % 4:
            raise CompileError(
                f"{name} register 0x{address:08x} is no address of a word", at=where, need="a multiple of 4"
            )
        if address and not any(origin <= address < origin + size for origin, size in chip.peripherals):
            raise CompileError(
                f"{name} register 0x{address:08x} is outside peripherals",
                at=where,
                need=f"a range such as [0x{address & ~0xFFF:08x}, 0x1000]",
            )


def _check_name(what: str, name: str, where: str) -> None:
    """Boards and chips are called by their files; what they are called becomes part of other files' names."""
    if not re.fullmatch(r"\w[\w .+-]*", name) or len(name) > 100:
        raise CompileError(
            f"{short(repr(name))} is no name for a {what}",
            at=where,
            need="at most 100 letters, digits, spaces and _ . + -, the first a letter or digit",
        )
