"""The search, by any number of processes on one computer that share an SQLite database.

All trials that are asked for wait in the study from its beginning: a process takes one, tells that it lives while it
works on it, and notes what it found. What a process that died had begun waits again. So a study ends with as many
trials as were asked for, however many work on it and however they end, and what was found is never lost.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from math import isclose
from typing import TYPE_CHECKING, Any

from baretorch.errors import CompileError
from baretorch.frontends.choices import Arguments
from baretorch.quantize.config import Precision
from baretorch.tune.database import need_sqlite, problems

if TYPE_CHECKING:
    import optuna

BEAT, DEAD = 5, 20  # seconds: between two signs of life, and after which there will be none
WAIT = 1.0  # seconds
ASKED, OVER, TOLD, MARK, TRIALS = "asked", "over", "told", "mark", "trials"
DONE = object()
ORIGINAL, WEIGHTS, TINY = 1e-2, 1e-3, 1e-6  # by how much a model may differ that is the same


@dataclass(frozen=True)
class Space:
    """What can be chosen: a precision for each layer, how many parts of each set of channels are kept, and the numbers
    that the model file offers."""

    layers: Mapping[str, Sequence[Precision]]
    sets: Sequence[str]
    least: int
    parts: int
    offered: Mapping[str, Sequence[int | float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """What a trial found: `over` says by how much each budget is exceeded, beside the budget."""

    accuracy: float
    flash: int
    instructions: int
    over: Sequence[float]
    told: Mapping[str, float]


@dataclass(frozen=True)
class Suggested:
    layers: Mapping[str, Precision]
    parts: Mapping[str, int]
    arguments: Arguments = field(default_factory=dict)


@dataclass(frozen=True)
class Done:
    number: int
    suggested: Suggested
    found: Found


@dataclass(frozen=True)
class Mark:
    """What the results of a study hold for: how well the model itself does, and how large its weights and calibration
    data are. The same model may differ a little from computer to computer."""

    original: float
    weights: tuple[float, ...]

    def is_like(self, told: Mapping[str, Any]) -> bool:
        """Whether this is what a study says of itself; one that says nothing was just begun."""
        if MARK not in told:
            return True
        original, *weights = told[MARK]
        alike = len(weights) == len(self.weights) and isclose(original, self.original, rel_tol=ORIGINAL)
        return alike and all(
            isclose(a, b, rel_tol=WEIGHTS, abs_tol=TINY) for a, b in zip(weights, self.weights, strict=True)
        )


class Study:
    """A study in a database. `joined`: it must be there already. Those of the same name with another mark stay beside
    it."""

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

    def ask_for(self, trials: int, beginnings: Sequence[Suggested]) -> None:
        """Let so many trials wait, the first of them with these choices; those of a study that is resumed count."""
        with problems(self._url):
            self._study.set_user_attr(TRIALS, max(trials, self._study.user_attrs.get(TRIALS, 0)))
            waiting = {t.user_attrs[ASKED] for t in self._asked_for()}
            for number in range(len(waiting), trials):
                given = self._params(beginnings[number]) if number < len(beginnings) else {}
                self._study.enqueue_trial(given, user_attrs={ASKED: number})

    def _asked_for(self) -> list[optuna.trial.FrozenTrial]:
        """The trials; what a dead process had begun is there again under the same number."""
        return [t for t in self._study.get_trials(deepcopy=False) if ASKED in t.user_attrs]

    def _params(self, suggested: Suggested) -> dict[str, Any]:
        layers = {f"precision of {n}": str(suggested.layers.get(n, Precision.INT8)) for n in self._space.layers}
        parts = {f"parts of {n}": suggested.parts.get(n, self._space.parts) for n in self._space.sets}
        return layers | parts | dict(suggested.arguments)

    def work(self, measure: Callable[[Suggested], Found], show: Callable[[int, int], None]) -> None:
        """Take trials until all are done, also by others. Who joins before any are asked for waits for them."""
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
        """A trial to work on, None if others have all that are left, or DONE."""
        optuna = import_optuna()
        waiting, running = optuna.trial.TrialState.WAITING, optuna.trial.TrialState.RUNNING
        optuna.storages.fail_stale_trials(self._study)
        trials, asked = self._asked_for(), self._study.user_attrs.get(TRIALS, 0)
        done = {t.user_attrs[ASKED] for t in trials if t.values is not None}
        show(len(done), asked)
        if asked and len(done) >= asked:
            return DONE
        busy = done | {t.user_attrs[ASKED] for t in trials if t.state == running}
        return self._taken([t for t in trials if t.state == waiting and t.user_attrs[ASKED] not in busy])

    def _taken(self, waiting: Sequence[optuna.trial.FrozenTrial]) -> Any:
        optuna = import_optuna()
        study = self._storage.get_study_id_from_name(self.name)
        for frozen in waiting:
            number = self._storage.get_trial_id_from_study_id_trial_number(study, frozen.number)
            try:
                self._storage.record_heartbeat(number)  # first: who dies before that is never missed
                if self._storage.set_trial_state_values(number, optuna.trial.TrialState.RUNNING):
                    self._study.sampler = self._sampler(frozen.number)
                    return optuna.Trial(self._study, number)
            except optuna.exceptions.UpdateFinishedTrialError:
                continue
        return None

    def _sampler(self, number: int) -> Any:
        """Of its own for each trial, so that processes do not try the same, and one process finds the same again."""
        optuna = import_optuna()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return optuna.samplers.TPESampler(
                seed=number, n_startup_trials=8, constraints_func=lambda t: t.user_attrs.get(OVER, (0.0,))
            )

    def _work_on(self, trial: optuna.Trial, measure: Callable[[Suggested], Found]) -> None:
        optuna = import_optuna()
        number = self._storage.get_trial_id_from_study_id_trial_number(
            self._storage.get_study_id_from_name(self.name), trial.number
        )
        with self._alive(number):
            with problems(self._url):
                suggested = self._suggested(trial)
            found = measure(suggested)
            with problems(self._url), suppress(optuna.exceptions.UpdateFinishedTrialError, ValueError):
                # Suppressed: it was given up, as this process seemed dead, and another does it again.
                trial.set_user_attr(OVER, list(found.over))
                trial.set_user_attr(TOLD, dict(found.told))
                self._study.tell(trial, [found.accuracy, found.flash, found.instructions])

    def _suggested(self, trial: optuna.Trial) -> Suggested:
        layers = {
            name: Precision(trial.suggest_categorical(f"precision of {name}", [str(p) for p in choices]))
            for name, choices in self._space.layers.items()
        }
        parts = {
            name: trial.suggest_int(f"parts of {name}", self._space.least, self._space.parts)
            for name in self._space.sets
        }
        return Suggested(
            {n: p for n, p in layers.items() if p is not Precision.INT8},
            {n: k for n, k in parts.items() if k < self._space.parts},
            {name: trial.suggest_categorical(name, list(values)) for name, values in self._space.offered.items()},
        )

    @contextmanager
    def _alive(self, trial: int) -> Iterator[None]:
        """Signs of life while something is done. One that does not arrive is no reason to end: others will, or what was
        found does not arrive either."""
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

    def done(self) -> list[Done]:
        """What was found, in the order of the trials. Where two processes took up the same of a dead one, as SQLite
        lets them, what came first counts."""
        optuna = import_optuna()
        with problems(self._url):
            trials = self._study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
        first = {t.user_attrs[ASKED]: t for t in reversed(trials) if ASKED in t.user_attrs}
        return [_done(t) for t in sorted(first.values(), key=lambda t: t.number)]


def _done(trial: optuna.trial.FrozenTrial) -> Done:
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
    found = Found(accuracy, int(flash), int(instructions), trial.user_attrs[OVER], trial.user_attrs[TOLD])
    return Done(trial.number, Suggested(layers, parts, arguments), found)


def import_optuna() -> Any:
    """The package, without its log; CompileError if it is not there."""
    try:
        import optuna
    except ImportError as error:
        raise CompileError("tune needs Optuna", try_='pip install "baretorch[tune]"') from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
