"""baretorch studio: a local page on which to draw and move sliders while a board runs the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from baretorch.cli.flags import COMPILE, CORES, optional_model_argument, takes
from baretorch.cli.verb import Answer, board_option, port_option, show_progress, verb

if TYPE_CHECKING:
    from pathlib import Path

    from baretorch.cli.verb import ProgressLine
    from baretorch.machines.types import Machine
    from baretorch.options import Options
    from baretorch.studio.live import LiveModel
    from baretorch.studio.server import Tab
    from baretorch.targets.types import Board


@verb("studio")
@optional_model_argument
@board_option
@port_option
@takes("emulator", "console", "toolchain", *COMPILE, *CORES, "npu", "units", "watchdog")
@click.option(
    "--http-port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="Serve the page at this port. Default: any free one.",
)
@click.option("--open", "show", is_flag=True, help="Open the page in the browser.")
def studio(
    as_json: bool, model: str | None, board: Board, port: str | None, options: Options, http_port: int, show: bool
) -> Answer:
    """Try a model in the browser, with pictures and sliders.

    Without MODEL, a small network reads handwritten digits. The page is served to this computer only, until Ctrl-C.
    """
    import webbrowser

    from baretorch.cli.stages import need_machine
    from baretorch.files.write import scratch
    from baretorch.machines import choose_emulator
    from baretorch.studio.server import StudioServer

    need_machine(board, options, port)
    if port and model is None:
        raise click.UsageError("--port needs MODEL: the one that was flashed")
    with scratch("baretorch-studio-") as folder:
        with show_progress(as_json) as progress:
            tabs = make_tabs(model, board, port, options, folder, progress)
        server = StudioServer(tabs, http_port)
        click.echo(f"{server.url}\nCtrl-C ends it.", err=as_json)
        try:
            if show:
                webbrowser.open(server.url)
            server.serve_forever()
        except KeyboardInterrupt as end:
            if type(end) is not KeyboardInterrupt:  # the exit code reports SIGTERM; Ctrl-C is the normal end
                raise
        finally:
            server.server_close()
            for tab in tabs.values():
                tab.live.close()
    answers = sum(live.answers for live in {id(tab.live): tab.live for tab in tabs.values()}.values())
    name = next(iter(tabs.values())).live.made.compiled.graph.name
    where = port or choose_emulator(board, options.emulator)
    data = {"model": name, "board": board.name, "where": where, "url": server.url, "answers": answers}
    return Answer(data, f"{answers:,} answers")


def make_tabs(
    model: str | None, board: Board, port: str | None, options: Options, folder: Path, progress: ProgressLine
) -> dict[str, Tab]:
    """Return the tabs: digits, and MODEL, which may read digits itself. MODEL is compiled and running."""
    from dataclasses import replace

    from baretorch.options import DEFAULT
    from baretorch.studio.digits import MODEL
    from baretorch.studio.server import Tab

    own = live_model(model or str(MODEL), board, port, options, folder / "model", progress)
    own.describe()  # reports errors before the page is served
    if own.made.reads_digits:
        return {"digits": Tab("Draw a digit", own), "model": Tab("All inputs", own)}
    plain = replace(
        DEFAULT, int8=options.int8, emulator=options.emulator, console=options.console, toolchain=options.toolchain
    )
    other = live_model(str(MODEL), board, None, plain, folder / "digits", progress)
    return {"model": Tab(own.made.compiled.graph.name, own), "digits": Tab("Draw a digit", other)}


def live_model(
    model: str, board: Board, port: str | None, options: Options, folder: Path, progress: ProgressLine
) -> LiveModel:
    """Return the model at a path. Each build has its own folder below `folder`: the image before may still run."""
    from itertools import count

    from baretorch.cli.stages import compile_model
    from baretorch.explore.sweep import read_sweep
    from baretorch.machines import open_machine
    from baretorch.machines.hardware.serial import open_port
    from baretorch.measure.memory_map import memory_map
    from baretorch.pipeline import build_image
    from baretorch.report.page.pictures import map_picture
    from baretorch.studio.live import BuiltModel, LiveModel

    numbers = count()

    def make() -> BuiltModel:
        compiled = compile_model(model, board, options, progress)
        source, quantization = compiled.source, compiled.model.quantization
        swept = read_sweep(model, compiled.model).inputs if model.partition("::")[0].endswith(".py") else ()
        work = folder / str(next(numbers))
        progress("build")
        image = build_image(compiled, work, progress.build)
        picture = "" if board.hosted else map_picture(memory_map(image))  # addresses of a process mean nothing
        samples = quantization.samples if quantization else ()
        return BuiltModel(compiled, image, (source.examples, *samples, *swept), picture)

    def connect(made: BuiltModel) -> Machine:
        if port:
            return open_port(port, made.compiled.board)
        return open_machine(made.image, made.compiled.c.run, options.emulator, timed=True)

    return LiveModel(make, connect)
