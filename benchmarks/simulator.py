"""Measure the speed of the cluster's simulator: `python benchmarks/simulator.py`.

It prints instructions per second of CPU time, of a model on one core and on all. No other figure here depends on the
computer.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from baretorch import pipeline
from baretorch.escape import c_prefix
from baretorch.ir.io import store_inputs
from baretorch.machines.cluster.machine import ClusterMachine
from baretorch.machines.link import Link
from baretorch.machines.run import call_image
from baretorch.options import Io, Options, Units
from baretorch.targets.boards import load_board

ROOT = Path(__file__).resolve().parents[1]
GOAL = 100  # million instructions of one core per second
RUNS = 20


def speed(cores: int) -> float:
    """Return million instructions per second, of all cores together."""
    options = Options(int8=True, io=Io.INT8, cores=cores, units=Units.OFF)
    model = pipeline.lower_file(str(ROOT / "zoo" / "kws.py"), options)
    compiled = pipeline.compile_lowered(model, load_board("cluster8"), options)
    with tempfile.TemporaryDirectory() as folder:
        machine = ClusterMachine(pipeline.build_image(compiled, Path(folder)), compiled.c.run)
        link, inputs = Link(machine), store_inputs(compiled.graph, model.source.examples)
        link.hello(c_prefix(compiled.graph.name))
        call_image(link, compiled.graph, inputs)
        begin = time.process_time()
        for _ in range(RUNS):
            call_image(link, compiled.graph, inputs)
        seconds = time.process_time() - begin
        trace = machine.trace()
        machine.close()
    assert trace is not None
    return RUNS * sum(span.instructions for span in trace.spans) / seconds / 1e6


if __name__ == "__main__":
    alone, together = speed(1), speed(8)
    print(f"kws int8 on cluster8: {alone:.0f} MIPS on one core (goal: {GOAL}), {together:.0f} MIPS on eight together")
    raise SystemExit(alone < GOAL)
