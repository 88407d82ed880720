"""Where the buffers of a table of cases lie: all apart, or each output as far in its input as the kernel allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import lcm

from baretorch.plan import make_plan
from baretorch.plan.memory.lifetimes import choose_directions
from baretorch.plan.types import Plan
from baretorch.targets.boards import load_board
from baretorch.targets.types import Board
from tests.ops.case import Case
from tests.ops.merge import number

GAP = 64


def spread(plan: Plan) -> Plan:
    """No two buffers touch, whenever they live."""
    at, offsets = GAP, {}
    for b in plan.layout.buffers:
        offsets[b.name] = at
        at += -(-b.size // 8) * 8 + GAP
    return _moved(plan, offsets, at)


def touching(plan: Plan, copies: int) -> Plan:
    """Arrange buffers like `spread` for the first of several copies of a table. In each other copy, every output
    overlaps one of the inputs as far as it may: the first such input in the first copy, the next in the next."""
    apart = spread(plan)
    offsets = {b.name: b.offset for b in apart.layout.buffers}
    at = apart.arena
    cases = 1 + max(number(n) for n in plan.graph.tensors)
    for output, near in overlaps(plan):
        copy = number(output) // (cases // copies)
        if copy == 0:
            continue
        input_, distance = near[(copy - 1) % len(near)]
        offsets[output] = at + max(0, -(distance // 4) * 4)
        offsets[input_] = at + max(0, -(-distance // 4) * 4)
        end = max(offsets[name] + plan.layout.buffer(name).size for name in (input_, output))
        at = -(-end // 8) * 8 + GAP
    return _moved(plan, offsets, at)


def overlaps(plan: Plan) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """The outputs that may overlap inputs, with those and their distances: 0 where they may be one, below 0 where the
    kernel goes back; first the nearest in whole pixels, if there is one. No other step uses them."""
    uses = Counter(o.storage for s in plan.steps for o in s.operands)
    for step in plan.steps:
        distances = step.kernel.overlap(step.call)
        inputs = [t.name for t in step.call.inputs if t.data is None]
        assert len(distances) == len(inputs), f"{step.kernel.symbol} speaks of {len(distances)} of {len(inputs)} inputs"
        where = {o.tensor: o.storage for o in step.operands}
        for i, j in step.kernel.renews:
            if j < len(step.call.outputs) and step.call.inputs[i].data is None:
                old, new = where[step.call.inputs[i].name], where[step.call.outputs[j].name]
                if uses[old] == 1 == uses[new]:
                    assert plan.layout.buffer(old).size == plan.layout.buffer(new).size
                    yield new, [(old, 0)]
        output = where[step.call.y.name]
        near = [
            (where[name], d)
            for name, d in zip(inputs, distances, strict=True)
            if d is not None and uses[where[name]] == 1 and d < plan.layout.buffer(output).size
        ]
        if lattice := step.kernel.nearer(step.call):
            (name,), steps = inputs, lcm(lattice.step, 4)
            nearest = -(-lattice.distance // steps) * steps
            small = nearest < plan.layout.buffer(output).size
            near = [(where[name], nearest), *near] if small and uses[where[name]] == 1 else near
        near += [
            (where[name], -max(d, 4))
            for name, d in zip(inputs, step.kernel.behind(step.call), strict=True)
            if d is not None and uses[where[name]] == 1 and d + 4 < plan.layout.buffer(where[name]).size
        ]
        made_here = uses[output] == 1 and output not in plan.graph.inputs
        if near and made_here and len(step.call.outputs) == 1:
            yield output, near


def overlappable(cases: Sequence[Case], board: Board) -> list[Case]:
    """The cases in which a kernel of the board may have its output in its input, but for the portable kernels on
    other boards than the host."""
    some = cases if board == load_board("host") else with_own_kernels(cases, board)
    return [case for case in some if any(overlaps(make_plan(case.graph(), board)))]


def with_own_kernels(cases: Sequence[Case], board: Board) -> list[Case]:
    """The cases that a board has kernels for which are not portable."""
    return [case for case in cases if any(s.kernel.needs for s in make_plan(case.graph(), board).steps)]


def gaps(plan: Plan) -> Iterator[tuple[int, int]]:
    """The parts of the arena that are in no buffer."""
    at = 0
    for b in sorted(plan.layout.buffers, key=lambda b: b.offset):
        if at < b.offset:
            yield at, b.offset
        at = max(at, b.end)
    if at < plan.arena:
        yield at, plan.arena


def _moved(plan: Plan, offsets: dict[str, int], arena: int) -> Plan:
    (bank,) = plan.layout.banks
    buffers = tuple(replace(b, offset=offsets[b.name]) for b in plan.layout.buffers)
    layout = replace(plan.layout, buffers=buffers, banks=(replace(bank, size=arena),))
    return replace(plan, layout=layout, schedule=choose_directions(plan.schedule, buffers))
