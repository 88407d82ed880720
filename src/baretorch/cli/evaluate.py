"""baretorch evaluate: the task's own metrics, in PyTorch, on the host and on the target."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from baretorch.cli.flags import MEMORY, flags, gathered, model_argument
from baretorch.cli.verb import Answer, Body, Stage, board_option, stages, verb
from baretorch.options import Io, Options

if TYPE_CHECKING:
    from baretorch.frontends.model_file import Evaluate
    from baretorch.pipeline import Compiled
    from baretorch.ports import Answer as Outputs
    from baretorch.ports import Runner
    from baretorch.report.evaluation import Column, Evaluation
    from baretorch.targets.types import Board


@dataclass
class _Watched:
    """Runs, counts and shows how far it is."""

    run: Runner
    title: str
    total: int
    stage: Stage
    began: float = field(default_factory=time.monotonic)
    count: int = 0

    def __call__(self, *inputs: Any) -> Outputs:
        answer = self.run(*inputs)
        self.count += 1
        rate = self.count / max(time.monotonic() - self.began, 1e-3)
        self.stage.show(f"{self.title} {rate:,.0f}/s", self.count, self.total)
        return answer

    def reset(self) -> None:
        self.run.reset()


def _int8_by_default(body: Body) -> Body:
    """--int8 is what --float leaves out."""

    @wraps(body)
    def decided(*arguments: Any, as_float: bool, int8: bool, **rest: Any) -> Answer:
        if as_float and (int8 or rest["keep_float"] or rest["io"] != Io.FLOAT):
            raise click.UsageError("--float excludes --int8, --keep-float and --io int8")
        return body(*arguments, int8=not as_float, **rest)

    return decided


@verb("evaluate")
@model_argument
@board_option
@click.option("--port", metavar="PORT", help="The board's serial port; without it the board is emulated.")
@flags("emulator", "toolchain", "optimize")
@click.option("--float", "as_float", is_flag=True, help="Leave the model in fp32. Default: int8.")
@flags("keep_float", "observer", "io", *MEMORY, "check_inputs")
@click.option("--int8", is_flag=True, hidden=True)
@click.option("--samples", type=click.IntRange(min=1), help="Let evaluate() take so many inputs. Default: all.")
@click.option("--target-samples", type=click.IntRange(min=1), help="How many of them the target runs. Default: all.")
@_int8_by_default
@gathered
def evaluate(
    as_json: bool,
    model: str,
    board: Board,
    port: str | None,
    options: Options,
    samples: int | None,
    target_samples: int | None,
) -> Answer:
    """Measure a model's task in PyTorch, on the host and on a board.

    The model file's evaluate(run) returns named numbers; run(*inputs) gives the model's answer. The host runs all of
    them, the target all or --target-samples of them, evenly spread; their answers must be the same.
    """
    from baretorch.cli.work import compiled_model
    from baretorch.emulators import choose_emulator
    from baretorch.frontends.model_file import load_evaluate
    from baretorch.report.evaluation import evaluation_screen

    if port and options.emulator:
        raise click.UsageError("--port and --emulator exclude each other")
    task = load_evaluate(model.partition("::")[0], samples)
    if not port:
        choose_emulator(board, options.emulator)
    with stages(as_json) as stage:
        compiled = compiled_model(model, board, options, stage, unless_done=True)
        found = evaluated(compiled, task, port, target_samples, stage)
    return Answer(found.to_json(), evaluation_screen(found))


def evaluated(
    compiled: Compiled,
    task: Evaluate,
    port: str | None,
    target_samples: int | None,
    stage: Stage,
) -> Evaluation:
    """The task's metrics in PyTorch, on the host and on the target, whose answers must be the host's."""
    from baretorch.cli.work import opened
    from baretorch.emulators.session import Checker, Recorder, Session
    from baretorch.errors import CompileError
    from baretorch.passes.to_int8 import float_layers
    from baretorch.pipeline import compile_source
    from baretorch.report.evaluation import Evaluation
    from baretorch.report.facts import is_int8
    from baretorch.targets.boards import load_board

    source, graph, name = compiled.source, compiled.graph, compiled.board.name
    fp32 = bool(source.float_graphs) or source.quantized is None
    dtype = "int8" if is_int8(graph) else "fp32"
    if source.eager is None:
        raise CompileError(f"{source.name} is not a Python model file, so PyTorch cannot run it")

    pytorch = _Watched(source.eager(), "PyTorch", 0, stage)
    in_pytorch = _measured("pytorch", "PyTorch fp32" if fp32 else "PyTorch", task, pytorch)

    same = Options(optimize=compiled.options.optimize, io=compiled.options.io)
    host = compile_source(source, load_board("host"), same)
    session = Session(opened(host, None, stage), host.graph)
    recorder = Recorder(session)
    on_host = _measured("host", f"{dtype} on the host", task, _Watched(recorder, "host", pytorch.count, stage))
    session.close()

    total = len(recorder.answers)
    every = 1 if graph.state or target_samples is None else max(1, total // target_samples)
    session = Session(opened(compiled, port, stage), graph)
    checker = Checker(session, recorder, every, dtype == "int8" and not float_layers(graph), name)
    on_target = _measured("target", f"{dtype} on {name}", task, _Watched(checker, name, total, stage))
    session.close()
    return Evaluation(compiled, port or session.machine.name, total, checker.ran, (in_pytorch, on_host, on_target))


def _measured(key: str, title: str, task: Evaluate, run: Runner) -> Column:
    from baretorch.report.evaluation import Column

    began = time.monotonic()
    return Column(key, title, task(run), time.monotonic() - began)
