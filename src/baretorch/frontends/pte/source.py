"""Converts an ExecuTorch file to a Source."""

from __future__ import annotations

from dataclasses import replace

from baretorch.frontends.aten.methods import LoweredMethods, share_state
from baretorch.frontends.aten.program import check_program_sizes
from baretorch.frontends.calibration import examples_of
from baretorch.frontends.pte.reader import read_pte_methods
from baretorch.frontends.source import LoadRequest, Source, example_inputs, one_of, random_inputs
from baretorch.stopwatch import timed


def load_pte(request: LoadRequest) -> Source:
    """Load an ExecuTorch file."""
    request.need_fixed("a .pte")
    with timed("model"):
        read = read_pte_methods(request.file.read_bytes(), request.name, request.method)
        programs = share_state({m: replace(p, file=str(request.file)) for m, p in read.items()})
        for program in programs.values() if not request.trust else ():
            check_program_sizes(program)
        method = one_of(programs, request.method or ("forward" if "forward" in programs else None))
        program, graphs = programs[method], LoweredMethods(programs)
        notes: list[str] = []
        if request.inputs is None and (request.calibration or any(request.file.parent.glob("*.npz"))):
            found = examples_of(request.file, graphs[method], notes, request.calibration)
            request = replace(request, inputs=found)
        return Source(
            request.name,
            graphs,
            random_inputs((i.stored, i.dtype) for i in program.inputs)
            if request.inputs is None
            else example_inputs(request, graphs[method]),
            method=method,
            notes=(*program.notes, *notes),
            texts={"aten": program.text},
            calls=len(program.calls),
            calls_are="ATen call",
        )
