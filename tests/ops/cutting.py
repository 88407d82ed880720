"""Plans of the case table in which kernels make their outputs part by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from baretorch.ops import kernels_of
from baretorch.ops.helpers.cut import Part, part_of
from baretorch.ops.helpers.kernel import Call, Kernel, nowhere
from baretorch.plan.constants import Constants
from baretorch.plan.schedule import Step, View, one_by_one
from baretorch.plan.select import make_step, select_kernel
from baretorch.plan.types import Plan
from baretorch.targets.types import Board
from tests.ops.case import Case
from tests.ops.merge import number


@dataclass(frozen=True)
class Cut:
    """An axis, and where the output is cut along it; nowhere: the output as a whole."""

    axis: int = 0
    places: tuple[int, ...] = ()
    wide: bool = False

    def parts(self, call: Call[Any]) -> list[Part]:
        """The parts of a call's output; none if one of them cannot be made."""
        ends = (0, *self.places, call.y.shape[self.axis])
        made = [part_of(call, self.axis, start, stop, self.wide) for start, stop in pairwise(ends)]
        return [part for part in made if part is not None] if None not in made else []


WHOLE = Cut()


def cuts(kernel: Kernel[Any], call: Call[Any], most: int) -> list[Cut]:
    """Return the allowed ways to cut this call's output in two, at `most` places per axis, the first and the last among
    them; and along each axis into as many parts as it allows."""
    found: list[Cut] = []
    for split in kernel.splits(call):
        places = [p for p in split.places(call.y) if Cut(split.axis, (p,), split.wide).parts(call)]
        some = {places[i * (len(places) - 1) // (most - 1)] for i in range(most)} if places else ()
        every = Cut(split.axis, tuple(split.places(call.y)), split.wide)
        found += [Cut(split.axis, (p,), split.wide) for p in sorted(some)]
        found += [every] if len(every.places) > 1 and every.parts(call) else []
    return found


@dataclass(frozen=True)
class Trial:
    """A case whose output is made so, and the C functions that this takes."""

    case: Case
    cut: Cut
    functions: frozenset[str]
    outputs: int  # elements


def trials(cases: Sequence[Case], board: Board, most: int) -> list[Trial]:
    """Return cases whose kernels can compute parts, each cut at `most` places per axis. Portable kernels are tested on
    the host."""
    found = []
    for case in cases:
        (node,) = (graph := case.graph()).nodes
        if not any(k.splits is not nowhere for k in kernels_of(node.op)):
            continue
        call = Call(node.op, graph.of(node.inputs), graph.of(node.outputs))
        kernel = select_kernel(call, board.chip.cpu)
        if board.name == "host" or kernel.needs:
            for cut in cuts(kernel, call, most):
                functions = {kernel.function(part.call) for part in cut.parts(call)}
                found.append(Trial(case, cut, frozenset(functions), call.y.count))
    return found


def some_of_each(found: Sequence[Trial], cases: int) -> list[Trial]:
    """Return trials in which every function works on this number of cases, if there are as many: the largest cases, in
    which most can go wrong."""
    taken: dict[str, set[Case]] = {}
    some = []
    for trial in sorted(found, key=lambda t: -t.outputs):
        known = [taken.setdefault(f, set()) for f in trial.functions]
        if any(trial.case not in k and len(k) < cases for k in known):
            some.append(trial)
            for k in known:
                k.add(trial.case)
    return some


def in_parts(plan: Plan, how: Sequence[Cut]) -> Plan:
    """The plan of a table, each case of which is cut so."""
    constants = Constants(known={c.name: c for c in plan.layout.constants})
    steps: list[Step] = []
    for step in plan.steps:
        cut = how[number(step.call.y.name)]
        parts = cut.parts(step.call) if cut != WHOLE else []
        steps += [_made(step, part, constants) for part in parts] or [step]
    layout = replace(plan.layout, constants=tuple(constants.known.values()))
    return replace(plan, schedule=one_by_one(steps), layout=layout)


def _made(step: Step, part: Part, constants: Constants) -> Step:
    """The step that makes a part."""
    whole = zip((*step.reads, *step.writes), (*part.offsets, part.at), strict=True)
    where = {o.tensor: View(o.storage, o.offset + offset) for o, offset in whole}
    if skipped := step.kernel.skips(step.call):  # which is done again
        name = step.reads[0].tensor
        where[name] = replace(where[name], offset=where[name].offset - skipped)
    made = make_step(step.nodes[0], part.call, step.kernel, constants, where)
    room, need = (s.scratch.size if s.scratch else 0 for s in (step, made))
    assert need <= room, f"a part of {step.kernel.symbol} needs more scratch than all of it"
    return made
