"""Operators of com.microsoft, judged by onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.frontends.onnx.files import model, node

from baretorch import frontends
from baretorch.errors import CompileError
from baretorch.frontends.onnx.contrib import ROWS
from baretorch.frontends.source import Source
from baretorch.ir.graph import Shape, interpret
from baretorch.pipeline import lower

RNG = np.random.default_rng(5)


def real(*shape: int) -> Any:
    return np.asarray(RNG.integers(-32, 33, shape) / 32, np.float32)


Case = tuple[str, Mapping[str, Shape], Mapping[str, Any], Mapping[str, Any], Sequence[str]]
X: Shape = (2, 5, 8)
MASK = np.array([5, 4], np.int32)
ANGLES = {"cos": real(16, 2), "sin": real(16, 2)}
CASES: dict[str, Case] = {
    "gelu": ("Gelu", {"x": X}, {}, {}, ["y"]),
    "fast gelu": ("FastGelu", {"x": X}, {}, {}, ["y"]),
    "fast gelu of a sum": ("FastGelu", {"x": X}, {"b": real(8)}, {}, ["y"]),
    "bias gelu": ("BiasGelu", {"x": X}, {"b": real(8)}, {}, ["y"]),
    "quick gelu": ("QuickGelu", {"x": X}, {}, {}, ["y"]),
    "quick gelu, 2": ("QuickGelu", {"x": X}, {}, {"alpha": 2.0}, ["y"]),
    "skip": ("SkipLayerNormalization", {"x": X, "s": X}, {"w": real(8)}, {"epsilon": 1e-5}, ["y"]),
    "skip, all": (
        "SkipLayerNormalization",
        {"x": X, "s": X},
        {"w": real(8), "beta": real(8), "bias": real(8)},
        {},
        ["y", "", "", "sum"],
    ),
    "skip, broadcast": ("SkipLayerNormalization", {"x": X, "s": (5, 8)}, {"w": real(8), "b": real(8)}, {}, ["y"]),
    "skip rms": ("SkipSimplifiedLayerNormalization", {"x": X, "s": X}, {"w": real(8)}, {"epsilon": 1e-5}, ["y"]),
    "skip rms, all": (
        "SkipSimplifiedLayerNormalization",
        {"x": X, "s": X},
        {"w": real(8), "bias": real(8)},
        {"epsilon": 1e-5},
        ["y", "", "", "sum"],
    ),
    "product": ("FusedMatMul", {"a": (3, 4, 5), "b": (3, 5, 2)}, {}, {"alpha": 0.5}, ["y"]),
    "product, transposed": (
        "FusedMatMul",
        {"a": (3, 5, 4), "b": (3, 2, 5)},
        {},
        {"transA": 1, "transB": 1, "alpha": 2.0},
        ["y"],
    ),
    "product, batch inside": (
        "FusedMatMul",
        {"a": (4, 3, 5), "b": (5, 3, 2)},
        {},
        {"transBatchA": 1, "transBatchB": 1},
        ["y"],
    ),
    "product, all inside": (
        "FusedMatMul",
        {"a": (5, 3, 4), "b": (2, 3, 5)},
        {},
        {"transA": 1, "transB": 1, "transBatchA": 1, "transBatchB": 1},
        ["y"],
    ),
    "product with a constant": ("FusedMatMul", {"a": (4, 5)}, {"b": real(3, 5)}, {"transB": 1, "alpha": 0.25}, ["y"]),
    **{
        f"conv, {kind}": (
            "FusedConv",
            {"x": (1, 3, 6, 5)},
            {"w": real(4, 3, 3, 3), "b": real(4)},
            {"activation": kind, "pads": [1, 1, 1, 1], **({"activation_params": given} if given else {})},
            ["y"],
        )
        for kind, given in (
            ("Relu", ()),
            ("Sigmoid", ()),
            ("Tanh", ()),
            ("LeakyRelu", (0.25,)),
            ("Clip", (-0.5, 1.5)),
            ("HardSigmoid", (0.25, 0.5)),
        )
    },
    "conv with a sum": (
        "FusedConv",
        {"x": (1, 3, 6, 5)},
        {"w": real(4, 3, 1, 1), "b": real(4), "z": real(1, 4, 6, 5)},
        {"activation": "Relu"},
        ["y"],
    ),
    "gemm": (
        "FusedGemm",
        {"a": (2, 5)},
        {"b": real(3, 5), "c": real(3)},
        {"transB": 1, "alpha": 0.5, "activation": "LeakyRelu", "activation_alpha": 0.125},
        ["y"],
    ),
    "attention": ("Attention", {"x": X}, {"w": real(8, 24), "b": real(24)}, {"num_heads": 2}, ["y"]),
    "attention, causal": (
        "Attention",
        {"x": X},
        {"w": real(8, 24), "b": real(24)},
        {"num_heads": 4, "unidirectional": 1, "scale": 0.3},
        ["y"],
    ),
    "attention, sizes": (
        "Attention",
        {"x": X},
        {"w": real(8, 20), "b": real(20)},
        {"num_heads": 2, "qkv_hidden_sizes": [6, 6, 8]},
        ["y"],
    ),
    "heads": ("MultiHeadAttention", {"q": X, "k": (2, 7, 8), "v": (2, 7, 8)}, {}, {"num_heads": 2}, ["y"]),
    "heads with a bias": (
        "MultiHeadAttention",
        {"q": X, "k": (2, 7, 8), "v": (2, 7, 8)},
        {"bias": real(24)},
        {"num_heads": 4, "scale": 0.5},
        ["y"],
    ),
    "heads with a mask": (
        "MultiHeadAttention",
        {"q": X, "k": (2, 7, 8), "v": (2, 7, 8)},
        {"": None, " ": None, "mask": real(1, 2, 5, 7)},
        {"num_heads": 2},
        ["y"],
    ),
    "rotary": ("RotaryEmbedding", {"x": X}, {"at": np.array([3]), **ANGLES}, {}, ["y"]),
    "rotary, positions": (
        "RotaryEmbedding",
        {"x": X},
        {"at": np.arange(10).reshape(2, 5)[:, ::-1], **ANGLES},
        {"interleaved": 1},
        ["y"],
    ),
    "rotary, heads first": ("RotaryEmbedding", {"x": (2, 3, 5, 4)}, {"at": np.array([1]), **ANGLES}, {}, ["y"]),
}


def read(case: Case, folder: Path) -> Source:
    op, inputs, constants, attributes, outputs = case
    names = [name.strip() for name in (*inputs, *constants)]
    made = model(
        [node(op, names, outputs, "n", domain="com.microsoft", **attributes)],
        inputs,
        [name for name in outputs if name],
        {name: value for name, value in constants.items() if value is not None},
        domains={"com.microsoft": 1},
    )
    (folder / "net.onnx").write_bytes(made.SerializeToString())
    return frontends.load(str(folder / "net.onnx"))


@pytest.mark.parametrize("name", CASES)
def test_onnxruntime_computes_the_same(name: str, tmp_path: Path) -> None:
    source = read(CASES[name], tmp_path)
    assert source.library == "onnxruntime" and source.expected is not None
    graph = lower(source).graph
    made = interpret(graph, source.examples)
    for output, want in zip(graph.outputs, source.expected, strict=True):
        assert (made[output].shape, made[output].dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(made[output], want, rtol=2e-5, atol=2e-5)


def test_every_operator_has_a_case() -> None:
    assert {f"com.microsoft::{op}" for op, *_ in CASES.values()} == set(ROWS)


@pytest.mark.parametrize(
    ("case", "what"),
    [
        (
            ("FusedConv", {"x": (1, 3, 6, 5)}, {"w": real(4, 3, 1, 1)}, {"activation": "Sine"}, ["y"]),
            "FusedConv: the activation Sine is not supported",
        ),
        (
            ("Attention", {"x": X}, {"w": real(8, 24), "b": real(24), "m": MASK}, {"num_heads": 2}, ["y"]),
            "Attention: mask_index is not supported",
        ),
        (
            ("RotaryEmbedding", {"x": X}, {"at": np.array([3]), **ANGLES}, {"scale": 2.0}, ["y"]),
            "RotaryEmbedding: scale 2.0 is not supported",
        ),
        (
            ("Attention", {"x": X}, {"w": real(8, 24), "b": real()}, {"num_heads": 2}, ["y"]),
            "Attention: the bias does not fit",
        ),
        (
            ("Attention", {"x": X}, {"w": real(7, 24), "b": real(24)}, {"num_heads": 2}, ["y"]),
            "Attention: the weight does not fit",
        ),
        (("Gelu", {}, {"x": np.array([3])}, {}, ["y"]), "Gelu: int64 is not supported"),
    ],
)  # fmt: skip
def test_what_is_not_supported(case: Case, what: str, tmp_path: Path) -> None:
    with pytest.raises(CompileError) as refused:
        read(case, tmp_path)
    assert refused.value.what == what
    assert refused.value.at == (f"n: {case[0]}",)
