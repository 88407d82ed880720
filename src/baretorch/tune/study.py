"""The search, by any number of processes on one computer that share an SQLite database.

All requested trials are queued in the study from its beginning. A process takes one, sends heartbeats while it works on
it, and stores the result. The trials of processes that died are queued again. So a study ends with the requested number
of trials, however many processes work on it and however they end, and no result is lost.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Any

from baretorch.errors import CompileError
from baretorch.files.ownership import anything, check_file, sqlite
from baretorch.files.write import open_folder
from baretorch.frontends.choices import Arguments
from baretorch.quantize.precisions import Precision
from baretorch.tune.result import Costs

if TYPE_CHECKING:
    import optuna

BEAT, DEAD = 5, 20  # seconds between two heartbeats, and without one until a process counts as dead
WAIT = 1.0  # seconds
ASKED, OVER, COSTS, MARK, TRIALS = "asked", "over", "costs", "mark", "trials"
DONE = object()
ORIGINAL, WEIGHTS, TINY = 1e-2, 1e-3, 1e-6  # differences between computers of the same model


@dataclass(frozen=True)
class Space:
    """The choices of a search: the precisions of each layer, the sets of which channels or weights can be removed, and
    the values that the model file offers."""

    layers: Mapping[str, Sequence[Precision]]
    sets: Sequence[str]
    least: int
    parts: int
    offered: Mapping[str, Sequence[int | float]] = field(default_factory=dict)


@dataclass(frozen=True)
class TrialResult:
    """The result of a trial. `over` is the relative excess over each budget."""

    accuracy: float
    costs: Costs
    over: Sequence[float]


@dataclass(frozen=True)
class Suggestion:
    """The choice that a trial measures; `parts` are those that are kept of each set."""

    layers: Mapping[str, Precision]
    parts: Mapping[str, int]
    arguments: Arguments = field(default_factory=dict)


@dataclass(frozen=True)
class FinishedTrial:
    """A trial with its result."""

    number: int
    suggested: Suggestion
    found: TrialResult


@dataclass(frozen=True)
class Mark:
    """Identifies the weights and the data of a study: the metric of the model itself, and sums of its weights and
    calibration data. They may differ slightly between computers."""

    original: float
    weights: tuple[float, ...]

    def is_like(self, attributes: Mapping[str, Any]) -> bool:
        """Return whether a study with these attributes has the same mark; one without a mark has just begun."""
        if MARK not in attributes:
            return True
        original, *weights = attributes[MARK]
        alike = len(weights) == len(self.weights) and isclose(original, self.original, rel_tol=ORIGINAL)
        return alike and all(
            isclose(a, b, rel_tol=WEIGHTS, abs_tol=TINY) for a, b in zip(weights, self.weights, strict=True)
        )


class Study:
    """A study in a database; with `joined`, it must exist already. Studies of the same name with another mark are kept
    under other names."""

    def __init__(self, name: str, url: str, space: Space, joined: bool = False, mark: Mark | None = None) -> None:
        optuna = import_optuna()
        self._space, self._url = space, url
        need_sqlite(url)
        with problems(url):
            self._storage = optuna.storages.RDBStorage(
                url,
                heartbeat_interval=BEAT,
                grace_period=DEAD,
                heartbeat_stale_trial_callback=optuna.storages.RetryHeartbeatStaleTrialCallback(),
            )
            known = {s.study_name: s.user_attrs for s in optuna.get_all_study_summaries(self._storage)}
            names = (name if i == 1 else f"{name}-{i}" for i in count(1))
            self.name = next(n for n in names if n not in known or mark is None or mark.is_like(known[n]))
            if joined and self.name not in known:
                raise CompileError(
                    f"--join: the database has no study {self.name!r}",
                    have=", ".join(sorted(known)) or "no studies",
                    need="the same model, data, board, options, compiler and Baretorch as for that study",
                    try_="leave out --join to start one",
                )
            self._study = optuna.create_study(
                study_name=self.name,
                storage=self._storage,
                directions=["maximize", "minimize", "minimize"],
                load_if_exists=True,
            )
            if mark is not None and self.name not in known:
                self._study.set_user_attr(MARK, [mark.original, *mark.weights])

    def queue(self, trials: int, beginnings: Sequence[Suggestion]) -> None:
        """Queue trials up to this number, the first with the given choices; those of a resumed study count."""
        with problems(self._url):
            self._study.set_user_attr(TRIALS, max(trials, self._study.user_attrs.get(TRIALS, 0)))
            waiting = {t.user_attrs[ASKED] for t in self._requested_trials()}
            for number in range(len(waiting), trials):
                given = self._params(beginnings[number]) if number < len(beginnings) else {}
                self._study.enqueue_trial(given, user_attrs={ASKED: number})

    def _requested_trials(self) -> list[optuna.trial.FrozenTrial]:
        """Return the requested trials; those of dead processes appear again under the same number."""
        return [t for t in self._study.get_trials(deepcopy=False) if ASKED in t.user_attrs]

    def _params(self, suggested: Suggestion) -> dict[str, Any]:
        layers = {f"precision of {n}": str(suggested.layers.get(n, Precision.INT8)) for n in self._space.layers}
        parts = {f"parts of {n}": suggested.parts.get(n, self._space.parts) for n in self._space.sets}
        return layers | parts | dict(suggested.arguments)

    def work(self, measure: Callable[[Suggestion], TrialResult], show: Callable[[int, int], None]) -> None:
        """Work on trials until all are done, including those of other processes. If no trials are queued yet, wait
        for them."""
        while True:
            with problems(self._url):
                trial = self._next(show)
            if trial is DONE:
                return
            if trial is None:
                threading.Event().wait(WAIT)
            else:
                self._work_on(trial, measure)

    def _next(self, show: Callable[[int, int], None]) -> Any:
        """Take the next trial. Return None if other processes work on all remaining trials, or DONE if there are
        none."""
        optuna = import_optuna()
        waiting, running = optuna.trial.TrialState.WAITING, optuna.trial.TrialState.RUNNING
        optuna.storages.fail_stale_trials(self._study)
        trials, asked = self._requested_trials(), self._study.user_attrs.get(TRIALS, 0)
        done = {t.user_attrs[ASKED] for t in trials if t.values is not None}
        show(len(done), asked)
        if asked and len(done) >= asked:
            return DONE
        busy = done | {t.user_attrs[ASKED] for t in trials if t.state == running}
        return self._take([t for t in trials if t.state == waiting and t.user_attrs[ASKED] not in busy])

    def _take(self, waiting: Sequence[optuna.trial.FrozenTrial]) -> Any:
        optuna = import_optuna()
        study = self._storage.get_study_id_from_name(self.name)
        for frozen in waiting:
            number = self._storage.get_trial_id_from_study_id_trial_number(study, frozen.number)
            try:
                self._storage.record_heartbeat(number)  # first, so that a process that dies here is detected
                if self._storage.set_trial_state_values(number, optuna.trial.TrialState.RUNNING):
                    self._study.sampler = self._sampler(frozen.number)
                    return optuna.Trial(self._study, number)
            except optuna.exceptions.UpdateFinishedTrialError:
                continue
        return None

    def _sampler(self, number: int) -> Any:
        """Return a sampler with a seed of its own for each trial: processes try different choices, reproducibly."""
        optuna = import_optuna()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return optuna.samplers.TPESampler(
                seed=number, n_startup_trials=8, constraints_func=lambda t: t.user_attrs.get(OVER, (0.0,))
            )

    def _work_on(self, trial: optuna.Trial, measure: Callable[[Suggestion], TrialResult]) -> None:
        optuna = import_optuna()
        number = self._storage.get_trial_id_from_study_id_trial_number(
            self._storage.get_study_id_from_name(self.name), trial.number
        )
        with self._heartbeat(number):
            with problems(self._url):
                suggested = self._suggest(trial)
            found = measure(suggested)
            with problems(self._url), suppress(optuna.exceptions.UpdateFinishedTrialError, ValueError):
                # Suppressed: another process repeats the trial, because this one seemed dead.
                costs = found.costs
                more = {"ram": costs.ram, "lacks": costs.lacks, "milliseconds": costs.milliseconds}
                trial.set_user_attr(OVER, list(found.over))
                trial.set_user_attr(COSTS, more)
                self._study.tell(trial, [found.accuracy, costs.flash, costs.instructions])

    def _suggest(self, trial: optuna.Trial) -> Suggestion:
        layers = {
            name: Precision(trial.suggest_categorical(f"precision of {name}", [str(p) for p in choices]))
            for name, choices in self._space.layers.items()
        }
        parts = {
            name: trial.suggest_int(f"parts of {name}", self._space.least, self._space.parts)
            for name in self._space.sets
        }
        return Suggestion(
            {n: p for n, p in layers.items() if p is not Precision.INT8},
            {n: k for n, k in parts.items() if k < self._space.parts},
            {name: trial.suggest_categorical(name, list(values)) for name, values in self._space.offered.items()},
        )

    @contextmanager
    def _heartbeat(self, trial: int) -> Iterator[None]:
        """Send heartbeats during a block. A heartbeat that fails is ignored: later ones arrive, or the result fails
        too."""
        done = threading.Event()

        def beat() -> None:
            while not done.is_set():
                with suppress(Exception):
                    self._storage.record_heartbeat(trial)
                done.wait(BEAT)

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def close(self) -> None:
        """Leave the database."""
        self._storage.remove_session()
        self._storage.engine.dispose()

    def done(self) -> list[FinishedTrial]:
        """Return the results in the order of the trials. If two processes repeated the same trial of a dead one, which
        SQLite permits, the first result counts."""
        optuna = import_optuna()
        with problems(self._url):
            trials = self._study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
        first = {t.user_attrs[ASKED]: t for t in reversed(trials) if ASKED in t.user_attrs}
        return [_finished_trial(t) for t in sorted(first.values(), key=lambda t: t.number)]


def _finished_trial(trial: optuna.trial.FrozenTrial) -> FinishedTrial:
    layers, parts, arguments = {}, {}, {}
    for name, value in trial.params.items():
        kind, _, of = name.partition(" of ")
        if kind == "precision" and value != Precision.INT8:
            layers[of] = Precision(value)
        elif kind == "parts":
            parts[of] = int(value)
        elif not of:
            arguments[name] = value
    accuracy, flash, instructions = trial.values
    costs = Costs(flash=int(flash), instructions=int(instructions), **trial.user_attrs[COSTS])
    found = TrialResult(accuracy, costs, trial.user_attrs[OVER])
    return FinishedTrial(trial.number, Suggestion(layers, parts, arguments), found)


def import_optuna() -> Any:
    """The package, without its log; CompileError if it is not there."""
    try:
        import optuna
    except ImportError as error:
        raise CompileError("tune needs Optuna", try_='pip install "baretorch[tune]"') from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def own_database(folder: Path) -> str:
    """Return the address of the database in an output folder; CompileError if one of its files is not ours."""
    path = folder / "study.db"
    with open_folder(folder):  # the folder must exist before SQLite opens the file
        check_file(path, sqlite)
        for suffix in ("-journal", "-wal", "-shm"):
            check_file(path.with_name(path.name + suffix), anything)
    return f"sqlite:///{path}"


def need_sqlite(url: str) -> None:
    """Raise CompileError unless the address is that of an SQLite file; others are not shown, because they may contain
    passwords."""
    kind, _, rest = url.partition("://")
    if kind != "sqlite" or not rest.startswith("/"):
        raise CompileError(
            "--storage: this is not the address of an SQLite database",
            have=url if kind == "sqlite" else None,
            need="sqlite:///FILE, with three slashes",
        )


@contextmanager
def problems(url: str) -> Iterator[None]:
    """Convert all errors of SQLAlchemy, or its absence, to CompileError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except CompileError:
        raise
    except ImportError as error:
        raise CompileError(f"--storage {url}: its driver is not installed", try_='pip install "sqlalchemy"') from error
    except Exception as error:  # whatever SQLAlchemy raises
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        have = lines[0][:200] if lines else type(error).__name__
        raise CompileError(f"--storage {url}: cannot use the database", have=have) from error
