"""Generate a pairwise covering array: few rows in which every possible pair of levels of two factors occurs.

A row gives each factor one of its levels. The generator is greedy: each new row is the best of several candidates,
built level by level, so the first rows cover the most pairs and any prefix of the array is a good short test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from random import Random

Row = dict[str, str]
Pair = tuple[str, str, str, str]  # factor, level, another factor, level
Possible = Callable[[Mapping[str, str]], bool]  # must accept rows in which factors are still missing
CANDIDATES = 8  # rows that compete for each place in the array
TRIES = 40  # completions tried before a pair counts as impossible


def pairs(row: Mapping[str, str]) -> set[Pair]:
    """Return the pairs that a row covers."""
    return {(a, row[a], b, row[b]) for a, b in combinations(sorted(row), 2)}


def rows(factors: Mapping[str, tuple[str, ...]], possible: Possible, seed: int = 0) -> Iterator[Row]:
    """Yield rows without end: first those that cover all possible pairs, then random ones."""
    random = Random(seed)
    all_pairs = [
        (a, x, b, y)
        for a, b in combinations(sorted(factors), 2)
        for x in factors[a]
        for y in factors[b]
        if possible({a: x, b: y})
    ]
    random.shuffle(all_pairs)
    open_pairs = set(all_pairs)
    while open_pairs:
        starts = [pair for pair in all_pairs if pair in open_pairs][:CANDIDATES]
        made = [row for start in starts if (row := _row(start, factors, possible, open_pairs, random))]
        if made:
            best = max(made, key=lambda row: len(open_pairs & pairs(row)))
            open_pairs -= pairs(best)
            yield best
    while True:
        if row := _complete({}, factors, possible, open_pairs, random):
            yield row


def _row(
    start: Pair, factors: Mapping[str, tuple[str, ...]], possible: Possible, open_pairs: set[Pair], random: Random
) -> Row | None:
    """Build a row around one open pair. A pair that cannot be completed is removed from the open ones."""
    a, x, b, y = start
    for _ in range(TRIES):
        if row := _complete({a: x, b: y}, factors, possible, open_pairs, random):
            return row
    open_pairs.discard(start)
    return None


def _complete(
    row: Row, factors: Mapping[str, tuple[str, ...]], possible: Possible, open_pairs: set[Pair], random: Random
) -> Row | None:
    """Add the missing factors in random order, each with the possible level that covers most open pairs."""
    row = dict(row)
    missing = [name for name in factors if name not in row]
    random.shuffle(missing)
    for name in missing:
        levels = [level for level in factors[name] if possible(row | {name: level})]
        if not levels:
            return None

        def gain(level: str, name: str = name) -> float:
            found = sum(
                ((name, level, k, v) if name < k else (k, v, name, level)) in open_pairs for k, v in row.items()
            )
            return found + random.random()

        row[name] = max(levels, key=gain)
    return row


def repaired(row: Row, defaults: Mapping[str, str], accepts: Callable[[Row], str | None], order: list[str]) -> Row:
    """Return the row, or a near one that `accepts` takes; it returns why it rejects a row, or None.

    A single factor that goes back to its default is tried first, in this order; if that never suffices, the first goes
    back for good, and the search continues with the others."""
    row = dict(row)
    while (reason := accepts(row)) is not None:
        changed = [name for name in order if row[name] != defaults[name]]
        if not changed:
            raise ValueError(f"the defaults are rejected: {reason}")
        for name in changed:
            if accepts(row | {name: defaults[name]}) is None:
                return row | {name: defaults[name]}
        row[changed[0]] = defaults[changed[0]]
    return row
