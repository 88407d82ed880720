"""Users set shapes, state and calibration data of ONNX files."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.program import baretorch as cli
from tests.frontends.onnx.files import FLOAT, INT64, model, node, small_cnn, weights
from tests.models import int8_file, int8_model

import baretorch
from baretorch import frontends
from baretorch.errors import CompileError
from baretorch.frontends.calibration import calibration_of
from baretorch.frontends.onnx import runtime
from baretorch.ir.graph import Array, interpret
from baretorch.options import Options, read_options


def saved(folder: Path, made: Any, name: str = "net.onnx") -> str:
    (folder / name).write_bytes(made.SerializeToString())
    return str(folder / name)


def counter() -> Any:
    """h_next = h + x, y = 2 h_next."""
    nodes = [node("Add", ["x", "h"], ["h_next"]), node("Mul", ["h_next", "two"], ["y"])]
    return model(nodes, {"x": [1, 3], "h": [1, 3]}, ["y", "h_next"], {"two": np.float32([2])})


def open_sizes() -> Any:
    return model([node("Relu", ["x"], ["y"])], {"x": ["n", 3, "h", "w"]}, ["y"])


def test_shapes_that_the_file_leaves_open(tmp_path: Path) -> None:
    path = saved(tmp_path, open_sizes())
    with pytest.raises(CompileError) as caught:
        frontends.load(path)
    assert caught.value.have == ("x: [n, 3, h, w]",)
    assert "--shape x=" in caught.value.try_[0]
    source = frontends.load(path, options=read_options({"shape": {"x": (2, 3, 8, 8)}}))
    assert source.graph["x"].shape == (2, 3, 8, 8)
    assert source.expected is not None and source.expected[0].shape == (2, 3, 8, 8)


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ({"x": "1,4,8,8"}, "--shape: x is [1, 4, 8, 8]"),
        ({"x": "1,3,8"}, "--shape: x is [1, 3, 8]"),
        ({"z": "1,3,8,8"}, "--shape: the model has no input 'z'"),
        ({"x": "1,3,a,8"}, "--shape x=1,3,a,8: 'a' is not a valid size; sizes are whole numbers from 1"),
        ({"x": "9" * 5000}, f"--shape x={'9' * 120}…: '{'9' * 119}… is not a valid size"),
        (
            {"x": "9" * 10},
            "--shape x=9999999999: '9999999999' is not a valid size; sizes are whole numbers from 1 with",
        ),
        ({"x": "1,3,0,8"}, "--shape x=1,3,0,8: '0' is not a valid size"),
        ({"x": "-1,3,8,8"}, "--shape x=-1,3,8,8: '-1' is not a valid size"),
        ({"x": "1,3,90000,90000"}, "the model is too large"),
    ],
)
def test_shapes_that_do_not_fit(tmp_path: Path, shape: dict[str, str], text: str) -> None:
    with pytest.raises(CompileError) as caught:
        frontends.load(saved(tmp_path, open_sizes()), options=Options(shape=shape))
    assert caught.value.what.startswith(text)


def test_sizes_of_one_name_are_one_size(tmp_path: Path) -> None:
    made = model([node("Add", ["x", "b"], ["y"])], {"x": ["n", 3], "b": ["n", 1]}, ["y"])
    path = saved(tmp_path, made)
    graph = frontends.load(path, options=Options(shape={"x": "4,3"})).graph
    assert [t.shape for t in graph.of(graph.inputs)] == [(4, 3), (4, 1)]
    with pytest.raises(CompileError, match="--shape: n of b is 2"):
        frontends.load(path, options=Options(shape={"x": "4,3", "b": "2,1"}))


def test_outputs_are_called_as_in_the_file(tmp_path: Path) -> None:
    path = saved(tmp_path, model([node("Relu", ["x"], ["answer"], "last")], {"x": [1, 3]}, ["answer"]))
    assert "output      answer float32[1, 3]" in cli("inspect", path).out
    assert [t["name"] for t in cli("inspect", path, "--json").json()["outputs"]] == ["answer"]


def test_state_by_option_and_by_a_file_next_to_it(tmp_path: Path) -> None:
    path = saved(tmp_path, counter())
    by_option = frontends.load(path, options=Options(state={"h": "h_next"}))
    (tmp_path / "net.state.toml").write_text('h = "h_next"\n')
    for source in (by_option, frontends.load(path)):
        graph, x = source.graph, np.float32([[1, 2, 3]])
        assert graph.inputs == ("x",) and len(graph.outputs) == 1 and graph.labels == ("y",)
        memory: dict[str, Array] = {}
        for i in range(1, 4):
            assert np.array_equal(interpret(graph, [x], memory=memory)[graph.outputs[0]], 2 * i * x)
        assert source.expected is not None and source.expected_again is not None
        assert np.array_equal(source.expected_again[0], 2 * source.expected[0])
        assert source.eager is not None
        run = source.eager()
        assert np.array_equal(run(x), 2 * x) and np.array_equal(run(x), 4 * x)
        run.reset()
        assert np.array_equal(run(x), 2 * x)


def test_state_that_does_not_fit(tmp_path: Path) -> None:
    path = saved(tmp_path, counter())
    with pytest.raises(CompileError, match="no output 'z'"):
        frontends.load(path, options=Options(state={"h": "z"}))
    with pytest.raises(CompileError, match="no input 'z'"):
        frontends.load(path, options=Options(state={"z": "h_next"}))
    other = model([node("MatMul", ["h", "w"], ["n"])], {"h": [1, 3]}, ["n"], {"w": weights(3, 4)})
    with pytest.raises(CompileError, match="is float32\\[1, 4\\]"):
        frontends.load(saved(tmp_path, other, "other.onnx"), options=Options(state={"h": "n"}))
    (tmp_path / "net.state.toml").write_text("h = 3\n")
    with pytest.raises(CompileError, match="does not map inputs to outputs"):
        frontends.load(path)


@pytest.mark.parametrize("name", ["sine.pte", "lstm.tflite"])
def test_shapes_and_state_are_for_files_that_leave_them_open(name: str) -> None:
    file = Path(__file__).parents[1] / "data" / name
    with pytest.raises(CompileError, match=rf"--shape and --state: a \{file.suffix} defines that itself"):
        frontends.load(str(file), options=Options(shape={"x": "1"}, state={"x": "y"}))


def test_a_file_has_one_method(tmp_path: Path) -> None:
    path = saved(tmp_path, counter())
    assert frontends.load(path, "forward").method == "forward"
    with pytest.raises(CompileError, match="no method 'other'"):
        frontends.load(path, "other")


def test_a_model_that_no_runtime_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(feeds: dict[str, Array]) -> dict[str, Array]:
        raise ValueError("not today")

    def some(model: Any, crashes: list[str]) -> Iterator[tuple[runtime.Run, str]]:
        yield fails, "onnxruntime"
        if answering:
            yield lambda feeds: {"y": feeds["x"], "h_next": feeds["h"]}, "onnx.reference"

    monkeypatch.setattr(runtime, "runtimes", some)
    answering = True
    assert frontends.load(saved(tmp_path, counter())).library == "onnx.reference"
    answering = False
    source = frontends.load(saved(tmp_path, counter()))
    assert (source.expected, source.library) == (None, "nobody")
    assert source.notes == (
        "neither onnxruntime nor onnx.reference can run this model, so there is no result to compare with",
    )


def test_a_python_file_gives_shapes_to_inputs_and_not_to_state(tmp_path: Path) -> None:
    nodes = [node("Add", ["sum", "h"], ["h_next"]), node("ReduceSum", ["x", "axis"], ["sum"], keepdims=1)]
    made = model(nodes[::-1], {"h": ["n", 1], "x": ["n", "m"]}, ["sum", "h_next"], {"axis": np.int64([1])})
    made.graph.input[1].type.tensor_type.ClearField("shape")  # not even how many dimensions there are
    saved(tmp_path, made)
    (tmp_path / "net.state.toml").write_text('h = "h_next"\n')
    text = "import numpy as np\ndef model(): return 'net.onnx'\ndef inputs(): return (np.ones((1, 5), np.float32),)\n"
    (tmp_path / "net.py").write_text(text)
    graph = frontends.load(str(tmp_path / "net.py")).graph
    assert graph.inputs == ("x",) and graph["x"].shape == (1, 5)


@pytest.mark.parametrize("shape", [(5, 2, 8, 8), (5, 1, 2, 8, 8)])
def test_calibration_data_of_an_npz(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = saved(tmp_path, small_cnn())
    data = np.arange(5 * 128, dtype=np.float32).reshape(shape)
    for named in ({"x": data, "more": np.zeros(3)}, {"other": data}):
        np.savez(tmp_path / "calibration.npz", **named)
        samples = list(frontends.load(path, options=Options(int8=True)).calibration or ())
        assert [x.shape for (x,) in samples] == [(1, 2, 8, 8)] * 5
        assert samples[3][0].flat[0] == 3 * 128


def test_calibration_data_of_a_folder(tmp_path: Path) -> None:
    path = saved(tmp_path, small_cnn())
    (tmp_path / "many").mkdir()
    for i, shape in enumerate([(2, 8, 8), (1, 2, 8, 8), (3, 2, 8, 8)]):
        np.save(tmp_path / "many" / f"{i}.npy", np.full(shape, i, np.float64))
    graph = frontends.load(path).graph
    found = calibration_of(Path(path), tmp_path / "many", graph)
    assert found is not None
    assert [(x.shape, x.dtype.name, x.flat[0]) for (x,) in found] == [
        ((1, 2, 8, 8), "float32", i) for i in (0, 1, 2, 2, 2)
    ]


def test_arrays_of_other_names_are_not_taken_in_order_where_one_is_called_as_an_input(tmp_path: Path) -> None:
    graph = frontends.load(saved(tmp_path, counter())).graph
    np.savez(tmp_path / "c.npz", h=np.zeros((4, 1, 3), np.float32), typo=np.ones((4, 1, 3), np.float32))
    with pytest.raises(CompileError, match="does not have an array for each input"):
        calibration_of(tmp_path / "net.onnx", tmp_path / "c.npz", graph)


def two_inputs(first: list[int], second: list[int], type_: int = FLOAT) -> Any:
    nodes = [node("Cast", ["b"], ["c"], to=FLOAT), node("ReduceSum", ["c"], ["s"]), node("Mul", ["a", "s"], ["y"])]
    return model(nodes, {"a": first, "b": second}, ["y"], types={"b": type_})


@pytest.mark.parametrize(
    ("made", "arrays", "taken"),
    [
        (two_inputs([1, 3], [1, 2]), {"k": [[1, 2]], "l": [[3, 4, 5]]}, "l for a, k for b"),
        (two_inputs([1, 3], [1, 3], INT64), {"k": [[0, 1, 2]], "l": [[0.5, 1, 2]]}, "l for a, k for b"),
        (two_inputs([1, 3], [1, 2]), {"arr_0": [[3, 4, 5]], "arr_1": [[1, 2]]}, ""),
    ],
    ids=["shapes", "types", "numbered"],
)
def test_example_inputs_of_other_names(made: Any, arrays: dict[str, Any], taken: str, tmp_path: Path) -> None:
    path = saved(tmp_path, made)
    np.savez(tmp_path / "inputs.npz", **{name: np.array(x) for name, x in arrays.items()})
    source = frontends.load(path)
    note = f"inputs.npz has arrays of other names than the inputs; taken is {taken}"
    assert source.notes == ((note,) if taken else ())
    want = [arrays[pair.split()[0]] for pair in taken.split(", ")] if taken else list(arrays.values())
    assert [x.tolist() for x in source.examples] == want


def test_example_inputs_that_could_be_for_either(tmp_path: Path) -> None:
    path = saved(tmp_path, two_inputs([1, 3], [1, 3]))
    np.savez(tmp_path / "inputs.npz", k=np.ones((1, 3)), l=np.zeros((1, 3)))
    with pytest.raises(CompileError) as caught:
        frontends.load(path)
    assert caught.value.what.endswith("other names than the inputs, and it is not clear which is for which input")
    assert caught.value.have == ("k: float64[1, 3], l: float64[1, 3]",)
    assert caught.value.need == ("a: float32[1, 3], b: float32[1, 3]",)


@pytest.mark.parametrize("dtype", ["f4", "i1"])
@pytest.mark.parametrize("lies", [False, True], ids=["", "lies"])
def test_calibration_data_that_needs_more_than_memory_is_not_unpacked(
    dtype: str, lies: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit applies to the size of the samples as float32, not to the sizes in the archive's directory."""
    graph = frontends.load(saved(tmp_path, small_cnn())).graph
    np.savez_compressed(tmp_path / "bomb.npz", x=np.zeros((1000, 2, 8, 8), dtype))
    if lies:
        data = bytearray((tmp_path / "bomb.npz").read_bytes())
        at = data.rindex(b"PK\1\2")
        data[at + 20 : at + 24] = data[at + 24 : at + 28]  # the packed size is the unpacked one
        (tmp_path / "bomb.npz").write_bytes(data)
    monkeypatch.setattr("baretorch.frontends.calibration.MOST", 1 << 18)
    with pytest.raises(CompileError) as caught:
        calibration_of(tmp_path / "net.onnx", tmp_path / "bomb.npz", graph)
    assert caught.value.have == ("its samples need more than 262,144 bytes of memory; fewer samples will do",)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data[:-6], "it ends after 250 of 256 bytes"),
        (lambda data: data.replace(b"<f8", b"|O8"), "Python objects"),
        (lambda data: data.replace(b"NUMPY\1", b"NUMPY\7"), "version 7.0"),
        (lambda data: b"", "magic string"),
    ],
)
def test_damaged_samples_are_refused_with_a_reason(
    change: Callable[[bytes], bytes], reason: str, tmp_path: Path
) -> None:
    graph = frontends.load(saved(tmp_path, small_cnn())).graph
    np.save(tmp_path / "x.npy", np.zeros((2, 2, 8)))
    (tmp_path / "x.npy").write_bytes(change((tmp_path / "x.npy").read_bytes()))
    with pytest.raises(CompileError) as caught:
        calibration_of(tmp_path / "net.onnx", tmp_path, graph)
    assert "cannot read" in str(caught.value) and reason in caught.value.have[0]


def test_an_error_without_a_text_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise MemoryError

    graph = frontends.load(saved(tmp_path, small_cnn())).graph
    np.save(tmp_path / "x.npy", np.zeros((2, 2, 8)))
    monkeypatch.setattr("numpy.empty", full)
    with pytest.raises(CompileError) as caught:
        calibration_of(tmp_path / "net.onnx", tmp_path, graph)
    assert caught.value.have == ("MemoryError",)


def test_samples_are_converted_one_by_one(tmp_path: Path) -> None:
    graph = frontends.load(saved(tmp_path, small_cnn())).graph
    stored = np.asfortranarray(np.ones((20000, 2, 8, 8), np.int8))
    np.savez_compressed(tmp_path / "c.npz", x=stored)
    tracemalloc.start()
    try:
        found = calibration_of(tmp_path / "net.onnx", tmp_path / "c.npz", graph)
        assert found is not None
        for have, want in zip(found, stored, strict=True):
            assert have[0].dtype == np.float32 and np.array_equal(have[0].ravel(), want.ravel())
        assert tracemalloc.get_traced_memory()[1] < 2 * stored.nbytes  # float32 would be four times as many
    finally:
        tracemalloc.stop()


def test_calibration_data_that_does_not_fit(tmp_path: Path) -> None:
    graph = frontends.load(saved(tmp_path, small_cnn())).graph

    def refused(name: str, **arrays: Any) -> str:
        if arrays:
            np.savez(tmp_path / name, **arrays)
        with pytest.raises(CompileError) as caught:
            calibration_of(tmp_path / "net.onnx", tmp_path / name, graph)
        return caught.value.what

    assert "does not fit the input x" in refused("shape.npz", x=np.zeros((5, 3, 8, 8)))
    assert "does not fit the input x" in refused("type.npz", x=np.zeros((5, 2, 8, 8), np.complex64))
    assert "no sample" in refused("none.npz", x=np.zeros((0, 2, 8, 8)))
    assert "does not have an array for each input" in refused("names.npz", a=np.zeros(3), b=np.zeros(3))
    (tmp_path / "text.npz").write_text("no zip")
    assert "cannot read" in refused("text.npz")
    assert "cannot read" in refused("missing.npz")
    np.savez(tmp_path / "objects.npz", x=np.array([{}], object))
    assert "cannot read" in refused("objects.npz"), "nothing is unpickled"
    (tmp_path / "empty").mkdir()
    assert "0 .npy files" in refused("empty")
    (tmp_path / "x.txt").write_text("")
    assert "holds no samples" in refused("x.txt")


def test_example_inputs_next_to_the_file(tmp_path: Path) -> None:
    x = np.full((1, 2, 8, 8), 0.5, np.float32)
    np.savez(tmp_path / "inputs.npz", x=x)
    source = frontends.load(saved(tmp_path, small_cnn()))
    assert np.array_equal(source.examples[0], x)


def test_without_example_inputs_the_first_sample_is_one(tmp_path: Path) -> None:
    """Random numbers may be nothing that the model knows; samples of another model are nothing to compare with."""
    path, samples = saved(tmp_path, small_cnn()), np.stack([np.full((1, 2, 8, 8), v, np.float32) for v in (0.25, 0.5)])
    np.savez(tmp_path / "calibration.npz", x=samples)
    assert np.array_equal(frontends.load(path).examples[0], samples[0])
    np.savez(tmp_path / "given.npz", x=samples[1:])
    given = Options(int8=True, calibration=str(tmp_path / "given.npz"))
    assert np.array_equal(frontends.load(path, options=given).examples[0], samples[1])
    np.savez(tmp_path / "calibration.npz", x=np.zeros((2, 3), np.float32))
    assert frontends.load(path).examples[0].std() > 0.5, "random ones"


def test_what_is_called_after_the_model_comes_first(tmp_path: Path) -> None:
    """Also where a Python file names the model, unless it has calibration()."""
    path = saved(tmp_path, small_cnn())
    for name, count in (("calibration", 2), ("net.calibration", 3), ("other.calibration", 4)):
        np.savez(tmp_path / f"{name}.npz", x=np.zeros((count, 1, 2, 8, 8), np.float32))
    np.savez(tmp_path / "inputs.npz", x=np.zeros((1, 3), np.float32))
    np.savez(tmp_path / "net.inputs.npz", x=np.full((1, 2, 8, 8), 0.5, np.float32))
    named = tmp_path / "some.py"
    named.write_text("def model(): return 'net.onnx'\n")
    for file in (path, str(named)):
        source = frontends.load(file, options=Options(int8=True))
        assert len(list(source.calibration or ())) == 3
        assert source.examples[0].flat[0] == 0.5
    assert frontends.load(str(named)).calibration is None, "nothing is read for a float model"
    named.write_text("def model(): return 'net.onnx'\ndef calibration(): return []\n")
    assert list(frontends.load(str(named), options=Options(int8=True)).calibration or ()) == []
    (tmp_path / "net.calibration.npz").unlink()
    assert len(list(frontends.load(path, options=Options(int8=True)).calibration or ())) == 2
    (tmp_path / "net.inputs.npz").unlink()
    with pytest.raises(CompileError) as caught:
        frontends.load(path)
    (hint,) = caught.value.try_
    assert hint == "if it is another model's: call it after that one, as net.inputs.npz would be for this one"


def test_one_node_is_one(tmp_path: Path) -> None:
    path = saved(tmp_path, model([node("Relu", ["x"], ["y"])], {"x": [1, 3]}, ["y"]))
    shown = cli("inspect", path).out
    assert "1 ONNX node → 1 graph node → 1 after passes → 1 step\n" in shown


def test_python_takes_the_same(tmp_path: Path) -> None:
    compiled = baretorch.compile(saved(tmp_path, counter()), board="host", state={"h": "h_next"})
    assert len(compiled.compiled.graph.state) == 1


def table() -> Any:
    """Entries of a table, by a whole number."""
    return model([node("Gather", ["w", "i"], ["y"])], {"i": [2]}, ["y"], {"w": weights(4, 3)}, types={"i": INT64})


def test_fractions_are_no_indices(tmp_path: Path) -> None:
    graph = frontends.load(saved(tmp_path, table())).graph
    np.savez(tmp_path / "whole.npz", i=np.float64([[0, 3], [1, 2]]))
    assert calibration_of(tmp_path / "net.onnx", tmp_path / "whole.npz", graph) is not None
    for name, numbers in (("part", [[0, 1.5]]), ("nan", [[0, np.nan]]), ("large", [[0, 1e30]])):
        np.savez(tmp_path / f"{name}.npz", i=np.array(numbers))
        with pytest.raises(CompileError, match="has numbers for the input i that int64 does not have"):
            calibration_of(tmp_path / "net.onnx", tmp_path / f"{name}.npz", graph)


@pytest.mark.parametrize(
    ("name", "numbers", "told"),
    [
        ("x", np.float32([1, 2]), []),
        ("arr_0", np.float32([1, 2]), []),
        ("y", np.float32([1, 2]), ["calibration: c.npz has arrays of other names than the inputs; taken is y for x"]),
        ("x", np.uint8([0, 200]), ["calibration: c.npz has uint8 from 0 to 200 for x, which are taken as they are"]),
        ("x", np.float32([1, 1e20]), ["calibration: numbers of x reach 1e+20, and scales are made for that"]),
    ],
)
def test_calibration_data_that_looks_wrong(tmp_path: Path, name: str, numbers: Array, told: list[str]) -> None:
    path = saved(tmp_path, model([node("MatMul", ["x", "w"], ["y"])], {"x": [1, 2]}, ["y"], {"w": weights(2, 3)}))
    np.savez(tmp_path / "c.npz", **{name: numbers.reshape(1, 2)})
    made = int8_file(path, calibration=str(tmp_path / "c.npz"))
    assert [w for w in made.warnings if w.startswith("calibration")] == told


def test_samples_that_are_scaled_otherwise_than_the_inputs(tmp_path: Path) -> None:
    source = frontends.load(saved(tmp_path, small_cnn()))
    sample = source.examples[0]
    for factor, told in ((10, 0), (100, 1), (0.1, 0), (0.001, 1)):
        done = int8_model(source, [np.float32(factor) * sample])
        assert sum("are both scaled alike?" in w for w in done.warnings) == told


def test_samples_by_name(tmp_path: Path) -> None:
    made = model([node("Add", ["a", "b"], ["y"])], {"a": [4], "b": [4]}, ["y"])
    source = frontends.load(saved(tmp_path, made))
    one, ten = np.float32([0, 1, 0, 1]), np.float32([0, 10, 0, 10])
    quantization = int8_model(source, [{"b": ten, "a": one}]).quantization
    assert quantization is not None
    done = quantization.graph
    assert all((q := done[name].quant) is not None and q.scale[0] < size / 100 for name, size in (("a", 1), ("b", 10)))
    assert (q := done["b"].quant) is not None and q.scale[0] > 1 / 100
    with pytest.raises(CompileError, match="sample 0 is a dict of others than the model's inputs"):
        int8_model(source, [{"a": one, "c": ten}])
