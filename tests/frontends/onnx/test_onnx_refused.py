"""Rows of the ONNX table refuse what they do not support, with these texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto
from tests.cli.program import check_golden
from tests.frontends.onnx.files import BOOL, FLOAT, INT64, model, node
from tests.frontends.onnx.lower import graph_of

from baretorch.errors import CompileError, InternalError
from baretorch.frontends.onnx.call import OnnxCall
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow
from baretorch.frontends.onnx.table import TABLE


def one(
    op: str,
    inputs: Mapping[str, Sequence[int]],
    constants: Mapping[str, Any] | None = None,
    types: Mapping[str, int] | None = None,
    outputs: int = 1,
    opset: int = 20,
    **attributes: Any,
) -> Any:
    """A model of one node, which is called `layer`. Its inputs are those of the model and then the constants."""
    names = [f"y{i}" for i in range(outputs)]
    n = node(op, [*inputs, *(constants or {})], names, "layer", **attributes)
    return model([n], inputs, names, constants, opset, types)


def ints(*values: int) -> Any:
    return np.array(values, np.int64)


IMAGE = {"x": [1, 2, 5, 5]}
INT = {"x": INT64, "y0": INT64}


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def recurrent(op: str, gates: int, times: int = 3, **attributes: Any) -> Any:
    constants = {"w": zeros(1, gates * 2, 3), "r": zeros(1, gates * 2, 2)}
    return one(op, {"x": [times, 1, 3]}, constants, hidden_size=2, **attributes)


REFUSED = {
    "pow_computed": one("Pow", {"x": [3], "k": [3]}, types={"x": INT64, "k": INT64, "y0": INT64}),
    "pow_negative": one("Pow", {"x": [3]}, {"k": np.float32(-2)}, INT),
    "clip_limits": one("Clip", {"x": [3]}, {"lo": zeros(3)}),
    "cast": one("Cast", {"x": [3]}, types={"y0": TensorProto.DOUBLE}, to=TensorProto.DOUBLE),
    "bit_cast": one("BitCast", {"x": [3]}, types={"y0": TensorProto.INT32}, opset=26, to=TensorProto.INT32),
    "mean_of_integers": one("ReduceMean", {"x": [3]}, types=INT),
    "top_k_of_integers": one("TopK", {"x": [3]}, {"k": ints(1)}, INT | {"y1": INT64}, outputs=2),
    "matmul_of_integers": one("MatMul", {"x": [3, 3], "w": [3, 3]}, types=INT | {"w": INT64}),
    "conv_weight": one("Conv", {"x": [1, 2, 5, 5], "w": [3, 2, 3, 3]}),
    "conv_4d": one("Conv", {"x": [1, 1, 2, 2, 2, 2]}, {"w": zeros(1, 1, 1, 1, 1, 1)}),
    "conv_transpose_4d": one("ConvTranspose", {"x": [1, 1, 2, 2, 2, 2]}, {"w": zeros(1, 1, 1, 1, 1, 1)}),
    "pool_indices": one("MaxPool", {"x": [1, 1, 8192]}, types={"y1": INT64}, outputs=2, kernel_shape=[4097]),
    "unpool_table": one("MaxUnpool", {"x": [1, 1, 4], "i": [1, 1, 4]}, types={"i": INT64}, kernel_shape=[1 << 30]),
    "unpool_shape": one(
        "MaxUnpool", {"x": [1, 1, 4], "i": [1, 1, 4], "s": [3]}, types={"i": INT64, "s": INT64}, kernel_shape=[2]
    ),
    "pool_4d": one("MaxPool", {"x": [1, 1, 2, 2, 2, 2]}, kernel_shape=[1, 1, 1, 1]),
    "windows": one("AveragePool", IMAGE, kernel_shape=[2]),
    "squeeze": one("Squeeze", {"x": [1, 3]}, {"a": ints(1)}),
    "unsqueeze": one("Unsqueeze", {"x": [2, 3]}, {"a": ints(1, 1)}),
    "expand": one("Expand", {"x": [2, 3]}, {"s": ints(2, 4)}),
    "reshape": one("Reshape", {"x": [2, 3], "s": [1]}, types={"s": INT64}),
    "pad_mode": one("Pad", {"x": [3]}, {"p": ints(1, 1)}, mode="mirror"),
    "dropout": one("Dropout", {"x": [3]}, {"r": np.float32(0.5), "t": np.array(True)}),
    "non_zero": one("NonZero", {"x": [3]}, types={"y0": INT64}),
    "range": one("Range", {"x": [], "l": [], "d": []}, types=dict.fromkeys(("x", "l", "d", "y0"), INT64)),
    "compress": one("Compress", {"x": [3], "c": [3]}, types={"c": BOOL}),
    "cum_prod": one("CumProd", {"x": [100]}, {"a": ints(0)}, opset=26),
    "scatter": one("ScatterND", {"x": [3]}, {"i": ints(0).reshape(1, 1), "u": zeros(1)}, reduction="mean"),
    "scatter_elements": one("ScatterElements", {"x": [2, 3]}, {"i": ints(0), "u": zeros(1)}),
    "einsum_operands": one("Einsum", {"x": [3]}, equation="i,j->ij"),
    "einsum_rank": one("Einsum", {"x": [3]}, equation="ij->ij"),
    "einsum_letters": one("Einsum", {"x": [3, 3]}, equation="ij->ik"),
    "resize_mode": one("Resize", IMAGE, {"r": zeros(0), "s": np.ones(4, np.float32) * 2}, mode="lanczos"),
    "grid_sample": one("GridSample", {"x": [1, 1, 2, 2, 2], "g": [1, 2, 2, 2, 3]}),
    "batch_norm": one(
        "BatchNormalization", IMAGE, {k: np.ones(2, np.float32) for k in "sbmv"}, outputs=3, training_mode=1
    ),
    "hardmax_table": one("Hardmax", {"x": [1, 1_000_000]}),
    "resize_table": one("Resize", {"x": [1_000_000]}, {"r": zeros(0), "s": np.array([2], np.float32)}, mode="linear"),
    "resize_to_nothing": one("Resize", IMAGE, {"r": zeros(0), "s": np.array([1, 1, 0.1, 2], np.float32)}),
    "attention_table": one("Attention", {n: [1, 1, 100_000, 4] for n in "qkv"}, opset=24, is_causal=1),
    "pool_table": one("AveragePool", IMAGE, kernel_shape=[1 << 20, 1 << 20], dilations=[2, 2]),
    "lstm_input_forget": recurrent("LSTM", 4, input_forget=1),
    "rnn_activation": recurrent("RNN", 1, activations=["Swish"]),
    "gru_times": recurrent("GRU", 3, times=100),
    "attention_stage": one(
        "Attention",
        {"q": [1, 1, 2, 4], "k": [1, 1, 2, 4], "v": [1, 1, 2, 4]},
        outputs=4,
        opset=23,
        qk_matmul_output_mode=7,
    ),
    "dft": one("DFT", {"x": [1, 5, 1]}, inverse=1, onesided=1),
    "loss": one("NegativeLogLikelihoodLoss", {"x": [2, 3], "t": [2]}, types={"t": INT64, "y0": FLOAT}, reduction="max"),
}


def test_what_is_refused_and_why() -> None:
    texts = []
    for name, made in REFUSED.items():
        with pytest.raises(CompileError) as caught:
            graph_of(made)
        texts.append(f"# {name}\n{caught.value.render()}\n")
    check_golden("onnx_operators", "\n".join(texts))


@pytest.mark.parametrize("fault", [ValueError("two"), AttributeError("three")])
def test_what_onnx_computes_and_we_cannot_is_our_fault(monkeypatch: pytest.MonkeyPatch, fault: Exception) -> None:
    def wrong(g: OnnxLowering, c: OnnxCall) -> str:
        raise fault

    monkeypatch.setitem(TABLE, "Softmax", OnnxRow(wrong))
    with pytest.raises(InternalError, match=f"^Softmax layer: {type(fault).__name__}: {fault}$"):
        graph_of(one("Softmax", {"x": [2, 3]}))


def test_what_onnx_cannot_compute_either_is_the_files() -> None:
    with pytest.raises(CompileError, match="Gather cannot be applied to its inputs"):
        graph_of(one("Gather", {"x": [2, 3]}, {"i": ints(0)}, axis=5))
