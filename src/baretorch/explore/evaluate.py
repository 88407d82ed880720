"""Measure a model's task in its own framework, on the host, and on the target, which must return the host's results."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from baretorch.frontends.model_file import Evaluate
from baretorch.ir.graph import Array
from baretorch.ir.io import Answer, Runner
from baretorch.machines.session import Checker, Recorder, Session
from baretorch.machines.types import Machine
from baretorch.measure.facts import number, wrong_answers
from baretorch.measure.run import Show
from baretorch.options import Options
from baretorch.passes.to_int8 import float_layers
from baretorch.pipeline import Compiled, compile_lowered
from baretorch.targets.boards import load_board


@dataclass(frozen=True)
class Column:
    """The metrics of one way to run the model: `key` for JSON, `title` for people."""

    key: str
    title: str
    metrics: Mapping[str, float]
    seconds: float


@dataclass(frozen=True)
class Evaluation:
    """The metrics of a task. `target_samples` of the `samples` ran on the target at `where`, an emulator's name or a
    port; for the others, the host's results were used."""

    compiled: Compiled
    where: str
    samples: int
    target_samples: int
    columns: tuple[Column, ...]
    wrong: str | None = None  # how the outputs differ from those of the model's own library

    @property
    def warnings(self) -> tuple[str, ...]:
        return (*self.compiled.model.warnings, *([self.wrong] if self.wrong else []))

    def to_json(self) -> dict[str, Any]:
        graph = self.compiled.graph
        return {
            "model": graph.name,
            "board": self.compiled.board.name,
            "where": self.where,
            "dtype": "int8" if graph.is_int8 else "float32",
            "samples": self.samples,
            "target_samples": self.target_samples,
            "metrics": {c.key: {name: number(value) for name, value in c.metrics.items()} for c in self.columns},
            "seconds": {c.key: round(c.seconds, 3) for c in self.columns},
            "float_layers": float_layers(graph),
            "warnings": list(self.warnings),
        }


@dataclass
class _CountedRunner:
    """Runs a model and shows the progress."""

    run: Runner
    title: str
    total: int
    show: Show
    began: float = field(default_factory=time.monotonic)
    count: int = 0

    def __call__(self, *inputs: Any) -> Answer:
        answer = self.run(*inputs)
        self.count += 1
        rate = self.count / max(time.monotonic() - self.began, 1e-3)
        self.show(f"{self.title} {rate:,.0f}/s", self.count, self.total)
        return answer

    def reset(self) -> None:
        self.run.reset()


def evaluate_task(
    compiled: Compiled,
    task: Evaluate,
    open_model: Callable[[Compiled, str | None], Machine],
    show: Show,
    port: str | None = None,
    target_samples: int | None = None,
) -> Evaluation:
    """Measure the task. `open_model` opens the compiled model on the board at a port, or emulates it. The target runs
    `target_samples` of the inputs, evenly spread, or all of them."""
    source, graph, name = compiled.source, compiled.graph, compiled.board.name
    ours = compiled.model.quantization is not None
    fp32 = ours or not source.graph.is_quantized
    dtype = "int8" if graph.is_int8 else "fp32"
    columns, library, count = [], source.library, 0
    right: Recorder | None = None
    if source.eager is not None:  # else the original cannot be run
        right = Recorder(source.eager())
        original = _CountedRunner(right, library, 0, show)
        columns.append(_measure(library.lower(), f"{library} fp32" if fp32 else library, task, original))
        count = original.count

    same = Options(optimize=compiled.options.optimize, io=compiled.options.io)
    host = compile_lowered(compiled.model, load_board("host"), same)
    session = Session(open_model(host, None), graph)
    recorder = Recorder(session)
    on_host = _measure("host", f"{dtype} on the host", task, _CountedRunner(recorder, "host", count, show))
    session.close()
    wrong = _wrong(compiled, recorder, right) if right is not None and not ours else None

    total = len(recorder.answers)
    count = total if graph.state or target_samples is None else min(target_samples, total)
    chosen = {i * total // count for i in range(count)}
    session = Session(open_model(compiled, port), graph)
    checker = Checker(session, recorder, chosen, dtype == "int8" and not float_layers(graph), name, graph)
    on_target = _measure("target", f"{dtype} on {name}", task, _CountedRunner(checker, name, total, show))
    session.close()
    where = port or session.machine.name
    return Evaluation(compiled, where, total, checker.ran, (*columns, on_host, on_target), wrong)


def _wrong(compiled: Compiled, found: Recorder, right: Recorder) -> str | None:
    """Describe how the host's outputs differ from the original's for the same inputs; None if they do not."""
    pairs = [
        (_memory(compiled, have), _memory(compiled, want))
        for a, b, have, want in zip(found.inputs, right.inputs, found.answers, right.answers, strict=False)
        if a == b
    ]
    return wrong_answers(compiled, [have for have, _ in pairs], [want for _, want in pairs])


def _memory(compiled: Compiled, answer: Answer) -> tuple[Array, ...]:
    """Return outputs in the memory order of the C interface."""
    made = answer if isinstance(answer, tuple) else (answer,)
    return tuple(port.to_memory(y) for port, y in zip(compiled.graph.gives(), made, strict=True))


def _measure(key: str, title: str, task: Evaluate, run: Runner) -> Column:
    began = time.monotonic()
    return Column(key, title, task(run), time.monotonic() - began)
