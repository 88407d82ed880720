"""Check whether the parts of a board and its chip fit together, and whether a board has the requested cores.

Checks of single TOML keys are declared with the keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

from baretorch.errors import CompileError
from baretorch.options import Options
from baretorch.targets.flash import CONTROLLERS, FIXED_PRICE, SERVES, FlashCache, FlashPath
from baretorch.targets.parts import Cluster
from baretorch.targets.toml import DeclaredKey, keys_of, raise_unknown
from baretorch.targets.types import EMULATORS, Board, Chip

_LINKER_WORDS = """
    ABSOLUTE ADDR ALIGN ALIGNOF AS_NEEDED ASSERT AT BIND BLOCK BYTE COMMON CONSTANT CONSTRUCTORS DEFINED DISCARD ENTRY
    EXCLUDE_FILE EXTERN FILL FORMAT GROUP HIDDEN INCLUDE INFO INPUT KEEP L LEN LENGTH LOADADDR LOG2CEIL LONG MAX
    MEMORY MIN NEXT NOCROSSREFS NOLOAD O ONLY_IF_RO ONLY_IF_RW ORG ORIGIN OUTPUT OVERLAY PHDRS PROVIDE QUAD READONLY
    REGION_ALIAS SECTIONS SHORT SIZEOF SIZEOF_HEADERS SORT SPECIAL SQUAD STARTUP SUBALIGN TARGET TYPE VERSION
"""
_CLUSTER_MEMORIES = 4  # that the cluster emulator's cluster.h has room for
_UNIT_BYTES = 128  # of a unit's registers, at most


def check_board(board: Board, where: str) -> None:
    """Check that emulators and flash methods have the keys that they need, and can handle the chip."""
    chip = board.chip
    used = {name: f"emulator {name}" for name in board.emulators}
    used |= {name: f"flash method {name}" for name in board.flash_methods}
    for key in keys_of(Board):
        if key.key.goes_with in used and getattr(board, key.field) is None:
            name = key.name if key.section is None else f"[{key.name}]"
            shapes = [key] if key.section is None else [k for k in keys_of(key.section) if not k.optional]
            need = f"such as {', '.join(k.shape for k in shapes)}"
            raise CompileError(f"{used[key.key.goes_with]} needs {name}", at=where, need=need)
    needs = {name: EMULATORS[name].need for name in board.emulators if not EMULATORS[name].fits(chip)}
    if "uf2" in board.flash_methods and chip.uf2_family is None:
        needs["uf2"] = "uf2_family in the chip's TOML"
    for name, need in needs.items():
        raise CompileError(f"{used[name]} does not support the chip {chip.name!r}", at=where, need=need)


def check_chip(chip: Chip, where: str) -> None:
    """Check that the parts of a chip fit together."""
    _check_memories(chip, where)
    _check_banks(chip, where)
    if chip.stack_bytes % 8 or chip.stack_bytes >= chip.memory(chip.data).size:
        raise CompileError(
            f"a stack of {chip.stack_bytes} bytes is not possible",
            at=where,
            need=f"a multiple of 8 below the {chip.memory(chip.data).size} bytes of {chip.data}",
        )
    _check_companions(chip, where)
    _check_registers(chip, where)
    if chip.flash_path is not None:
        _check_flash_path(chip, chip.flash_path, f"{where} [flash_path]")
    if (cluster := chip.cluster) is not None:
        _check_cluster(chip, cluster, where)


def _check_memories(chip: Chip, where: str) -> None:
    for number, memory in enumerate(chip.memories, 1):
        if memory.name in _LINKER_WORDS.split():
            raise CompileError(
                f"invalid name {memory.name!r}",
                at=f"{where} [[memory]] number {number}",
                need="a word that linker scripts do not use",
            )
        if memory.origin + memory.size > 1 << 32:
            raise CompileError(
                f"memory {memory.name} does not fit the 32-bit address space",
                at=f"{where} [[memory]] number {number}",
                have=f"origin 0x{memory.origin:08x}, size 0x{memory.size:x}",
            )
    for a, b in combinations(sorted(chip.memories, key=lambda m: m.origin), 2):
        if a.name == b.name:
            raise CompileError(f"two memories have the name {a.name}", at=where)
        if b.origin < a.origin + a.size:
            raise CompileError(
                f"memories {a.name} and {b.name} overlap",
                at=where,
                have=[f"{m.name} 0x{m.origin:08x} .. 0x{m.origin + m.size - 1:08x}" for m in (a, b)],
            )
    for origin, size in chip.peripherals:
        for memory in chip.memories:
            if origin < memory.origin + memory.size and memory.origin < origin + size:
                raise CompileError(
                    f"peripherals [0x{origin:08x}, 0x{size:x}] overlap memory {memory.name}",
                    at=where,
                    have=f"{memory.name} 0x{memory.origin:08x} .. 0x{memory.origin + memory.size - 1:08x}",
                )


def _check_banks(chip: Chip, where: str) -> None:
    """Check that keys which name a memory bank name one of the right kind."""
    banks = {kind: [memory.name for memory in chip.memories if memory.kind == kind] for kind in ("flash", "ram")}
    banks["ram or code"] = [*banks["ram"], chip.code]
    for path, key, value in _values(chip):
        for bank in value if isinstance(value, tuple) else (value,):
            if key.key.bank and bank not in banks[key.key.bank]:
                raise CompileError(
                    f"{key.name} = {bank!r} does not name a {key.key.bank} memory",
                    at=f"{where} [{path}]" if path else where,
                    need=f"one of: {', '.join(banks[key.key.bank]) or 'none'}",
                )


def _values(record: Any, path: str = "") -> Iterator[tuple[str, DeclaredKey, Any]]:
    """Return all values of a record and its parts, with the path of their table."""
    for key in keys_of(type(record)):
        value = getattr(record, key.field)
        if key.section is not None and value is not None:
            for part in value if isinstance(value, tuple) else (value,):
                yield from _values(part, f"{path}.{key.name}" if path else key.name)
        elif value is not None:
            yield path, key, value


def _check_companions(chip: Chip, where: str) -> None:
    """Check that what one part needs of the others is there."""
    uart = chip.uart
    for key, rate in (("clock_hz", uart.clock_hz), ("baud", uart.baud)):
        if rate == 0 and uart.driver != "host":
            raise CompileError(f"{key} must not be 0", at=f"{where} [uart]")
    sleeps = uart.irq is not None or chip.usb is not None
    if chip.alarm is not None and not sleeps:
        raise CompileError("[alarm] has no effect: nothing sleeps", at=where, need="[uart] with an irq, or no [alarm]")
    if sleeps and chip.interrupts is None:
        raise CompileError(
            f"[{'uart' if chip.usb is None else 'usb'}] has an irq, and there is no interrupt controller",
            at=where,
            need="[interrupts] with driver and base, or no irq",
        )
    if chip.npu is not None and chip.npu.irq is not None and (uart.irq is None or chip.alarm is None):
        raise CompileError(
            "[npu] has an irq, and the core does not sleep",
            at=where,
            need="[interrupts], [alarm], and [uart] with an irq of its own; or no irq: the core polls",
        )
    if chip.dma is not None and chip.flash_path is None:
        raise CompileError("[dma] copies from slow flash", at=where, need="a [flash_path]", try_="remove [dma]")
    if chip.cores is not None and chip.boot in ("image_def_riscv", "riscv", "avr", "host"):
        raise CompileError("[cores] is for Arm only", at=where, have=f'boot = "{chip.boot}"', try_="remove [cores]")
    if chip.watchdog is not None and chip.alarm is None:
        raise CompileError(
            "[watchdog] needs an [alarm], which wakes the core to feed it",
            at=where,
            try_="add one, or remove [watchdog]",
        )


def _check_registers(chip: Chip, where: str) -> None:
    """Check that peripherals cover the registers that start-up code touches; the address 0 means no registers."""
    for path, key, address in _values(chip):
        name = path if key.name == "base" else f"{path} {key.name}"
        if key.key.register and address % 4:
            raise CompileError(
                f"{name} register 0x{address:08x} is not the address of a word", at=where, need="a multiple of 4"
            )
        covered = not key.key.register or any(start <= address < start + size for start, size in chip.peripherals)
        if address and not covered:
            raise CompileError(
                f"{name} register 0x{address:08x} is outside peripherals",
                at=where,
                need=f"a range such as [0x{address & ~0xFFF:08x}, 0x1000]",
            )


def _check_flash_path(chip: Chip, path: FlashPath, where: str) -> None:
    blocks = chip.silicon.blocks if chip.silicon else ()
    known = {f"{r.name}.{field}" for block in blocks for r in block.registers for field in r.fields}
    if len(path.fills) not in (1, 2):
        raise CompileError(f"{len(path.fills)} numbers in fills", at=where, need="one or two")
    for field in CONTROLLERS[path.controller].fields if path.controller != FIXED_PRICE else ():
        if field not in known:
            raise CompileError(
                f"controller {path.controller!r} is set up by {field}, and the chip has no such register",
                at=where,
                have=f"silicon = {chip.silicon.name!r}" if chip.silicon else "no silicon in the chip's TOML",
                try_=f'the silicon file that has it, or controller = "{FIXED_PRICE}"',
            )
    for what in SERVES:
        if sum(what in cache.serves for cache in path.caches) > 1:
            raise CompileError(f"two caches serve {what}", at=where, need="one at most")
    for number, cache in enumerate(path.caches, 1):
        _check_cache(cache, path.fills, known, f"{where} [[cache]] number {number}")


def _check_cache(cache: FlashCache, fills: tuple[int, ...], known: set[str], where: str) -> None:
    whole = cache.sets * cache.ways * cache.line == cache.size
    if not whole or any(n & (n - 1) for n in (cache.line, cache.sets)):
        raise CompileError(
            f"a cache of {cache.size} bytes cannot have {cache.ways} ways and lines of {cache.line} bytes",
            at=where,
            need="line and size / (ways * line) are powers of two",
        )
    for condition in cache.when:
        if condition.name not in known:
            raise_unknown("register field", condition.name, sorted(known), at=where)
    for fill in fills:
        if cache.line % fill:
            raise CompileError(f"lines of {cache.line} bytes are not whole fills of {fill}", at=where)


def _check_cluster(chip: Chip, cluster: Cluster, where: str) -> None:
    size = chip.memory(cluster.scratchpad).size
    if size % (4 * cluster.banks):
        raise CompileError(
            f"{cluster.scratchpad} cannot be cut into {cluster.banks} banks",
            at=where,
            have=f"{size} bytes",
            need="a whole number of words in each bank",
        )
    if cluster.stack_bytes % 16:
        raise CompileError(
            f"a stack of {cluster.stack_bytes} bytes is not possible", at=where, need="a multiple of 16 bytes"
        )
    if len(chip.memories) > _CLUSTER_MEMORIES:
        raise CompileError(
            f"{len(chip.memories)} memories are more than the emulator cluster has",
            at=where,
            need=f"at most {_CLUSTER_MEMORIES}",
        )
    bases = [("uart", chip.uart.base), *((f"cluster.{name}", unit.base) for name, unit in cluster.units.items())]
    for (one, low), (other, high) in pairwise(sorted(bases, key=lambda row: row[1])):
        if high - low < _UNIT_BYTES:
            raise CompileError(
                f"the registers of {one} and {other} overlap",
                at=where,
                have=f"0x{low:08x} and 0x{high:08x}",
                need=f"{_UNIT_BYTES} bytes for each",
            )
    if chip.boot != "riscv" or chip.cores is not None:
        have = "[cores]" if chip.cores is not None else f'boot = "{chip.boot}"'
        raise CompileError("[cluster] is for RISC-V, and includes the number of cores", at=where, have=have)
    if chip.uart.driver != "ns16550" or chip.uart.irq is not None:
        irq = f", irq = {chip.uart.irq}" if chip.uart.irq is not None else ""
        raise CompileError(
            "the emulator cluster has another console",
            at=where,
            have=f'[uart] driver = "{chip.uart.driver}"{irq}',
            need='driver = "ns16550", and no irq',
        )


def need_cores(board: Board, options: Options) -> None:
    """Raise CompileError if the board does not have the requested cores."""
    there, asked = board.chip.core_count, options.used_cores
    if board.chip.is_team and options.core:
        raise CompileError(
            f"--core {options.core}: a model runs on core 0 of {board.name}, and others help",
            try_="--cores 1 leaves the others alone",
        )
    if asked > there:
        fewer = "leave it out" if there == 1 else f"--cores {there}"
        if there > 1 and not board.chip.is_team:
            fewer += f", or --core {there - 1}"
        flag = f"--cores {options.cores}" if options.shared_cores > 1 else f"--core {options.core}"
        raise CompileError(
            f"{flag}: {board.name} has {there} {'core' if there == 1 else 'cores'}",
            need=f"a chip whose TOML describes {asked} cores, as those of pico and pico2w do" if there == 1 else None,
            try_=fewer,
        )
    if options.shared_cores > 1 and options.core:
        raise CompileError(
            "--cores and --core do not go together",
            need="--cores 2 to share the work, or --core 1 to leave core 0 to the application",
        )


def choose_cores(options: Options, board: Board) -> Options:
    """Return the options with all cores of a cluster, unless the user chose a number."""
    if options.cores is not None or not board.chip.is_team:
        return options
    return replace(options, cores=board.chip.core_count)
