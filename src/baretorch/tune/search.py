"""Run a whole search: from a model file, a board and budgets to a configuration that is confirmed on the board."""

from __future__ import annotations

import re
import shlex
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from io import BytesIO
from math import isfinite
from pathlib import Path

import numpy as np

from baretorch.errors import CompileError
from baretorch.escape import line
from baretorch.explore.evaluate import evaluate_task
from baretorch.files.read import read_file
from baretorch.files.write import stage_files, write_scratch
from baretorch.frontends.choices import Arguments
from baretorch.frontends.model_file import load_evaluate, load_offer, load_train
from baretorch.frontends.user_code import import_once
from baretorch.ir.graph import Quant
from baretorch.machines.types import Machine
from baretorch.measure.run import Show
from baretorch.options import Options, Weights
from baretorch.pipeline import Compiled, compile_source, read
from baretorch.quantize.config import scale_arrays
from baretorch.targets.types import Board
from baretorch.tune.result import Budget, Tuning, points
from baretorch.tune.study import Study, import_optuna, need_sqlite, own_database
from baretorch.tune.tuner import Confirmation, Tuner, Winner
from baretorch.tune.workbench import Benches, Choice, Variant, Workbench, need_tunable

MADE_FOR, LONGEST = "# Made by Baretorch tune for ", 1000
LOSSES = {"loss", "error", "errors", "err", "mse", "rmse", "mae", "wer", "cer", "perplexity"}
NEGATED = {"minus", "negative", "neg", "no", "free", "less"}  # in names of numbers of which more is better
Open = Callable[[Compiled, str | None], Machine]
Page = Callable[[Tuning, str], str]


@dataclass(frozen=True)
class SearchRequest:
    """A user's request: budgets in bytes and milliseconds, the largest loss of accuracy in points, and the number of
    trials. `storage` is the URL of a database; with `join`, another process began the search there."""

    model: str  # a path, which may end in ::method
    board: Board
    options: Options
    flash: int | None = None
    ram_budget: int | None = None
    milliseconds: float | None = None
    accuracy_drop: float = 0.5
    metric: str | None = None
    trials: int = 40
    samples: int | None = None
    target_samples: int = 50
    storage: str | None = None
    join: bool = False
    out: str | None = None

    @property
    def path(self) -> str:
        """Return the path of the model file."""
        return self.model.partition("::")[0]


@dataclass(frozen=True)
class JoinedSearch:
    """The end of a search that another process began."""

    model: str
    board: str
    study: str
    trials: int


@dataclass(frozen=True)
class SearchResult:
    """The result of a search, the written files, and a command that runs the tuned model."""

    tuning: Tuning
    files: tuple[str, ...]
    command: str


def search(
    request: SearchRequest, opened: Open, page: Page, show: Show, warn: Callable[[str], None]
) -> SearchResult | JoinedSearch:
    """Search, and confirm the best candidate on the board, which `opened` runs. `page` makes the page about the result;
    `show` shows the progress; `warn` takes a line about an interrupted search."""
    import_optuna()
    if request.storage:
        need_sqlite(request.storage)
    if request.ram_budget is not None and not request.board.chip.has_scratchpad:
        request = replace(request, options=replace(request.options, weights=Weights.FLASH))
    with import_once():
        return _Search(request, opened, page, show, warn).run()


@dataclass(frozen=True)
class _Search:
    request: SearchRequest
    opened: Open
    page: Page
    show: Show
    warn: Callable[[str], None]

    def run(self) -> SearchResult | JoinedSearch:
        request, board = self.request, self.request.board
        tuner = self._tuner()
        source = tuner.bench.source
        about = f"{board.name}: {', '.join(f'{what} {words}' for what, words in tuner.budget.words())}"
        folder = Path(request.out) if request.out else Path("build") / f"{source.name}-{board.name}-tuned"
        if (before := read_purpose(folder)) not in (None, about):
            tuner.notes.append(f"{folder / 'tuned.toml'} was for {before}, and is replaced")
        with stage_files(folder) as work:
            study = tuner.study(request.storage or own_database(folder), request.join)
            self.show("plain int8", 0, 0)
            plain = tuner.bench.variant(Choice(arguments=tuner.benches.offer.default))
            whole = Winner(tuner.candidate("int8", plain), plain)
            if request.milliseconds is not None and whole.candidate.milliseconds is None and not whole.candidate.lacks:
                raise CompileError(
                    f"--time: how long an inference takes on {board.name} is not known", try_="leave it out"
                )
            self._work(tuner, study)
            if request.join:
                return JoinedSearch(source.name, board.name, study.name, len(study.done()))
            winners = [whole, *tuner.winners_of(study.done())]
            winners += tuner.improve(winners)
            best, confirmed = tuner.confirm(winners, lambda variant: self._on_board(tuner, variant, work, about))
            tuning = Tuning(
                source.name,
                board.name,
                tuner.metric,
                tuner.original,
                tuner.budget,
                whole.candidate,
                tuple(w.candidate for w in winners),
                best.candidate,
                tuple(tuner.steps),
                tuner.noise(),
                confirmed.accuracy,
                confirmed.samples,
                confirmed.total,
                request.trials,
                tuple(tuner.notes),
            )
            words = replace(request.options, config=str(folder / "tuned.toml")).command(board.name, "run")
            command = words.replace("MODEL", shlex.quote(request.model), 1)
            write_scratch(work / "tuned.html", self.page(tuning, command))
            return SearchResult(tuning, tuple(str(folder / p.name) for p in sorted(work.iterdir())), command)

    def _tuner(self) -> Tuner:
        """Read the model and measure the original."""
        request, path = self.request, self.request.path
        offer = load_offer(path)
        load_evaluate(path, request.samples)  # first: a missing function is reported before the model is read
        benches = Benches(offer, self._workbench)
        bench = benches.default
        self.show("original", 0, 0)
        metrics = bench.original_metrics()
        name = choose_metric(metrics, request.metric)
        original = metrics[name]
        least = original - points(original, request.accuracy_drop)
        budget = Budget(least, request.flash, request.ram_budget, request.milliseconds, name)
        file = sha256(Path(path).read_bytes()).hexdigest()
        return Tuner(benches, name, original, budget, self.show, request.samples, file)

    def _workbench(self, arguments: Arguments) -> Workbench:
        """Read one of the models that the file offers."""
        request, path = self.request, self.request.path
        self.show(f"read {Path(path).name}" + "".join(f", {name} {v}" for name, v in arguments.items()), 0, 0)
        source = read(path, request.model.partition("::")[2] or None, request.options, arguments)
        need_tunable(source)
        task, train = load_evaluate(path, request.samples, arguments), load_train(path, arguments)
        timed = request.milliseconds is not None
        return Workbench(source, request.board, request.options, task, train, timed, lambda what: self.show(what, 0, 0))

    def _work(self, tuner: Tuner, study: Study) -> None:
        """Run the trials."""
        if not self.request.join:
            if known := len(study.done()):
                tuner.notes.append(f"{known} of the trials are from an earlier search")
            tuner.begin(study, self.request.trials)
        try:
            study.work(tuner.measure, lambda done, all_: self.show(f"search, {done} of {all_}", done, all_))
        except KeyboardInterrupt:
            self.warn(f"stopped after {len(study.done())} trials; the same command continues the search")
            raise

    def _on_board(self, tuner: Tuner, variant: Variant, work: Path, about: str) -> Confirmation:
        """Write a variant's configuration, and measure on the board what the compiler makes of that."""
        bench = tuner.bench_of(variant)
        write_config(variant, bench.scales(variant), work, about)
        self.show("confirm", 0, 0)
        options = replace(self.request.options, config=str(work / "tuned.toml"))
        compiled = compile_source(bench.source, self.request.board, options)
        found = evaluate_task(compiled, bench.task, self.opened, self.show, None, self.request.target_samples)
        return Confirmation(
            compiled.graph, found.columns[-1].metrics[tuner.metric], found.target_samples, found.samples
        )


def choose_metric(found: Mapping[str, float], metric: str | None) -> str:
    """Return the metric to search by: the given one, or the first."""
    name = metric or next(iter(found))
    if name not in found:
        raise CompileError(f"--metric {name}: evaluate() does not return it", have=", ".join(found))
    if not isfinite(found[name]):
        raise CompileError(
            f"evaluate() returns {found[name]} for {name!r} of the model itself", need="a number to compare with"
        )
    words = set(re.findall("[a-z]+", name.lower()))
    if words & LOSSES and not words & NEGATED:
        others = [other for other in found if not LOSSES & set(re.findall("[a-z]+", other.lower()))]
        raise CompileError(
            f"tune: of {name!r}, the less the better",
            have=f"evaluate() returns {', '.join(map(repr, found))}",
            need="a number of which more is better",
            try_=[
                *(f"--metric {shlex.quote(other)}" for other in others[:1]),
                f"let evaluate() return its negative, too: {{{f'minus {name}'!r}: …}}, and --metric 'minus {name}'",
            ],
        )
    return name


def read_purpose(folder: Path) -> str | None:
    """Return the board and budgets that the tuned.toml in a folder is for; None without such a file."""
    with suppress(OSError, ValueError):
        first = read_file(folder / "tuned.toml", LONGEST).decode("utf-8", "ignore").partition("\n")[0]
        return line(first.removeprefix(MADE_FOR).strip()) if first.startswith(MADE_FOR) else None
    return None


def write_config(variant: Variant, scales: Mapping[str, Quant], folder: Path, about: str) -> None:
    """Write tuned.toml, and tuned.npz with all float results, because other computers may round differently."""
    text = variant.config(folder / "tuned.npz").to_toml()
    write_scratch(folder / "tuned.toml", f"{MADE_FOR}{line(about)}\n{text}")
    constants = {t.name: t.data for t in variant.graph.constants() if t.data is not None}
    weights = {n: x for n, x in constants.items() if x.dtype == np.float32 and np.isfinite(x).all()}
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as parts:  # savez() does not accept every name
        for name, data in {**weights, **scale_arrays(scales)}.items():
            with parts.open(f"{name}.npy", "w") as part:
                np.lib.format.write_array(part, np.asarray(data, order="C"), allow_pickle=False)
    write_scratch(folder / "tuned.npz", packed.getvalue())
