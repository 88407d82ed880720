"""The Schedule: which kernel computes what, on what executor, and when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from baretorch.ir.graph import Node, Op
from baretorch.ops.helpers.executor import CORE0, DMA, Executor
from baretorch.ops.helpers.kernel import Call, Distances, Kernel, Params


@dataclass(frozen=True)
class View:
    """The memory of a tensor before anything has an address: an offset in a buffer."""

    buffer: str
    offset: int = 0


@dataclass(frozen=True)
class Operand:
    """The `size` bytes from `offset` on of the buffer or constant `storage`, which a step reads or writes as `tensor`.
    `role` names a constant for people: a weight, a bias. If copies bring it to a `buffer` or take it from there, the
    step uses it there."""

    tensor: str
    storage: str
    size: int
    offset: int = 0
    constant: bool = False
    role: str = ""
    buffer: str = ""

    @property
    def end(self) -> int:
        return self.offset + self.size


@dataclass(frozen=True)
class Scratch:
    """Memory that a step uses while it runs."""

    name: str
    size: int


@dataclass(frozen=True)
class Guard:
    """A truth value in RAM, and the value it must have for a step to run."""

    condition: Operand
    holds: bool


@dataclass(frozen=True, eq=False)
class Step:
    """One kernel call. It runs only if all `guards` hold, the outermost first; a guard is read only if those before it
    hold. It starts when the copies named in `awaits` are done. Steps are compared by identity."""

    kernel: Kernel[Any]
    call: Call[Any]
    nodes: tuple[Node, ...]
    params: Params
    operands: tuple[Operand, ...]  # what it reads, then what it writes
    scratch: Scratch | None = None
    guards: tuple[Guard, ...] = ()
    executor: Executor = CORE0
    awaits: tuple[str, ...] = ()
    back: bool = False  # from the last byte to the first

    @property
    def function(self) -> str:
        """The C function that the step calls."""
        return self.kernel.back if self.back else self.kernel.function(self.call)

    def may_share(self, distance: int | None, ahead: int) -> bool:
        """Return whether an input may begin `ahead` bytes after an output, or before it if that is negative. `distance`
        is the input's of `distances`."""
        if distance is not None and (-ahead if self.back else ahead) >= distance:
            return True
        nearer = None if self.back else self.kernel.nearer(self.call)
        return nearer is not None and nearer.holds(ahead)

    @property
    def distances(self) -> Distances:
        """The required distance of each activation that the step reads from its output, in the direction of the step;
        see kernel.py."""
        return self.kernel.behind(self.call) if self.back else self.kernel.overlap(self.call)

    @property
    def is_empty(self) -> bool:
        """Report whether there is no element to compute or to move: C has no call of it."""
        op: Op = self.call.op
        return op.is_empty(self.call.inputs, self.call.outputs)

    @property
    def layer(self) -> str:
        """The tensor that its layer computes."""
        op: Op = self.call.op
        return op.layer(self.call.y)

    @property
    def is_partial(self) -> bool:
        """Report whether it computes partial sums of its layer."""
        return self.layer != self.call.y.name

    @property
    def reads(self) -> tuple[Operand, ...]:
        """The activations that its kernel reads."""
        return tuple(o for o in self.operands[: -len(self.call.outputs)] if not o.constant)

    @property
    def writes(self) -> tuple[Operand, ...]:
        return self.operands[-len(self.call.outputs) :]

    @property
    def uses(self) -> tuple[Operand, ...]:
        """The operands in RAM: conditions first, then what it reads, then what it writes."""
        return (*(g.condition for g in self.guards), *self.reads, *self.writes)


@dataclass(frozen=True)
class BackgroundCopy:
    """A copy of `source` to `target` that an engine makes while the cores work: a constant to a buffer, or bytes of an
    activation from their home to a buffer or back. It starts with its phase, once the data that the phase's steps await
    has arrived, and is done when a step awaits it. An executor makes one copy at a time on each of its channels."""

    name: str
    source: Operand
    target: Operand
    executor: Executor = DMA
    channel: int = 0


@dataclass(frozen=True)
class Await:
    """A wait for a copy, or for a unit's step."""

    what: BackgroundCopy | Step


@dataclass(frozen=True)
class Phase:
    """Steps that run at the same time, each on its own executor, and copies that start then. If they `meet`, all
    executors finish their earlier work first; otherwise each step only waits for its own executor. A unit's step comes
    first: the core that starts it computes its own step, and then waits for the unit."""

    steps: tuple[Step, ...]
    meet: bool = False
    copies: tuple[BackgroundCopy, ...] = ()

    @property
    def main(self) -> Step:
        """The step that names the phase: one of the cores, if there is one."""
        return next((step for step in self.steps if not step.kernel.unit), self.steps[0])

    def beside(self, step: Step) -> bool:
        """Return whether a unit computes the step while cores compute another."""
        return bool(step.kernel.unit) and self.main is not step


@dataclass(frozen=True)
class Schedule:
    """Consecutive phases, in which lifetimes are counted. All executors meet before the first and after the last."""

    phases: tuple[Phase, ...]
    executors: tuple[Executor, ...] = (CORE0,)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        return tuple(step for phase in self.phases for step in phase.steps)

    @cached_property
    def copies(self) -> dict[str, BackgroundCopy]:
        return {copy.name: copy for phase in self.phases for copy in phase.copies}

    @cached_property
    def cores(self) -> tuple[Executor, ...]:
        return tuple(executor for executor in self.executors if executor.is_core)

    def on(self, executor: Executor) -> Iterator[Step | BackgroundCopy | Await | None]:
        """Yield what a core does. In each phase it waits for its copies that a step awaits; then None stands for a
        meeting with the other cores; then it starts copies, computes its steps and starts those of units; then it waits
        for units that it started before its own step."""
        for phase in self.phases:
            awaited = dict.fromkeys(name for step in phase.steps for name in step.awaits)
            copies = (self.copies[name] for name in awaited)
            yield from (Await(copy) for copy in copies if copy.executor.host == executor)
            if phase.meet and len(self.cores) > 1:
                yield None
            yield from (copy for copy in phase.copies if copy.executor.host == executor)
            own = [step for step in phase.steps if step.executor.host == executor]
            yield from own
            yield from (Await(step) for step in own if phase.beside(step))


def one_by_one(steps: Iterable[Step]) -> Schedule:
    """Return a schedule with each step in its own phase. Where the executor changes, the next one waits for the
    previous one."""
    phases: list[Phase] = []
    for step in steps:
        meet = bool(phases) and phases[-1].steps[0].executor != step.executor
        phases.append(Phase((step,), meet))
    return Schedule(tuple(phases), tuple(dict.fromkeys(step.executor for p in phases for step in p.steps)))
