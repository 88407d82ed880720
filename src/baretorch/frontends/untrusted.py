"""Errors and limits for files that are not trusted. A few bytes of a file can state any size, so sizes are added up
before anything is allocated."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass
from math import prod

from baretorch.errors import CompileError

TRY_AGAIN = "export the model again, or copy the file again"
ROOM = 64 << 20  # largest value in bytes, and the most that constants may produce; more than any microcontroller has


@dataclass(frozen=True)
class Made:
    """The results of one operator of a file, the values that it computes them from, and their bytes."""

    results: Collection[Hashable]
    of: Collection[Hashable]
    size: int


def check_folded(made: Iterable[Made], constants: Iterable[Hashable], held: int) -> None:
    """Raise CompileError if constants of this size produce an unreasonable number of further constants."""
    known, folded = set(constants), 0
    for each in made:
        if known.issuperset(each.of):
            folded += each.size
            known.update(each.results)
    if folded > ROOM + 4 * held:
        raise too_large(f"constants make {folded:,} bytes of constants", trust=True)


def most_bytes(shape: tuple[int, ...]) -> int:
    """Return the largest size of a value of this shape, whatever its type."""
    return 4 * prod(shape)


def too_large(what: str, at: str = "", trust: bool = False) -> CompileError:
    """Return the error for a model that is too large. With `trust`, the user may allow it."""
    return CompileError(
        f"the model is too large for any microcontroller: {what}",
        at=at or None,
        need=f"at most {ROOM:,} bytes",
        try_="--trust (in Python trust=True), if you want to read it anyway" if trust else None,
    )


def damaged_file(kind: str, what: str, have: str | None = None) -> CompileError:
    """Return the error for a file that is not valid for its kind, such as `.onnx`."""
    return CompileError(f"not a valid {kind} file: {what}", have=have, try_=TRY_AGAIN)
