"""Copy weights from flash to RAM by an engine during a run, while the layers before compute.

The largest constant of a layer is copied to a buffer, which is alive from the start of its copy until the layer has
run. The arena holds these buffers next to the activations; buffers can use the same place one after the other. A copy
starts as soon as the previous copy is awaited, so that the engine is never idle.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from baretorch.ir.graph import DType
from baretorch.plan.check.plan import check_plan
from baretorch.plan.memory.banks import Wishes, place_in_banks
from baretorch.plan.memory.lifetimes import choose_directions, find_overlaps
from baretorch.plan.memory.offsets import lower_bound
from baretorch.plan.schedule import BackgroundCopy, Operand, Schedule, Step
from baretorch.plan.types import Buffer, Plan
from baretorch.targets.cpus import Cpu
from baretorch.targets.flash import FlashPath
from baretorch.targets.types import Chip

LEAST = 1024  # bytes that are worth a copy
OVERHEAD = 200  # cycles of a copy, at begin and end
ROUNDS = 6
PER_OUTPUT = 6  # cycles

Flash = Callable[[Plan, Step], float]  # cycles that a step waits for constants that it reads from flash


def largest_constant(step: Step) -> Operand | None:
    """Return the largest constant of a step, which is copied."""
    whole = [o for o in step.operands if o.constant and not o.offset]
    return max(whole, key=lambda o: o.size, default=None)


def stream_weights(plan: Plan, chosen: Collection[int], chip: Chip) -> Plan:
    """Return the plan with copies for the steps of these phases, which have one step each and are not the first."""
    schedule, added = _with_copies(plan.schedule, chosen)
    buffers = [*plan.layout.buffers, *added]
    main, *_ = plan.layout.banks
    elsewhere = {b.name: b.bank for b in plan.layout.buffers if b.bank != main.name}
    overlaps = find_overlaps(schedule, buffers)
    state = {s.operand.storage for s in plan.state}
    placed = place_in_banks(buffers, overlaps, state, chip, Wishes(main.name, elsewhere))
    layout = replace(
        plan.layout,
        buffers=tuple(placed.buffers),
        banks=placed.banks,
        lower_bound=lower_bound(buffers, overlaps),
        optimal=placed.optimal,
    )
    return check_plan(replace(plan, schedule=choose_directions(schedule, placed.buffers), layout=layout))


def _with_copies(schedule: Schedule, chosen: Collection[int]) -> tuple[Schedule, list[Buffer]]:
    phases, buffers, begin = list(schedule.phases), list[Buffer](), 0
    for time in sorted(chosen):
        (step,) = phases[time].steps
        source = largest_constant(step)
        assert source is not None
        target = Operand(source.tensor, f"{source.storage} for {step.call.y.name}", -(-source.size // 4) * 4)
        copy = BackgroundCopy(target.storage, source, target)
        phases[begin] = replace(phases[begin], copies=(*phases[begin].copies, copy))
        operands = tuple(replace(o, buffer=target.storage) if o is source else o for o in step.operands)
        phases[time] = replace(phases[time], steps=(replace(step, operands=operands, awaits=(copy.name,)),))
        buffers.append(Buffer(target.storage, target.size, begin, time))
        begin = time
    return replace(schedule, phases=tuple(phases)), buffers


def can_stream(plan: Plan, chip: Chip) -> bool:
    """Return whether a plan can stream weights: the chip has a DMA engine, and the plan is a plain sequence of steps
    on one core."""
    return chip.dma is not None and all(len(p.steps) == 1 and not p.steps[0].guards for p in plan.phases)


def waiting_cycles(plan: Plan, chip: Chip, path: FlashPath, flash: Flash) -> float:
    """Estimate the cycles of a run that the core waits for flash and for copies."""
    return sum(_waits(plan, chip, path, flash))


def _waits(plan: Plan, chip: Chip, path: FlashPath, flash: Flash) -> Iterator[float]:
    left = 0.0  # cycles of work that the engine has
    for phase in plan.phases:
        (step,) = phase.steps
        if step.awaits:
            yield left + OVERHEAD
            left = 0.0
        left += sum(copy.target.size for copy in phase.copies) * path.cycles_per_byte
        reads = flash(plan, step)
        yield reads
        left = max(0.0, left - _work(step, chip.cpu))


def _work(step: Step, cpu: Cpu) -> float:
    """Estimate the fewest cycles that a step takes."""
    call = step.call
    per_mac = 1.0 if cpu.has_dsp else 4.0
    if call.y.dtype is DType.FLOAT32 and not cpu.has_fpu:
        per_mac = 60.0
    macs: int = call.op.macs(call.inputs, call.outputs)
    return per_mac * macs + PER_OUTPUT * call.y.count


@dataclass(frozen=True)
class Room:
    """Limits and costs for plans with copies. `resident` chooses the constants that start-up code copies, and returns
    None if there is no room; `flash` estimates the cost of the others."""

    chip: Chip
    path: FlashPath
    resident: Callable[[Plan], Plan | None]
    flash: Flash
    most: int  # bytes of a buffer


def best_streams(plan: Plan, without: Plan, room: Room) -> Plan | None:
    """Return the plan with the copies for which the core waits least, if any are possible; `without` is the plan
    without them."""
    found: list[tuple[float, Plan]] = []
    chosen: set[int] = set()
    last = without
    for _ in range(ROUNDS):
        left = {time for time, step in _in_flash(last) if _fits(step, room) and time > 0} - chosen
        if not left:
            break
        chosen |= left
        planned = room.resident(stream_weights(plan, chosen, room.chip))
        if planned is None:
            break
        found.append((waiting_cycles(planned, room.chip, room.path, room.flash), planned))
        last = planned
    return min(found, key=lambda f: f[0], default=(0.0, None))[1]


def _in_flash(plan: Plan) -> Iterator[tuple[int, Step]]:
    """Yield the steps whose largest constant is read from flash."""
    for time, phase in enumerate(plan.phases):
        for step in phase.steps:
            o = largest_constant(step)
            if o is not None and not o.buffer and o.storage not in plan.layout.copies:
                yield time, step


def _fits(step: Step, room: Room) -> bool:
    o = largest_constant(step)
    return o is not None and LEAST <= o.size <= room.most
