"""Cases of small systems of linear equations."""

from __future__ import annotations

import numpy as np
import torch

from baretorch.ir.graph import Array, Shape
from baretorch.ops.solve import Det, Solve
from tests.ops.case import Case, Inputs, normal, values

ROUNDED = (2e-5, 2e-6)  # of matrices that are far from singular


def regular(a: Shape, *others: Shape) -> Inputs:
    """Matrices with a strong diagonal in rows of any order, so that they must be exchanged; and right sides."""

    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        matrices = rng.standard_normal(a).astype(np.float32) / 2 + 3 * np.eye(a[-1], dtype=np.float32)
        mixed = matrices[..., rng.permutation(a[-1]), :]
        return (mixed, *(rng.standard_normal(s).astype(np.float32) for s in others))

    return build


def solve(name: str, inputs: Inputs, activations: int | None = None) -> Case:
    return Case(f"solve {name}", Solve(), inputs, torch.linalg.solve, activations, tolerance=ROUNDED)


def inverse(name: str, shape: Shape) -> Case:
    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        return (*regular(shape)(rng), np.eye(shape[-1], dtype=np.float32))

    return Case(f"inverse {name}", Solve(), build, lambda x, one: torch.linalg.inv(x), 1, tolerance=ROUNDED)


def det(name: str, inputs: Inputs) -> Case:
    return Case(f"det {name}", Det(), inputs, torch.linalg.det, tolerance=(1e-5, 1e-5))


CASES = (
    solve("1x1", regular((1, 1), (1, 1))),
    solve("2x2", regular((2, 2), (2, 1))),
    solve("3x3 several columns", regular((3, 3), (3, 5))),
    solve("4x4 batch", regular((3, 4, 4), (3, 4, 2))),
    solve("one right side for all", regular((5, 3, 3), (3, 1))),
    solve("constant right side", regular((2, 3, 3), (2, 3, 3)), 1),
    solve("batch of batches", regular((2, 2, 2, 2), (2, 2, 2, 1))),
    solve("zero on the diagonal", values([[0, 2], [4, 0]], [[1], [2]])),
    solve("triangular", values([[2, 1, 5], [0, 4, 1], [0, 0, 8]], [[1], [2], [3]])),
    inverse("1x1", (1, 1)),
    inverse("2x2", (2, 2)),
    inverse("3x3", (3, 3)),
    inverse("4x4", (4, 4, 4)),
    det("1x1", normal((1, 1))),
    det("2x2", normal((3, 2, 2))),
    det("3x3", normal((2, 2, 3, 3))),
    det("4x4", regular((5, 4, 4))),
    det("singular", values([[1, 2], [2, 4]])),
    det("nothing", values([[0, 0, 0], [0, 0, 0], [0, 0, 0]])),
)
