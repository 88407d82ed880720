"""Check models against budgets and against the figures of an earlier commit, for teams with pull requests.

A TOML file lists the models. Options have the names of the command line, with _ for -:

tolerance = 1.0
[[model]]
file = "kws.py"
board = "pico2w"
int8 = true
at_most = { flash = 65_536, ram = 20_000, time_ms = 12.5 }
at_least = { accuracy = 0.95 }

The file `baretorch.baseline.json` next to it has the figures that `update` stored; that of other.toml is
`other.baseline.json`.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Annotated, Any

from baretorch.errors import CompileError
from baretorch.escape import quote
from baretorch.explore.evaluate import evaluate_task
from baretorch.files.ownership import MARK
from baretorch.files.read import read_text
from baretorch.files.write import put, scratch
from baretorch.frontends.model_file import load_evaluate
from baretorch.machines import open_machine
from baretorch.machines.types import Machine
from baretorch.measure.run import Show, measure_model
from baretorch.options import OPTIONS, Options, read_options
from baretorch.pipeline import Compiled, arguments_of, build_image, compile_lowered, lower, read
from baretorch.targets.boards import load_board
from baretorch.targets.toml import Key, TomlTable, keys_of, raise_unknown, read_record, read_table

BASELINE = ".baseline.json"  # instead of .toml
FIGURES = ("flash", "ram", "instructions", "time_ms", "max_error")
REJECTED = ("trust", "emulator")  # data must not allow code to run; figures depend on the emulator
TOLERANCE = 1.0  # percent
VERSION = 1


def _limits(values: Mapping[str, Any]) -> dict[str, float]:
    """Return the limits by figure; ValueError if one is not a finite number."""
    for name, value in values.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not abs(value) < 1e300:
            raise ValueError(f"{name} = {quote(value)}")
    return {name: float(value) for name, value in values.items()}


_LIMITS = "numbers by figure, as in { flash = 65_536, time_ms = 12.5 }"


@dataclass(frozen=True)
class CheckedModel:
    """A [[model]] of the file: what to compile, and the limits of its figures. A figure that `run` does not report is a
    metric of the model file's evaluate()."""

    file: Annotated[str, Key("path of the model, in this folder or below; MODEL::METHOD selects a method")]
    board: Annotated[str, Key("name of a board, or the path of its TOML")]
    name: Annotated[str, Key("title in the table; default: MODEL on BOARD")] = ""
    at_most: Annotated[
        Mapping[str, float], Key("largest value of a figure or metric", raw=dict, into=_limits, need=_LIMITS)
    ] = field(default_factory=dict)
    at_least: Annotated[
        Mapping[str, float], Key("smallest value of a figure or metric", raw=dict, into=_limits, need=_LIMITS)
    ] = field(default_factory=dict)
    samples: Annotated[int | None, Key("number of inputs that evaluate() may use; default: all", least=1)] = None
    target_samples: Annotated[
        int | None, Key("number of them that run on the emulated chip; default: all", least=1)
    ] = None
    options: Options = field(default_factory=Options)

    @property
    def title(self) -> str:
        dtype = " int8" if self.options.int8 else ""
        return self.name or f"{PurePath(self.file).name}{dtype} on {PurePath(self.board).stem}"

    @property
    def metrics(self) -> tuple[str, ...]:
        """The limited figures that evaluate() has to return."""
        return tuple(dict.fromkeys(name for name in (*self.at_least, *self.at_most) if name not in FIGURES))


@dataclass(frozen=True)
class CheckedFigure:
    """A measured figure, with its limits and its value in the baseline. For a metric that has a lower limit only, more
    is better; for all others, less is better."""

    name: str
    value: float
    most: float | None = None
    least: float | None = None
    before: float | None = None
    tolerance: float = TOLERANCE

    @property
    def more_is_better(self) -> bool:
        return self.least is not None and self.most is None

    @property
    def change(self) -> float | None:
        """The change since the baseline in percent; None if there is none to compare with."""
        if self.before is None or (self.before == 0 and self.value == 0):
            return None
        return math.inf if self.before == 0 else 100 * (self.value - self.before) / abs(self.before)

    @property
    def violates(self) -> bool:
        """Whether the figure exceeds a limit."""
        return (self.most is not None and self.value > self.most) or (
            self.least is not None and self.value < self.least
        )

    @property
    def is_worse(self) -> bool:
        """Whether the figure got worse since the baseline by more than the tolerance. Rounding errors have limits
        only, because they depend on the version of the original framework."""
        if self.change is None or self.name == "max_error":
            return False
        return (-self.change if self.more_is_better else self.change) > self.tolerance

    @property
    def verdict(self) -> str:
        if self.violates:
            return "over budget" if self.most is not None and self.value > self.most else "below budget"
        return "worse" if self.is_worse else "ok"

    def to_json(self) -> dict[str, Any]:
        change = self.change
        return {
            "name": self.name,
            "value": self.value,
            "at_most": self.most,
            "at_least": self.least,
            "baseline": self.before,
            "change_percent": None if change is None or math.isinf(change) else round(change, 3),
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class ModelCheck:
    """The figures of a model, or the error that prevented them."""

    title: str
    figures: tuple[CheckedFigure, ...] = ()
    error: CompileError | None = None

    @property
    def passes(self) -> bool:
        return self.error is None and all(figure.verdict == "ok" for figure in self.figures)

    def to_json(self) -> dict[str, Any]:
        return {
            "model": self.title,
            "passes": self.passes,
            "figures": [figure.to_json() for figure in self.figures],
            "error": self.error.to_json() if self.error else None,
        }


@dataclass(frozen=True)
class Check:
    """The result for all models. `stored` is the new baseline, if it was asked for."""

    models: tuple[ModelCheck, ...]
    has_baseline: bool
    stored: Path | None = None

    @property
    def passes(self) -> bool:
        return all(model.passes for model in self.models)

    def to_json(self) -> dict[str, Any]:
        return {
            "passes": self.passes,
            "models": [model.to_json() for model in self.models],
            "baseline": self.has_baseline,
            "stored": None if self.stored is None else str(self.stored),
        }


def check_models(path: Path, show: Show, update: bool = False) -> Check:
    """Check all models that a TOML file lists. With `update`, store their figures as the new baseline instead of
    comparing them with the old one; limits hold all the same."""
    models, tolerance = read_checks(path)
    file = path.with_suffix(BASELINE)
    before = {} if update else read_baseline(file)
    found = tuple(_check(model, path.parent, before.get(model.title, {}), tolerance, show) for model in models)
    if update:
        for model in found:
            if model.error is not None:
                raise model.error
        put(file, baseline_text(found), option=None)
    return Check(found, bool(before), file if update else None)


def read_checks(path: Path) -> tuple[tuple[CheckedModel, ...], float]:
    """Read the models and the tolerance in percent."""
    if not path.exists():
        raise CompileError(
            f"no file {path}",
            need='a TOML file with [[model]], file = "MODEL" and board = "BOARD"',
            try_="docs/how-to/check-in-ci.md has an example",
        )
    table = read_table(path)
    rows = dict(table.rows)
    models, tolerance = rows.pop("model", None), rows.pop("tolerance", TOLERANCE)
    if rows:
        raise_unknown("key", next(iter(rows)), ("model", "tolerance"), at=table.where)
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0 <= tolerance <= 100:
        raise CompileError(
            f"tolerance = {quote(tolerance)} is not valid", at=table.where, need="percent, from 0 to 100"
        )
    if not isinstance(models, list) or not models or not all(isinstance(model, dict) for model in models):
        raise CompileError("there is no model to check", at=table.where, need="[[model]] with file and board")
    found = tuple(
        _read_model(TomlTable(f"{table.where} [[model]] number {i}", model), path.parent)
        for i, model in enumerate(models, 1)
    )
    for title, count in Counter(model.title for model in found).items():
        if count > 1:
            raise CompileError(
                f"{count} models have the same name {quote(title)}", at=table.where, try_="name = … for each of them"
            )
    return found, float(tolerance)


def _read_model(table: TomlTable, folder: Path) -> CheckedModel:
    """Read one [[model]]: its own keys, and options by their names."""
    for name in REJECTED:
        if name in table.rows:
            raise CompileError(f"{name} cannot be set in this file", at=table.where, try_=f"leave out {name}")
    given = {name: value for name, value in table.rows.items() if name in OPTIONS}
    own = TomlTable(table.where, {name: value for name, value in table.rows.items() if name not in OPTIONS})
    try:
        options = read_options({name: _in_folder(folder, name, value) for name, value in given.items()})
    except CompileError as error:
        error.at = (table.where,)
        raise
    known = sorted({key.name for key in keys_of(CheckedModel)} | set(OPTIONS) - set(REJECTED))
    for name in own.rows:
        if name not in known:
            raise_unknown("key", name, known, at=table.where)
    model = read_record(own, CheckedModel, options=options)
    for name, text in (("file", model.file), *([("board", model.board)] if model.board.endswith(".toml") else [])):
        _need_inside(text.partition("::")[0], name, table.where)
    return model


def _in_folder(folder: Path, name: str, value: Any) -> Any:
    """Return the value of an option; paths are relative to the folder of the file."""
    if not OPTIONS[name].is_path or not isinstance(value, str):
        return value
    _need_inside(value, name, None)
    return folder / value


def _need_inside(text: str, name: str, where: str | None) -> None:
    if not text or PurePath(text).is_absolute() or ".." in PurePath(text).parts:
        raise CompileError(
            f"{name} = {quote(text)} leads out of the folder", at=where, need="a path in the folder of the file"
        )


def _check(model: CheckedModel, folder: Path, before: Mapping[str, float], tolerance: float, show: Show) -> ModelCheck:
    """Measure a model, and compare its figures with its limits and the baseline."""
    try:
        values = _measure(model, folder, show)
        for name, value in values.items():
            if not math.isfinite(value):
                raise CompileError(f"{name} is {value}, which no limit can be compared with", try_="see evaluate()")
    except CompileError as error:
        return ModelCheck(model.title, error=error)
    figures = (
        CheckedFigure(name, value, model.at_most.get(name), model.at_least.get(name), before.get(name), tolerance)
        for name, value in values.items()
    )
    return ModelCheck(model.title, tuple(figures))


def _measure(model: CheckedModel, folder: Path, show: Show) -> dict[str, float]:
    """Return the figures of a model on the emulated chip, and the metrics that have limits."""
    file, _, method = model.file.partition("::")
    path, options = str(folder / file), model.options
    board = load_board(str(folder / model.board) if model.board.endswith(".toml") else model.board)
    task = load_evaluate(path, model.samples, arguments_of(options)) if model.metrics else None
    show(f"read {PurePath(file).name}", 0, 0)
    compiled = compile_lowered(lower(read(path, method or None, options), options), board, options)
    with scratch() as place:
        found = measure_model(compiled, place, show, other_inputs=True)
        found.facts.need_match()
        facts = found.facts.to_json()
    known = {name: facts[name] for name in FIGURES} | {name: facts[name]["total"] for name in ("flash", "ram")}
    values = {name: float(value) for name, value in known.items() if value is not None}
    if missing := [name for name in (*model.at_most, *model.at_least) if name in FIGURES and name not in values]:
        raise CompileError(f"{missing[0]} is not known on {board.name}", try_=f"leave out its limit {missing[0]}")
    if task is None:
        return values
    with scratch() as place:

        def open_model(compiled: Compiled, port: str | None) -> Machine:
            image = build_image(compiled, place / compiled.board.name)
            return open_machine(image, compiled.c.run, compiled.options.emulator)

        evaluation = evaluate_task(compiled, task, open_model, show, target_samples=model.target_samples)
    if evaluation.wrong:
        raise CompileError("evaluate() found wrong results on the emulated chip", have=evaluation.wrong)
    metrics = evaluation.columns[-1].metrics
    for name in model.metrics:
        if name not in metrics:
            raise_unknown("figure or metric", name, (*FIGURES, *metrics), at=model.title)
    return values | {name: float(metrics[name]) for name in model.metrics}


def baseline_text(models: tuple[ModelCheck, ...]) -> str:
    """Return the baseline as JSON, with one figure per line, so that changes are easy to review."""
    figures = {
        model.title: {f.name: _plain(f.value) for f in model.figures if f.name != "max_error"} for model in models
    }
    about = f"{MARK}check --update. Commit this file."
    return json.dumps({"about": about, "version": VERSION, "models": figures}, indent=2, ensure_ascii=False) + "\n"


def _plain(value: float) -> float | int:
    return int(value) if value == int(value) else round(value, 6)


def read_baseline(path: Path) -> dict[str, dict[str, float]]:
    """Read a baseline; without a file it is empty."""
    try:
        found = json.loads(read_text(path))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise CompileError(f"cannot read the baseline {path}", have=str(error)[:200], try_=_AGAIN) from None
    try:
        if found["version"] != VERSION:
            raise ValueError(found["version"])
        return {str(title): _limits(figures) for title, figures in found["models"].items()}
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        raise CompileError(f"{path} is not a baseline of this version", try_=_AGAIN) from None


_AGAIN = "remove it, and run `baretorch check --update`"
