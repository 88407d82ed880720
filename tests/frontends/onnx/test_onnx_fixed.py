"""`--fix` makes constants of inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper
from tests.cli.program import baretorch as cli
from tests.cli.program import check_golden
from tests.frontends.onnx.files import BOOL, FLOAT, INT64, model, node, weights

from baretorch import frontends
from baretorch.errors import CompileError
from baretorch.frontends.onnx.fixed import fix_inputs
from baretorch.frontends.onnx.proto import array_of
from baretorch.ir.graph import interpret
from baretorch.options import Options, read_options


def voice_detector() -> Any:
    """Return a model as silero_vad.onnx is built: it has a network for 16 kHz and another one, a sampling rate as an
    input, frames of the signal, a spectrum by a convolution, an LSTM with its state as input and output, and a branch
    inside a branch."""

    def network(name: str, size: int) -> Any:
        constants = {
            "pads": np.array([0, 0, 0, 0, 0, 4]),
            "filters": weights(8, 1, size) / 4,
            "axis": np.array([1]),
            "zero": np.array(0),
            "one": np.array(1),
            "two": np.array(2),
            "w": weights(1, 16, 4) / 2,
            "r": weights(1, 16, 4) / 2,
            "b": weights(1, 32) / 2,
            "out": weights(1, 4, 1),
        }
        inner = helper.make_graph(
            [node("Squeeze", ["h", f"{name}.zeros"], ["q"])],
            "flat",
            [],
            [helper.make_tensor_value_info("q", FLOAT, None)],
        )
        same = helper.make_graph(
            [node("Identity", ["h"], ["i"])], "same", [], [helper.make_tensor_value_info("i", FLOAT, None)]
        )
        nodes = [
            node("Unsqueeze", ["input", "axis"], ["u"]),
            node("Pad", ["u", "pads"], ["p"], mode="reflect"),
            node("Conv", ["p", "filters"], ["f"], strides=[size]),
            node("Slice", ["f", f"{name}.zeros", f"{name}.fours", "axis"], ["re"]),
            node("Slice", ["f", f"{name}.fours", f"{name}.eights", "axis"], ["im"]),
            *(node("Mul", [n, n], [f"{n}2"]) for n in ("re", "im")),
            node("Add", ["re2", "im2"], ["power"]),
            node("Sqrt", ["power"], ["sizes"]),
            node("ReduceMean", ["sizes"], ["frame"], axes=[2], keepdims=0),
            node("Unsqueeze", ["frame", f"{name}.zeros"], ["sequence"]),
            node("Gather", ["state", "zero"], ["h0"]),
            node("Gather", ["state", "one"], ["c0"]),
            *(node("Unsqueeze", [f"{n}0", f"{name}.zeros"], [f"{n}1"]) for n in "hc"),
            node("LSTM", ["sequence", "w", "r", "b", "", "h1", "c1"], ["", "h", "c"], hidden_size=4),
            node("Concat", ["h", "c"], [f"{name}.next"], axis=0),
            node("Shape", ["h"], ["shape"]),
            node("Size", ["shape"], ["rank"]),
            node("Greater", ["rank", "two"], ["has_layers"]),
            node("If", ["has_layers"], ["hidden"], then_branch=inner, else_branch=same),
            node("MatMul", ["hidden", "out"], ["score"]),
            node("Sigmoid", ["score"], [f"{name}.y"]),
        ]
        constants |= {f"{name}.{n}": np.array([k]) for n, k in (("zeros", 0), ("fours", 4), ("eights", 8))}
        stored = [helper.make_node("Constant", [], [n], value=_tensor(v)) for n, v in constants.items()]
        outputs = [helper.make_tensor_value_info(f"{name}.{n}", FLOAT, None) for n in ("y", "next")]
        return helper.make_graph([*stored, *nodes], name, [], outputs)

    nodes = [
        node("Constant", [], ["k16"], value=_tensor(np.array(16000))),
        node("Equal", ["sr", "k16"], ["is_16k"]),
        node("If", ["is_16k"], ["output", "stateN"], then_branch=network("fast", 8), else_branch=network("slow", 4)),
    ]
    inputs = {"input": ["batch", "samples"], "state": [2, "batch", 4], "sr": []}
    return model(nodes, inputs, ["output", "stateN"], types={"sr": INT64}, opset=16)


def _tensor(data: Any) -> Any:
    from onnx import numpy_helper

    return numpy_helper.from_array(np.asarray(data))


def saved(folder: Path, made: Any) -> str:
    (folder / "vad.onnx").write_bytes(made.SerializeToString())
    return str(folder / "vad.onnx")


def test_a_voice_detector_with_its_sampling_rate(tmp_path: Path) -> None:
    path, asked = saved(tmp_path, voice_detector()), {"shape": {"input": (1, 32), "state": (2, 1, 4)}}
    options = read_options({**asked, "fix": {"sr": 16000}, "state": {"state": "stateN"}})
    assert options.fix == {"sr": "16000"}
    source = frontends.load(path, options=options)
    assert source.library == "onnxruntime"
    assert source.graph.inputs == ("input",) and len(source.graph.state) == 1
    assert "choose" not in {n.op.name for n in source.graph.nodes}
    assert sum(n.op.name == "lstm" for n in source.graph.nodes) == 1
    made = interpret(source.graph, source.examples)
    assert source.expected is not None
    np.testing.assert_allclose(made[source.graph.outputs[0]], source.expected[0], rtol=1e-5)
    other = frontends.load(path, options=read_options({**asked, "fix": {"sr": 8000}, "state": {"state": "stateN"}}))
    assert other.expected is not None and other.expected[0] != source.expected[0]


def test_a_voice_detector_runs_on_a_board(tmp_path: Path) -> None:
    words = ["--shape", "input=1,32", "--shape", "state=2,1,4", "--fix", "sr=16000", "--state", "state=stateN"]
    shown = cli("run", saved(tmp_path, voice_detector()), "--board", "mps2-an386", *words)
    assert "differs" not in shown.out and "onnxruntime" in shown.out, shown.out


def declared(kind: int, shape: list[int | str | None] | None) -> Any:
    return model([node("Identity", ["x"], ["y"])], {"x": shape}, ["y"], types={"x": kind, "y": kind})


@pytest.mark.parametrize(
    ("kind", "shape", "text", "want"),
    [
        (INT64, [], "16000", np.array(16000)),
        (INT64, None, "-3", np.array(-3)),
        (FLOAT, [3], "0.5", np.float32([0.5, 0.5, 0.5])),
        (FLOAT, [3], "0.5, 1,2", np.float32([0.5, 1, 2])),
        (FLOAT, [1, "n"], "1,2", np.float32([[1, 2]])),
        (FLOAT, ["n", "m"], "1", np.float32([[1]])),
        (FLOAT, None, "1,2", np.float32([1, 2])),
        (BOOL, [2], "true,0", np.array([True, False])),
    ],
)
def test_values_take_the_shape_and_type_of_the_input(kind: int, shape: Any, text: str, want: Any) -> None:
    made = declared(kind, shape)
    fix_inputs(made, {"x": text}, {})
    (tensor,) = made.graph.initializer
    have = array_of(tensor)
    assert (have.dtype, have.shape, have.tolist()) == (want.dtype, want.shape, want.tolist())


def test_a_default_value_is_replaced() -> None:
    made = declared(FLOAT, [2])
    made.graph.initializer.append(_tensor(np.float32([1, 2])))
    made.graph.initializer[0].name = "x"
    fix_inputs(made, {"x": "3"}, {})
    assert [array_of(t).tolist() for t in made.graph.initializer] == [[3, 3]]


REFUSED = {
    "name": ((INT64, []), {"rate": "1"}),
    "state": ((INT64, []), {"x": "1"}),
    "word": ((INT64, []), {"x": "fast"}),
    "fraction": ((INT64, []), {"x": "1.5"}),
    "range": ((INT64, []), {"x": "9" * 30}),
    "truth": ((BOOL, []), {"x": "2"}),
    "nan": ((FLOAT, []), {"x": "nan"}),
    "large": ((FLOAT, []), {"x": "1e300"}),
    "empty": ((FLOAT, [2]), {"x": "1,,2"}),
    "count": ((FLOAT, [3]), {"x": "1,2"}),
    "several_open": ((FLOAT, ["n", "m"]), {"x": "1,2"}),
    "huge": ((FLOAT, [1 << 20, 1 << 20]), {"x": "1"}),
    "huge_and_empty": ((FLOAT, [0, 1 << 40]), {"x": "1"}),
    "type": ((11, [1]), {"x": "1"}),
}


def test_values_that_cannot_be() -> None:
    texts = []
    for name, ((kind, shape), values) in REFUSED.items():
        with pytest.raises(CompileError) as caught:
            fix_inputs(declared(kind, list(shape)), values, {"x": "y"} if name == "state" else {})
        texts.append(f"# {name}\n{caught.value.render()}\n")
    check_golden("onnx_fix", "\n".join(texts))


def test_other_files_define_that_themselves(tmp_path: Path) -> None:
    (tmp_path / "net.tflite").write_bytes(b"")
    with pytest.raises(CompileError, match=r"--fix: a \.tflite defines that itself"):
        frontends.load(str(tmp_path / "net.tflite"), options=Options(fix={"x": "1"}))
