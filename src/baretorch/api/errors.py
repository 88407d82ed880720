"""Shorten the tracebacks of errors that users can fix."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from baretorch.errors import CompileError

P = ParamSpec("P")
T = TypeVar("T")


def short_errors(function: Callable[P, T]) -> Callable[P, T]:
    """Return a function that raises a CompileError without the frames of Baretorch and of torch: the text of the error
    names the user's own lines."""

    @wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            return function(*arguments, **named)
        except CompileError as error:
            failure = error
        failure.__cause__ = failure.__context__ = None
        raise failure.with_traceback(None)

    return call
