"""Files that are damaged or mean harm: refused in words, without memory, without leaving their folder."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, TensorProto, helper
from tests.cli.program import check_golden
from tests.frontends.onnx.files import FLOAT, INT64, model, node, small_cnn, weights

from baretorch import frontends
from baretorch.errors import CompileError
from baretorch.frontends.onnx import definitions

MEGABYTES = 200  # more than any of these may take
LARGE = 1 << 33


def refused(made: Any, folder: Path, name: str, raw: bytes | None = None) -> CompileError:
    """The error, which is the golden one, and took little memory."""
    file = folder / "net.onnx"
    file.write_bytes(made.SerializeToString() if raw is None else raw)
    tracemalloc.start()
    try:
        with pytest.raises(CompileError) as caught:
            frontends.load(str(file))
        assert tracemalloc.get_traced_memory()[1] < MEGABYTES << 20
    finally:
        tracemalloc.stop()
    check_golden(f"onnx_{name}", caught.value.render().replace(str(folder), "FOLDER") + "\n")
    return caught.value


def makes(op: str, inputs: list[str], constants: dict[str, Any], **attributes: Any) -> Any:
    """A node that makes a large constant, which the model adds to its input."""
    nodes = [node(op, inputs, ["large"], "grow", **attributes), node("Add", ["x", "large"], ["y"], "sum")]
    return model(nodes, {"x": [1]}, ["y"], constants)


HUGE: dict[str, Callable[[], Any]] = {
    "constant_of_shape": lambda: makes("ConstantOfShape", ["s"], {"s": np.array([LARGE])}),
    "expand": lambda: makes("Expand", ["k", "s"], {"k": np.float32([1]), "s": np.array([LARGE])}),
    "tile": lambda: makes("Tile", ["k", "s"], {"k": np.float32([1]), "s": np.array([LARGE])}),
    "range": lambda: makes("Range", ["a", "b", "c"], {"a": np.float32(0), "b": np.float32(1e9), "c": np.float32(1)}),
    "pad": lambda: makes("Pad", ["k", "p"], {"k": np.float32([1]), "p": np.array([LARGE, 0])}),
    "resize": lambda: makes("Resize", ["k", "", "r"], {"k": np.float32([[1, 2]]), "r": np.float32([1, 1e9])}),
    "resize_input": lambda: model(
        [node("Resize", ["x", "", "r"], ["y"])], {"x": [1, 1, 2, 2]}, ["y"], {"r": np.float32([1, 1, 1e6, 1e6])}
    ),
    "resize_axis": lambda: model(
        [node("Resize", ["x", "", "r"], ["y"])], {"x": [1, 1, 1, 2]}, ["y"], {"r": np.float32([1, 1, 1, 1e9])}
    ),
    "one_hot": lambda: makes(
        "OneHot", ["i", "d", "v"], {"i": np.array([0]), "d": np.array(LARGE), "v": np.float32([0, 1])}
    ),
    "product": lambda: makes("MatMul", ["a", "b"], {"a": weights(40000, 1), "b": weights(1, 40000)}),
    "input": lambda: model([node("Relu", ["x"], ["y"])], {"x": [LARGE, LARGE]}, ["y"]),
    "windows": lambda: model(
        [node("ConstantOfShape", ["s"], ["k"]), node("Conv", ["x", "k"], ["y"])],
        {"x": [1, 1, 4, 4]},
        ["y"],
        {"s": np.array([20000, 1, 40, 40])},
    ),
}


@pytest.mark.parametrize("name", HUGE)
def test_what_would_be_huge(name: str, tmp_path: Path) -> None:
    refused(HUGE[name](), tmp_path, f"huge_{name}")


def doubled_text() -> Any:
    """A text that is twice as long with every node."""
    nodes = [node("Cast", ["k"], ["t0"], to=TensorProto.STRING)]
    nodes += [node("StringConcat", [f"t{i}", f"t{i}"], [f"t{i + 1}"], f"twice{i}") for i in range(40)]
    nodes += [node("Equal", ["t40", "t40"], ["b"]), node("Cast", ["b"], ["f"], to=FLOAT)]
    return model([*nodes, node("Add", ["x", "f"], ["y"])], {"x": [1]}, ["y"], {"k": np.array([1])}, opset=20)


def test_texts_are_not_computed(tmp_path: Path) -> None:
    refused(doubled_text(), tmp_path, "texts")


def test_large_windows_of_constants_are_left_to_us(monkeypatch: pytest.MonkeyPatch) -> None:
    """onnx.reference would write out all windows: 400 MB of them."""
    asked: list[str] = []
    monkeypatch.setattr(definitions, "_compute", lambda node, *_: asked.append(node.op_type))
    image, kernel = (np.broadcast_to(np.float32(0), (1, 1, n, n)) for n in (256, 40))
    windows = node("Conv", ["image", "kernel"], ["y"])
    assert definitions.fold(windows, [image, kernel], 18) is None and asked == []
    definitions.fold(windows, [image[..., :8, :8], kernel[..., :3, :3]], 18)
    assert asked == ["Conv"]


def test_a_constant_that_declares_more_than_it_has(tmp_path: Path) -> None:
    made = small_cnn()
    made.graph.initializer[0].dims[0] = LARGE
    refused(made, tmp_path, "declared")


# --- the structure ------------------------------------------------------------------------------------------


def circle() -> Any:
    nodes = [
        *(node("Neg", ["a"], ["y"], "after"), node("Relu", ["x"], ["r"], "before")),
        *(node("Add", ["r", "b"], ["a"], "one"), node("Relu", ["a"], ["c"], "two"), node("Relu", ["c"], ["b"])),
    ]
    return model(nodes, {"x": [2]}, ["y"])


def long_circle() -> Any:
    nodes = [node("Relu", [f"v{(i + 1) % 50}"], [f"v{i}"]) for i in range(50)]
    return model(nodes, {"x": [2]}, ["v0"])


def circle_in_a_branch() -> Any:
    """Return a model whose branch reads the result of the If itself."""
    branch = helper.make_graph(
        [node("Neg", ["y"], ["n"])], "branch", [], [helper.make_tensor_value_info("n", FLOAT, [2])]
    )
    return model(
        [node("If", ["c"], ["y"], "choice", then_branch=branch, else_branch=branch)], {}, ["y"], {"c": np.array(True)}
    )


def mask_of_dropout() -> Any:
    nodes = [node("Dropout", ["x"], ["d", "m"], "drop"), node("Add", ["d", "m"], ["y"])]
    return model(nodes, {"x": [2]}, ["y"], opset=7)


def lengths_of_a_scan() -> Any:
    body = helper.make_graph(
        [node("Relu", ["e"], ["o"])],
        "body",
        [helper.make_tensor_value_info("e", FLOAT, [3])],
        [helper.make_tensor_value_info("o", FLOAT, [3])],
    )
    nodes = [node("Scan", ["n", "x"], ["y"], "scan", num_scan_inputs=1, body=body)]
    return model(nodes, {"x": [1, 2, 3]}, ["y"], {"n": np.array([2])}, opset=8)


def outputs_of_training() -> Any:
    norm = node("BatchNormalization", ["x", *"abcd"], ["y", "m", "v", "sm", "sv"], "norm")
    return model([norm], {"x": [1, 2, 3]}, ["y"], {n: weights(2) for n in "abcd"}, opset=9)


def parameter_of_an_old_function() -> Any:
    body = [node("TopK", ["a"], ["r", "i"], "top")]
    body[0].attribute.add(name="k", ref_attr_name="count", type=AttributeProto.INT)
    opsets = [helper.make_opsetid("", 9)]
    function = helper.make_function("own", "largest", ["a"], ["r"], body, opsets, ["count"])
    nodes = [node("largest", ["x"], ["y"], "call", count=2, domain="own")]
    return model(nodes, {"x": [4]}, ["y"], opset=9, domains={"own": 1}, functions=[function])


def experimental() -> Any:
    return model([node("ImageScaler", ["x"], ["y"], "scaler", scale=0.5)], {"x": [1, 3, 2, 2]}, ["y"], opset=7)


def very_old_function() -> Any:
    function = helper.make_function(
        "own", "f", ["a"], ["r"], [node("Relu", ["a"], ["r"])], [helper.make_opsetid("", 5)]
    )
    return model([node("f", ["x"], ["y"], domain="own")], {"x": [4]}, ["y"], domains={"own": 1}, functions=[function])


def twice() -> Any:
    return model([node("Relu", ["x"], ["y"], "one"), node("Neg", ["x"], ["y"], "two")], {"x": [2]}, ["y"])


def sparse() -> Any:
    made = model([node("Add", ["x", "s"], ["y"])], {"x": [4]}, ["y"])
    values = helper.make_tensor("s", FLOAT, [1], [1.0])
    made.graph.sparse_initializer.append(
        helper.make_sparse_tensor(values, helper.make_tensor("i", INT64, [1], [2]), [4])
    )
    return made


def strings() -> Any:
    made = model([node("Identity", ["s"], ["y"])], {}, ["y"], types={"y": TensorProto.STRING})
    made.graph.initializer.append(helper.make_tensor("s", TensorProto.STRING, [1], [b"text"]))
    return made


def sequence_input() -> Any:
    made = model([node("SequenceAt", ["x", "i"], ["y"])], {}, ["y"], {"i": np.array(0)})
    made.graph.input.append(helper.make_tensor_sequence_value_info("x", FLOAT, None))
    return made


def sequences() -> Any:
    nodes = [node("SequenceConstruct", ["x", "x"], ["s"], "pack"), node("SequenceAt", ["s", "i"], ["y"], "take")]
    return model(nodes, {"x": [2]}, ["y"], {"i": np.array(0)})


def several() -> Any:
    """Return a model with unknown operators, one of them in a domain of its own, after one that cannot be lowered."""
    nodes = [
        node("NonMaxSuppression", ["b", "s"], ["n"], "nms"),
        node("Cast", ["n"], ["c"], "cast", to=FLOAT),
        node("Fancy", ["c"], ["f"], "fancy", domain="my.own"),
        node("Multinomial", ["x"], ["r"], "dice"),
        node("Cast", ["r"], ["y"], "cast_2", to=FLOAT),
    ]
    return model(nodes, {"b": [1, 2, 4], "s": [1, 1, 2], "x": [1, 2]}, ["f", "y"], domains={"my.own": 1})


def opset(version: int) -> Callable[[], Any]:
    def made() -> Any:
        other = small_cnn()
        other.opset_import[0].version = version
        return other

    return made


def double() -> Any:
    return model(
        [node("Relu", ["x"], ["y"])], {"x": [2]}, ["y"], types={"x": TensorProto.DOUBLE, "y": TensorProto.DOUBLE}
    )


ODD: dict[str, Callable[[], Any]] = {
    "circle": circle,
    "long_circle": long_circle,
    "circle_in_a_branch": circle_in_a_branch,
    "mask_of_dropout": mask_of_dropout,
    "lengths_of_a_scan": lengths_of_a_scan,
    "outputs_of_training": outputs_of_training,
    "parameter_of_an_old_function": parameter_of_an_old_function,
    "experimental": experimental,
    "very_old_function": very_old_function,
    "twice": twice,
    "sparse": sparse,
    "strings": strings,
    "sequence_input": sequence_input,
    "sequences": sequences,
    "several": several,
    "old_opset": opset(5),
    "new_opset": opset(99),
    "double": double,
    "open_shape": lambda: model([node("Relu", ["x"], ["y"])], {"x": ["n", 3, "h", "w"]}, ["y"]),
    "attribute": lambda: model([node("Softmax", ["x"], ["y"], "s", axis="last")], {"x": [2, 3]}, ["y"]),
    "inputs": lambda: model([node("Conv", ["x"], ["y"], "conv")], {"x": [1, 1, 4, 4]}, ["y"]),
    "does_not_fit": lambda: model(
        [node("MatMul", ["x", "w"], ["y"], "product")], {"x": [2, 3]}, ["y"], {"w": weights(4, 4)}
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_what_cannot_be(name: str, tmp_path: Path) -> None:
    refused(ODD[name](), tmp_path, name)


@pytest.mark.parametrize(("name", "raw"), [("empty", b""), ("text", b"this is no model"), ("zeros", bytes(100))])
def test_what_is_no_onnx(name: str, raw: bytes, tmp_path: Path) -> None:
    refused(None, tmp_path, name, raw)


# --- external data ------------------------------------------------------------------------------------------


def external(folder: Path, location: str, offset: int | None = None, length: int | None = None) -> Path:
    """The small network with its first weight in another file."""
    made = small_cnn()
    tensor = made.graph.initializer[0]
    (folder / "weights.bin").write_bytes(bytes(16) + tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        if value is not None:
            tensor.external_data.add(key=key, value=str(value))
    file = folder / "net.onnx"
    file.write_bytes(made.SerializeToString())
    return file


def test_external_data_next_to_the_file(tmp_path: Path) -> None:
    file = external(tmp_path, "weights.bin", 16, 288)
    (name,) = [t.name for t in frontends.load(str(file)).graph.constants() if t.shape == (4, 2, 3, 3)]
    graph = frontends.load(str(file)).graph
    assert np.array_equal(graph[name].data, weights(4, 2, 3, 3))


@pytest.mark.parametrize(
    ("name", "location", "offset", "length"),
    [
        ("up", "../weights.bin", None, None),
        ("absolute", "/etc/passwd", None, None),
        ("hidden", "sub/../../weights.bin", None, None),
        ("backslash", "..\\weights.bin", None, None),
        ("nowhere", "", None, None),
        ("missing", "other.bin", None, None),
        ("folder", "sub", None, None),
        ("link", "link.bin", None, None),
        ("linked_folder", "linked/weights.bin", None, None),
        ("truncated", "weights.bin", 100, 288),
        ("negative", "weights.bin", -4, 288),
        ("short", "weights.bin", 16, 100),
        ("number", "weights.bin", "many", 288),
    ],
)
def test_external_data_that_is_elsewhere(name: str, location: str, offset: Any, length: Any, tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    (inside / "sub").mkdir(parents=True)
    (tmp_path / "weights.bin").write_bytes(bytes(304))
    (inside / "link.bin").symlink_to(tmp_path / "weights.bin")
    (inside / "linked").symlink_to(tmp_path, target_is_directory=True)
    file = external(inside, location, offset, length)
    with pytest.raises(CompileError) as caught:
        frontends.load(str(file))
    check_golden(f"onnx_external_{name}", caught.value.render().replace(str(tmp_path), "FOLDER") + "\n")


def test_without_the_package(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(small_cnn().SerializeToString())
    script = (
        "import sys; sys.modules['onnx'] = None\n"
        "from baretorch import frontends\nfrom baretorch.errors import CompileError\n"
        "try: frontends.load(sys.argv[1])\nexcept CompileError as error: print(error.render())"
    )
    run = subprocess.run([sys.executable, "-c", script, str(tmp_path / "net.onnx")], capture_output=True, text=True)
    check_golden("onnx_not_installed", run.stdout)
