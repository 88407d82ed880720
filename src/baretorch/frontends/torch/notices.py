"""Suppresses those warnings of torch that are listed here, each for a reason; the user sees all others.

A warning that is not listed becomes a warning of the Source, in one line.
"""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from contextvars import ContextVar
from pathlib import Path

LONGEST = 300  # letters of a warning that are shown

SUPPRESSED: tuple[tuple[str, str], ...] = (  # a pattern for the beginning of the message, and the reason
    (
        r"The tensor attributes? .* (was|were) assigned during export",
        "`check_attributes` refuses every such attribute whose change matters; the weights of LSTM and GRU do not",
    ),
    (r"`isinstance\(treespec, LeafSpec\)` is deprecated", "torch warns of its own code, when a program is copied"),
    (r"Using padding='same' with even kernel lengths", "it is about the speed of torch, not about results"),
)
HIDDEN = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)  # as Python does by default

_heard: ContextVar[list[str] | None] = ContextVar("heard", default=None)


@contextmanager
def collect() -> Iterator[list[str]]:
    """Collect the warnings that `listening` receives in the block, each text once."""
    found: list[str] = []
    token = _heard.set(found)
    try:
        yield found
    finally:
        _heard.reset(token)


@contextmanager
def listen() -> Iterator[None]:
    """Collect warnings of the block, except the listed ones; without a collector they are issued."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    texts = [_line(w) for w in caught if not _is_suppressed(w)]
    heard = _heard.get()
    for text in dict.fromkeys(texts):
        if heard is None:
            warnings.warn(text, stacklevel=3)
        elif text not in heard:
            heard.append(text)


@contextmanager
def quiet() -> Iterator[None]:
    """Collect warnings, and silence torch's log and its print of a program that it cannot export: Baretorch's own error
    contains that."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # torch's handlers have their own standard error
    try:
        with listen(), redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)


def _is_suppressed(w: warnings.WarningMessage) -> bool:
    text = str(w.message)
    return issubclass(w.category, HIDDEN) or any(re.match(pattern, text, re.DOTALL) for pattern, _ in SUPPRESSED)


def _line(w: warnings.WarningMessage) -> str:
    """Format a warning in one line, without the place in torch's C++ code."""
    text = " ".join(re.sub(r"\(Triggered internally at .*\)", "", str(w.message), flags=re.DOTALL).split())
    shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    file = Path(w.filename)
    return f"torch: {shown}" if "torch" in file.parts else f"{file.name}:{w.lineno}: {shown}"
