"""List which layers run on an NPU, which do not and why, and the bytes that are exchanged."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from baretorch.npu.lower import ROWS
from baretorch.npu.partition import WRONG, Partition
from baretorch.npu.use import MISSING
from baretorch.targets.types import Chip

if TYPE_CHECKING:
    from baretorch.pipeline import Compiled

BROUGHT = (
    "npu: the file contains commands for the NPU but not the original model: "
    "the image is compared with the emulated NPU only"
)


def npu_takes(chip: Chip) -> dict[str, str]:
    """Describe what the chip's NPU supports, by its name; empty if the chip has none."""
    operators = ", ".join(sorted(op.name for op in ROWS))
    more = "as far as its shapes allow: `baretorch build` lists where each layer runs, and why"
    return {chip.npu.accelerator: f"in int8 {operators}, {more}"} if chip.npu else {}


def npu_json(compiled: Compiled) -> dict[str, Any] | None:
    """Null where no NPU is used. Cycles are Vela's estimate."""
    found, npu = compiled.partition, compiled.board.chip.npu
    if found is None or npu is None:
        return None
    return {
        "accelerator": npu.accelerator,
        "system_config": npu.system_config,
        "memory_mode": npu.memory_mode,
        "vela_cycles": found.cycles,
        "regions": [
            {
                "layers": list(region.layers),
                "bytes_in": region.bytes_in,
                "bytes_out": region.bytes_out,
                "commands": region.commands,
                "weights": region.weights,
                "scratch": region.scratch,
                "vela_cycles": region.cycles,
            }
            for region in found.regions
        ],
        "cpu": [{"layer": left.layer, "op": left.op, "why": left.why} for left in found.left],
    }


def npu_figures(compiled: Compiled) -> tuple[tuple[str, str, str, str], ...]:
    """Title, value, unit and note of what the NPU does; none if it does nothing."""
    found, npu = compiled.partition, compiled.board.chip.npu
    if found is None or npu is None or not found.regions:
        return ()
    count = len(found.regions)
    regions = f"{count} {'region' if count == 1 else 'regions'} on {npu.accelerator}"
    cycles = "unknown" if found.cycles is None else f"{found.cycles:,}"
    return (("NPU", cycles, "cycles", f"of the NPU, as Vela estimates; {regions}"),)


def npu_warnings(found: Partition | None) -> tuple[str, ...]:
    reasons = Counter(left.why for left in found.left) if found is not None else Counter[str]()
    told = [
        f"npu: {count} {'operator stays' if count == 1 else 'operators stay'} on the CPU: {why}"
        for why, count in reasons.items()
        if why.startswith(WRONG)
    ]
    if found is not None and found.brought:
        told.append(BROUGHT)
    if MISSING in reasons:
        told.append(f"npu: {MISSING}, so the NPU does nothing: pip install 'baretorch[ethos-u]'")
    return tuple(told)
