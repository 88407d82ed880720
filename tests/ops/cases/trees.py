"""Cases of decision trees: thresholds that are met, neighbours, both zeros, NaN, infinities, and votes of all kinds."""

from __future__ import annotations

import numpy as np
import torch

from baretorch.ir.graph import Array
from baretorch.ops.trees import UNREACHED, Trees, key_of
from tests.ops.case import Case, Inputs

ODD = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45], np.float32)


def forest(
    rows: int, features: int, trees: int, depth: int, targets: int, thresholds: Array, missing: bool = False
) -> Inputs:
    """Complete trees with random features, thresholds of these, and up to three votes in each of a few leaves."""

    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        inner = 2**depth - 1
        leaves = 2 * inner + 3
        nodes, roots = [], []
        for tree in range(trees):
            first = tree * inner
            roots.append(first if inner else ~int(rng.integers(leaves)))
            for n in range(inner):
                ends = [c + first if c < inner else ~int(rng.integers(leaves)) for c in (2 * n + 1, 2 * n + 2)]
                key = int(key_of(rng.choice(thresholds))) if rng.random() < 0.95 else UNREACHED
                nodes.append([2 * int(rng.integers(features)) + int(missing and rng.integers(2)), key, *ends])
        counts = rng.integers(0, 4, leaves)
        x = rng.choice(np.concatenate([thresholds, thresholds + np.float32(0.5), ODD]), (rows, features))
        near = np.nextafter(x, rng.choice(np.array([-np.inf, np.inf], np.float32), x.shape))
        return (
            np.where(rng.random(x.shape) < 0.3, near, x).astype(np.float32),
            np.array(nodes, np.int32).reshape(-1, 4),
            np.array(roots, np.int32),
            np.cumsum([0, *counts], dtype=np.int32),
            rng.integers(0, targets, counts.sum()).astype(np.int32),
            rng.choice(np.arange(-8, 9).astype(np.float32) / 4, counts.sum()),
        )

    return build


def walk(op: Trees, *arrays: torch.Tensor) -> torch.Tensor:
    """One comparison of floats after the other."""
    x, *tables = (a.numpy() for a in arrays)
    nodes, roots, starts, places, votes = tables
    y = np.zeros((len(x), op.targets), np.float32)
    for n, row in enumerate(x):
        given: list[list[float]] = [[] for _ in range(op.targets)]
        for root in roots:
            at = int(root)
            while at >= 0:
                feature, key, least, more = (int(v) for v in nodes[at])
                value = float(row[feature >> 1])
                at = least if (feature & 1 if np.isnan(value) else value <= _float(key)) else more
            for v in range(starts[~at], starts[~at + 1]):
                given[places[v]].append(float(votes[v]))
        for t, some in enumerate(given):
            if some:
                y[n, t] = {"sum": sum, "min": min, "max": max}[op.aggregate](some)
    return torch.from_numpy(y)


def _float(key: int) -> float:
    """The number with this key; NaN, which nothing is at most, for none."""
    bits = key if key >= 0 else -(2**31) - key
    return float("nan") if key == UNREACHED else float(np.array(bits, np.int64).astype(np.int32).view(np.float32))


def case(name: str, inputs: Inputs, targets: int, aggregate: str = "sum") -> Case:
    op = Trees(targets, aggregate)
    return Case(f"trees {name}", op, inputs, lambda *arrays: walk(op, *arrays), 1)


HALVES = np.arange(0, 16).astype(np.float32) / 2
SIGNED = np.concatenate([-HALVES, HALVES])
REAL = np.random.default_rng(0).standard_normal(40).astype(np.float32)

CASES = (
    case("steps", forest(12, 5, 3, 4, 3, HALVES), 3),
    case("one target", forest(9, 7, 4, 3, 1, HALVES), 1),
    case("signed steps", forest(12, 5, 3, 4, 10, SIGNED), 10),
    case("many features", forest(4, 200, 2, 5, 4, HALVES), 4),
    case("real thresholds", forest(12, 5, 3, 4, 3, REAL), 3),
    case("missing values", forest(12, 5, 3, 4, 3, HALVES, missing=True), 3),
    case("minimum", forest(12, 3, 3, 3, 4, HALVES), 4, "min"),
    case("maximum", forest(12, 3, 3, 3, 4, REAL), 4, "max"),
    case("leaves alone", forest(2, 3, 3, 0, 2, HALVES), 2),
    case("deep", forest(3, 6, 1, 9, 2, HALVES), 2),
)
