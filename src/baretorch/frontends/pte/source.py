"""Converts an ExecuTorch file to a Source."""

from __future__ import annotations

from dataclasses import replace

from baretorch.frontends.aten.methods import LoweredMethods, share_state
from baretorch.frontends.aten.program import check_sizes
from baretorch.frontends.calibration import examples_of
from baretorch.frontends.pte.reader import read_pte_methods
from baretorch.frontends.source import Asked, Source, example_inputs, one_of, random_inputs
from baretorch.stopwatch import timed


def load_pte(asked: Asked) -> Source:
    """Load an ExecuTorch file."""
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
