"""Copies of a schedule that is being made: when each begins, what awaits it, and the buffers for what they carry."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from baretorch.plan.schedule import BackgroundCopy, Phase
from baretorch.plan.types import Buffer


@dataclass
class Traffic:
    """Copies by the phase in which they begin, and by the one that awaits them."""

    begin: dict[int, list[BackgroundCopy]] = field(default_factory=lambda: defaultdict(list))
    await_: dict[int, list[BackgroundCopy]] = field(default_factory=lambda: defaultdict(list))
    buffers: list[Buffer] = field(default_factory=list)

    def add(self, copy: BackgroundCopy, begin: int, end: int, buffer: Buffer) -> None:
        self.begin[begin].append(copy)
        self.await_[end].append(copy)
        self.buffers.append(buffer)

    def __len__(self) -> int:
        return len(self.buffers)

    def with_copies(self, phases: Sequence[Phase], channels: int) -> tuple[Phase, ...] | None:
        """The phases with these copies, first those that are awaited first, each on the channel that is free longest;
        None if there are not as many."""
        ends = {copy.name: time for time, copies in self.await_.items() for copy in copies}
        free = list(range(channels))
        taken: dict[str, int] = {}
        done = []
        for time, phase in enumerate(phases):
            awaited = [copy.name for copy in self.await_.get(time, ())]
            free += [taken.pop(name) for name in awaited]
            copies = sorted(self.begin.get(time, ()), key=lambda copy: ends[copy.name])
            if len(copies) > len(free):
                return None
            taken |= {copy.name: free.pop(0) for copy in copies}
            first, *others = phase.steps
            steps = (replace(first, awaits=tuple(awaited)), *others)
            done.append(replace(phase, steps=steps, copies=tuple(replace(c, channel=taken[c.name]) for c in copies)))
        return tuple(done)
