"""A program of tests/fuzz/alias.py on the ladder: eager PyTorch, the interpreted Graph, and C under sanitizers.

All rungs are called three times in a row with different inputs, so that state moves on. C is generated in the ways that
share memory differently: with buffers in the arena and lent by the caller, in fp32 and int8, with int8 inputs and
outputs, for two cores, and as the program that calibration runs, in which every tensor is an output.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

import numpy as np

from baretorch import frontends, pipeline
from baretorch.errors import CompileError
from baretorch.frontends.torch.export import run_module
from baretorch.ir.graph import Array, Graph, interpret
from baretorch.ir.io import arrange_inputs, real_outputs, store_inputs
from baretorch.machines.host_program import computer
from baretorch.options import Buffers, Io, Optimize, Options
from baretorch.passes.rewrite import rebuild
from baretorch.passes.to_int8 import float_layers
from baretorch.plan import make_plan, shares
from baretorch.targets.boards import load_board
from baretorch.targets.parts import CoreGroup
from baretorch.targets.types import Board
from tests.fuzz.ladder import Wrong
from tests.fuzz.program import Program
from tests.guarded import Fault, Guarded, Outputs, run_guarded, told
from tests.models import int8_model

CALLS = 3
HOST = load_board("host")
TWO_CORES = replace(HOST, chip=replace(HOST.chip, cores=CoreGroup(2, "", 0)))  # threads: see tests/guarded/cores.h


@dataclass(frozen=True)
class Model:
    """C of a program, and what it must answer; `near` is how far it may be from that, in parts of the largest value."""

    c: Guarded
    want: list[Outputs]
    near: float


@dataclass(frozen=True)
class Subject:
    program: Program
    models: tuple[Model, ...]


def prepared(program: Program, int8: bool = True) -> Subject:
    """Through frontend, quantizer, passes and plan; each Graph's answers are compared with PyTorch's."""
    file = program.make()
    net, name = file["model"](), f"s{program.seed}"
    source = frontends.from_module(net, file["inputs"](), name)
    graph = pipeline.lower(source).graph
    calls = [file["_sample"](program.seed + 1000 * i) for i in range(1, CALLS + 1)]
    own, orders = copy.deepcopy(net), [port.order for port in graph.gives()]
    eager = [tuple(np.array(y) for y in run_module(own, inputs, orders)) for inputs in calls]
    inputs = [arrange_inputs(graph, x) for x in calls]
    want = _interpreted(graph, inputs)
    _compare("the Graph differs from PyTorch", want, eager, 1e-4)
    made = _variants(name, graph, inputs, want, 1e-4, program.seed)
    if int8:
        samples = [*calls, *file["calibration"]()]  # so that scales hold what is looked at
        small = int8_model(source, samples).graph
        near = 1 / 64 if float_layers(small) else 0.0
        for io in Io:
            try:
                own_io = pipeline.with_io(small, io)
            except CompileError:
                continue  # an input or output that no int8 layer reads or makes
            given = [store_inputs(own_io, x) for x in inputs]
            rounded = _interpreted(own_io, given)
            _near(eager, [real_outputs(own_io, y) for y in rounded], program)
            shift = program.seed + (io is Io.INT8)
            made += _variants(f"{name}_{io.value}", own_io, given, rounded, near, shift, few=True)
    return Subject(program, tuple(made))


def _variants(
    name: str, graph: Graph, inputs: list[list[Array]], want: list[Outputs], near: float, seed: int, few: bool = False
) -> list[Model]:
    """C for a graph: in the arena and lent, on one core and two, and with every tensor as an output; of these two or
    three by the seed, as most of the time goes into compiling them, or with `few` one or two."""

    def model(kind: str, board: Board, options: Options, of: Graph = graph, pointers: bool = True) -> Model:
        plans = {"forward": make_plan(of, board, options)}
        optimize = Optimize.SPEED if seed % 8 == 0 else Optimize.SIZE
        c = Guarded(f"{name}_{kind}", plans, [("forward", x) for x in inputs], pointers, optimize)
        return Model(c, want if of is graph else _interpreted(of, inputs), near)

    lent, arena = Options(buffers=Buffers.CALLER), Options(buffers=Buffers.ARENA)
    found = [model("caller", HOST, lent)] if not few or seed % 2 else []
    if seed % 2:
        with mock.patch.object(shares, "LEAST", 1):
            found.append(model("cores", TWO_CORES, replace(lent if seed % 3 else arena, cores=2)))
    else:
        found.append(model("arena", HOST, arena, pointers=bool(seed % 4)))
    if not few and graph.nodes and seed % 3:
        made = [n for node in graph.nodes for n in node.outputs]
        watched = rebuild(replace(graph, outputs=tuple(made), labels=(), output_orders=()), graph.nodes)
        found.append(model("watched", computer(), lent, watched))
    return found


def _interpreted(graph: Graph, inputs: Sequence[Sequence[Array]]) -> list[Outputs]:
    memory: dict[str, Array] = {}
    runs = [interpret(graph, x, memory=memory) for x in inputs]
    return [tuple(np.array(run[n]) for n in graph.outputs) for run in runs]


def _compare(kind: str, have: list[Outputs], need: list[Outputs], near: float) -> None:
    """Compare results, bit for bit if `near` is 0."""
    for run, (got, want) in enumerate(zip(have, need, strict=True)):
        for i, (a, b) in enumerate(zip(got, want, strict=True)):
            error = np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0)
            limit = near * (float(np.abs(b.astype(np.float64)).max(initial=0)) + 0.1) if near else 0.0
            if a.shape != b.shape or not error <= limit:
                raise Wrong(kind, f"output {i}, call {run}: by {error:.3g}, where {limit:.3g} is allowed")


def _near(eager: list[Outputs], rounded: Sequence[Sequence[Array]], program: Program) -> None:
    """Report whether int8 results are close. An error as large as the values themselves does not count as rounding."""
    for i in range(len(eager[0])):
        right, have = (np.concatenate([run[i].reshape(-1) for run in runs]) for runs in (eager, rounded))
        power, noise = (float(np.sqrt(np.mean(np.square(x, dtype=np.float64)))) for x in (right, have - right))
        if not noise <= 0.5 * power + 0.05:
            raise Wrong("int8 differs from PyTorch", f"output {i}: rms {noise:.3g} of {power:.3g}")


def run(subjects: Sequence[Subject], folder: Path) -> None:
    """Run all of them in one program. Raises Wrong or Fault for the first that fails."""
    found = run_guarded([m.c for s in subjects for m in s.models], folder)
    for subject in subjects:
        for model in subject.models:
            try:
                _compare("C differs from the Graph", found[model.c.name], model.want, model.near)
            except Wrong as wrong:
                raise Fault(model.c.name, str(wrong)) from None


def outcome(program: Program, folder: Path) -> str:
    """How one program ends: "right", "refused: …", or what is wrong with it."""
    try:
        run([prepared(program)], folder)
    except CompileError as error:
        return f"refused: {error}"
    except Wrong as wrong:
        return wrong.kind
    except Fault as fault:
        return f"{fault.model.partition('_')[2]}: {told(fault)[:60]}"
    except Exception as error:
        return f"internal: {type(error).__name__}: {error}"
    return "right"
