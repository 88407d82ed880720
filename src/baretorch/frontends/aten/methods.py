"""The Graphs of a model's methods, which are ATen programs, and the state that they share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from baretorch.frontends.aten.program import AtenProgram, AtenState
from baretorch.frontends.aten.table import to_graph
from baretorch.ir.graph import Graph


class LoweredMethods(Mapping[str, Graph]):
    """The Graph of each method, created at its first use, so that a program that cannot be lowered can still be
    shown."""

    def __init__(self, programs: Mapping[str, AtenProgram]) -> None:
        self._programs = programs
        self._graphs: dict[str, Graph] = {}

    def __getitem__(self, method: str) -> Graph:
        if method not in self._graphs:
            self._graphs[method] = to_graph(self._programs[method])
        return self._graphs[method]

    def __iter__(self) -> Iterator[str]:
        return iter(self._programs)

    def __len__(self) -> int:
        return len(self._programs)


def share_state(programs: Mapping[str, AtenProgram]) -> dict[str, AtenProgram]:
    """Give all methods the state that one of them changes, including methods that only read it or do not use it."""
    initial = {s.name: p.constants[s.name] for p in programs.values() for s in p.state}
    shared = {}
    for name, p in programs.items():
        own = {s.name: s for s in p.state}
        state = tuple(own.get(s, AtenState(s, s)) for s in initial)
        shared[name] = replace(p, state=state, constants={**p.constants, **initial})
    return shared
