"""If, Loop and Scan: written out, with names of the graphs around them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.frontends.onnx.files import BOOL, FLOAT, INT64, model, node
from tests.frontends.onnx.lower import compared, graph_of

from baretorch.errors import CompileError
from baretorch.ir.graph import interpret


def graph(nodes: list[Any], inputs: dict[str, int], outputs: dict[str, int], **constants: Any) -> Any:
    return helper.make_graph(
        nodes,
        "inside",
        [helper.make_tensor_value_info(n, t, None) for n, t in inputs.items()],
        [helper.make_tensor_value_info(n, t, None) for n, t in outputs.items()],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()],
    )


def branches() -> dict[str, Any]:
    """Both read x of the graph around them."""
    return {
        "then_branch": graph([node("Mul", ["x", "k"], ["a"])], {}, {"a": FLOAT}, k=np.float32(2)),
        "else_branch": graph([node("Neg", ["x"], ["b"])], {}, {"b": FLOAT}),
    }


@pytest.mark.parametrize("size", [3, 4])
def test_a_branch_that_a_shape_decides(size: int) -> None:
    nodes = [
        node("Size", ["x"], ["n"]),
        node("Equal", ["n", "three"], ["t"]),
        node("If", ["t"], ["y"], "choice", **branches()),
    ]
    made = compared(model(nodes, {"x": [size]}, ["y"], {"three": np.array(3)}))
    assert [n.op.name for n in made.nodes] == (["mul"] if size == 3 else ["neg"])
    assert made[made.outputs[0]].origin.path.startswith("choice/")


@pytest.mark.parametrize("condition", [True, False])
def test_a_branch_that_a_value_decides(condition: bool) -> None:
    made = model([node("If", ["t"], ["y"], **branches())], {"x": [3], "t": []}, ["y"], types={"t": BOOL})
    compared(made, np.float32([1, 2, 3]), np.array(condition))


def counting(turns: int | None, stop: int | None = None) -> Any:
    """s = s + x * i, and every s; it may stop by itself."""
    body = [
        node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        node("Mul", ["x", "f"], ["m"]),
        node("Add", ["s", "m"], ["s_out"]),
        node("Identity", ["s_out"], ["each"]),
        node("Less", ["i", "stop"], ["go_out"]) if stop is not None else node("Identity", ["go"], ["go_out"]),
    ]
    inside = graph(
        body,
        {"i": INT64, "go": BOOL, "s": FLOAT},
        {"go_out": BOOL, "s_out": FLOAT, "each": FLOAT},
        stop=np.array(stop or 0),
    )
    constants = {"go0": np.array(True)} | ({} if turns is None else {"turns": np.array(turns)})
    loop = node("Loop", ["" if turns is None else "turns", "go0", "x"], ["y", "all"], "count", body=inside)
    return model([loop], {"x": [2]}, ["y", "all"], constants)


def test_a_loop_is_unrolled() -> None:
    made = compared(counting(4))
    assert sum(n.op.name == "add" for n in made.nodes) == 4
    assert any(t.origin.path.startswith("count[3]/") for t in made.tensors.values())


def test_a_loop_that_ends_itself() -> None:
    made = compared(counting(None, stop=2))
    assert sum(n.op.name == "add" for n in made.nodes) == 3


def test_loops_that_are_too_long() -> None:
    with pytest.raises(CompileError, match="300 turns are too many"):
        graph_of(counting(300))
    with pytest.raises(CompileError, match="257 turns are too many"):
        graph_of(counting(None))


def test_a_loop_that_values_end() -> None:
    body = graph(
        [
            node("ReduceSum", ["s"], ["r"], keepdims=0),
            node("Less", ["r", "ten"], ["go_out"]),
            node("Add", ["s", "s"], ["s_out"]),
        ],
        {"i": INT64, "go": BOOL, "s": FLOAT},
        {"go_out": BOOL, "s_out": FLOAT},
        ten=np.float32(10),
    )
    loop = node("Loop", ["n", "t", "x"], ["y"], "grow", body=body)
    with pytest.raises(CompileError, match="depends on values") as caught:
        graph_of(model([loop], {"x": [2]}, ["y"], {"n": np.array(5), "t": np.array(True)}))
    assert caught.value.at == ("grow: Loop",)


def test_loops_in_loops_are_counted_together() -> None:
    """256 turns of 256 turns: refused long before they are written out."""
    inner = graph(
        [node("Add", ["b", "b"], ["b_out"]), node("Identity", ["go2"], ["go2_out"])],
        {"j": INT64, "go2": BOOL, "b": FLOAT},
        {"go2_out": BOOL, "b_out": FLOAT},
    )
    outer = graph(
        [node("Loop", ["n", "t", "s"], ["s_out"], body=inner), node("Identity", ["go"], ["go_out"])],
        {"i": INT64, "go": BOOL, "s": FLOAT},
        {"go_out": BOOL, "s_out": FLOAT},
    )
    nodes = [node("Loop", ["n", "t", "x"], ["y"], body=outer)]
    with pytest.raises(CompileError, match="more than 20,000 nodes"):
        graph_of(model(nodes, {"x": [2]}, ["y"], {"n": np.array(256), "t": np.array(True)}))


@pytest.mark.parametrize("back", [0, 1])
def test_a_scan(back: int) -> None:
    body = graph(
        [node("Add", ["s", "e"], ["s_out"]), node("Mul", ["s_out", "k"], ["o"])],
        {"s": FLOAT, "e": FLOAT},
        {"s_out": FLOAT, "o": FLOAT},
    )
    scan = node("Scan", ["s0", "x"], ["last", "all"], body=body, num_scan_inputs=1, scan_input_directions=[back])
    made = model([scan], {"x": [3, 2]}, ["last", "all"], {"s0": np.float32([1, 2]), "k": np.float32(3)})
    assert back or compared(made)  # onnx.reference does not go back
    x, inside = np.float32([[1, 2], [3, 5], [8, 13]]), graph_of(made)
    session = onnxruntime.InferenceSession(made.SerializeToString())
    for name, want in zip(inside.outputs, session.run(None, {"x": x}), strict=True):
        assert np.array_equal(interpret(inside, [x])[name], want)
