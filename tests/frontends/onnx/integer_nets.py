"""Small integer networks as QuantLib exports them: whole numbers in float tensors, operators without a domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import helper, numpy_helper
from tests.frontends.onnx.files import model, node

Array = np.ndarray[Any, Any]


def tensor(value: float) -> Any:
    """An attribute that holds a number as a tensor."""
    return numpy_helper.from_array(np.array([value], np.float32))


def requant(x: str, y: str, mul: str, add: str, div: int = 1 << 12, signed: int = 1, levels: int = 256) -> Any:
    attributes = {"div": tensor(div), "n_levels_out": tensor(levels), "signed": tensor(signed)}
    return node("RequantShift", [x, mul, add], [y], f"requant_{y}", **attributes)


def floats(**constants: Any) -> dict[str, Array]:
    return {name: np.asarray(v, np.float32) for name, v in constants.items()}


def net(
    nodes: Sequence[Any],
    inputs: Mapping[str, Sequence[int]],
    outputs: Sequence[str],
    constants: Mapping[str, Any] | None = None,
    opset: int = 13,
) -> Any:
    return model(nodes, dict(inputs), outputs, constants, opset)


def numbers(rng: np.random.Generator, shape: Sequence[int], low: int = -127, high: int = 128) -> Array:
    return rng.integers(low, high, shape).astype(np.float32)


def integer_cnn() -> Any:
    """A convolution, a depthwise one, a pool, a residual sum, a mean and a linear layer."""
    rng = np.random.default_rng(1)
    shape = helper.make_node("Reshape", ["m", "flat"], ["v"], name="flatten")
    nodes = [
        node("Conv", ["x", "w"], ["c"], "conv", pads=[1, 1, 1, 1], kernel_shape=[3, 3], strides=[1, 1], group=1),
        requant("c", "r", "cm", "ca", signed=0),
        node("Conv", ["r", "dw"], ["d"], "depthwise", pads=[1, 1, 1, 1], kernel_shape=[3, 3], group=4),
        requant("d", "e", "dm", "da", 1 << 14, signed=0),
        node("Add", ["r", "e"], ["s"], "residual"),
        requant("s", "t", "half", "none", 1 << 16),
        node("MaxPool", ["t"], ["p"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("IntegerMean", ["p"], ["m"], "mean", axes=[2, 3], keepdims=1),
        shape,
        node("Gemm", ["v", "f", "fb"], ["g"], "linear", alpha=1.0, beta=1.0, transB=1),
        requant("g", "y", "gm", "none", 1 << 10),
    ]
    mul = rng.integers(3, 9, (4, 1, 1))
    constants = {
        **floats(w=numbers(rng, (4, 2, 3, 3)), cm=mul, ca=mul * rng.integers(-500, 500, (4, 1, 1))),
        **floats(dw=numbers(rng, (4, 1, 3, 3)), dm=mul * 2, da=numbers(rng, (4, 1, 1), -3000, 3000)),
        **floats(half=40000, none=0, f=numbers(rng, (3, 4)), fb=numbers(rng, (3,), -900, 900), gm=[[5, 7, 9]]),
        "flat": np.array([1, -1]),
    }
    return net(nodes, {"x": [1, 2, 8, 8]}, ["y"], constants)


def integer_transformer() -> Any:
    """Attention with an integer softmax, norms, gelu, and a division."""
    rng = np.random.default_rng(2)
    nodes = [
        node("iLayerNorm", ["x", "nw", "nb"], ["n"], "norm", D=tensor(1 << 14), n_levels=tensor(256)),
        *(
            made
            for name in "qkv"
            for made in (
                node("MatMul", ["n", f"w{name}"], [f"{name}0"], f"project_{name}"),
                node("Add", [f"b{name}", f"{name}0"], [f"{name}1"], f"bias_{name}"),
                requant(f"{name}1", name, "eight", "none", 1 << 15),
                node("Reshape", [name, "heads"], [f"{name}2"], f"heads_{name}"),
            )
        ),
        node("Transpose", ["q2"], ["q3"], "rows", perm=[0, 2, 1, 3]),
        node("Transpose", ["k2"], ["k3"], "columns", perm=[0, 2, 3, 1]),
        node("Transpose", ["v2"], ["v3"], "values", perm=[0, 2, 1, 3]),
        node("MatMul", ["q3", "k3"], ["a0"], "scores"),
        requant("a0", "a1", "eight", "none", 1 << 12),
        node(
            "iSoftmax",
            ["a1"],
            ["a2"],
            "softmax",
            **{
                k: tensor(v) for k, v in {"coeffA": 1, "coeffB": 40, "coeffC": 900, "log2": 20, "n_levels": 256}.items()
            },
        ),
        node("MatMul", ["a2", "v3"], ["o0"], "attend"),
        requant("o0", "o1", "eight", "none", 1 << 11),
        node("Transpose", ["o1"], ["o2"], "back", perm=[0, 2, 1, 3]),
        node("Reshape", ["o2", "whole"], ["o3"], "joined"),
        node("Add", ["x", "o3"], ["s0"], "residual"),
        requant("s0", "s1", "half", "none", 1 << 16),
        node("iGELU", ["s1"], ["g0"], "gelu", b=-40, one=1743),
        requant("g0", "g1", "eight", "none", 1 << 14),
        node("iHardswish", ["g1"], ["h0"], "hardswish", three=60, six=120, one_over_six=5),
        requant("h0", "h1", "eight", "none", 1 << 11),
        node("iRMSNorm", ["h1", "nw"], ["y"], "last", D=1 << 13, n_levels=256),
    ]
    constants = {
        **floats(nw=numbers(rng, (8,), 200000, 400000), nb=numbers(rng, (8,), -9000, 9000)),
        **floats(**{f"w{name}": numbers(rng, (8, 8)) for name in "qkv"}),
        **floats(**{f"b{name}": numbers(rng, (8,), -2000, 2000) for name in "qkv"}),
        **floats(eight=[8], none=0, half=[45000]),
        "heads": np.array([1, 5, 2, 4]),
        "whole": np.array([0, 0, -1]),
    }
    return net(nodes, {"x": [1, 5, 8]}, ["y"], constants)
