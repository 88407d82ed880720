"""An image on a simulated cluster. Memories, units and times are those of the chip's TOML."""

from __future__ import annotations

import ctypes
import time

from baretorch.errors import InternalError
from baretorch.firmware.chunks import load_chunks
from baretorch.firmware.types import Image
from baretorch.machines.blame import calls_of
from baretorch.machines.cluster.simulator import (
    CLUSTER_STRUCTS,
    ClusterFault,
    ClusterStop,
    FaultReport,
    Simulator,
    add_unit,
)
from baretorch.machines.code import Code, read_code
from baretorch.machines.types import ClusterTrace, Cores, DeviceFault, DeviceHang, FlashReads, UncountedMachine
from baretorch.targets.flash import Waits
from baretorch.targets.parts import Cluster
from baretorch.targets.types import Chip
from baretorch.units import units_of

SLICE = 20_000_000  # cycles between two checks of the time limit

_TEXTS = {
    ClusterFault.ILLEGAL: "an instruction that the core does not have",
    ClusterFault.NO_CODE: "a jump to where no code is",
    ClusterFault.NO_MEMORY: "an access to where nothing is",
    ClusterFault.STOPPED: "the image stopped itself: ebreak or ecall",
    ClusterFault.LOOP_RULE: "a hardware loop that the core's manual forbids",
    ClusterFault.RACE: "two cores touch the same byte between two barriers, and one of them writes",
    ClusterFault.IN_TRANSFER: "an access to a byte that is being copied or computed, without waiting for it",
    ClusterFault.UNIT_RULE: "an invalid request to the DMA engine or an accelerator unit",
    ClusterFault.DEADLOCK: "the cores wait for ever",
}


class ClusterMachine(UncountedMachine):
    """A cluster that runs only while `read` waits for it. Cores that the image does not use sleep from the start."""

    name = "cluster"

    def __init__(self, image: Image, run_symbol: str) -> None:
        chip = image.board.chip
        cluster = chip.cluster
        assert cluster is not None
        self._code = read_code(image, run_symbol)
        config = config_of(chip, cluster, self._code, image.cores)
        self._simulator = Simulator(config, [unit.name for unit in units_of(chip)])
        for chunk in load_chunks(self._code.elf):
            if not self._simulator.load(chunk.address, chunk.data):
                raise InternalError(f"no memory of {chip.name} holds {chunk.address:#x}")
        self._cores = image.cores
        self._slow_cycles = cluster.slow_cycles
        self._fault: DeviceFault | None = None

    def write(self, data: bytes) -> None:
        self._simulator.write(data)

    def read(self, timeout: float) -> bytes:
        deadline = time.monotonic() + timeout
        while self._fault is None:
            why = self._simulator.run(SLICE)
            if sent := self._simulator.output():
                return sent
            if why is ClusterStop.FAULT:
                self._fault = self._explain(self._simulator.report())
            elif why is ClusterStop.WANTS_INPUT:
                raise DeviceHang("the image waits for input", have="awake")
            elif time.monotonic() > deadline:
                raise DeviceHang(f"the image sent nothing in {timeout:g} s")
        raise self._fault

    def instructions(self) -> tuple[int, ...]:
        return self._simulator.calls(cycles=False)

    def cycles(self) -> tuple[int, ...]:
        return self._simulator.calls(cycles=True)

    def trace(self) -> ClusterTrace | None:
        spans = self._simulator.spans()
        if not self.cycles():
            return None
        own = [span for span in spans if span.core == 0]
        works, pauses = self._simulator.works(), self._simulator.pauses()
        return ClusterTrace(own[0].begin, own[-1].end, spans, pauses, works, calls_of(self._code))

    def cores(self) -> Cores | None:
        """Return what each core did in the last call; the critical path is in cycles."""
        spans, cycles = self._simulator.spans(), self.cycles()
        if self._cores == 1 or not cycles:
            return None
        own = [[span for span in spans if span.core == core] for core in range(self._cores)]
        return Cores(
            tuple(sum(span.instructions for span in each) for each in own),
            cycles[-1],
            tuple(sum(span.barrier + span.dma + span.unit for span in each) for each in own),
        )

    def flash_reads(self) -> tuple[FlashReads, ...] | None:
        """Return the time that core 0 waited for slower memory. No core has a cache, so each access is a miss of a
        word."""
        sites: dict[int, int] = {}
        for span in self._simulator.spans():
            if span.core == 0:
                sites[span.site] = sites.get(span.site, 0) + span.slow
        return tuple(self._slow(site, cycles) for site, cycles in sites.items())

    def _slow(self, site: int, cycles: int) -> FlashReads:
        words = cycles // self._slow_cycles if self._slow_cycles else 0
        return FlashReads(0, site, 0, words, 4 * words, Waits(cycles, cycles, cycles))

    def close(self) -> None:
        self._fault = DeviceFault("the emulation was closed")
        self._simulator.close()

    def _explain(self, report: FaultReport) -> DeviceFault:
        where = f"core {report.core} at {report.pc:#010x} in {self._code.function_at(report.pc)}"
        have = [where, f"address {report.address:#010x}"]
        if report.fault is ClusterFault.RACE:
            did = "wrote" if report.other_writes else "read"
            have.append(f"core {report.other} {did} it")
        elif report.fault is ClusterFault.IN_TRANSFER:
            have.append(f"channel {report.other}")
        fault = DeviceFault(_TEXTS[report.fault], have=have)
        fault.addresses = tuple(site for site in (report.site, report.other_site) if site)
        return fault


def config_of(chip: Chip, cluster: Cluster, code: Code, cores: int) -> ctypes.Structure:
    """Return the simulator's bt_config. The scratchpad is its first memory, because most accesses go there."""
    banks = sorted(chip.memories, key=lambda m: m.name != cluster.scratchpad)
    config = CLUSTER_STRUCTS["bt_config"](
        cores=cores,
        memories=len(banks),
        boot=chip.memory(chip.code).origin,
        registers_wait=cluster.register_cycles,
        uart=chip.uart.base,
        events=cluster.events.base,
        barrier_cycles=cluster.events.barrier_cycles,
        run=code.run,
        returned=code.returned,
    )
    for i, bank in enumerate(banks):
        near = bank.name == cluster.scratchpad
        wait, split = (0, cluster.banks) if near else (cluster.slow_cycles, 0)
        config.memory[i] = CLUSTER_STRUCTS["bt_memory"](bank.origin, bank.size, wait, split)
    if dma := cluster.dma:
        config.dma, config.dma_bytes = dma.base, dma.bytes_per_cycle
        config.dma_start, config.dma_channels = dma.start_cycles, dma.channels
    for unit in units_of(chip):
        add_unit(config, unit.executor.kind, unit.base, unit.simulated_sizes)
    for home, (first, end) in zip(config.home, (code.home[:2], code.home[2:], *code.parts), strict=False):
        home[:] = first, end
    return config
