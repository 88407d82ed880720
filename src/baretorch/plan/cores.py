"""Several cores share the work of a model.

A layer whose kernel can make parts of its output is cut, one part per core and of about the same work, and the cores
make their parts in the same phase. What is small, or cannot be cut, core 0 does alone. The cores meet before a phase in
which one would read what another has written, or write what it still reads: where each only goes on with what it has
made itself, as a 1x1 convolution behind another does row by row, they need not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, TypeAlias

from baretorch.ir.graph import Tensor
from baretorch.ops.conv2d import flat
from baretorch.ops.helpers.cut import Part, part_within
from baretorch.ops.helpers.kernel import Call, Kernel, Split
from baretorch.ops.int8 import quantize
from baretorch.plan.cluster.cost import by_shape, cycles
from baretorch.plan.schedule import Copy, Executor, Operand, Phase, Schedule, Scratch, Step, View
from baretorch.plan.select import Constants, Packs, constants_of, make_step
from baretorch.plan.types import InArena, Layout, WithCaller

LEAST = 3000  # operations of a layer that two cores share
PER_OUTPUT = 6  # that an output takes beside its products
PER_INPUT = 2  # and an input: both cores read all of it where they share the output channels


_Cuts: TypeAlias = tuple[tuple[tuple[int, int, int, bool], ...], ...]  # of each part, as in Part


@dataclass(frozen=True)
class Team:
    """Cores that share work, and how many operations of a layer are worth a meeting. What a search asks for again and
    again is kept, by the ids of steps: their parts, those as steps, tiles, packed constants; and how layers of the same
    shape are cut."""

    count: int
    least: int
    flat: bool = False  # a cluster: pixels of pointwise convolutions are shared out without regard to rows, and what is
    # quantized without regard to channels
    known: dict[int, tuple[Step, tuple[Part, ...] | None]] = field(default_factory=dict, compare=False)
    made: dict[int, tuple[Step, list[Step]]] = field(default_factory=dict, compare=False)
    cuts: dict[tuple[object, ...], _Cuts | None] = field(default_factory=dict, compare=False)
    packs: Packs = field(default_factory=Packs, compare=False)
    tiles: dict[tuple[int, tuple[int, ...]], tuple[Step, list[Step]]] = field(default_factory=dict, compare=False)

    @property
    def cores(self) -> tuple[Executor, ...]:
        return tuple(Executor(i) for i in range(self.count))

    def work(self, call: Call[Any], kernel: Kernel[Any]) -> float:
        """About how many operations a call takes."""
        if self.flat:
            return cycles(call, kernel)
        read = sum(t.count for t in call.inputs if t.data is None)
        products: int = call.op.macs(call.inputs, call.outputs)
        return products + PER_OUTPUT * call.y.count + PER_INPUT * read


def pair() -> Team:
    """Two cores that meet in memory, which takes some 50 instructions of each."""
    return Team(2, LEAST)


def cluster(count: int) -> Team:
    """Cores with a barrier in hardware and kernels that multiply more than two bytes per cycle."""
    return Team(count, 400, flat=True)


def shared(steps: Sequence[Step], storage: Mapping[str, View], constants: Constants, team: Team) -> Schedule:
    """The steps on several cores, with `constants` packed for the parts."""
    phases = tuple(Phase(tuple(on_cores(step, storage, constants, team))) for step in steps)
    return Schedule(phases, team.cores)


def on_cores(step: Step, storage: Mapping[str, View], constants: Constants, team: Team) -> Iterator[Step]:
    """The steps of the cores that make it."""
    if id(step) not in team.made:
        team.made[id(step)] = step, list(_made(step, storage, Constants(packs=team.packs), team))
    for part in team.made[id(step)][1]:
        given = iter(constants_of(part.call, part.kernel, constants))
        yield replace(part, operands=tuple(next(given) if o.constant else o for o in part.operands))


def _made(step: Step, storage: Mapping[str, View], constants: Constants, team: Team) -> Iterator[Step]:
    parts = _known(step, team)
    if parts is None:
        whole = make_step(step.nodes[0], step.call, step.kernel, constants, storage)
        given = iter(o for o in step.operands if not o.constant)
        same = tuple(o if o.constant else next(given) for o in whole.operands)
        yield replace(whole, operands=same, guards=step.guards, scratch=step.scratch)
        return
    for executor, part in zip(team.cores, parts, strict=False):
        made = make_step(step.nodes[0], part.call, step.kernel, constants, storage)
        operands = list(moved(step, made, (*part.offsets, part.at)))
        operands[-1] = replace(operands[-1], size=_extent(part.call))
        if part.wide or step.kernel.renews:
            wide = step.kernel.renews[0][0] if step.kernel.renews else 0
            operands[wide] = replace(operands[wide], size=_extent_of_input(part.call, wide))
        scratch = own_scratch(step, made, executor.name.lower())
        yield replace(made, operands=tuple(operands), scratch=scratch, executor=executor)


def own_scratch(step: Step, part: Step, name: str) -> Scratch | None:
    """The scratch of a part, called after that of its step, which may be a part itself."""
    stem = step.scratch.name if step.scratch else f"{step.call.y.name}.scratch"
    return part.scratch and replace(part.scratch, name=f"{stem}.{name}")


def _known(step: Step, team: Team) -> tuple[Part, ...] | None:
    """Its parts, which a search asks for again and again."""
    if id(step) not in team.known:
        key = _alike(step, team)
        if key is None or key not in team.cuts:
            parts = _parts(step, team)
            if key is not None:
                team.cuts[key] = None if parts is None else tuple(part.cuts for part in parts)
        else:
            parts = _cut_so(step, team.cuts[key], team)
        team.known[id(step)] = step, parts
    return team.known[id(step)][1]


def _alike(step: Step, team: Team) -> tuple[object, ...] | None:
    """What steps have in common that are cut in the same way; None if that does not follow from shapes alone."""
    call, kernel = step.call, step.kernel
    if not team.flat or not by_shape(kernel) or step.guards or len(call.outputs) != 1:
        return None
    (y,) = step.writes
    same = tuple((i, x.offset - y.offset) for i, x in enumerate(step.reads) if x.storage == y.storage)
    inputs = tuple((t.shape, t.dtype, t.data is None) for t in call.inputs)
    return kernel.symbol, call.op, inputs, call.y.shape, call.y.dtype, call.pitch, same


def _cut_so(step: Step, cuts: _Cuts | None, team: Team) -> tuple[Part, ...] | None:
    """The parts of a step as another like it was cut."""
    if cuts is None:
        return None
    found = []
    for one in cuts:
        part: Part | None = _whole(_flat(step.call, team))
        for axis, start, stop, wide in one:
            part = part and part_within(part, axis, start, stop, wide)
        assert part is not None
        found.append(part)
    return tuple(found)


def _flat(call: Call[Any], team: Team) -> Call[Any]:
    return quantize.flat(flat(call)) if team.flat else call


def _whole(call: Call[Any]) -> Part:
    return Part(call, (0,) * sum(t.data is None for t in call.inputs), 0)


def longest(step: Step, team: Team) -> float:
    """About how long the core takes that has most to do."""
    parts = _known(step, team)
    return max(team.work(call, step.kernel) for call in ([part.call for part in parts] if parts else [step.call]))


def moved(step: Step, part: Step, offsets: Sequence[int]) -> Iterator[Operand]:
    """The operands of a part of a step, which lie so many bytes behind those of the step that are no constants."""
    given = iter(zip((o for o in step.operands if not o.constant), offsets, strict=True))
    for o in part.operands:
        if o.constant:
            yield o
        else:
            whole, offset = next(given)
            yield replace(whole, offset=whole.offset + offset, size=o.size)


def _extent(call: Call[Any]) -> int:
    """Bytes from the first that a call writes to the last."""
    y = call.y
    rows = y.count // y.shape[-1]
    return ((rows - 1) * call.pitch + y.shape[-1]) * y.dtype.size if call.pitch else y.bytes


def _extent_of_input(call: Call[Any], number: int) -> int:
    """The same of an input, where that has the output's pitch."""
    x = call.inputs[number]
    rows = x.count // x.shape[-1]
    return ((rows - 1) * call.pitch + x.shape[-1]) * x.dtype.size if call.pitch else x.bytes


def _parts(step: Step, team: Team) -> tuple[Part, ...] | None:
    """The parts of a step that take the least time, if that is worth it."""
    call = _flat(step.call, team)
    if step.kernel.unit or team.count == 1:
        return None
    if step.guards or len(call.outputs) != 1 or team.work(call, step.kernel) < team.least:
        return None
    cuts = [parts for parts in _cuts(call, step.kernel.splits(call), team.count) if _own(step, parts, team)]

    def most(parts: tuple[Part, ...]) -> float:
        return max(team.work(part.call, step.kernel) for part in parts)

    def cost(parts: tuple[Part, ...]) -> tuple[float, int]:
        return most(parts), sum(step.kernel.scratch(part.call) for part in parts) if team.flat else 0

    best = min(cuts, key=cost, default=None)
    return best if best is not None and team.work(call, step.kernel) - most(best) >= team.least / 4 else None


def _own(step: Step, parts: Sequence[Part], team: Team) -> bool:
    """Where an input is the output's memory: whether each part reads of it what it writes, and no more; so does what
    renews some channels of each pixel."""
    (y,) = step.writes
    same = [i for i, x in enumerate(step.reads) if x.storage == y.storage]
    if same and not team.flat:
        return False
    return all(
        step.reads[i].offset + part.offsets[i] == y.offset + part.at
        and _activations(part.call)[i].bytes == part.call.y.bytes
        and (not part.call.pitch or step.kernel.renews)
        for part in parts
        for i in same
    )


def _activations(call: Call[Any]) -> list[Tensor]:
    return [t for t in call.inputs if t.data is None]


def _cuts(call: Call[Any], splits: Sequence[Split], count: int) -> Iterator[tuple[Part, ...]]:
    """Into parts of about the same size, as many as there are cores or fewer, where the operator can be cut: along one
    axis, or along one and each part along another."""
    whole = _whole(call)
    for split in splits:
        yield from _along(whole, split, count)
    for first, second in pairwise(splits):
        for rows in (n for n in range(2, count) if count % n == 0):
            for bands in _along(whole, first, rows):
                shares = [next(_along(band, second, count // rows), ()) for band in bands]
                if all(shares):
                    yield tuple(part for share in shares for part in share)


def _along(whole: Part, split: Split, count: int) -> Iterator[tuple[Part, ...]]:
    size = whole.call.y.shape[split.axis]
    for places in _evenly(split, size, count):
        ends = pairwise((0, *places, size))
        parts = [part_within(whole, split.axis, start, stop, split.wide) for start, stop in ends]
        known = [part for part in parts if part is not None]
        if len(known) == len(parts) > 1:
            yield tuple(known)


def _evenly(split: Split, size: int, count: int) -> list[tuple[int, ...]]:
    """Where to cut. Of two parts, at the places next to the middle; of more, so that the largest is as small as it can
    be, with the larger ones first, or last."""
    units = -(-size // split.step)
    if count == 2:
        middle = sorted(range(1, units), key=lambda unit: abs(2 * unit * split.step - size))
        return [(unit * split.step,) for unit in middle[:2]]
    most = min(count, units)
    rounded = [[-(-units * i // most) for i in range(1, most)], [units * i // most for i in range(1, most)]]
    return list(dict.fromkeys(tuple(unit * split.step for unit in each) for each in rounded))


def with_meetings(schedule: Schedule, layout: Layout) -> Schedule:
    """The schedule with as few meetings as its bytes allow."""
    phases: list[Phase] = []
    open_: list[tuple[Executor, list[_Bytes]]] = []  # what each has touched since the last meeting
    for phase in schedule.phases:
        touched = [(step.executor, list(_touched(step, layout))) for step in phase.steps]
        touched += [(copy.executor, list(_carried(copy, layout))) for copy in phase.copies]
        meet = any(a is not b and _clash(x, y) for a, x in touched for b, y in open_)
        meet = meet or any(step.awaits for step in phase.steps)  # core 0 waits for all
        phases.append(replace(phase, meet=meet))
        open_ = touched if meet else open_ + touched
    return replace(schedule, phases=tuple(phases))


_Bytes: TypeAlias = tuple[str, int, int, bool]  # memory, first, behind the last, written


def _clash(some: Sequence[_Bytes], others: Sequence[_Bytes]) -> bool:
    pairs = ((a, b) for a in some for b in others if a[0] == b[0] and (a[3] or b[3]))
    return any(a[1] < b[2] and b[1] < a[2] for a, b in pairs)


def _carried(copy: Copy, layout: Layout) -> Iterator[_Bytes]:
    for o in (copy.source, copy.target):
        place = layout.place(o)
        if isinstance(place, InArena):
            yield place.bank, place.offset, place.offset + o.size, o is copy.target


def _touched(step: Step, layout: Layout) -> Iterator[_Bytes]:
    brought = tuple(o for o in step.operands if o.buffer)
    for o, writes in (*((o, False) for o in (*brought, *step.uses)), *((o, True) for o in step.writes)):
        match layout.place(o):
            case InArena(bank, offset):
                yield bank, offset, offset + o.size, writes
            case WithCaller(buffer, offset):
                yield f"the caller's {buffer}", offset, offset + o.size, writes
            case _:
                pass
    if step.scratch:
        place = layout.scratch(step.scratch)
        yield place.bank, place.offset, place.offset + step.scratch.size, True
