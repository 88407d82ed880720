"""Random models of the domain ai.onnx.ml: forests, support vectors and linear models, with inputs that meet their
thresholds, NaN and infinities."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper
from tests.frontends.onnx.files import INT64, model, node

from baretorch.ir.graph import Array

ML = "ai.onnx.ml"
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO")
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
ODD = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45], np.float32)
ROWS = 24


def classic(op: str, outputs: list[str], features: int, rows: int = ROWS, version: int = 3, **attributes: Any) -> Any:
    """One node x[rows, features] -> outputs."""
    n = node(op, ["x"], outputs, op.lower(), domain=ML, **attributes)
    types = {"label": INT64}
    return model([n], {"x": [rows, features]}, outputs, types=types, domains={ML: version})


def numbers(rng: np.random.Generator, *shape: int) -> list[float]:
    return [float(v) for v in rng.standard_normal(shape).astype(np.float32).reshape(-1)]


def grow(rng: np.random.Generator, features: int, trees: int, depth: int, modes: tuple[str, ...], steps: bool) -> Any:
    """The nodes of random trees, and the leaves of each. Thresholds are multiples of a half with `steps`."""
    a: dict[str, list[Any]] = {
        f"nodes_{name}": []
        for name in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    }
    a["nodes_missing_value_tracks_true"] = []
    leaves: list[tuple[int, int]] = []
    for tree in range(trees):
        count = 0

        def add(left: int, tree: int = tree) -> int:
            nonlocal count
            number, count = count, count + 1
            inside = left > 0 and (left == depth or rng.random() < 0.8)
            row = len(a["nodes_modes"])
            value = float(rng.integers(0, 8) / 2) if steps else float(np.float32(rng.standard_normal()))
            for name, v in zip(a, (tree, number, int(rng.integers(features)), value, "LEAF", 0, 0, 0), strict=True):
                a[name].append(v)
            if inside:
                a["nodes_modes"][row] = str(rng.choice(modes))
                a["nodes_missing_value_tracks_true"][row] = int(rng.integers(2)) if len(modes) > 1 else 0
                a["nodes_truenodeids"][row] = add(left - 1)
                a["nodes_falsenodeids"][row] = add(left - 1)
            else:
                leaves.append((tree, number))
            return number

        add(depth)
    return a, leaves


def inputs(rng: np.random.Generator, features: int, attributes: Any) -> Array:
    """Rows with random numbers, thresholds, their neighbours, and odd numbers."""
    x = (rng.standard_normal((ROWS, features)) * 2).astype(np.float32)
    values = np.array(attributes.get("nodes_values", [0.0]), np.float32)
    met = rng.choice(values, x.shape)
    x = np.where(rng.random(x.shape) < 0.4, met, x)
    x = np.where(rng.random(x.shape) < 0.1, np.nextafter(met, np.float32(-np.inf)), x)
    x = np.where(rng.random(x.shape) < 0.1, np.nextafter(met, np.float32(np.inf)), x)
    return np.where(rng.random(x.shape) < 0.08, rng.choice(ODD, x.shape), x).astype(np.float32)


def forest(rng: np.random.Generator) -> tuple[Any, Array]:
    """A classifier or a regressor."""
    features, steps = int(rng.integers(1, 9)), bool(rng.integers(2))
    modes = MODES if rng.random() < 0.5 else (str(rng.choice(MODES[:2])),)
    a, leaves = grow(rng, features, int(rng.integers(1, 7)), int(rng.integers(0, 5)), modes, steps)
    x = inputs(rng, features, a)
    classifier = bool(rng.integers(2))
    count = int(rng.integers(1, 5)) if not classifier else int(rng.choice([2, 3, 4, 10]))
    signed = bool(rng.integers(2))
    kind = str(rng.choice(TRANSFORMS))

    def weight() -> float:
        w = float(np.float32(rng.standard_normal()))
        return w if signed else abs(w)

    what = "class" if classifier else "target"
    every = [(leaf, k) for leaf in leaves for k in range(count)]
    if classifier and count == 2 and rng.integers(2):
        every = [(leaf, 0) for leaf in leaves]
    elif (count > 2 or not classifier) and rng.integers(2):
        kept = [e for e in every if rng.random() < 0.6 or e[1] == 0]
        every = kept
    a[f"{what}_treeids"] = [leaf[0] for leaf, _ in every]
    a[f"{what}_nodeids"] = [leaf[1] for leaf, _ in every]
    a[f"{what}_ids"] = [k for _, k in every]
    a[f"{what}_weights"] = [weight() for _ in every]
    if classifier:
        if count > 2 and rng.integers(2):
            a["base_values"] = numbers(rng, count)
        labels = [int(v) for v in rng.permutation(20)[:count]] if rng.integers(2) else [*range(count)]
        made = classic(
            "TreeEnsembleClassifier", ["label", "scores"], features, classlabels_int64s=labels, post_transform=kind, **a
        )
        return made, x
    if rng.integers(2):
        a["base_values"] = numbers(rng, count)
    aggregate = str(rng.choice(["SUM", "AVERAGE", "MIN", "MAX"]))
    made = classic(
        "TreeEnsembleRegressor",
        ["y"],
        features,
        n_targets=count,
        aggregate_function=aggregate,
        post_transform=kind,
        **a,
    )
    return made, x


def plain_inputs(rng: np.random.Generator, features: int) -> Array:
    return rng.standard_normal((ROWS, features)).astype(np.float32)


def vectors(rng: np.random.Generator) -> tuple[Any, Array]:
    """Support vectors."""
    features, count = int(rng.integers(1, 7)), int(rng.integers(2, 5))
    kernel = str(rng.choice(["LINEAR", "POLY", "RBF", "SIGMOID"]))
    params = [0.3, 0.5, float(rng.integers(2, 4))]
    common: dict[str, Any] = {"kernel_type": kernel, "kernel_params": params}
    if rng.integers(2):
        supports = int(rng.integers(0, 9))
        size = supports or features
        made = classic(
            "SVMRegressor",
            ["y"],
            features,
            version=1,
            n_supports=supports,
            support_vectors=numbers(rng, max(supports, 1), features),
            coefficients=numbers(rng, size),
            rho=numbers(rng, 1),
            one_class=int(rng.integers(2)) if supports else 0,
            **common,
        )
        return made, plain_inputs(rng, features)
    labels = [int(v) for v in rng.permutation(9)[:count]]
    kind = str(rng.choice(TRANSFORMS))
    if rng.random() < 0.3:
        made = classic(
            "SVMClassifier",
            ["label", "scores"],
            features,
            version=1,
            coefficients=numbers(rng, count, features),
            rho=numbers(rng, 1),
            classlabels_ints=labels,
            post_transform=kind,
            **common,
        )
        return made, plain_inputs(rng, features)
    per_class = [int(n) for n in rng.integers(1, 5, count)]
    made = classic(
        "SVMClassifier",
        ["label", "scores"],
        features,
        version=1,
        vectors_per_class=per_class,
        support_vectors=numbers(rng, sum(per_class), features),
        coefficients=numbers(rng, count - 1, sum(per_class)),
        rho=numbers(rng, count * (count - 1) // 2),
        classlabels_ints=labels,
        post_transform=kind,
        **common,
    )
    return made, plain_inputs(rng, features)


def linear(rng: np.random.Generator) -> tuple[Any, Array]:
    """A linear classifier or regressor."""
    features, count = int(rng.integers(1, 9)), int(rng.integers(1, 6))
    kind = str(rng.choice(TRANSFORMS))
    if rng.integers(2):
        made = classic(
            "LinearRegressor",
            ["y"],
            features,
            version=1,
            targets=count,
            coefficients=numbers(rng, count, features),
            intercepts=numbers(rng, count) if rng.integers(2) else None,
            post_transform=kind,
        )
    else:
        labels = [int(v) for v in rng.permutation(9)[: max(count, 2)]]
        made = classic(
            "LinearClassifier",
            ["label", "scores"],
            features,
            version=1,
            coefficients=numbers(rng, count, features),
            intercepts=numbers(rng, count),
            classlabels_ints=labels,
            post_transform=kind,
        )
    return made, plain_inputs(rng, features)


KINDS = {"forest": forest, "vectors": vectors, "linear": linear}


def strings(made: Any, labels: list[str]) -> Any:
    """The model with these texts as labels."""
    n = made.graph.node[0]
    kept = [a for a in n.attribute if not a.name.startswith("classlabels")]
    del n.attribute[:]
    n.attribute.extend([*kept, helper.make_attribute("classlabels_strings", labels)])
    made.graph.output[0].type.tensor_type.elem_type = TensorProto.STRING
    return made
