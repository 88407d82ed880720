"""Arrange the nodes of an acyclic graph in rows from top to bottom, with few crossings.

Each node is one row below the lowest of its inputs. An edge that passes rows has a bend in each of them, which is
treated like a narrow node. Rows are sorted by the middle of each node's neighbours, downwards and upwards in turn, and
then every node moves as near to the middle of its neighbours as the others in its row permit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

SWEEPS = 8


@dataclass
class Spot:
    """A node or the bend of an edge: its row and the middle of its place there."""

    row: int
    width: float
    x: float = 0.0


@dataclass(frozen=True)
class Drawing:
    """Spots by the node's key, and for each edge the spots it goes through, ends included."""

    nodes: Mapping[str, Spot]
    edges: Sequence[tuple[Spot, ...]]

    @property
    def rows(self) -> int:
        return 1 + max((spot.row for spot in self.nodes.values()), default=-1)


def arrange(nodes: Sequence[str], edges: Sequence[tuple[str, str]], width: float, gap: float) -> Drawing:
    """Arrange `nodes`, whose order is topological. All x are at least half a width."""
    before: dict[str, list[str]] = {node: [] for node in nodes}
    for source, target in edges:
        before[target].append(source)
    spots: dict[str, Spot] = {}
    for node in nodes:
        spots[node] = Spot(1 + max((spots[b].row for b in before[node]), default=-1), width)
    paths = []
    for a, b in edges:
        bends = (Spot(row, gap) for row in range(spots[a].row + 1, spots[b].row))
        paths.append((spots[a], *bends, spots[b]))
    rows: list[list[Spot]] = [[] for _ in range(1 + max((s.row for s in spots.values()), default=-1))]
    for spot in (*spots.values(), *(bend for path in paths for bend in path[1:-1])):
        rows[spot.row].append(spot)
    _arrange_rows(rows, paths, gap)
    left = min((spot.x - spot.width / 2 for row in rows for spot in row), default=0.0)
    for spot in (spot for row in rows for spot in row):
        spot.x -= left
    return Drawing(spots, paths)


def _arrange_rows(rows: list[list[Spot]], paths: Sequence[tuple[Spot, ...]], gap: float) -> None:
    above: dict[int, list[Spot]] = {}
    below: dict[int, list[Spot]] = {}
    for path in paths:
        for a, b in pairwise(path):
            above.setdefault(id(b), []).append(a)
            below.setdefault(id(a), []).append(b)
    for row in rows:
        _place(row, [0.0] * len(row), gap)
    for sweep in range(SWEEPS):
        near = below if sweep % 2 else above
        for row in reversed(rows) if sweep % 2 else rows:
            targets = {id(spot): _middle(near.get(id(spot)), spot.x) for spot in row}
            row.sort(key=lambda spot: targets[id(spot)])
            _place(row, [targets[id(spot)] for spot in row], gap)


def _middle(neighbours: Sequence[Spot] | None, own: float) -> float:
    return sum(n.x for n in neighbours) / len(neighbours) if neighbours else own


def _place(row: list[Spot], targets: list[float], gap: float) -> None:
    """Place boxes from left to right without overlap, each where it wants to be or further right. Then move all of
    them back together, so that on average they are where they want to be."""
    edge = float("-inf")
    for spot, x in zip(row, targets, strict=True):
        spot.x = max(x, edge + spot.width / 2)
        edge = spot.x + spot.width / 2 + gap
    back = sum(spot.x - x for spot, x in zip(row, targets, strict=True)) / max(len(row), 1)
    for spot in row:
        spot.x -= back
