"""baretorch tune: search the best model within budgets, and write a file that reproduces it."""

from __future__ import annotations

import shlex
from dataclasses import replace
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import click

from baretorch.cli.flags import flags, gathered, model_argument
from baretorch.cli.verb import Answer, board_option, out_option, stages, verb
from baretorch.errors import CompileError
from baretorch.options import Options

if TYPE_CHECKING:
    from baretorch.targets.types import Board


UNITS = {"": 1, "b": 1, **dict.fromkeys(("k", "kb", "kib"), 1 << 10), **dict.fromkeys(("m", "mb", "mib"), 1 << 20)}
TIMES = {"ms": 1.0, "us": 1e-3, "s": 1e3, "": 1.0}  # milliseconds


class Size(click.ParamType[int]):
    """Bytes: 61440, 60k or 1.5M, where k is 1024."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        text = str(value).strip()
        number = text.rstrip("kKMiBb")
        unit = UNITS.get(text[len(number) :].lower(), 0)
        try:
            found = float(number) * unit
        except ValueError:
            found = 0.0
        if not 1 <= found < 1 << 40:
            self.fail(f"{text} is no size; write 61440, 60k or 1.5M", param, ctx)
        return int(found)


class Milliseconds(click.ParamType[float]):
    """30ms, 1.5s or a plain number, which is milliseconds."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        text = str(value).strip()
        unit = next(unit for unit in TIMES if text.endswith(unit))
        try:
            found = float(text.removesuffix(unit)) * TIMES[unit]
        except ValueError:
            found = 0.0
        if not 0 < found < 1e9:
            self.fail(f"{text} is no time; write 30ms or 1.5s", param, ctx)
        return found


@verb("tune")
@model_argument
@board_option
@click.option(
    "--flash", type=Size(), metavar="SIZE", help="Limit the image to this size in bytes: 60k, 1.5M; k is 1024."
)
@click.option("--ram", "ram_budget", type=Size(), metavar="SIZE", help="Limit the RAM to this size in bytes: 20k.")
@click.option("--time", type=Milliseconds(), metavar="TIME", help="Limit the time of an inference: 30ms, 1.5s.")
@click.option(
    "--accuracy-drop",
    type=click.FloatRange(min=0.0),
    default=0.5,
    show_default=True,
    metavar="POINTS",
    help="Accept this loss of accuracy: percentage points for metrics up to 1, otherwise the metric's own unit.",
)
@click.option(
    "--metric", metavar="NAME", help="Select one of evaluate()'s numbers; larger is better. Default: the first."
)
@click.option(
    "--trials", type=click.IntRange(min=1), default=40, show_default=True, help="Measure this number of candidates."
)
@click.option("--samples", type=click.IntRange(min=1), help="Limit evaluate() to this number of inputs. Default: all.")
@click.option(
    "--target-samples",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="Run this number of inputs on the target.",
)
@click.option(
    "--storage",
    metavar="URL",
    help="Store the search in this SQLite database, sqlite:///FILE, and resume it from there.",
)
@click.option("--join", is_flag=True, help="Join a search that another process started.")
@flags("emulator", "toolchain", "optimize", "calibration", "observer", "io")
@click.option("--int8", is_flag=True, default=True, hidden=True)
@out_option("build/MODEL-BOARD-tuned")
@gathered
def tune(
    as_json: bool,
    model: str,
    board: Board,
    flash: int | None,
    ram_budget: int | None,
    time: float | None,
    accuracy_drop: float,
    metric: str | None,
    trials: int,
    samples: int | None,
    target_samples: int,
    storage: str | None,
    join: bool,
    options: Options,
    out: str | None,
) -> Answer:
    """Search precisions and channels that meet budgets.

    Candidates are built and measured; the model file's evaluate(run) returns their accuracy. The best is written as a
    TOML for --config and confirmed on the emulated board. If the file has train(model), it retrains the model after
    channels were removed.
    """
    from baretorch.cli.stages import compiled_model, opener
    from baretorch.explore.evaluate import evaluated
    from baretorch.files.write import staged, write_scratch
    from baretorch.frontends.model_file import load_evaluate, load_offer, load_train
    from baretorch.frontends.offer import Arguments
    from baretorch.machines import choose_emulator
    from baretorch.options import Weights
    from baretorch.pipeline import read
    from baretorch.report.page.tuning import tuning_page
    from baretorch.report.terminal.tuning import tuning_screen
    from baretorch.tune.benches import Benches
    from baretorch.tune.database import need_sqlite, own_database
    from baretorch.tune.order import points
    from baretorch.tune.result import Budget, Tuning
    from baretorch.tune.study import import_optuna
    from baretorch.tune.tune import Confirmed, Tuner, Winner, made_for, write_config
    from baretorch.tune.workbench import Choice, Variant, Workbench, need_tunable

    if join and not storage:
        raise click.UsageError("--join needs --storage")
    if not isfinite(accuracy_drop):
        raise click.UsageError(f"--accuracy-drop {accuracy_drop} is no number of points")
    import_optuna()
    if storage:
        need_sqlite(storage)
    choose_emulator(board, options.emulator)
    path, _, method = model.partition("::")
    offer = load_offer(path)
    load_evaluate(path, samples)
    if ram_budget is not None and board.chip.cluster is None:  # whose weights come to its scratchpad piece by piece
        options = replace(options, weights=Weights.FLASH)
    with stages(as_json) as stage:

        def made(arguments: Arguments) -> Workbench:
            stage(f"read {Path(path).name}" + "".join(f", {name} {value}" for name, value in arguments.items()))
            source = read(path, method or None, options, arguments)
            need_tunable(source)
            task, train = load_evaluate(path, samples, arguments), load_train(path, arguments)
            return Workbench(source, board, options, task, train, timed=time is not None, tell=stage)

        benches = Benches(offer, made)
        bench = benches.default
        source = bench.source
        stage("original")
        name, original = bench.original(metric)
        budget = Budget(original - points(original, accuracy_drop), flash, ram_budget, time, name)
        about = f"{board.name}: {', '.join(f'{what} {words}' for what, words in budget.words())}"
        tuner = Tuner(benches, name, original, budget, stage.show, samples, sha256(Path(path).read_bytes()).hexdigest())
        folder = Path(out) if out else Path("build") / f"{source.name}-{board.name}-tuned"
        if (before := made_for(folder)) not in (None, about):
            tuner.notes.append(f"{folder / 'tuned.toml'} was for {before}, and is replaced")
        with staged(folder) as work:
            url = storage or own_database(folder)
            study = tuner.study(url, join)
            stage("plain int8")
            plain = bench.variant(Choice(arguments=offer.default))
            whole = tuner.candidate("int8", plain)
            if time is not None and whole.milliseconds is None and not whole.lacks:
                raise CompileError(
                    f"--time: how long an inference takes on {board.name} is not known", try_="leave it out"
                )
            if not join:
                if known := len(study.done()):
                    tuner.notes.append(f"of all trials {known} were known from before")
                tuner.begin(study, trials)
            try:
                study.work(tuner.measure, lambda done, all_: stage.show(f"search, {done} of {all_}", done, all_))
            except KeyboardInterrupt:
                click.echo(f"stopped after {len(study.done())} trials; the same command goes on with them", err=True)
                raise
            if join:
                done = {"model": source.name, "board": board.name, "study": study.name, "trials": len(study.done())}
                return Answer(done, f"{done['trials']} trials are done: the result is where the search was begun")
            winners = [Winner(whole, plain), *tuner.found(study.done())]
            winners += tuner.improved(winners)

            def confirm(variant: Variant) -> Confirmed:
                """What its file makes, on the emulated board."""
                bench = tuner.bench_of(variant)
                write_config(variant, bench.scales(variant), work, about)
                stage("confirm")
                again = replace(options, config=str(work / "tuned.toml"))
                compiled = compiled_model(model, board, again, stage)
                found = evaluated(compiled, bench.task, opener(stage), stage.show, None, target_samples)
                metrics = found.columns[-1].metrics
                return Confirmed(compiled.graph, metrics[name], found.target_samples, found.samples)

            best, confirmed = tuner.confirmed(winners, confirm)
            tuning = Tuning(
                source.name,
                board.name,
                name,
                original,
                budget,
                whole,
                tuple(w.candidate for w in winners),
                best.candidate,
                tuple(tuner.steps),
                tuner.noise(),
                confirmed.accuracy,
                confirmed.samples,
                confirmed.total,
                trials,
                tuple(tuner.notes),
            )
            said = replace(options, config=str(folder / "tuned.toml")).command(board.name, "run")
            again = said.replace("MODEL", shlex.quote(model), 1)
            write_scratch(work / "tuned.html", tuning_page(tuning, again))
            files = [str(folder / p.name) for p in sorted(work.iterdir())]
    return Answer(tuning.to_json() | {"files": files}, tuning_screen(tuning, files, again))
