"""Programs on the simulator, and on the judge: what both must agree on."""

from __future__ import annotations

import ctypes
import hashlib
import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass

from baretorch.machines.cluster.simulator import CLUSTER_STRUCTS, ClusterStop, FaultReport, Simulator, add_unit
from tests.cluster.judge import judge
from tests.cluster.requests import Event, events, peek, trace
from tests.cluster.sequences import CODE, EVENTS, L1, L2, UART

DMA, GEMM = 0x1A108000, 0x1A10C000
ROOM = 1 << 19


def chip(cores: int = 1, banks: int = 16, wait: int = 10) -> ctypes.Structure:
    """Large memories, so that each core has its own part."""
    config = CLUSTER_STRUCTS["bt_config"](
        cores=cores, memories=2, boot=CODE, registers_wait=1, uart=UART, events=EVENTS
    )
    config.memory[0] = CLUSTER_STRUCTS["bt_memory"](L1, 0x80000, 0, banks)
    config.memory[1] = CLUSTER_STRUCTS["bt_memory"](L2, 0x200000, wait, 0)
    config.dma, config.dma_bytes, config.dma_start, config.dma_channels = DMA, 8, 20, 8
    add_unit(config, "gemm", GEMM, (8, 8, 4, 16))
    return config


@dataclass(frozen=True)
class Ran:
    """The results of a program: its requests until it wrote to the console, when barriers released cores, and
    memory."""

    requests: tuple[Event, ...]
    let_go: tuple[tuple[int, int], ...]
    memory: bytes
    report: FaultReport
    end: int | None  # the cycle of the first byte to the console

    def digest(self) -> str:
        rows = [list(astuple(e)) for e in self.requests] + [list(pair) for pair in self.let_go]
        return hashlib.sha256(json.dumps(rows).encode() + self.memory).hexdigest()[:16]


def run_program(
    code: bytes, config: ctypes.Structure, rtl: bool = False, cycles: int = 1 << 20, traced: bool = True
) -> Ran:
    """On the simulator, or on the RTL."""
    simulator = Simulator(config)
    try:
        assert simulator.load(CODE, code)
        if traced:
            trace(simulator, ROOM)
        if rtl:
            judge(simulator, cycles, 1)
        else:
            assert simulator.run(cycles) in (ClusterStop.HAS_OUTPUT, ClusterStop.TIME, ClusterStop.FAULT)
        return _ran(events(simulator), peek(simulator, L1, 0x80000), simulator.report())
    finally:
        simulator.close()


def _ran(events: Sequence[Event], memory: bytes, report: FaultReport) -> Ran:
    """A core at a barrier may ask once or in every cycle: what counts is when it was let go."""
    last = next((i for i, e in enumerate(events) if e.address == UART and e.write), len(events) - 1)
    until = events[: last + 1]
    let_go = sorted((e.cycle + e.answer, e.core) for e in until if e.address == EVENTS and e.answer >= 0)
    requests = tuple(e for e in until if e.address != EVENTS)
    end = until[-1].cycle if until and until[-1].address == UART else None
    return Ran(requests, tuple(let_go), memory, report, end)
