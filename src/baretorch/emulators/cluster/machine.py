"""An image on a simulated cluster: its memories, units and times are those of the chip's TOML."""

from __future__ import annotations

import time

from baretorch.emulators.cluster.library import ConfigStruct, MemoryStruct
from baretorch.emulators.cluster.simulator import Fault, Report, Row, Simulator, Stop
from baretorch.emulators.code import Code, read_code
from baretorch.emulators.types import Block, Cores, DeviceFault, DeviceHang, FlashReads
from baretorch.errors import InternalError
from baretorch.firmware.chunks import loaded
from baretorch.firmware.types import Image
from baretorch.targets.flash import Waits
from baretorch.targets.types import Chip, Cluster

SLICE = 20_000_000  # cycles between two looks at the clock on the wall

_TEXTS = {
    Fault.ILLEGAL: "an instruction that the core does not have",
    Fault.NO_CODE: "a jump to where no code is",
    Fault.NO_MEMORY: "an access to where nothing is",
    Fault.STOPPED: "the image stopped itself: ebreak or ecall",
    Fault.LOOP_RULE: "a hardware loop that the core's manual forbids",
    Fault.RACE: "two cores touch the same byte between two barriers, and one of them writes",
    Fault.IN_TRANSFER: "a byte is touched that is being copied or computed, and nobody has waited for that",
    Fault.UNIT_RULE: "the DMA engine or the GEMM unit is asked for what it cannot do",
    Fault.DEADLOCK: "the cores wait for ever",
}


class ClusterMachine:
    """It runs only while `read` waits for it, as many cores as the image uses: others sleep from the start."""

    name = "cluster"

    def __init__(self, image: Image, run_symbol: str) -> None:
        chip = image.board.chip
        assert chip.cluster is not None
        self._code = read_code(image, run_symbol)
        self._simulator = Simulator(config_of(chip, chip.cluster, self._code, image.cores))
        for chunk in loaded(self._code.elf):
            if not self._simulator.load(chunk.address, chunk.data):
                raise InternalError(f"no memory of {chip.name} holds {chunk.address:#x}")
        self._cores = image.cores
        self._slow_cycles = chip.cluster.slow_cycles
        self._fault: DeviceFault | None = None

    def write(self, data: bytes) -> None:
        self._simulator.write(data)

    def read(self, timeout: float) -> bytes:
        deadline = time.monotonic() + timeout
        while self._fault is None:
            why = self._simulator.run(SLICE)
            if sent := self._simulator.output():
                return sent
            if why is Stop.FAULT:
                self._fault = self._explain(self._simulator.report())
            elif why is Stop.WANTS_INPUT:
                raise DeviceHang("the image waits for input", have="awake")
            elif time.monotonic() > deadline:
                raise DeviceHang(f"the image sent nothing in {timeout:g} s")
        raise self._fault

    def instructions(self) -> tuple[int, ...]:
        return self._simulator.calls(cycles=False)

    def cycles(self) -> tuple[int, ...]:
        return self._simulator.calls(cycles=True)

    def rows(self) -> list[Row]:
        """What each core did in each step of the last call."""
        return self._simulator.rows()

    def cores(self) -> Cores | None:
        """What each core did in the last call; the critical path is in cycles."""
        rows, cycles = self.rows(), self.cycles()
        if self._cores == 1 or not cycles:
            return None
        own = [[row for row in rows if row.core == core] for core in range(self._cores)]
        return Cores(
            tuple(sum(row.instructions for row in each) for each in own),
            cycles[-1],
            tuple(sum(min(row.barrier + row.unit, row.cycles) for row in each) for each in own),  # not before the call
        )

    def blocks(self) -> tuple[Block, ...]:
        return ()

    def flash_reads(self) -> tuple[FlashReads, ...] | None:
        """What core 0 waited for slower memory: none has a cache, so that each access is a miss of a word."""
        return tuple(self._slow(row) for row in self.rows() if row.core == 0)

    def _slow(self, row: Row) -> FlashReads:
        words = row.slow // self._slow_cycles if self._slow_cycles else 0
        return FlashReads(row.core, row.site, 0, words, 4 * words, Waits(row.slow, row.slow, row.slow))

    def close(self) -> None:
        self._fault = DeviceFault("the emulation was closed")
        self._simulator.close()

    def _explain(self, report: Report) -> DeviceFault:
        where = f"core {report.core} at {report.pc:#010x} in {self._code.function_at(report.pc)}"
        have = [where, f"address {report.address:#010x}"]
        if report.fault is Fault.RACE:
            did = "wrote" if report.other_writes else "read"
            have.append(f"core {report.other} {did} it")
        elif report.fault is Fault.IN_TRANSFER:
            have.append(f"channel {report.other}")
        fault = DeviceFault(_TEXTS[report.fault], have=have)
        fault.addresses = tuple(site for site in (report.site, report.other_site) if site)
        return fault


def config_of(chip: Chip, cluster: Cluster, code: Code, cores: int) -> ConfigStruct:
    """The simulator's description of the chip. The scratchpad comes first: there most accesses go."""
    banks = sorted(chip.memories, key=lambda m: m.name != cluster.scratchpad)
    config = ConfigStruct(
        cores=cores,
        memories=len(banks),
        boot=chip.memory(chip.code).origin,
        registers_wait=cluster.register_cycles,
        uart=chip.uart.base,
        events=cluster.barrier,
        barrier_cycles=cluster.barrier_cycles,
        run=code.run,
        returned=code.returned,
    )
    for i, bank in enumerate(banks):
        near = bank.name == cluster.scratchpad
        wait, split = (0, cluster.banks) if near else (cluster.slow_cycles, 0)
        config.memory[i] = MemoryStruct(bank.origin, bank.size, wait, split)
    if dma := cluster.dma:
        config.dma, config.dma_bytes = dma.base, dma.bytes_per_cycle
        config.dma_start, config.dma_channels = dma.start_cycles, dma.channels
    if gemm := cluster.gemm:
        config.gemm, config.gemm_start = gemm.base, gemm.start_cycles
        config.gemm_rows, config.gemm_columns, config.gemm_depth = gemm.rows, gemm.columns, gemm.depth
    homes = (*code.home, *(address for part in code.parts for address in part))
    config.home[: len(homes)] = homes
    return config
