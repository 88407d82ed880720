"""The random forest of tests/frontends/data/digits_forest.npz: 10 trees of depth 8 on scikit-learn's digits.
tools/make_forest.py made the file."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from tests.frontends.onnx.files import INT64, model, node

from baretorch.ir.graph import Array

DATA = Path(__file__).resolve().parents[1] / "data" / "digits_forest.npz"
COUNT = 10_000


def vary(pixels: Array) -> Array:
    """COUNT inputs: the test digits, then the same with some pixels changed, and with other contrasts."""
    rng = np.random.default_rng(0)
    rows = np.resize(pixels, (COUNT, pixels.shape[1])).astype(np.float32)
    changed = rng.random(rows.shape) < rng.random((COUNT, 1)) / 2
    made = np.where(changed, np.clip(rows + rng.integers(-4, 5, rows.shape), 0, 16), rows)
    made[COUNT // 2 :] *= rng.integers(8, 17, (COUNT - COUNT // 2, 1)).astype(np.float32) / 16
    made[: len(pixels)] = pixels
    return made.astype(np.float32)


@cache
def data() -> dict[str, Array]:
    with np.load(DATA) as arrays:
        return dict(arrays)


def inputs() -> Array:
    return vary(data()["pixels"])


def forest(rows: int = 1) -> Any:
    """The forest as an ONNX model for this many rows."""
    attributes: dict[str, Any] = {n: a.tolist() for n, a in data().items() if n not in ("pixels", "classes")}
    attributes["nodes_modes"] = [m.decode() for m in attributes["nodes_modes"]]
    n = node(
        "TreeEnsembleClassifier", ["x"], ["label", "scores"], "forest", domain="ai.onnx.ml", post_transform="NONE",
        **attributes,
    )  # fmt: skip
    return model([n], {"x": [rows, 64]}, ["label", "scores"], types={"label": INT64}, domains={"ai.onnx.ml": 3})
