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
    """The memory of a tensor, before anything has an address: so many bytes into a buffer."""

    buffer: str
    offset: int = 0


@dataclass(frozen=True)
class Operand:
    """What a step reads or writes: `size` bytes from `offset` on of the buffer or the constant `storage`, seen as
    `tensor`. The `role` is what a constant is to its step, for people: a weight, a bias. What a Copy brings there or
    takes from there is read and written in the `buffer`."""

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
    """Memory of a step's own, while it runs."""

    name: str
    size: int


@dataclass(frozen=True)
class Guard:
    """A truth value in RAM, and what it must be for a step to run."""

    condition: Operand
    holds: bool


@dataclass(frozen=True, eq=False)
class Step:
    """One kernel call. It runs only if all `guards` hold, the outermost first; a guard is read only if those before it
    hold. It begins when the copies that it `awaits`, by name, are done. Compared by identity."""

    kernel: Kernel[Any]
    call: Call[Any]
    nodes: tuple[Node, ...]
    params: Params
    operands: tuple[Operand, ...]  # what it reads, then what it writes
    scratch: Scratch | None = None
    guards: tuple[Guard, ...] = ()
    executor: Executor = CORE0
    awaits: tuple[str, ...] = ()
    back: bool = False  # it goes from the last byte to the first

    @property
    def function(self) -> str:
        """The C function that it calls."""
        return self.kernel.back if self.back else self.kernel.function(self.call)

    def may_share(self, distance: int | None, ahead: int) -> bool:
        """Whether an input may begin so far behind an output, if that is negative so far before it; the distance is one
        of `distances`."""
        if distance is not None and (-ahead if self.back else ahead) >= distance:
            return True
        nearer = None if self.back else self.kernel.nearer(self.call)
        return nearer is not None and nearer.holds(ahead)

    @property
    def distances(self) -> Distances:
        """Of each activation that it reads, from the output in the direction that it goes; see kernel.py."""
        return self.kernel.behind(self.call) if self.back else self.kernel.overlap(self.call)

    @property
    def is_empty(self) -> bool:
        """Whether it has no element to compute or to move: there is no call of it in C."""
        op: Op = self.call.op
        return op.is_empty(self.call.inputs, self.call.outputs)

    @property
    def layer(self) -> str:
        """The tensor that its layer makes."""
        op: Op = self.call.op
        return op.layer(self.call.y)

    @property
    def is_partial(self) -> bool:
        """Whether it makes partial sums of its layer."""
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
        """All of RAM that it reads, conditions first, then all that it writes."""
        return (*(g.condition for g in self.guards), *self.reads, *self.writes)


@dataclass(frozen=True)
class BackgroundCopy:
    """All of `source` goes to `target` while the cores go on: a constant to a buffer, or bytes of an activation from
    where they are at home to a buffer, or back. It begins with its phase, once the phase's steps have
    what they await, and is done when a step awaits it. An executor makes one at a time on each of its channels."""

    name: str
    source: Operand
    target: Operand
    executor: Executor = DMA
    channel: int = 0


@dataclass(frozen=True)
class Await:
    """Until a copy is done, or what a unit has begun."""

    what: BackgroundCopy | Step


@dataclass(frozen=True)
class Phase:
    """Steps that run at the same time, each on an executor of its own, and copies that begin then. If they `meet`, none
    of them begins before all that came earlier is done; else each only waits for its own executor. A unit's step comes
    first: the core that starts it goes on with its own, and waits for the unit then."""

    steps: tuple[Step, ...]
    meet: bool = False
    copies: tuple[BackgroundCopy, ...] = ()

    @property
    def main(self) -> Step:
        """What it is called after: a step of the cores, if there is one."""
        return next((step for step in self.steps if not step.kernel.unit), self.steps[0])

    def beside(self, step: Step) -> bool:
        """Whether a unit computes the step while cores do another."""
        return bool(step.kernel.unit) and self.main is not step


@dataclass(frozen=True)
class Schedule:
    """Phases one after the other: they are the time in which lifetimes are counted. All executors meet before the first
    and behind the last of them."""

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
        """What a core does: it waits for copies that it has begun, if a step of the phase awaits them; then None, where
        it meets the other cores; then the copies that it begins, its steps and those that it starts; then it waits for
        units that it has started before its own step."""
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
    """Each step in a phase of its own. Where the executor changes, one waits for the other."""
    phases: list[Phase] = []
    for step in steps:
        meet = bool(phases) and phases[-1].steps[0].executor != step.executor
        phases.append(Phase((step,), meet))
    return Schedule(tuple(phases), tuple(dict.fromkeys(step.executor for p in phases for step in p.steps)))
