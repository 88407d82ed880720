"""Integer networks: every operator equals its published definition, number by number, in the Graph and in images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.cli.program import check_golden
from tests.frontends.onnx.files import node
from tests.frontends.onnx.integer_definitions import compute
from tests.frontends.onnx.integer_nets import floats, integer_cnn, integer_transformer, net, numbers, requant, tensor

from baretorch import frontends
from baretorch.errors import CompileError
from baretorch.frontends.onnx.integer_forms import exact
from baretorch.ir.graph import Graph, interpret
from baretorch.ir.io import real_outputs, store_inputs
from baretorch.options import Options
from baretorch.pipeline import build_image, compile_lowered, lower, run_image
from baretorch.targets.boards import load_board

RNG = np.random.default_rng(7)
BYTES = (-128, 128)
UNSIGNED = (0, 256)


def save(made: Any, folder: Path, *inputs: Any) -> Path:
    """Write a model and its example inputs."""
    file = folder / "net.onnx"
    file.write_bytes(made.SerializeToString())
    if inputs:
        np.savez(folder / "inputs.npz", **{i.name: x for i, x in zip(made.graph.input, inputs, strict=True)})
    return file


def check(made: Any, folder: Path, *ranges: tuple[int, int]) -> Graph:
    """Return the lowered Graph, which computes what the model means for numbers from all of these ranges."""
    shapes = [tuple(d.dim_value for d in i.type.tensor_type.shape.dim) for i in made.graph.input]
    inputs = []
    for shape, (low, high) in zip(shapes, ranges, strict=True):
        x = numbers(RNG, shape, low, high)
        x.reshape(-1)[:2] = (low, high - 1)[: x.size]  # the ends decide the type
        inputs.append(x)
    source = frontends.load(str(save(made, folder, *inputs)))
    graph = lower(source).graph
    for each in (source.graph, graph):
        values = interpret(each, store_inputs(each, source.examples))
        have = real_outputs(each, [values[name] for name in each.outputs])
        for port, y, want in zip(each.gives(), have, compute(made, *inputs), strict=True):
            np.testing.assert_array_equal(port.from_memory(y), want)
    return graph


def operators(graph: Graph) -> list[str]:
    moves = {"permute", "reshape"}
    return [n.op.name for n in graph.nodes if n.op.name not in moves]


# --- networks -----------------------------------------------------------------------------------------------


def test_a_convolutional_network(tmp_path: Path) -> None:
    """The second convolution adds numbers that its factors do not divide."""
    graph = check(integer_cnn(), tmp_path, UNSIGNED)
    assert operators(graph) == [
        *("qconv2d", "int_conv2d", "requant_shift", "qadd", "max_pool2d", "qavg_pool2d", "qlinear"),
    ]


def test_a_transformer(tmp_path: Path) -> None:
    graph = check(integer_transformer(), tmp_path, BYTES)
    assert sorted(operators(graph)) == sorted(
        ["int_norm", *["qlinear"] * 3, "qmatmul", "int_softmax", "qmatmul", "qadd", "lookup", "lookup", "int_norm"]
    )


@pytest.mark.parametrize("board", ["host", "mps2-an386"])
@pytest.mark.parametrize(("made", "reach"), [(integer_cnn(), UNSIGNED), (integer_transformer(), BYTES)])
def test_images(made: Any, reach: tuple[int, int], board: str, tmp_path: Path) -> None:
    (shape,) = ([d.dim_value for d in i.type.tensor_type.shape.dim] for i in made.graph.input)
    x = numbers(RNG, shape, *reach)
    x.reshape(-1)[:2] = reach[0], reach[1] - 1
    compiled = compile_lowered(lower(frontends.load(str(save(made, tmp_path, x)))), load_board(board), Options())
    run = run_image(compiled, build_image(compiled, tmp_path / "image"))
    (y,) = real_outputs(compiled.graph, run.outputs)
    np.testing.assert_array_equal(y, compute(made, x)[0])


def test_bytes_are_the_interface(tmp_path: Path) -> None:
    """Numbers from 0 to 255 are bytes less 128, with a scale of 1; wider ones are int32."""
    nodes = [node("iHardswish", ["x"], ["y"], "h", three=60, six=120, one_over_six=5)]
    graph = check(net(nodes, {"x": [2, 3]}, ["y"]), tmp_path, UNSIGNED)
    (x,), (y,) = graph.takes(), graph.gives()
    assert x.tensor.quant is not None and (x.tensor.quant.scale, x.tensor.quant.zero_point) == ((1.0,), (-128,))
    assert (x.tensor.dtype.label, x.dtype.label, y.dtype.label) == ("int8", "float32", "int32")


@pytest.mark.parametrize(
    ("data", "low", "high"),
    [
        (np.zeros((1, 4), np.int8), -128, 127),
        (np.zeros((1, 4), np.uint8), 0, 255),
        (np.array([[0, 1, 2, 255]], np.float32), 0, 255),
        (np.array([[0, 1, 2, -1]], np.float32), -128, 127),
        (np.array([[0, 1, 2, 256]], np.float64), -(1 << 31), (1 << 31) - 1),
    ],
)
def test_examples_decide_the_type_of_an_input(data: Any, low: int, high: int, tmp_path: Path) -> None:
    made = net([requant("x", "y", "m", "a")], {"x": [1, 4]}, ["y"], floats(m=[7], a=[9]))
    source = frontends.load(str(save(made, tmp_path, data)))
    assert f"integer network: x from {low} to {high}" in source.notes
    graph = lower(source).graph
    values = interpret(graph, store_inputs(graph, source.examples))
    (y,) = real_outputs(graph, [values[name] for name in graph.outputs])
    np.testing.assert_array_equal(y, compute(made, data)[0])


# --- operators ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reach", [BYTES, UNSIGNED, (-3000, 3000)])
@pytest.mark.parametrize(("signed", "levels"), [(1, 256), (0, 256), (1, 16), (0, 255), (0, 2)])
@pytest.mark.parametrize("div", [1, 2, 1 << 16, 1 << 30])
def test_requant_shift(reach: tuple[int, int], signed: int, levels: int, div: int, tmp_path: Path) -> None:
    factor = max(div // 20, 1) * RNG.integers(-1, 2, (3, 1, 1)) + 1
    constants = floats(m=factor, a=RNG.integers(-max(div, 9), max(div, 9), (3, 1, 1)))
    made = net([requant("x", "y", "m", "a", div, signed, levels)], {"x": [1, 3, 4, 5]}, ["y"], constants)
    check(made, tmp_path, reach)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (3, 1), (3, 1, 1), (1, 3, 1), (3, 5), (1, 3, 5)])
def test_shapes_of_factors(shape: Sequence[int], tmp_path: Path) -> None:
    constants = floats(m=RNG.integers(1, 99, shape), a=RNG.integers(-999, 999, shape))
    check(net([requant("x", "y", "m", "a", 64)], {"x": [1, 3, 5]}, ["y"], constants), tmp_path, BYTES)


@pytest.mark.parametrize("reach", [BYTES, UNSIGNED])
@pytest.mark.parametrize(
    "op",
    [
        node("iGELU", ["x"], ["y"], b=-40, one=1743),
        node("iGELU", ["x"], ["y"], b=-7, one=50),
        node("iHardswish", ["x"], ["y"], three=60, six=120, one_over_six=5),
        node("TrueIntegerDiv", ["x"], ["y"], Delta=16384, eps=1, eta=200000, y=2),
    ],
    ids=lambda op: op.op_type,
)
def test_functions_of_a_byte(op: Any, reach: tuple[int, int], tmp_path: Path) -> None:
    assert operators(check(net([op], {"x": [16, 16]}, ["y"]), tmp_path, reach)) == ["int_table"]
    op.output[0] = "f"
    made = net([op, requant("f", "y", "m", "a", 1 << 14)], {"x": [16, 16]}, ["y"], floats(m=[9], a=[-70]))
    assert operators(check(made, tmp_path, reach)) == ["lookup"]
    op.output[0] = "y"


@pytest.mark.parametrize("levels", [256, 16])
@pytest.mark.parametrize(
    ("a", "b", "c", "step"), [(1, 173, 15599, 127), (3, 40, 900, 20), (1, 5, 7, 2), (1, 900, 0, 1)]
)
def test_softmax(levels: int, a: int, b: int, c: int, step: int, tmp_path: Path) -> None:
    attributes = {"coeffA": a, "coeffB": b, "coeffC": c, "log2": step, "n_levels": levels}
    op = node("iSoftmax", ["x"], ["y"], **{k: tensor(v) for k, v in attributes.items()})
    check(net([op], {"x": [1, 2, 6, 9]}, ["y"]), tmp_path, BYTES)


@pytest.mark.parametrize(("op", "more"), [("ITAMax", {}), ("ITAPartialMax", {"group_width": 4})])
def test_softmax_of_ita(op: str, more: dict[str, Any], tmp_path: Path) -> None:
    check(net([node(op, ["x"], ["y"], n_levels=tensor(256), **more)], {"x": [1, 2, 7, 12]}, ["y"]), tmp_path, BYTES)


@pytest.mark.parametrize("reach", [BYTES, UNSIGNED])
@pytest.mark.parametrize("weight", [(12,), (1,)])
def test_norms(reach: tuple[int, int], weight: Sequence[int], tmp_path: Path) -> None:
    constants = floats(w=RNG.integers(-400000, 400000, weight), b=RNG.integers(-9000, 9000, 12))
    op = node("iLayerNorm", ["x", "w", "b"], ["y"], D=tensor(1 << 14), n_levels=tensor(256))
    check(net([op], {"x": [1, 5, 12]}, ["y"], constants), tmp_path, reach)
    op = node("iRMSNorm", ["x", "w"], ["y"], D=1 << 13, n_levels=128)
    check(net([op], {"x": [1, 5, 12]}, ["y"], constants), tmp_path, reach)


def test_no_norm(tmp_path: Path) -> None:
    constants = floats(w=numbers(RNG, (6, 8)), b=numbers(RNG, (8,), -2000, 2000))
    op = node("iNoNorm", ["x", "w", "b"], ["y"], D=tensor(65536), mul=tensor(425), n_levels=tensor(256))
    check(net([op], {"x": [2, 6, 8]}, ["y"], constants), tmp_path, BYTES)


@pytest.mark.parametrize("eps", [1, 4])
def test_division(eps: int, tmp_path: Path) -> None:
    """Half is rounded away from 0."""
    op = node("IntegerDiv", ["x", "d"], ["y"], Delta=6, eps=eps, eta=2)
    made = net([op], {"x": [2, 30, 30], "d": [2, 30, 1]}, ["y"])
    check(made, tmp_path, BYTES, UNSIGNED)


def test_large_quotients(tmp_path: Path) -> None:
    """A quotient may leave 32 bits where its requantization limits it anyway."""
    op = node("IntegerDiv", ["x", "d"], ["q"], "quotient", Delta=1 << 20, eps=1, eta=100)
    constants = floats(m=[-3], a=[7])
    made = net([op, requant("q", "y", "m", "a", 1 << 22)], {"x": [1, 300], "d": [1, 300]}, ["y"], constants)
    check(made, tmp_path, BYTES, UNSIGNED)
    inputs = {"x": [1, 4], "d": [1, 4]}
    for name, last in (("", node("Identity", ["q"], ["y"], "same")), ("_kept", requant("q", "y", "m", "a", 1 << 30))):
        made = net([op, last], inputs, ["y"], constants)
        rejected(made, tmp_path, f"large_quotient{name}", X, X.astype(np.uint8))


@pytest.mark.parametrize("op", ["IntegerMean", "ReduceMean"])
@pytest.mark.parametrize(
    ("axes", "keepdims"), [([1], 0), ([2, 3], 1), ([1, 3], 0), ([-1], 1), ([0], 0), ([1, 2, 3], 0)]
)
@pytest.mark.parametrize("shape", [(1, 4, 2, 8), (1, 3, 5, 6)])
def test_means(op: str, axes: list[int], keepdims: int, shape: Sequence[int], tmp_path: Path) -> None:
    """Half is rounded up for powers of two, else away from 0."""
    made = net([node(op, ["x"], ["r"], axes=axes, keepdims=keepdims), requant("r", "y", "m", "a", 64)],
               {"x": list(shape)}, ["y"], floats(m=[70], a=[3]))  # fmt: skip
    for reach in (BYTES, UNSIGNED):
        check(made, tmp_path, reach)


def test_sums_over_an_axis(tmp_path: Path) -> None:
    nodes = [node("ReduceSum", ["x", "axes"], ["s"], keepdims=0), requant("s", "y", "m", "a", 512)]
    made = net(nodes, {"x": [1, 5, 4, 3]}, ["y"], {**floats(m=[70], a=[3]), "axes": np.array([1, 2])})
    check(made, tmp_path, UNSIGNED)


CONVOLUTIONS: list[tuple[list[int], list[int], dict[str, Any]]] = [
    ([1, 4, 6, 7], [6, 4, 3, 3], {"pads": [1, 0, 2, 1], "strides": [2, 1]}),
    ([1, 4, 6, 7], [4, 1, 3, 3], {"pads": [1, 1, 1, 1], "group": 4}),
    ([1, 4, 6, 7], [6, 2, 2, 2], {"group": 2, "dilations": [2, 1]}),
    ([2, 3, 11], [5, 3, 3], {"pads": [1, 1]}),
]


@pytest.mark.parametrize(("x", "w", "attributes"), CONVOLUTIONS)
@pytest.mark.parametrize("reach", [BYTES, UNSIGNED])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_convolutions(
    x: list[int],
    w: list[int],
    attributes: dict[str, Any],
    reach: tuple[int, int],
    bias: bool,
    turned: bool,
    tmp_path: Path,
) -> None:
    """Convolutions are int8 layers if multiples of their factors, of either sign, are added."""
    shape = (w[0], *(1,) * (len(w) - 2))
    factor = RNG.integers(20, 90, shape) * (RNG.choice([-1, 1], shape) if turned else 1)
    constants = floats(w=numbers(RNG, w), b=RNG.integers(-999, 999, w[0]), m=factor, a=factor * 37)
    conv = node("Conv", ["x", "w", "b"] if bias else ["x", "w"], ["c"], "conv", **attributes)
    made = net([conv, requant("c", "y", "m", "a", 1 << 15, 0)], {"x": x}, ["y"], constants)
    assert operators(check(made, tmp_path, reach)) == ["qconv2d"]


@pytest.mark.parametrize("reach", [BYTES, UNSIGNED])
def test_linear_layers(reach: tuple[int, int], tmp_path: Path) -> None:
    constants = floats(w=numbers(RNG, (9, 5)), b=RNG.integers(-999, 999, 5), m=RNG.integers(9, 30, 5), a=[0])
    nodes = [node("MatMul", ["x", "w"], ["p"]), node("Add", ["p", "b"], ["s"]), requant("s", "y", "m", "a")]
    made = net(nodes, {"x": [3, 9]}, ["y"], constants)
    assert operators(check(made, tmp_path, reach)) == ["qlinear"]
    gemm = node("Gemm", ["x", "w", "c"], ["s"], alpha=2.0, beta=3.0)
    constants |= floats(c=numbers(RNG, (3, 5)))
    made = net([gemm, requant("s", "y", "m", "a")], {"x": [3, 9]}, ["y"], constants)
    assert operators(check(made, tmp_path, reach)) == ["int_conv2d", "mul", "add", "requant_shift"]


def test_products_of_matrices(tmp_path: Path) -> None:
    nodes = [node("Gemm", ["a", "b"], ["p"], transA=1, transB=1), requant("p", "y", "m", "n", 1 << 16)]
    made = net(nodes, {"a": [7, 4], "b": [6, 7]}, ["y"], floats(m=[300], n=[1 << 17]))
    assert operators(check(made, tmp_path, BYTES, UNSIGNED)) == ["qmatmul"]
    constants = floats(m=[300], n=[77])  # which no multiplier of the product has
    made = net(nodes, {"a": [7, 4], "b": [6, 7]}, ["y"], constants)
    assert operators(check(made, tmp_path, BYTES, UNSIGNED)) == ["int_matmul", "requant_shift"]


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul"])
@pytest.mark.parametrize("factor", [1 << 15, 1 << 16, 46125, 61631, 90001, 12345])
def test_pairs(op: str, factor: int, tmp_path: Path) -> None:
    div = 1 << 22 if op == "Mul" else 1 << 16
    nodes = [node(op, ["a", "b"], ["p"]), requant("p", "y", "m", "n", div, 0)]
    made = net(nodes, {"a": [9, 300], "b": [9, 1]}, ["y"], floats(m=[factor], n=[0]))
    assert operators(check(made, tmp_path, BYTES, UNSIGNED)) == ["qmul" if op == "Mul" else "qadd"]


def test_moves(tmp_path: Path) -> None:
    """Two ranges that bytes hold in different ways are joined as int32."""
    nodes = [
        node("Transpose", ["a"], ["t"], perm=[1, 0]),
        node("Slice", ["t", "one", "three", "zero"], ["s"]),
        node("Pad", ["s", "pads", "value"], ["p"]),
        node("Unsqueeze", ["p", "zero"], ["u"]),
        node("Squeeze", ["u", "zero"], ["q"]),
        node("Concat", ["q", "b", "k"], ["c"], axis=1),
        node("Gather", ["c", "zero"], ["g"], axis=0),
        node("Flatten", ["g"], ["f"]),
        requant("f", "y", "m", "n", 64),
    ]
    constants = {"one": np.array([1]), "three": np.array([3]), "zero": np.array([0]), "pads": np.array([1, 0, 0, 1])}
    constants |= floats(value=-100, m=[50], n=[20], k=numbers(RNG, (3, 2), -300, 300))
    check(net(nodes, {"a": [4, 5], "b": [3, 4]}, ["y"], constants), tmp_path, BYTES, UNSIGNED)


@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 1, 1]])
def test_max_pools(pads: list[int], tmp_path: Path) -> None:
    pool = node("MaxPool", ["x"], ["p"], kernel_shape=[3, 2], strides=[2, 1], pads=pads, ceil_mode=0)
    made = net([pool, requant("p", "y", "m", "n", 64)], {"x": [1, 3, 7, 6]}, ["y"], floats(m=[50], n=[20]))
    for reach in (BYTES, UNSIGNED):
        check(made, tmp_path, reach)


def test_constants_of_an_int8_layer_are_exact_or_none() -> None:
    found = 0
    for _ in range(400):
        shift = int(RNG.integers(8, 31))
        factor = RNG.integers(-(1 << 10), 1 << 10, 3) << int(RNG.integers(0, 8))
        offset = factor * RNG.integers(-999, 999, 3) + RNG.integers(0, 3, 3) * RNG.integers(0, 200, 3)
        made = exact(factor, offset, shift)
        if made is None:
            continue
        found += 1
        reach = (1 << (31 - made.shift)) - (1 << 14)
        acc = RNG.integers(-reach, reach, (500, 3)) - made.sign * made.bias if reach > 0 else np.zeros((1, 3), np.int64)
        want = (acc * factor + offset + ((1 << shift) >> 1)) >> shift
        wide = (((acc * made.sign + made.bias) << made.shift) * made.multiplier.astype(np.int64) + (1 << 31)) >> 32
        np.testing.assert_array_equal(wide, want)
    assert 40 < found < 400


# --- errors -------------------------------------------------------------------------------------------------


def rejected(made: Any, folder: Path, name: str, *inputs: Any) -> None:
    with pytest.raises(CompileError) as caught:
        frontends.load(str(save(made, folder, *inputs)))
    check_golden(f"onnx_integer_{name}", caught.value.render().replace(str(folder), "FOLDER") + "\n")


X = np.array([[1, -2, 3, 4]], np.int8)


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("div_0", {"div": tensor(0)}),
        ("div_3", {"div": tensor(3)}),
        ("div_huge", {"div": tensor(1e30)}),
        ("div_half", {"div": tensor(0.5)}),
        ("no_div", {"div": None}),
        ("levels_huge", {"n_levels_out": tensor(65536)}),
        ("levels_odd", {"n_levels_out": tensor(255)}),
        ("levels_text", {"n_levels_out": "many"}),
    ],
)
def test_damaged_attributes(name: str, attributes: dict[str, Any], tmp_path: Path) -> None:
    own = {"div": tensor(64), "n_levels_out": tensor(256), "signed": tensor(1), **attributes}
    op = node("RequantShift", ["x", "m", "a"], ["y"], "last", **{k: v for k, v in own.items() if v is not None})
    rejected(net([op], {"x": [1, 4]}, ["y"], floats(m=[3], a=[4])), tmp_path, name, X)


@pytest.mark.parametrize(
    ("name", "constants"),
    [
        ("not_whole", floats(m=[0.5], a=[4])),
        ("not_finite", floats(m=[np.inf], a=[4])),
        ("too_large", floats(m=[3], a=[1e12])),
        ("not_fitting", floats(m=[3, 4, 5], a=[1])),
    ],
)
def test_damaged_constants(name: str, constants: dict[str, Any], tmp_path: Path) -> None:
    rejected(net([requant("x", "y", "m", "a")], {"x": [1, 4]}, ["y"], constants), tmp_path, name, X)


def chain(*nodes: Any, **constants: Any) -> Any:
    return net([*nodes, requant("z", "y", "m", "n", 64)], {"x": [1, 4]}, ["y"], floats(m=[3], n=[1], **constants))


ERRORS: dict[str, Any] = {
    "wide_product": chain(node("Mul", ["x", "k"], ["z"], "product"), k=[1 << 30]),
    "wide_weight": chain(node("MatMul", ["x", "k"], ["z"], "product"), k=np.full((4, 2), 300)),
    "wide_input": chain(node("iGELU", ["x"], ["g"], b=-4, one=99), node("iGELU", ["g"], ["z"], "twice", b=-4, one=99)),
    "float_operator": chain(node("Softmax", ["x"], ["z"], "softmax")),
    "divisor": chain(node("IntegerDiv", ["x", "x"], ["z"], "quotient", Delta=4, eps=1, eta=1)),
    "divisor_0": chain(node("TrueIntegerDiv", ["x"], ["z"], "quotient", Delta=4, eps=0, eta=1, y=0)),
    "ita_levels": chain(node("ITAMax", ["x"], ["z"], "softmax", n_levels=tensor(128))),
    "ita_groups": chain(node("ITAPartialMax", ["x"], ["z"], "softmax", n_levels=tensor(256), group_width=3)),
    "softmax_weights": chain(
        node("iSoftmax", ["x"], ["z"], "softmax", coeffA=1, coeffB=0, coeffC=0, log2=9, n_levels=256)
    ),
    "norm_axis": chain(node("iRMSNorm", ["x", "m"], ["z"], "norm", D=4, n_levels=256, axis=0)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str, tmp_path: Path) -> None:
    rejected(ERRORS[name], tmp_path, name, X)


def test_the_range_of_an_input_must_be_known(tmp_path: Path) -> None:
    rejected(integer_cnn(), tmp_path, "no_examples")


def test_examples_that_count_the_inputs(tmp_path: Path) -> None:
    """Deeploy's example inputs have such names."""
    made = net([node("Sub", ["a", "b"], ["d"]), requant("d", "y", "m", "n", 2)], {"a": [1, 4], "b": [1, 4]}, ["y"],
               floats(m=[1], n=[0]))  # fmt: skip
    file = save(made, tmp_path)
    np.savez(tmp_path / "inputs.npz", input_0=X, input_1=2 * X)
    source = frontends.load(str(file))
    np.testing.assert_array_equal(source.examples, [X, 2 * X])
    assert any("taken is input_0 for a, input_1 for b" in note for note in source.notes)


def test_examples_must_be_whole_numbers(tmp_path: Path) -> None:
    rejected(net([requant("x", "y", "m", "a")], {"x": [1, 4]}, ["y"], floats(m=[3], a=[1])), tmp_path, "real_examples",
             np.array([[0.5, 1, 2, 3]], np.float32))  # fmt: skip


def test_state_is_not_supported(tmp_path: Path) -> None:
    file = save(net([requant("x", "y", "m", "a")], {"x": [1, 4]}, ["y"], floats(m=[3], a=[1])), tmp_path, X)
    (tmp_path / "net.state.toml").write_text('x = "y"\n')
    with pytest.raises(CompileError, match="--state is not supported for integer networks: x"):
        frontends.load(str(file))


@pytest.mark.parametrize("opset", [9, 10, 11, 12])
def test_old_opsets(opset: int, tmp_path: Path) -> None:
    """QuantLib writes opset 10."""
    made = integer_cnn()
    made.opset_import[0].version = opset
    check(made, tmp_path, UNSIGNED)
    nodes = [
        node("Pad", ["x"], ["p"], pads=[0, 0, 0, 1], value=3.0) if opset < 11 else node("Identity", ["x"], ["p"]),
        node("ReduceSum", ["p"], ["s"], axes=[1], keepdims=1),
        node("Squeeze", ["s"], ["q"], axes=[1]),
        requant("q", "y", "m", "a"),
    ]
    check(net(nodes, {"x": [5, 4]}, ["y"], floats(m=[9], a=[1]), opset), tmp_path, BYTES)


def test_operators_with_their_domain(tmp_path: Path) -> None:
    """QuantLib's newer files name the domain."""
    for domain in ("PACTOps", "ai.onnx.contrib"):
        op = requant("x", "y", "m", "a")
        op.domain = domain
        made = net([op], {"x": [1, 4]}, ["y"], floats(m=[3], a=[1]))
        made.opset_import.append(onnx.helper.make_opsetid(domain, 1))
        check(made, tmp_path, BYTES)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32])
def test_integer_inputs_need_no_examples(dtype: Any, tmp_path: Path) -> None:
    made = net([requant("x", "y", "m", "a")], {"x": [1, 4]}, ["y"], floats(m=[9], a=[1]))
    made.graph.input[0].type.tensor_type.elem_type = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = lower(frontends.load(str(save(made, tmp_path)))).graph
    (x,) = graph.takes()
    assert (x.dtype.numpy, x.tensor.quant) == (np.dtype(dtype), None)
    data = RNG.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (1, 4)).astype(dtype)
    (y,) = real_outputs(graph, [interpret(graph, [data])[name] for name in graph.outputs])
    np.testing.assert_array_equal(y, compute(made, data)[0])
