"""Measure how long each stage of the tool takes; `run --json` reports it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter

_SECONDS: ContextVar[dict[str, float] | None] = ContextVar("seconds", default=None)


@contextmanager
def watch() -> Iterator[dict[str, float]]:
    """Yield a table of the stages that run inside, in their order. At the end it gets `other`, the time between them,
    and `total`, which is the sum of all."""
    seconds: dict[str, float] = {}
    token, begin = _SECONDS.set(seconds), perf_counter()
    try:
        yield seconds
    finally:
        _SECONDS.reset(token)
        total = round(perf_counter() - begin, 3)
        seconds.update({stage: round(taken, 3) for stage, taken in seconds.items()})
        seconds |= {"other": round(total - sum(seconds.values()), 3), "total": total}


@contextmanager
def timed(stage: str) -> Iterator[None]:
    """Count the time spent inside as this stage, if a `watch` is running. The time of an inner stage counts for that
    stage only."""
    seconds = _SECONDS.get()
    if seconds is None:
        yield
        return
    begin, before = perf_counter(), sum(seconds.values())
    try:
        yield
    finally:
        inside = sum(seconds.values()) - before
        seconds[stage] = seconds.get(stage, 0.0) + perf_counter() - begin - inside
