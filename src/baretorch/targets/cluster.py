"""A chip's [cluster] from its TOML: cores around a scratchpad, and the units beside them."""

from __future__ import annotations

from itertools import pairwise

from baretorch.errors import CompileError
from baretorch.targets.toml import Table
from baretorch.targets.types import Chip, Cluster, Dma, Gemm

# What cluster.h of the emulator has room for.
CORES, BANKS, CHANNELS, MEMORIES = 8, 64, 16, 4
REGISTERS = 128  # bytes of a unit's, at most


def read_cluster(table: Table) -> Cluster:
    events = table.table("events")
    cluster = Cluster(
        cores=_count(table, "cores", CORES),
        scratchpad=table.take("scratchpad", str),
        banks=_count(table, "banks", BANKS),
        slow_cycles=_cycles(table, "slow_cycles"),
        register_cycles=_cycles(table, "register_cycles"),
        barrier=events.rate("base"),
        barrier_cycles=_cycles(events, "barrier_cycles"),
        stack_bytes=_count(table, "stack_bytes", 1 << 20),
        dma=_dma(table.table("dma")) if "dma" in table.rows else None,
        gemm=_gemm(table.table("gemm")) if "gemm" in table.rows else None,
    )
    events.end()
    table.end()
    return cluster


def _dma(table: Table) -> Dma:
    dma = Dma(
        table.rate("base"),
        _count(table, "bytes_per_cycle", 1 << 10),
        _cycles(table, "start_cycles"),
        _count(table, "channels", CHANNELS),
    )
    table.end()
    return dma


def _gemm(table: Table) -> Gemm:
    rows, columns, depth = (_count(table, key, 1 << 10) for key in ("rows", "columns", "depth"))
    shapes = (_count(table, key, 1 << 10) for key in ("kernel", "stride", "pool", "channels"))
    gemm = Gemm(table.rate("base"), rows, columns, depth, _cycles(table, "start_cycles"), *shapes)
    table.end()
    return gemm


def _count(table: Table, key: str, most: int) -> int:
    value = table.number(key)
    if not 1 <= value <= most:
        raise CompileError(f"{key} = {value} is not possible", at=table.where, need=f"1 to {most}")
    return value


def _cycles(table: Table, key: str) -> int:
    value = table.number(key)
    if value > 1 << 20:
        raise CompileError(f"{key} = {value} is not possible", at=table.where, need=f"at most {1 << 20} cycles")
    return value


def check_cluster(chip: Chip, where: str) -> None:
    """That the rest of the chip goes with it."""
    cluster = chip.cluster
    if cluster is None:
        return
    fitting = [memory.name for memory in chip.memories if memory.kind == "ram"]
    if cluster.scratchpad not in fitting:
        raise CompileError(
            f"scratchpad = {cluster.scratchpad!r} names no ram memory",
            at=where,
            need=f"one of: {', '.join(fitting) or 'none'}",
        )
    if chip.memory(cluster.scratchpad).size % (4 * cluster.banks):
        raise CompileError(
            f"{cluster.scratchpad} cannot be cut into {cluster.banks} banks",
            at=where,
            have=f"{chip.memory(cluster.scratchpad).size} bytes",
            need="a whole number of words in each bank",
        )
    if cluster.stack_bytes % 16:
        raise CompileError(
            f"a stack of {cluster.stack_bytes} bytes is not possible", at=where, need="a multiple of 16 bytes"
        )
    if len(chip.memories) > MEMORIES:
        raise CompileError(
            f"{len(chip.memories)} memories are more than the emulator cluster has",
            at=where,
            need=f"at most {MEMORIES}",
        )
    _check_registers(chip, cluster, where)
    if chip.boot != "riscv" or chip.cores is not None:
        have = "[cores]" if chip.cores is not None else f'boot = "{chip.boot}"'
        raise CompileError("[cluster] is for RISC-V, and says itself how many cores there are", at=where, have=have)
    if chip.uart.driver != "ns16550" or chip.uart.irq is not None:
        raise CompileError(
            "the emulator cluster has another console",
            at=where,
            have=f'[uart] driver = "{chip.uart.driver}"'
            + (f", irq = {chip.uart.irq}" if chip.uart.irq is not None else ""),
            need='driver = "ns16550", and no irq',
        )


def _check_registers(chip: Chip, cluster: Cluster, where: str) -> None:
    """That no two units have the same, since the emulator would ask the first."""
    bases = [("uart", chip.uart.base), ("cluster.events", cluster.barrier)]
    units = (("cluster.dma", cluster.dma), ("cluster.gemm", cluster.gemm))
    bases += [(name, unit.base) for name, unit in units if unit is not None]
    bases.sort(key=lambda row: row[1])
    for (one, low), (other, high) in pairwise(bases):
        if high - low < REGISTERS:
            raise CompileError(
                f"the registers of {one} and {other} overlap",
                at=where,
                have=f"0x{low:08x} and 0x{high:08x}",
                need=f"{REGISTERS} bytes for each",
            )
