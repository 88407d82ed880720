"""Measure how long each stage of the tool takes; `run --json` reports it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter

_SECONDS: ContextVar[dict[str, float] | None] = ContextVar("seconds", default=None)


@contextmanager
def watch() -> Iterator[dict[str, float]]:
    """A table of the stages that are gone through inside, in their order; when all is over with their `total`, which
    is more than their sum by what lies between them."""
    seconds: dict[str, float] = {}
    token, begin = _SECONDS.set(seconds), perf_counter()
    try:
        yield seconds
    finally:
        _SECONDS.reset(token)
        seconds["total"] = perf_counter() - begin
        seconds.update({stage: round(taken, 3) for stage, taken in seconds.items()})


@contextmanager
def timed(stage: str) -> Iterator[None]:
    """Counts what is done inside as this stage, if anybody watches. Stages do not contain each other."""
    begin = perf_counter()
    try:
        yield
    finally:
        seconds = _SECONDS.get()
        if seconds is not None:
            seconds[stage] = seconds.get(stage, 0.0) + perf_counter() - begin
