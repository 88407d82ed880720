"""baretorch monitor: stream inputs through an emulated or real board and watch the outputs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from baretorch.cli.flags import BUILD, COMPILE, CORES, model_argument, takes
from baretorch.cli.verb import Answer, board_option, console, port_option, show_progress, verb
from baretorch.errors import USER_ERROR

if TYPE_CHECKING:
    from rich.console import RenderableType

    from baretorch.explore.sweep import Sweep, SweepTrace
    from baretorch.options import Options
    from baretorch.targets.types import Board

LIVE_RATE = 25.0  # outputs per second while drawing: an emulator would be too fast to watch


@verb("monitor")
@model_argument
@board_option
@port_option
@takes("emulator", *BUILD, *COMPILE, *CORES, "npu", "units", "watchdog")
@click.option("--plot", is_flag=True, help="Plot the outputs, the expected values and the errors.")
@click.option("--png", type=click.Path(), metavar="FILE", help="Save the plot as a PNG file.")
@click.option("--count", type=click.IntRange(min=1), help="Send this number of inputs. Default: each once.")
@click.option("--rate", type=click.FloatRange(min=0.1), help="Limit the number of runs per second.")
def monitor(
    as_json: bool,
    model: str,
    board: Board,
    port: str | None,
    options: Options,
    plot: bool,
    png: str | None,
    count: int | None,
    rate: float | None,
) -> Answer:
    """Stream inputs through a board and show each output.

    Inputs come from the model file's sweep(), or inputs(); its truth(*inputs) returns the expected output.
    """
    from pathlib import Path

    from baretorch.cli.stages import compile_model, need_machine, opener
    from baretorch.explore.sweep import SweepTrace, read_sweep, stream
    from baretorch.measure.facts import wrong_answers
    from baretorch.pipeline import name_failing_layer
    from baretorch.report.png import need_matplotlib, write_png

    need_machine(board, options, port)
    if png:
        need_matplotlib()
    with show_progress(as_json) as progress:
        compiled = compile_model(model, board, options, progress)
        sweep = read_sweep(model, compiled.model)
        machine = opener(progress)(compiled, port)
    where = f"on port {port}" if port else f"emulated by {machine.name}"
    title = f"{compiled.graph.name} on {compiled.board.name}, {where}"
    total = count or len(sweep.inputs)
    trace = SweepTrace(sweep, compiled.graph)
    try:
        with _display(trace, f"{title}: {total} inputs", total, as_json, plot) as show:
            drawn = plot and sys.stdout.isatty() and not as_json
            with name_failing_layer(compiled):
                stream(machine, compiled.graph, trace, total, rate or (LIVE_RATE if drawn else None), show)
    except KeyboardInterrupt:
        pass  # the outputs so far are the answer
    finally:
        machine.close()
    if png and trace.x:
        write_png(trace, title, Path(png))
    data = {"model": compiled.graph.name, "board": compiled.board.name, "where": port or machine.name}
    wrong = wrong_answers(compiled, trace.answers, trace.right)
    data |= trace.to_json() | {"png": png if trace.x else None, "warnings": [wrong] if wrong else []}
    return Answer(data, _summary(trace, png, wrong), USER_ERROR if wrong else 0)


@contextmanager
def _display(trace: SweepTrace, title: str, total: int, as_json: bool, plot: bool) -> Iterator[Callable[[], None]]:
    """Yield a function to call after each output: it prints a line or redraws the plot. Without a terminal the plot is
    printed at the end."""
    if as_json:
        yield lambda: None
        return
    from baretorch.escape import markup

    screen = console()
    screen.print(markup(title))
    if not plot:
        yield lambda: screen.print(_line(trace))
        return
    if not screen.is_terminal:
        yield lambda: None
        if trace.x:
            screen.print(_plot(trace, total, 20))
        return
    from rich.live import Live

    height = max(8, min(22, screen.size.height - 15))  # title, both axes and the summary stay in sight
    with Live(console=screen, auto_refresh=False) as live:
        yield lambda: live.update(_plot(trace, total, height), refresh=True)


def _line(trace: SweepTrace) -> str:
    """Format the last output as a line."""
    x, y = trace.x[-1], trace.predicted[-1]
    is_index, is_class = trace.sweep.counts_inputs, trace.predicted_classes
    text = f"{len(trace.x):>5}  input {x:>9{'.0f' if is_index else '.4f'}}"
    form = ".0f" if is_class else ".4f"
    text += f"  output {y:>9{form}}"
    if trace.truth:
        text += f"  truth {trace.truth[-1]:>9{form}}  error {y - trace.truth[-1]:>+9{form}}"
    return text


def _plot(trace: SweepTrace, total: int, height: int) -> RenderableType:
    """Plot the outputs so far over the whole curve, and their errors below, with the last output as a line of text."""
    from rich.console import Group

    from baretorch.report.terminal.plot import Plot, Series

    sweep: Sweep = trace.sweep
    x, y = [sweep.x(i) for i in range(total)], sweep.curve(total)
    pairs = sorted(zip(x, y, strict=True))
    curve = Series(sweep.curve_name, [p[0] for p in pairs], [p[1] for p in pairs], "bright_black", line=True)
    answers = Series("predicted by the board", trace.x, trace.predicted, "bright_red")
    expected = [sweep.expected_value(i) for i in range(total)]
    y_range = (min(expected), max(expected))  # the range of all outputs, so that the plot does not jump
    below = max(3, height // 4)
    off = sorted(zip(trace.x, trace.errors, strict=True))
    errors = Series(f"output − {sweep.curve_name}", [p[0] for p in off], [p[1] for p in off], "bright_blue", line=True)
    error_plot = Plot([errors], below, x_range=(min(x), max(x)), y_range=(0.0, 0.0))
    return Group(Plot([curve, answers], height - below, y_range=y_range), error_plot, _line(trace))


def _summary(trace: SweepTrace, png: str | None, wrong: str | None) -> str:
    from baretorch.escape import markup
    from baretorch.measure.numbers import figure

    if not trace.x:
        return "no outputs"
    lines = [f"{len(trace.x)} outputs"]
    if trace.max_error_truth is not None and trace.mean_error_truth is not None:
        lines.append(f"mean absolute error against truth {figure(trace.mean_error_truth)}")
        lines.append(f"largest error against truth {figure(trace.max_error_truth)}")
    lines.append(f"largest error against {trace.sweep.reference} {figure(trace.max_error)}")
    if wrong:
        lines.append(f"[bold yellow]warning:[/] {markup(wrong)}")
    if png:
        lines.append(f"[cyan]{markup(png)}[/]")
    return "\n".join(lines)
