"""Match a simulator's trace with the plan: what the cores and units of a cluster did in a run, layer by layer.

The time of a layer begins when all cores are done with the layer before, and ends when they are done with it, so that
layers add up to the run. The time of each core in it is split by activity. If cores wait at a barrier while core 0
sleeps until a unit is done, they count as waiting for that unit.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from baretorch.errors import InternalError
from baretorch.machines.blame import OTHERS
from baretorch.machines.types import BARRIER, ClusterTrace, CoreSpan, Pause, UnitWork
from baretorch.ops.helpers.executor import DMA as ENGINE
from baretorch.plan.schedule import BackgroundCopy, Step
from baretorch.plan.types import Plan
from baretorch.targets.parts import Cluster

DMA_NAME = ENGINE.name


@dataclass(frozen=True)
class Use:
    """Cycles of cores by activity: computing, or waiting for a register that was being loaded, a bank that served
    another core, slower memory, other cores, the DMA engine, another unit."""

    busy: int = 0
    load_use: int = 0
    conflict: int = 0
    slow: int = 0
    barrier: int = 0
    dma: int = 0
    unit: int = 0

    def __add__(self, other: Use) -> Use:
        return Use(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def cycles(self) -> int:
        return sum(astuple(self))


@dataclass(frozen=True)
class Visit:
    """A core's execution of a step, which is a part of a layer in one of the plan's phases."""

    core: int
    layer: int
    phase: int
    begin: int
    end: int
    use: Use
    instructions: int


@dataclass(frozen=True)
class TracedCopy:
    """A copy of the plan as the DMA engine made it, for the phase that reads or wrote the data."""

    copy: BackgroundCopy
    layer: int
    phase: int
    work: UnitWork


@dataclass(frozen=True)
class TracedLayer:
    """A layer in the trace. `uses` has the activities of each core; `slow_bytes` were read or written by cores in
    slower memory, word by word. A unit worked on it for `worked` cycles, during `beside` of which the cores computed
    another layer."""

    name: str
    steps: tuple[Step, ...]
    windows: tuple[tuple[int, int], ...]
    uses: tuple[Use, ...]
    instructions: int
    copies: tuple[BackgroundCopy, ...]
    slow_bytes: int
    worked: int = 0
    beside: int = 0

    @property
    def took(self) -> int:
        """Return the time of the layer, or of its unit if that takes longer, because cores may compute another layer
        meanwhile."""
        return max(self.cycles, self.worked)

    @property
    def cycles(self) -> int:
        return sum(end - begin for begin, end in self.windows)

    @property
    def use(self) -> Use:
        return sum(self.uses, Use())

    @property
    def macs(self) -> int:
        return sum(step.call.op.macs(step.call.inputs, step.call.outputs) for step in self.steps)

    @property
    def copied(self) -> int:
        return sum(copy.source.size for copy in self.copies)

    @property
    def moved(self) -> int:
        """Return the number of bytes to and from slower memory."""
        return self.copied + self.slow_bytes

    @property
    def tiles(self) -> int:
        return len(self.windows)

    @property
    def unit(self) -> str:
        """Name the unit that computes the layer; empty if the cores do."""
        return self.steps[0].kernel.unit

    def to_json(self) -> dict[str, Any]:
        """Return the keys of `profile --json` that only layers of a cluster have."""
        return {
            "tiles": self.tiles,
            "copies": len(self.copies),
            "copied_bytes": self.copied,
            "slow_bytes": self.slow_bytes,
            "macs_per_cycle": round(self.macs / self.took, 3) if self.took else None,
            "unit": self.unit or None,
            **({"unit_cycles": self.worked, "beside_cycles": self.beside} if self.unit else {}),
            "use": asdict(self.use),
            "cores": [asdict(use) for use in self.uses],
        }


@dataclass(frozen=True)
class TracedRun:
    """A run on a cluster. `own` is the run function itself on each core, before the first layer and after the last."""

    trace: ClusterTrace
    cluster: Cluster
    plan: Plan
    layers: tuple[TracedLayer, ...]
    visits: tuple[Visit, ...]
    copies: tuple[TracedCopy, ...]
    bounds: tuple[int, ...]  # cycles at which each phase begins, and at which the last is done
    own: tuple[Use, ...]

    @property
    def cycles(self) -> int:
        return self.trace.cycles

    @property
    def cores(self) -> int:
        return len(self.own)

    @cached_property
    def uses(self) -> tuple[Use, ...]:
        """Return what each core did in the whole run."""
        return tuple(sum((layer.uses[core] for layer in self.layers), self.own[core]) for core in range(len(self.own)))

    @property
    def instructions(self) -> tuple[int, ...]:
        own = [[span.instructions for span in self.trace.spans if span.core == core] for core in range(self.cores)]
        return tuple(map(sum, own))

    def to_json(self) -> dict[str, Any]:
        """Return the figures of each core for `profile --json`."""
        cores = zip(self.instructions, self.uses, strict=True)
        return {"cores": [{"instructions": count, **asdict(use)} for count, use in cores]}


def match_trace(plan: Plan, trace: ClusterTrace, cluster: Cluster, ran: Sequence[bool]) -> TracedRun:
    """Assign everything in the trace to layers. `ran` states for each step of the plan whether it ran, because branches
    may not be taken."""
    done = {id(step): did for step, did in zip(plan.steps, ran, strict=True)}
    names = dict.fromkeys(step.layer for step in plan.steps)
    number = {name: i for i, name in enumerate(names)}
    phase_of = {id(step): i for i, phase in enumerate(plan.phases) for step in phase.steps}
    cores = len(plan.schedule.cores)
    visits: list[Visit] = []
    for core in range(cores):
        steps = tuple(s for s in plan.steps if s.executor.host.number == core and done[id(s)])
        for step, span in zip(steps, _layer_spans(trace, core, len(steps)), strict=True):
            place = (number[step.layer], phase_of[id(step)])
            use = Use(span.busy, span.load_use, span.conflict, span.slow, span.barrier, span.dma, span.unit)
            visits.append(Visit(core, *place, span.begin, span.end, use, span.instructions))
    bounds = _bounds(plan, trace, visits)
    copies = _match_copies(plan, trace, number)
    layer_of_phase = [number[phase.main.layer] for phase in plan.phases]
    table = _split(trace, visits, bounds, layer_of_phase, cores)
    works = _match_works(plan, trace, [step for step in plan.steps if done[id(step)]], number)
    layers = []
    for name, i in number.items():
        steps = tuple(step for step in plan.steps if step.layer == name)
        phases = [p for p, layer in enumerate(layer_of_phase) if layer == i]
        uses = tuple(table.get((i, core), Use()) for core in range(cores))
        slow = sum(use.slow for use in uses) // cluster.slow_cycles * 4 if cluster.slow_cycles else 0
        y = steps[0].call.y
        layers.append(
            TracedLayer(
                name=y.layer,
                steps=steps,
                windows=tuple((bounds[p], bounds[p + 1]) for p in phases),
                uses=uses,
                instructions=sum(visit.instructions for visit in visits if visit.layer == i),
                copies=tuple(c.copy for c in copies if c.layer == i),
                slow_bytes=slow,
                worked=sum(end - begin for begin, end, _ in works.get(i, ())),
                beside=sum(end - begin for begin, end, beside in works.get(i, ()) if beside),
            )
        )
    own = tuple(table.get((-1, core), Use()) for core in range(cores))
    found = TracedRun(trace, cluster, plan, tuple(layers), tuple(visits), copies, tuple(bounds), own)
    if any(use.cycles != trace.cycles for use in found.uses):
        raise InternalError("the cores' activities do not add up to the run's cycles")
    return found


def _layer_spans(trace: ClusterTrace, core: int, steps: int) -> list[CoreSpan]:
    """Return the spans of a core that are steps."""
    found = [s for s in trace.spans if s.core == core and s.site and _is_layer(trace.calls.get(s.site, ""))]
    if len(found) != steps:
        raise InternalError(f"core {core} makes {len(found)} calls for {steps} steps")
    return found


def _is_layer(name: str) -> bool:
    return not any(other in name for other in OTHERS)


def _bounds(plan: Plan, trace: ClusterTrace, visits: Sequence[Visit]) -> list[int]:
    """Return the cycles at which each phase begins, and at which the last is done. A phase begins when all cores have
    finished the previous one. The time in which core 0 then waits for copies belongs to the new phase."""
    meetings: dict[int, list[Pause]] = {}
    for pause in trace.pauses:
        if pause.what == BARRIER:
            meetings.setdefault(pause.end, []).append(pause)
    ends = sorted(end for end, slept in meetings.items() if any(p.core == 0 for p in slept))  # others wait for the next
    several = len(plan.schedule.cores) > 1
    met = [several and phase.meet for phase in plan.phases]
    if len(ends) != sum(met) + 2 * several:
        raise InternalError(f"the cores met {len(ends)} times in {sum(met)} phases that begin so")
    first = [min((v.begin for v in visits if v.core == 0 and v.phase == p), default=None) for p in range(len(met))]
    last = [max((v.end for v in visits if v.core == 0 and v.phase == p), default=None) for p in range(len(met))]
    meeting = iter(ends[1:])
    bounds: list[int] = []
    free = ends[0] if several else trace.begin  # the cycle since which core 0 is idle
    for p, meets in enumerate(met):
        begins = first[p]
        if meets:
            end = next(meeting)
            others = [pause.begin for pause in meetings[end] if pause.core]
            came = next((pause.begin for pause in meetings[end] if pause.core == 0), end)
            begin = min(max([_first_sleep(trace, free, came), *others]), end)
        elif several and begins is None:
            begin = free
        else:
            begin = _first_sleep(trace, free, begins if begins is not None else free)
        bounds.append(max([begin, *bounds[-1:]]))
        done = last[p]
        free = max(free, done) if done is not None else max(free, bounds[-1])
    bounds.append(max(ends[-1] if several else free, *bounds[-1:]))
    return bounds


def _first_sleep(trace: ClusterTrace, since: int, until: int) -> int:
    """Return when core 0 first sleeps between the two cycles for the DMA engine; else the second."""
    sleeps = (p.begin for p in trace.pauses if p.core == 0 and p.what == DMA_NAME and since <= p.begin < until)
    return min(sleeps, default=until)


def _match_copies(plan: Plan, trace: ClusterTrace, number: dict[str, int]) -> tuple[TracedCopy, ...]:
    awaits = {name: (p, step) for p, phase in enumerate(plan.phases) for step in phase.steps for name in step.awaits}
    copies = [copy for phase in plan.phases for copy in phase.copies]
    works = [work for work in trace.works if work.unit == DMA_NAME]
    if len(works) != len(copies):
        raise InternalError(f"the DMA engine made {len(works)} copies, of {len(copies)} in the plan")
    writers = {o.buffer: (p, step) for p, phase in enumerate(plan.phases) for step in phase.steps for o in step.writes}
    found = []
    for copy, work in zip(copies, works, strict=True):
        phase, step = writers[copy.source.buffer] if copy.source.buffer else awaits[copy.name]
        found.append(TracedCopy(copy, number[step.layer], phase, work))
    return tuple(found)


def _match_works(
    plan: Plan, trace: ClusterTrace, ran: Sequence[Step], number: dict[str, int]
) -> dict[int, list[tuple[int, int, bool]]]:
    """Return for each layer when a unit began and ended, and whether the cores computed another layer meanwhile."""
    steps = [step for step in ran if step.kernel.unit]
    works = [work for work in trace.works if work.unit != DMA_NAME]
    if [work.unit for work in works] != [step.kernel.unit for step in steps]:
        raise InternalError(f"units computed {len(works)} times for {len(steps)} steps")
    beside = {id(step) for phase in plan.phases for step in phase.steps if phase.beside(step)}
    found: dict[int, list[tuple[int, int, bool]]] = {}
    for step, work in zip(steps, works, strict=True):
        found.setdefault(number[step.layer], []).append((work.begin, work.end, id(step) in beside))
    return found


class _Sleeps:
    """The times at which core 0 slept until one of some units was done."""

    def __init__(self, trace: ClusterTrace, units: Collection[str]) -> None:
        self._pauses = sorted((p.begin, p.end) for p in trace.pauses if p.core == 0 and p.what in units)
        self._begins = [begin for begin, _ in self._pauses]
        self._sums = [0, *accumulate(end - begin for begin, end in self._pauses)]

    def _before(self, at: int) -> int:
        i = bisect_right(self._begins, at)
        return self._sums[i] - max(0, self._pauses[i - 1][1] - at) if i else 0

    def between(self, begin: int, end: int) -> int:
        return self._before(end) - self._before(begin)


def _split(
    trace: ClusterTrace, visits: Sequence[Visit], bounds: Sequence[int], layers: Sequence[int], cores: int
) -> dict[tuple[int, int], Use]:
    """Return the activities of each core by (layer, core), in its steps and between them; layer -1 is none."""
    table: dict[tuple[int, int], Use] = {}
    units = {work.unit for work in trace.works} - {DMA_NAME}
    dma, unit = _Sleeps(trace, {DMA_NAME}), _Sleeps(trace, units)
    for core in range(cores):
        own = sorted((v for v in visits if v.core == core), key=lambda v: v.begin)
        for visit in own:
            key = (layers[visit.phase], core)
            table[key] = table.get(key, Use()) + visit.use
        pauses = [p for p in trace.pauses if p.core == core]
        spans = [s for s in trace.spans if s.core == core]
        gaps = zip([trace.begin, *(v.end for v in own)], [*(v.begin for v in own), trace.end], strict=True)
        for begin, end in gaps:
            slept = [p for p in pauses if begin <= p.begin and p.end <= end]
            between = [s for s in spans if begin <= s.begin and s.end <= end]
            for lo, hi, layer in _pieces(begin, end, bounds, layers):
                use = _waiting(core, lo, hi, slept, dma, unit)
                mine = [s for s in between if lo <= s.begin < hi or (hi == end and s.begin == hi)]
                stalls = sum((_stalls(s, slept) for s in mine), Use())
                most = hi - lo - use.cycles
                if stalls.cycles > most:  # of a visit that continues in the next piece
                    stalls = Use()
                key = (layer, core)
                table[key] = table.get(key, Use()) + use + stalls + Use(most - stalls.cycles)
    return table


def _stalls(span: CoreSpan, slept: Sequence[Pause]) -> Use:
    """Return what a core waited for during a visit without sleeping, such as registers of the DMA engine."""
    asleep = sum(p.end - p.begin for p in slept if p.what == DMA_NAME and span.begin <= p.begin < span.end)
    return Use(0, span.load_use, span.conflict, span.slow, 0, span.dma - asleep)


def _pieces(begin: int, end: int, bounds: Sequence[int], layers: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Split a stretch of time where phases begin, and yield the layer of each piece."""
    at = begin
    while at < end:
        phase = bisect_right(bounds, at) - 1
        until = min(end, bounds[phase + 1]) if phase + 1 < len(bounds) else end
        yield at, until, layers[phase] if 0 <= phase < len(layers) else -1
        at = until


def _waiting(core: int, lo: int, hi: int, slept: Sequence[Pause], dma: _Sleeps, unit: _Sleeps) -> Use:
    barrier = for_dma = for_unit = 0
    for pause in slept:
        begin, end = max(lo, pause.begin), min(hi, pause.end)
        if begin >= end:
            continue
        if pause.what != BARRIER:
            for_dma += end - begin if pause.what == DMA_NAME else 0
            for_unit += 0 if pause.what == DMA_NAME else end - begin
            continue
        with_dma, with_unit = (dma.between(begin, end), unit.between(begin, end)) if core else (0, 0)
        for_dma, for_unit = for_dma + with_dma, for_unit + with_unit
        barrier += end - begin - with_dma - with_unit
    return Use(barrier=barrier, dma=for_dma, unit=for_unit)
