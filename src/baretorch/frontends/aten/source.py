"""Converts ATen programs to a Source, for torch.export, .pt2 and .pte. It does not need torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from baretorch.frontends.aten.program import AtenProgram, AtenState, check_sizes
from baretorch.frontends.aten.table import to_graph
from baretorch.frontends.calibration import examples_of
from baretorch.frontends.source import Asked, Source, example_inputs, one_of, random_inputs
from baretorch.ir.graph import Graph
from baretorch.stopwatch import timed


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


def load_pte(asked: Asked) -> Source:
    """Load an ExecuTorch file."""
    from baretorch.frontends.pte.reader import read_pte_methods

    asked.need_fixed("a .pte")
    with timed("model"):
        read = read_pte_methods(asked.file.read_bytes(), asked.name, asked.method)
        programs = share_state({m: replace(p, file=str(asked.file)) for m, p in read.items()})
        for program in programs.values() if not asked.trust else ():
            check_sizes(program)
        method = one_of(programs, asked.method or ("forward" if "forward" in programs else None))
        program, graphs = programs[method], LoweredMethods(programs)
        if asked.inputs is None and (asked.calibration or any(asked.file.parent.glob("*.npz"))):
            asked = replace(asked, inputs=examples_of(asked.file, graphs[method], asked.calibration))
        return Source(
            asked.name,
            graphs,
            random_inputs((i.stored, i.dtype) for i in program.inputs)
            if asked.inputs is None
            else example_inputs(asked, graphs[method]),
            method=method,
            notes=program.notes,
            texts={"aten": program.text},
            calls=len(program.calls),
            calls_are="ATen call",
        )
