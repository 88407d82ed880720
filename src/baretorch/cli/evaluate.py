"""baretorch evaluate: the task's own metrics, for the original, on the host and on the target."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from baretorch.cli.flags import MEMORY, flags, gather_options, model_argument
from baretorch.cli.verb import Answer, Body, board_option, port_option, show_progress, verb
from baretorch.errors import USER_ERROR
from baretorch.options import Io, Observer, Options

if TYPE_CHECKING:
    from baretorch.targets.types import Board


def _int8_by_default(body: Body) -> Body:
    """Set --int8 unless --float is given."""

    @wraps(body)
    def set_int8(*arguments: Any, as_float: bool, int8: bool, **rest: Any) -> Answer:
        changed = (rest["observer"] != Observer.HISTOGRAM, rest["io"] == Io.INT8)
        given = (rest["keep_float"], rest["config"], *changed)
        if as_float and (int8 or any(given)):
            raise click.UsageError("--float excludes --int8, --keep-float, --config, --observer minmax and --io int8")
        return body(*arguments, int8=not as_float, **rest)

    return set_int8


@verb("evaluate")
@model_argument
@board_option
@port_option
@flags("emulator", "console", "toolchain", "optimize")
@click.option("--float", "as_float", is_flag=True, help="Keep the model in fp32. Default: int8.")
@flags("calibration", "keep_float", "config", "observer", "io", *MEMORY, "check_inputs", "npu", "units")
@click.option("--int8", is_flag=True, hidden=True)
@click.option("--samples", type=click.IntRange(min=1), help="Limit evaluate() to this number of inputs. Default: all.")
@click.option(
    "--target-samples", type=click.IntRange(min=1), help="Run this number of them on the target. Default: all."
)
@_int8_by_default
@gather_options
def evaluate(
    as_json: bool,
    model: str,
    board: Board,
    port: str | None,
    options: Options,
    samples: int | None,
    target_samples: int | None,
) -> Answer:
    """Measure the metrics of a task on the host and on a board.

    The original is measured too. The model file's evaluate(run) returns named numbers; run(*inputs) returns the model's
    outputs. The host runs all inputs; the target runs all, or --target-samples of them, evenly spread. Host and target
    must return the same.
    """
    from baretorch.cli.stages import compile_model, need_machine, opener
    from baretorch.errors import CompileError
    from baretorch.explore.evaluate import evaluate_task
    from baretorch.frontends.model_file import load_evaluate
    from baretorch.pipeline import arguments_of, name_failing_layer
    from baretorch.report.terminal.evaluation import evaluation_screen

    need_machine(board, options, port)
    task = load_evaluate(model.partition("::")[0], samples, arguments_of(options))
    with show_progress(as_json) as progress:
        compiled = compile_model(model, board, options, progress, unless_quantized=True)
        if not options.int8 and compiled.graph.is_int8:
            raise CompileError("--float: the model is quantized already", try_="leave out --float: it is int8 as it is")
        with name_failing_layer(compiled):
            found = evaluate_task(compiled, task, opener(progress), progress.show, port, target_samples)
    return Answer(found.to_json(), evaluation_screen(found), USER_ERROR if found.wrong else 0)
