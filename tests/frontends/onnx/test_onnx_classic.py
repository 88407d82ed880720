"""Models of the domain ai.onnx.ml have onnxruntime's results: classes exactly, scores within a tolerance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from tests.frontends.onnx import digits
from tests.frontends.onnx.classic_models import KINDS, ML, classic, strings
from tests.frontends.onnx.files import INT64, model, node
from tests.frontends.onnx.lower import graph_of

from baretorch import frontends, pipeline
from baretorch.errors import CompileError
from baretorch.frontends.onnx.classic_model import as_numbers
from baretorch.ir.graph import Array, Graph, interpret
from baretorch.passes.order import lower_graph
from baretorch.targets.boards import load_board

TOLERANCE = 1e-4
BATCH = 10
onnxruntime.set_default_logger_severity(3)


def runtime(made: Any, *inputs: Array) -> list[Any]:
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    answers = session.run(None, dict(zip((i.name for i in session.get_inputs()), inputs, strict=True)))
    return list(answers)


def compared(made: Any, *inputs: Array) -> Graph:
    """The Graph after all passes, with onnxruntime's results."""
    graph = lower_graph(graph_of(made))
    have = interpret(graph, inputs)
    for name, want in zip(graph.outputs, runtime(made, *inputs), strict=True):
        assert (have[name].shape, have[name].dtype) == (want.shape, want.dtype)
        if want.dtype.kind == "f":
            np.testing.assert_allclose(have[name], want, rtol=TOLERANCE, atol=TOLERANCE / 10)
        else:
            np.testing.assert_array_equal(have[name], want)
    return graph


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "first", [0, BATCH, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2 * BATCH, 1000, BATCH))]
)
def test_random_models_equal_onnxruntime(kind: str, first: int) -> None:
    for seed in range(first, first + BATCH):
        compared(*KINDS[kind](np.random.default_rng(seed)))


# --- digits -------------------------------------------------------------------------------------------------------


def test_the_forest_has_the_classes_of_scikit_learn() -> None:
    graph = graph_of(digits.forest(digits.COUNT))
    x = digits.inputs()
    label, scores = interpret(graph, [x]).values()
    np.testing.assert_array_equal(label, digits.data()["classes"])
    want, probabilities = runtime(digits.forest(digits.COUNT), x)
    np.testing.assert_array_equal(label, want)
    np.testing.assert_allclose(scores, probabilities, rtol=1e-6)


def test_a_forest_is_two_operators() -> None:
    """Its classes are counted from 0, and no vote is negative."""
    assert [n.op.name for n in lower_graph(graph_of(digits.forest())).nodes] == ["trees", "argmax"]


def test_the_forest_in_c_has_them_too(tmp_path: Path) -> None:
    file = tmp_path / "net.onnx"
    file.write_bytes(digits.forest(digits.COUNT).SerializeToString())
    np.savez(tmp_path / "net.inputs.npz", x=digits.inputs()[None])
    compiled = pipeline.compile_source(frontends.load(str(file)), load_board("host"))
    image = pipeline.build_image(compiled, tmp_path / "build")
    label, _ = pipeline.run_image(compiled, image).outputs
    np.testing.assert_array_equal(label, digits.data()["classes"])


def test_the_forest_is_small(tmp_path: Path) -> None:
    """emlearn takes 11,628 bytes, or 8,928 with 1,206 instructions; m2cgen 78,756."""
    file = tmp_path / "net.onnx"
    file.write_bytes(digits.forest().SerializeToString())
    np.savez(tmp_path / "net.inputs.npz", x=digits.inputs()[:1, None])
    compiled = pipeline.compile_source(frontends.load(str(file)), load_board("mps2-an386"))
    image = pipeline.build_image(compiled, tmp_path / "build")
    assert image.flash.model_code + image.flash.weights <= 8_500
    run = pipeline.run_image(compiled, image)
    assert run.outputs[0].tolist() == [digits.data()["classes"][0]]
    assert run.instructions is not None and run.instructions < 1_400


# --- maps and texts -----------------------------------------------------------------------------------------------


def test_zip_map_becomes_the_tensor_of_probabilities() -> None:
    n = helper.make_node(
        "LinearClassifier", ["x"], ["label", "scores"], domain=ML, coefficients=[0.1, -0.2, 0.3, 0.4, 0.5, -0.6],
        intercepts=[0.1, 0.2, 0.3], classlabels_ints=[3, 5, 9], post_transform="SOFTMAX",
    )  # fmt: skip
    zipped = helper.make_node("ZipMap", ["scores"], ["map"], "zip", domain=ML, classlabels_int64s=[3, 5, 9])
    made = model([n, zipped], {"x": [4, 2]}, ["label", "map"], types={"label": INT64}, domains={ML: 3})
    kind = made.graph.output[1].type
    kind.Clear()
    kind.sequence_type.elem_type.map_type.key_type = TensorProto.INT64
    kind.sequence_type.elem_type.map_type.value_type.tensor_type.elem_type = TensorProto.FLOAT
    rewritten, notes = as_numbers(made)
    assert notes == ("zip: ZipMap is left out; map is the tensor of all probabilities",)
    given = np.random.default_rng(0).standard_normal((4, 2)).astype(np.float32)
    compared(rewritten, given)
    maps = runtime(made, given)[1]
    _, tensor = interpret(graph_of(rewritten), [given]).values()
    np.testing.assert_allclose([list(m.values()) for m in maps], tensor, atol=1e-6)


def test_labels_that_are_texts_become_indices() -> None:
    made = classic(
        "LinearClassifier", ["label", "scores"], 1, 3, coefficients=[1.0, 0.0, -1.0], intercepts=[0.0, 0.5, 0.0],
        classlabels_ints=[0, 1, 2],
    )  # fmt: skip
    made = strings(made, ["cat", "dog\n", "bird"])
    rewritten, notes = as_numbers(made)
    assert "labels are texts; their indices are used: 0 cat, 1 dog" in notes[0] and "\n" not in notes[0]
    x = np.array([[2.0], [0.0], [-2.0]], np.float32)
    compared(rewritten, x)
    texts = runtime(made, x)[0]
    label, _ = interpret(graph_of(rewritten), [x]).values()
    assert [["cat", "dog\n", "bird"][i] for i in label] == list(texts)


def test_a_model_with_maps_loads_and_reports_it(tmp_path: Path) -> None:
    n = helper.make_node(
        "LinearClassifier", ["x"], ["label", "scores"], domain=ML, coefficients=[0.1, -0.2], intercepts=[0.1, 0.2],
        classlabels_strings=["no", "yes"],
    )  # fmt: skip
    zipped = helper.make_node("ZipMap", ["scores"], ["map"], "zip", domain=ML, classlabels_strings=["no", "yes"])
    made = model([n, zipped], {"x": [1, 1]}, ["label", "map"], types={"label": TensorProto.STRING}, domains={ML: 3})
    made.graph.output[1].type.Clear()
    made.graph.output[1].type.sequence_type.elem_type.map_type.key_type = TensorProto.STRING
    made.graph.output[1].type.sequence_type.elem_type.map_type.value_type.tensor_type.elem_type = TensorProto.FLOAT
    file = tmp_path / "net.onnx"
    file.write_bytes(made.SerializeToString())
    source = frontends.load(str(file))
    assert source.library == "onnxruntime"
    assert any("0 no, 1 yes" in note for note in source.notes) and any("ZipMap" in note for note in source.notes)


# --- features -----------------------------------------------------------------------------------------------------

X = np.array([[1.0, -2.0, 0.0], [0.0, 0.0, 0.0], [np.nan, 3.0, -4.5], [2.0, 1.0, 2.0]], np.float32)
WHOLE = np.array([[1, 2, 3], [4, 5, -6], [7, 1, 9], [2, 2, 2]], np.int64)


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("Scaler", {"offset": [1.0, 2.0, 3.0], "scale": [0.5, 2.0, -1.0]}),
        ("Scaler", {"offset": [1.0], "scale": [0.5]}),
        ("Normalizer", {"norm": "L1"}),
        ("Normalizer", {"norm": "L2"}),
        ("Imputer", {"imputed_value_floats": [7.0, 8.0, 9.0], "replaced_value_float": float("nan")}),
        ("Imputer", {"imputed_value_floats": [7.0], "replaced_value_float": 2.0}),
        ("Binarizer", {"threshold": 0.5}),
    ],
)
def test_features(op: str, attributes: dict[str, Any]) -> None:
    given = np.nan_to_num(X) if op in ("Normalizer", "Binarizer") else X
    compared(classic(op, ["y"], 3, 4, version=1, **attributes), given)


def test_the_largest_number_normalizes() -> None:
    compared(classic("Normalizer", ["y"], 3, 4, version=1, norm="MAX"), np.abs(np.nan_to_num(X)))


@pytest.mark.parametrize(
    ("op", "kind", "attributes"),
    [
        ("LabelEncoder", INT64, {"keys_int64s": [1, 2, 9], "values_int64s": [5, 1 << 40, -7], "default_int64": 3}),
        ("LabelEncoder", 1, {"keys_int64s": [1, 2, 9], "values_floats": [0.5, 1.5, 2.5]}),
        ("Imputer", INT64, {"imputed_value_int64s": [7], "replaced_value_int64": 2}),
        ("OneHotEncoder", 1, {"cats_int64s": [1, 2, 5]}),
        ("Scaler", 1, {"offset": [1.0], "scale": [0.5]}),
    ],
)
def test_whole_numbers(op: str, kind: int, attributes: dict[str, Any]) -> None:
    n = node(op, ["x"], ["y"], domain=ML, **attributes)
    made = model([n], {"x": [4, 3]}, ["y"], types={"x": INT64, "y": kind}, domains={ML: 2})
    compared(made, WHOLE)


def test_extractor_and_vectorizer() -> None:
    nodes = [
        node("ArrayFeatureExtractor", ["x", "at"], ["some"], domain=ML),
        node("FeatureVectorizer", ["x", "some"], ["y"], domain=ML, inputdimensions=[3, 2]),
    ]
    compared(model(nodes, {"x": [4, 3]}, ["y"], {"at": np.array([2, 0])}, domains={ML: 1}), np.nan_to_num(X))


# --- the operator of version 5 ------------------------------------------------------------------------------------


def ensemble(**changes: Any) -> Any:
    """Two trees: a comparison with a set, and one with a threshold."""
    attributes: dict[str, Any] = {
        "n_targets": 2,
        "nodes_featureids": [0, 1, 2],
        "nodes_modes": helper.make_tensor("modes", TensorProto.UINT8, [3], [0, 3, 0]),
        "nodes_splits": helper.make_tensor("splits", TensorProto.FLOAT, [3], [0.5, 1.0, -1.0]),
        "nodes_truenodeids": [1, 0, 1],
        "nodes_trueleafs": [0, 1, 1],
        "nodes_falsenodeids": [2, 3, 0],
        "nodes_falseleafs": [1, 1, 1],
        "leaf_targetids": [0, 1, 0, 1],
        "leaf_weights": helper.make_tensor("weights", TensorProto.FLOAT, [4], [1.0, -2.0, 3.0, 0.5]),
        "tree_roots": [0, 2],
    } | changes
    n = node("TreeEnsemble", ["x"], ["y"], "forest", domain=ML, **attributes)
    return model([n], {"x": [4, 3]}, ["y"], domains={ML: 5})


@pytest.mark.parametrize("aggregate", [0, 1, 2, 3])
def test_the_ensemble_of_version_5(aggregate: int) -> None:
    compared(ensemble(aggregate_function=aggregate), np.nan_to_num(X))


# --- damage -------------------------------------------------------------------------------------------------------


def small(**changes: Any) -> Any:
    """A tree with one comparison."""
    attributes: dict[str, Any] = {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [0, 0, 0],
        "nodes_values": [0.5, 0.0, 0.0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        "target_treeids": [0, 0],
        "target_nodeids": [1, 2],
        "target_ids": [0, 0],
        "target_weights": [1.0, 2.0],
        "n_targets": 1,
    } | changes
    n = node("TreeEnsembleRegressor", ["x"], ["y"], "forest", domain=ML, **attributes)
    return model([n], {"x": [4, 3]}, ["y"], domains={ML: 3})


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"nodes_truenodeids": [0, 0, 0]}, "node 0 of a tree follows itself"),
        ({"nodes_truenodeids": [7, 0, 0]}, "leads to node 7, which is missing"),
        ({"nodes_values": [0.5]}, "attributes differ in length"),
        ({"target_ids": [0]}, "attributes differ in length"),
        ({"target_ids": [0, 3]}, "a leaf votes for an unknown target"),
        ({"target_nodeids": [1, 9]}, "target_nodeids has node 9 of tree 0, which is missing"),
        ({"nodes_featureids": [3, 0, 0]}, "a node compares feature 3"),
        ({"nodes_featureids": [-1, 0, 0]}, "a node compares feature -1"),
        ({"nodes_nodeids": [0, 1, 1]}, "node 1 of tree 0 is defined twice"),
        ({"nodes_modes": ["BRANCH_MAYBE", "LEAF", "LEAF"]}, "the mode 'BRANCH_MAYBE' is not supported"),
        ({"nodes_missing_value_tracks_true": [1]}, "nodes_missing_value_tracks_true has 1 numbers"),
        ({"n_targets": 1 << 40}, "targets are not supported"),
        ({"n_targets": 0}, "targets are not supported"),
        ({"base_values": [1.0, 2.0]}, "base_values has 2 numbers"),
        ({"aggregate_function": "MEDIAN"}, "aggregate_function 'MEDIAN' is not supported"),
        ({"n_targets": 2, "post_transform": "MAYBE"}, "post_transform 'MAYBE' is not supported"),
    ],
)
def test_damaged_trees_are_errors_with_the_node(changes: dict[str, Any], what: str) -> None:
    with pytest.raises(CompileError) as caught:
        graph_of(small(**changes))
    assert what in caught.value.what
    assert caught.value.at == ("forest: TreeEnsembleRegressor",)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"nodes_truenodeids": [0, 0, 1], "nodes_trueleafs": [0, 1, 1]}, "node 0 of a tree follows itself"),
        ({"nodes_falsenodeids": [4, 3, 0]}, "node 0 leads to leaf 4, which is missing"),
        ({"tree_roots": [5]}, "tree_roots has node 5, which is missing"),
        ({"aggregate_function": 9}, "the aggregate function or the transform is not supported"),
    ],
)
def test_a_damaged_ensemble_is_an_error(changes: dict[str, Any], what: str) -> None:
    with pytest.raises(CompileError) as caught:
        graph_of(ensemble(**changes))
    assert what in caught.value.what


@pytest.mark.parametrize(
    ("op", "attributes", "what"),
    [
        ("Scaler", {"offset": [1.0, 2.0], "scale": [1.0]}, "offset has 2 numbers"),
        ("Imputer", {}, "imputed_value_floats has 0 numbers"),
        ("LinearRegressor", {"coefficients": [1.0], "targets": 1}, "coefficients has 1 numbers"),
        ("SVMRegressor", {"coefficients": [1.0], "rho": [0.0], "n_supports": 1}, "support_vectors has 0 numbers"),
        ("LabelEncoder", {"keys_strings": ["a"], "values_int64s": [1]}, "keys are not numbers"),
        ("OneHotEncoder", {"cats_strings": ["a"]}, "cats_int64s is missing"),
        ("FeatureVectorizer", {"inputdimensions": [7]}, "inputdimensions is [7]"),
    ],
)
def test_attributes_that_do_not_fit_are_errors(op: str, attributes: dict[str, Any], what: str) -> None:
    with pytest.raises(CompileError) as caught:
        graph_of(classic(op, ["y"], 3, 4, version=2 if op == "LabelEncoder" else 1, **attributes))
    assert what in caught.value.what


def test_probabilities_of_support_vectors_are_refused() -> None:
    made = classic(
        "SVMClassifier", ["label", "scores"], 1, version=1, coefficients=[1.0, -1.0], support_vectors=[0.0, 1.0],
        vectors_per_class=[1, 1], rho=[0.0], prob_a=[1.0], prob_b=[0.0], classlabels_ints=[0, 1],
        kernel_params=[1.0, 0.0, 3.0],
    )  # fmt: skip
    with pytest.raises(CompileError, match="probabilities of support vectors are not supported"):
        graph_of(made)


# --- scikit-learn -------------------------------------------------------------------------------------------------


def estimators() -> dict[str, Any]:
    from sklearn.ensemble import (
        ExtraTreesClassifier,
        GradientBoostingClassifier,
        GradientBoostingRegressor,
        IsolationForest,
        RandomForestClassifier,
        RandomForestRegressor,
    )
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler
    from sklearn.svm import SVC, SVR
    from sklearn.tree import DecisionTreeClassifier

    return {
        "forest": RandomForestClassifier(10, max_depth=6, random_state=0),
        "extra": ExtraTreesClassifier(10, max_depth=6, random_state=0),
        "tree": DecisionTreeClassifier(max_depth=5, random_state=0),
        "boosting": GradientBoostingClassifier(n_estimators=5, random_state=0),
        "forest regressor": RandomForestRegressor(10, max_depth=6, random_state=0),
        "boosting regressor": GradientBoostingRegressor(n_estimators=5, random_state=0),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
        "ridge": make_pipeline(MinMaxScaler(), Ridge()),
        "svc": make_pipeline(Normalizer(), SVC()),
        "svr": make_pipeline(StandardScaler(), SVR()),
        "isolation": IsolationForest(n_estimators=5, random_state=0),
    }


NAMES = (
    "forest", "extra", "tree", "boosting", "forest regressor", "boosting regressor", "logistic", "ridge",
    "svc", "svr", "isolation",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_estimators_of_scikit_learn(name: str, classes: int, texts: bool) -> None:
    from skl2onnx import to_onnx
    from sklearn.base import is_classifier
    from sklearn.datasets import load_iris

    x, y = load_iris(return_X_y=True)
    x, y = x[y < classes].astype(np.float32), y[y < classes]
    labels = np.array(["setosa", "versicolor", "virginica"])
    estimator = estimators()[name]
    target = labels[y] if texts and is_classifier(estimator) else y
    estimator.fit(x, target)
    made, _ = as_numbers(to_onnx(estimator, x, target_opset={"": 18, ML: 3}))
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_value = len(x)
    graph = compared(made, x)
    if is_classifier(estimator):
        want = estimator.predict(x)
        found = interpret(graph, [x])[graph.outputs[0]]
        np.testing.assert_array_equal(found, np.searchsorted(labels[:classes], want) if texts else want)


@pytest.mark.slow
def test_every_estimator_is_tested() -> None:
    assert set(NAMES) == set(estimators())
