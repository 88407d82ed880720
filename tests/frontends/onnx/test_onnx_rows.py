"""Rows of the ONNX table make operators of the Graph with the same meaning, and results equal onnxruntime's if ONNX's
node tests have no case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from tests.frontends.onnx.files import INT64, model, node
from tests.frontends.onnx.lower import alike, graph_of

from baretorch.errors import CompileError
from baretorch.frontends.source import random_inputs
from baretorch.ir.graph import Array, Graph
from baretorch.passes.order import lower_graph

RNG = np.random.default_rng(0)


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def as_onnxruntime(made: Any, tolerance: float = 1e-5, inputs: tuple[Array, ...] = ()) -> Graph:
    """The Graph after all passes, whose answers are onnxruntime's."""
    graph = lower_graph(graph_of(made))
    given = inputs or random_inputs((t.shape, t.dtype) for t in graph.of(graph.inputs))
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    want = session.run(None, dict(zip((i.name for i in session.get_inputs()), given, strict=True)))
    return alike(graph, given, want, tolerance)


def names(graph: Graph) -> list[str]:
    return [n.op.name for n in graph.nodes if n.op.name not in ("permute", "reshape")]


# --- recurrent layers -----------------------------------------------------------------------------------------

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def layer(op: str, ways: int = 1, states: bool = False, times: int = 5, **attributes: Any) -> Any:
    """x[T, 2, 3] through a layer of 4 units; the batch first with layout 1, which onnxruntime does not know."""
    gates, hidden = GATES[op], 4
    constants = {
        "w": normal(ways, gates * hidden, 3),
        "r": normal(ways, gates * hidden, hidden),
        "b": normal(ways, 2 * gates * hidden),
    }
    inputs, takes = {"x": [times, 2, 3]}, ["x", "w", "r", "b"]
    outputs = ["y", "h", "c"] if op == "LSTM" else ["y", "h"]
    if states:
        takes += ["", *(f"{s}0" for s in outputs[1:])]
        inputs |= {f"{s}0": [ways, 2, hidden] for s in outputs[1:]}
    n = node(op, takes, outputs, hidden_size=hidden, **attributes)
    return model([n], inputs, outputs, constants)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("way", ["forward", "reverse", "bidirectional"])
def test_a_recurrent_layer_is_one_operator_per_direction(op: str, way: str) -> None:
    ways = 2 if way == "bidirectional" else 1
    attributes = {"linear_before_reset": 1} if op == "GRU" else {}
    graph = as_onnxruntime(layer(op, ways, states=True, direction=way, **attributes))
    assert names(graph).count(op.lower()) == ways


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("GRU", {}),
        ("GRU", {"clip": 0.5, "linear_before_reset": 1}),
        ("LSTM", {"clip": 0.5}),
        (
            "LSTM",
            {"activations": ["HardSigmoid", "Softsign", "Relu"], "activation_alpha": [0.3], "activation_beta": [0.4]},
        ),
        ("RNN", {"activations": ["Elu"], "activation_alpha": [0.7]}),
        ("RNN", {"activations": ["ScaledTanh"], "activation_alpha": [0.7], "activation_beta": [0.9]}),
        ("RNN", {"activations": ["LeakyRelu"], "activation_alpha": [0.1], "direction": "reverse"}),
    ],
)
def test_what_the_operator_does_not_know_is_written_out(op: str, attributes: dict[str, Any]) -> None:
    assert op.lower() not in names(as_onnxruntime(layer(op, states=True, **attributes)))


def test_relu_is_an_activation_of_the_operator() -> None:
    assert "rnn" in names(as_onnxruntime(layer("RNN", activations=["Relu"])))


@pytest.mark.parametrize("way", ["forward", "reverse"])
def test_sequences_of_different_lengths(way: str) -> None:
    made = layer("LSTM", direction=way)
    made.graph.node[0].input.append("lengths")
    made.graph.initializer.append(numpy_helper.from_array(np.array([5, 3], np.int32), "lengths"))
    as_onnxruntime(made)


def test_too_many_times_to_write_out() -> None:
    with pytest.raises(CompileError, match="unrolled, and 100 iterations are too many"):
        graph_of(layer("GRU", times=100))


# --- images ---------------------------------------------------------------------------------------------------


def resize(scale: Sequence[float], **attributes: Any) -> Any:
    n = node("Resize", ["x", "", "s"], ["y"], **attributes)
    return model([n], {"x": [1, 3, 4, 6]}, ["y"], {"s": np.array([1, 1, *scale], np.float32)})


@pytest.mark.parametrize(
    ("attributes", "op"),
    [
        ({"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}, "nearest2d"),
        ({"mode": "nearest"}, "nearest2d"),
        ({"mode": "linear"}, "bilinear2d"),
        ({"mode": "linear", "coordinate_transformation_mode": "align_corners"}, "bilinear2d"),
        ({"mode": "cubic"}, "bicubic2d"),
    ],
)
def test_images_are_resized_by_the_operator(attributes: dict[str, Any], op: str) -> None:
    assert names(as_onnxruntime(resize((2, 2), **attributes))) == [f"upsample_{op}"]


@pytest.mark.parametrize("scale", [(2, 2), (0.5, 0.5), (1.3, 0.7), (3, 1)])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("where", ["half_pixel", "asymmetric", "pytorch_half_pixel"])
def test_resizing(scale: Sequence[float], mode: str, where: str) -> None:
    as_onnxruntime(resize(scale, mode=mode, coordinate_transformation_mode=where))


@pytest.mark.parametrize("scale", [(2, 2), (0.5, 0.5), (3, 1)])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resizing_between_corners(scale: Sequence[float], mode: str) -> None:
    """The sizes are multiples, because onnxruntime and ONNX's node tests differ for others."""
    as_onnxruntime(resize(scale, mode=mode, coordinate_transformation_mode="align_corners"))


@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [2, 0, 1, 1], [1, 1, 1, 1]])
@pytest.mark.parametrize("ceil", [0, 1])
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_pools(op: str, ceil: int, pads: list[int]) -> None:
    n = node(op, ["x"], ["y"], kernel_shape=[3, 2], strides=[2, 2], pads=pads, ceil_mode=ceil)
    assert len(names(as_onnxruntime(model([n], {"x": [1, 2, 7, 6]}, ["y"])))) == 1


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_indices_of_pools(dims: int, order: int) -> None:
    settings = {"kernel_shape": [3, 2, 2][:dims], "strides": [2, 1, 2][:dims], "pads": [1, 0, 1][:dims] * 2}
    n = node("MaxPool", ["x"], ["y", "at"], **settings, storage_order=order, ceil_mode=order)
    as_onnxruntime(model([n], {"x": [2, 3, *[5, 6, 4][:dims]]}, ["y", "at"], types={"at": INT64}))


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_scattering(axes: int, reduction: str) -> None:
    shape, generator = (4, 3, 2), np.random.default_rng(axes)
    at = np.stack([generator.integers(-n, n, 4) for n in shape[:axes]], axis=-1)
    at[-1] = at[0]
    if reduction == "none":
        at = at[1:]
    made = node("ScatterND", ["x", "i", "u"], ["y"], reduction=reduction)
    as_onnxruntime(model([made], {"x": shape, "u": [len(at), *shape[axes:]]}, ["y"], {"i": at}, opset=18))


def test_transposed_convolutions_of_volumes() -> None:
    settings = {"strides": [2, 1, 3], "dilations": [1, 2, 1], "pads": [1, 0, 0, 0, 1, 0], "output_padding": [1, 0, 2]}
    n = node("ConvTranspose", ["x", "w", "b"], ["y"], group=2, **settings)
    constants = {"w": normal(4, 3, 3, 2, 2), "b": normal(6)}
    made = as_onnxruntime(model([n], {"x": [2, 4, 3, 2, 4]}, ["y"], constants))
    assert names(made).count("conv_transpose2d") == 2


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
def test_automatic_padding(op: str, mode: str) -> None:
    n = node(op, ["x", "w"], ["y"], strides=[2, 3], auto_pad=mode)
    assert len(names(as_onnxruntime(model([n], {"x": [1, 2, 7, 8]}, ["y"], {"w": normal(2, 2, 4, 3)})))) == 1


# --- products and attention -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (1,), (4,), (1, 4), (3, 1), (3, 4)])
@pytest.mark.parametrize("transposed", [0, 1])
def test_gemm(shape: tuple[int, ...], transposed: int) -> None:
    weight = normal(*((4, 5) if transposed else (5, 4)))
    n = node("Gemm", ["x", "w", "c"], ["y"], transB=transposed, alpha=0.5, beta=2.0)
    graph = as_onnxruntime(model([n], {"x": [3, 5]}, ["y"], {"w": weight, "c": normal(*shape)}))
    assert names(graph) == ["linear"] if shape not in ((3, 1), (3, 4)) else ["linear", "add"]


@pytest.mark.parametrize(
    "equation", ["bij,bjk->bik", "ij,jk", "bhid,bhjd->bhij", "...ij,jk->...ik", "i,j->ij", "ab,cb->ca"]
)
def test_einsum(equation: str) -> None:
    sizes = dict(zip("abcdhijk", (2, 3, 4, 5, 2, 3, 4, 5), strict=True))
    left, right = ([sizes[c] for c in t.replace("...", "h")] for t in equation.split("->")[0].split(","))
    n = node("Einsum", ["p", "q"], ["y"], equation=equation)
    assert "matmul" in names(as_onnxruntime(model([n], {"p": left, "q": right}, ["y"])))


def test_attention_is_one_operator() -> None:
    n = node("Attention", ["q", "k", "v"], ["y"], is_causal=1, q_num_heads=4, kv_num_heads=2)
    graph = lower_graph(graph_of(model([n], {"q": [1, 5, 16], "k": [1, 5, 8], "v": [1, 5, 8]}, ["y"], opset=23)))
    assert names(graph) == ["attention"]


# --- moves ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_padding(mode: str) -> None:
    pads = np.array([0, 1, 2, 0, 2, 1], np.int64)
    as_onnxruntime(model([node("Pad", ["x", "p"], ["y"], mode=mode)], {"x": [2, 4, 5]}, ["y"], {"p": pads}, opset=19))


def test_windows_that_overlap_need_no_table_of_indices() -> None:
    at = 2 + 3 * np.arange(5)[:, None] + np.arange(6)
    made = model([node("Gather", ["x", "i"], ["y"], axis=1)], {"x": [2, 30]}, ["y"], {"i": at})
    assert names(as_onnxruntime(made)) == ["slice", "unfold"]


def test_slices_that_go_backwards() -> None:
    cuts = {"s": [-1, 5], "e": [-100, 0], "a": [0, -1], "d": [-1, -2]}
    constants = {k: np.array(v, np.int64) for k, v in cuts.items()}
    graph = as_onnxruntime(model([node("Slice", ["x", *cuts], ["y"])], {"x": [3, 6]}, ["y"], constants))
    assert set(names(graph)) == {"flip", "slice"}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Max", "Min", "Mod"])
def test_integers_wrap_and_are_cut_off(op: str, dtype: str) -> None:
    info = np.iinfo(dtype)
    x = np.array([info.min, info.max, 0, 1, 7, 100, -5 if info.min else 5], dtype)
    types = dict.fromkeys("xy", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    made = model([node(op, ["x", "k"], ["y"])], {"x": [7]}, ["y"], {"k": np.array([3], dtype)}, types=types)
    as_onnxruntime(made, inputs=(x,))
