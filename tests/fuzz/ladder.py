"""Run a program on all rungs: eager PyTorch, the interpreted Graph, int8 compared with pt2e's reference, and images.
Every rung runs twice, so that state is seen to change. Tolerances are not guessed: float32 may differ by what PyTorch
itself loses against double precision, and int8 by what pt2e's int8 model loses. Images must give the Graph's bits in
int8."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from baretorch import frontends, pipeline
from baretorch.errors import CompileError
from baretorch.frontends.torch.export import run_module
from baretorch.ir.graph import Array, Graph, Node, State, interpret
from baretorch.ir.verify import verify
from baretorch.machines import open_machine
from baretorch.machines.link import Link
from baretorch.machines.run import call_image
from baretorch.ops.int8.quantize import Dequantize
from baretorch.options import Optimize, Options
from baretorch.passes.order import lower_graph
from baretorch.passes.to_int8 import float_layers
from baretorch.targets.boards import load_board
from tests.fuzz.program import Program
from tests.models import int8_model

RUNS = 2
Answers = list[tuple[Array, ...]]  # of each run
FOUND = Path("build/fuzz")  # where model files of wrong programs are left
PORTS = 200  # of an image: the protocol counts inputs and outputs in a byte each


class Wrong(Exception):
    """Two rungs differ; `kind` says which."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind


@dataclass(frozen=True)
class Subject:
    """A program compiled to Graphs, in float and in int8, with the interpreter's answers. `tolerances` is how far from
    them an image may be in float."""

    program: Program
    inputs: tuple[Array, ...]
    graphs: tuple[Graph, Graph]
    answers: tuple[Answers, Answers]
    tolerances: tuple[float, ...]  # of each output

    @property
    def coarse(self) -> tuple[float, ...]:
        """Return the tolerance for an int8 graph with float layers, whose last bit may move a later int8 step."""
        return tuple(float(np.abs(y).max(initial=0)) / 64 for y in self.answers[0][0])


def compiled(program: Program) -> Subject:
    """Through frontend, quantizer and passes, each held against PyTorch."""
    file = program.make()
    model, inputs = file["model"](), file["inputs"]()
    source = frontends.from_module(model, inputs, "fuzz")
    graph = lower_graph(source.graph)
    orders = [port.order for port in source.graph.gives()]
    eager = _asked(model, inputs, orders)
    exact = _asked(file["model"]().double(), tuple(x.double() for x in inputs), orders)
    answers = _interpreted(graph, source.examples)
    tolerances = tuple(
        max(_tolerance(run[i], right[i]) for run, right in zip(eager, exact, strict=True)) for i in range(len(orders))
    )
    _compare("the Graph differs from PyTorch", answers, exact, tolerances)
    quantized = int8_model(source, file["calibration"]())
    small = quantized.graph
    rounded = _interpreted(small, source.examples)
    assert quantized.int8_answers is not None
    recurrent = any(word in s.layer for s in program.statements for word in ("LSTM", "GRU"))
    for i, (ours, theirs, right) in enumerate(zip(rounded[0], quantized.int8_answers, exact[0], strict=True)):
        _judge_int8(i, ours, theirs, right, recurrent, _step(small, small.outputs[i]))
    return Subject(program, source.examples, (graph, small), (answers, rounded), tolerances)


def _asked(model: Any, inputs: Sequence[Any], orders: Sequence[Sequence[int]]) -> Answers:
    own = copy.deepcopy(model)
    return [run_module(own, inputs, orders) for _ in range(RUNS)]


def _interpreted(graph: Graph, inputs: Sequence[Array]) -> Answers:
    memory: dict[str, Array] = {}
    runs = [interpret(graph, inputs, memory=memory) for _ in range(RUNS)]
    return [tuple(run[n] for n in graph.outputs) for run in runs]


def _tolerance(eager: Array, exact: Array) -> float:
    """Return 16 times the loss of PyTorch in float32, and at least a few last bits of the largest value."""
    lost = float(np.abs(eager - exact).max(initial=0))
    return 16 * lost + 4e-6 * float(np.abs(exact).max(initial=0)) + 1e-30


def _compare(kind: str, have: Answers, need: Answers, tolerances: Sequence[float]) -> None:
    for run, (got, want) in enumerate(zip(have, need, strict=True)):
        for i, (a, b, limit) in enumerate(zip(got, want, tolerances, strict=True)):
            error = float(np.abs(a.astype(np.float64) - b).max(initial=0))
            if not error <= limit:
                raise Wrong(kind, f"output {i}, run {run}: by {error:.3g}, where {limit:.3g} is allowed")


def _judge_int8(i: int, ours: Array, theirs: Array, right: Array, recurrent: bool, step: float = 0.0) -> None:
    """Our int8 answer may be as far from pt2e's as twice what pt2e loses, or a two hundredth of the largest value; or
    no number of it is more than a step of the output's scale away, which one rounding is. Recurrent layers, which
    pt2e computes in float, must keep 15 dB. Where pt2e divides 0 by what was not 0 in float, it has no answer, and
    ours is compared with float's."""
    theirs = np.where(np.isfinite(right) & ~np.isfinite(theirs), right, theirs)
    power, noise, apart = (
        float(np.sqrt(np.mean(np.square(x.astype(np.float64))))) for x in (right, theirs - right, ours - theirs)
    )
    largest = float(np.abs(right).max(initial=0))
    limit = max(2 * noise, largest / 200, 10 ** (-15 / 20) * power if recurrent else 0)
    if not apart <= limit and not float(np.abs(ours - theirs).max(initial=0)) <= 1.001 * step:
        raise Wrong("int8 differs from pt2e", f"output {i}: rms {apart:.3g}, where {limit:.3g} is allowed")


def _step(graph: Graph, output: str) -> float:
    """The scale of an output that int8 makes; 0 of one that float makes."""
    op = next((node.op for node in graph.nodes if output in node.outputs), None)
    return op.scale if isinstance(op, Dequantize) else 0.0


def merged(subjects: Sequence[Subject], which: int) -> Graph:
    """One graph that holds the graphs of all."""
    tensors, nodes, inputs, outputs = {}, [], [], []
    state: list[State] = []
    for i, subject in enumerate(subjects):
        graph = subject.graphs[which]
        new = {name: f"k{i}_{name}" for name in graph.tensors}
        tensors |= {new[n]: replace(t, name=new[n]) for n, t in graph.tensors.items()}
        nodes += [Node(n.op, tuple(new[x] for x in n.inputs), tuple(new[x] for x in n.outputs)) for n in graph.nodes]
        inputs += [new[n] for n in graph.inputs]
        outputs += [new[n] for n in graph.outputs]
        state += [replace(s, name=new[s.name], next=new[s.next]) for s in graph.state]
    return verify(Graph("fuzz", tensors, tuple(nodes), tuple(inputs), tuple(outputs), tuple(state)))


def run_image(subjects: Sequence[Subject], which: int, board: str, folder: Path, optimize: str) -> None:
    """Run all methods in one image on a board, which must give the interpreter's results, bit for bit in int8. Reports
    the first difference."""
    graph = merged(subjects, which)
    inputs = [x for s in subjects for x in s.inputs]
    source = frontends.Source("fuzz", {"forward": graph}, tuple(inputs))
    done = pipeline.compile_graph(source, graph, load_board(board), Options(optimize=Optimize(optimize)))
    machine = open_machine(pipeline.build_image(done, folder), done.c.run)
    try:
        link = Link(machine)
        runs = [list(call_image(link, graph, inputs)) for _ in range(RUNS)]
    finally:
        machine.close()
    for subject in subjects:
        want = subject.answers[which]
        have = [tuple(run.pop(0) for _ in want[0]) for run in runs]
        try:
            if which and not float_layers(subject.graphs[which]):
                _same_bits(have, want)
            else:
                limits = subject.coarse if which else subject.tolerances
                _compare("the image differs from the Graph", have, want, limits)
        except Wrong as wrong:
            raise Wrong(f"{wrong.kind} ({board}, {optimize})", f"seed {subject.program.seed}, {wrong}") from None


def _same_bits(have: Answers, want: Answers) -> None:
    for run, (got, need) in enumerate(zip(have, want, strict=True)):
        for i, (a, b) in enumerate(zip(got, need, strict=True)):
            if a.tobytes() != b.tobytes():
                count = int((a != b).sum())
                raise Wrong("the int8 image differs from the Graph", f"output {i}, run {run}: {count} of {a.size}")


def outcome(program: Program, folder: Path, boards: Sequence[tuple[str, str]] = ()) -> str:
    """How one program ends: "right", "refused: …", or what is wrong with it."""
    try:
        subject = compiled(program)
        for board, optimize in boards:
            for which in range(2):
                run_image([subject], which, board, folder / f"{board}-{optimize}-{which}", optimize)
    except CompileError as error:
        return f"refused: {error}"
    except Wrong as wrong:
        return wrong.kind
    except Exception as error:
        return f"internal: {type(error).__name__}: {error}"
    return "right"


def shrunk(program: Program, judge: Callable[[Program], str], tries: int = 200) -> Program:
    """Return the smallest program found that ends in the same wrong way; `judge` is an `outcome`."""
    kind = _kind(judge(program))
    best, going = program, True
    while going and tries > 0:
        going = False
        for smaller in best.smaller():
            tries -= 1
            if tries < 0:
                break
            if len(smaller.statements) < len(best.statements) or len(smaller.outputs) < len(best.outputs):
                try:
                    file = smaller.make()
                    with torch.no_grad():
                        file["model"]()(*file["inputs"]())
                except Exception:
                    continue  # it does not run in PyTorch
                if _kind(judge(smaller)) == kind:
                    best, going = smaller, True
                    break
    return best


def _kind(text: str) -> str:
    """Return the part of an error that stays the same while a program shrinks: refusals and internal errors name layers
    and sizes."""
    return text.split(":")[0] if text.startswith("refused") else ":".join(text.split(":")[:2])


def left(program: Program, error: str, judge: Callable[[Program], str]) -> str:
    """Make a wrong program small, leave it as a model file, and say where."""
    small = shrunk(program, judge)
    FOUND.mkdir(parents=True, exist_ok=True)
    path = FOUND / f"seed_{program.seed}.py"
    path.write_text(small.source(f"tests/fuzz, seed {program.seed}: {error.splitlines()[0]}"))
    return f"seed {program.seed}: {error}\nleft as {path}:\n{small.source()}"
