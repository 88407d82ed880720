"""Models that somebody else quantized: converted modules, .pt2 and .pte files with q/dq, and cortex_m operators."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lower import Function
from pte_cases import case, export
from pte_quantized import cortex_m, mixed, xnnpack
from test_pte_graph import same
from tests.models import compile_model, int8_model
from tests.pte import read_pte

from baretorch.errors import CompileError
from baretorch.frontends import Source, from_module, load
from baretorch.frontends.aten.program import AtenCall, AtenInput, AtenProgram, Ref
from baretorch.frontends.aten.table import to_graph
from baretorch.frontends.pte import operators
from baretorch.frontends.torch.read import read_plain
from baretorch.ir.graph import Array, DType, Graph, interpret
from baretorch.measure.facts import compare
from baretorch.ops.int8.quantize import Dequantize
from baretorch.options import Io, Options
from baretorch.passes.order import lower_graph
from baretorch.passes.to_int8 import float_layers
from baretorch.pipeline import build_image, lower, run_image
from baretorch.targets.boards import load_board

DATA = Path(__file__).parent / "data"
qd = torch.ops.quantized_decomposed


@cache
def source_of(name: str, **options: Any) -> Source:
    model = case(name)
    return from_module(xnnpack(model.module(), model.inputs(), **options), model.inputs(), name)


def steps(graph: Graph, source: Source) -> float:
    """The largest difference from PyTorch, in steps of the output's scale."""
    assert source.expected is not None
    (made,) = interpret(graph, source.examples).values()
    op = graph.producer()[graph.outputs[0]].op
    assert isinstance(op, Dequantize)
    return float(np.abs(made - source.expected[0]).max()) / op.scale


# --- pt2e by another quantizer -----------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "per_channel"), [("cnn", True), ("cnn", False), ("residual", True)])
def test_a_converted_module_is_int8_without_being_asked(name: str, per_channel: bool) -> None:
    source = source_of(name, is_per_channel=per_channel)
    graph = lower_graph(source.graph)
    assert graph.is_int8 and float_layers(graph) == []
    assert steps(graph, source) <= 3
    assert lower(source).int8_answers is source.expected


def test_trained_with_rounding_it_is_int8_too() -> None:
    source = source_of("cnn", is_qat=True)
    graph = lower_graph(source.graph)
    assert float_layers(graph) == [] and steps(graph, source) <= 3


def test_a_pt2_file_of_it_gives_the_same_graph(tmp_path: Path) -> None:
    source = source_of("cnn")
    assert source.torch is not None
    torch.export.save(source.torch.exported["forward"], tmp_path / "m.pt2")
    read = load(str(tmp_path / "m.pt2"))
    same(lower_graph(read.graph), lower_graph(source.graph))
    assert read.graph.is_quantized and read.expected is not None


@pytest.mark.parametrize("name", ["cnn", "cnn_channels_last"])
def test_a_pte_file_of_it_gives_the_same_graph(name: str) -> None:
    source = source_of(name)
    data = export(source.module, case(name).inputs())
    same(lower_graph(to_graph(read_pte(data, name))), lower_graph(source.graph))


def test_what_the_quantizer_left_in_float_is_named() -> None:
    graph = lower_graph(to_graph(read_pte((DATA / "quantized.pte").read_bytes(), "m")))
    assert [layer.split()[0] for layer in float_layers(graph)] == ["avg_pool2d", "mean", "softmax"]


def test_it_is_not_quantized_twice() -> None:
    with pytest.raises(CompileError) as caught:
        int8_model(source_of("cnn"), None)
    assert caught.value.what == "--int8: the model is quantized already"


def rounded(scale: float, zero: int, lo: int, hi: int, dtype: torch.dtype) -> Source:
    """relu between two roundings to this type."""

    def around(x: torch.Tensor) -> torch.Tensor:
        stored = qd.quantize_per_tensor(x, scale, zero, lo, hi, dtype)
        return qd.dequantize_per_tensor(stored, scale, zero, lo, hi, dtype)

    return from_module(Function(lambda x: around(torch.relu(around(x)))), (torch.linspace(-4, 5, 64),), "m")


@pytest.mark.parametrize(
    ("zero", "lo", "hi", "dtype"),
    [
        (0, -127, 127, torch.int8),
        (-11, -128, 127, torch.int8),
        (128, 0, 255, torch.uint8),
        (7, 0, 255, torch.uint8),
    ],
)
def test_symmetric_affine_and_unsigned_activations(zero: int, lo: int, hi: int, dtype: torch.dtype) -> None:
    source = rounded(0.05, zero, lo, hi, dtype)
    graph = lower_graph(source.graph)
    assert [n.op.name for n in graph.nodes] == ["quantize", "lookup", "dequantize"]
    assert source.expected is not None
    (made,) = interpret(graph, source.examples).values()
    np.testing.assert_allclose(made, source.expected[0], atol=1e-6)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (lambda: rounded(0.05, 0, -32768, 32767, torch.int16), "int16 from -32768 to 32767 is not supported"),
        (lambda: rounded(0.05, 0, 0, 127, torch.int8), "int8 from 0 to 127 is not supported"),
        (lambda: source_of("sine", is_dynamic=True), "quantized_decomposed::choose_qparams"),
    ],
    ids=["int16", "narrow", "dynamic"],
)
def test_what_cannot_be_int8_is_refused(source: Any, text: str) -> None:
    with pytest.raises(CompileError, match=text):
        _ = source().graph


class Rounded(torch.nn.Module):
    """Two layers, with a rounding to this range before, between and after them."""

    def __init__(self, *ranges: tuple[int, int]) -> None:
        super().__init__()
        self.first, self.second, self.ranges = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4), ranges

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        before, between, behind = self.ranges
        return around(self.second(around(self.first(around(x, *before)), *between)), *behind)


def around(x: torch.Tensor, lo: int, hi: int, scale: float = 0.05) -> torch.Tensor:
    stored = qd.quantize_per_tensor(x, scale, 0, lo, hi, torch.int8)
    return qd.dequantize_per_tensor(stored, scale, 0, lo, hi, torch.int8)


@pytest.mark.parametrize(("place", "layer"), [(0, "first"), (1, "first"), (2, "second")])
def test_a_refusal_names_the_layer_next_to_the_rounding(place: int, layer: str) -> None:
    ranges = [(-128, 127)] * 3
    ranges[place] = (0, 127)
    with pytest.raises(CompileError) as caught:
        _ = from_module(Rounded(*ranges).eval(), (torch.zeros(1, 4),), "m").graph
    assert caught.value.what == "quantize_per_tensor: int8 from 0 to 127 is not supported"
    assert [at.split()[0] for at in caught.value.at] == [layer]
    (have,) = caught.value.have
    assert have.endswith("float32[1, 4]")


def test_a_refusal_of_a_weight_names_its_layer() -> None:
    source = source_of("cnn")
    assert source.torch is not None
    program = read_plain(source.torch.plain["forward"], "cnn")
    calls = list(program.calls)
    at = next(i for i, c in enumerate(calls) if c.target.endswith("dequantize_per_channel"))
    scales = calls[at].args[1]
    assert isinstance(scales, Ref)
    broken = replace(program, constants={**program.constants, scales.name: 0 * program.constants[scales.name]})
    with pytest.raises(CompileError, match="0 cannot be a scale") as caught:
        to_graph(broken)
    reader = next(c for c in calls if Ref(calls[at].results[0] or "") in c.args)
    assert caught.value.at == (str(reader.origin),) and reader.origin.path
    assert "int8[" in caught.value.have[0]


def test_a_float_layer_at_the_border_is_named() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    x = torch.linspace(-1, 1, 4).reshape(1, 4)
    for layer in ("0", "1"):
        source = int8_model(from_module(net.eval(), (x,), "m"), [(x,)], keep_float=(layer,))
        with pytest.raises(CompileError, match="its layer is computed in float") as caught:
            compile_model(source, load_board("host"), Options(io=Io.INT8))
        assert [at.split()[0] for at in caught.value.at] == [layer]
        assert caught.value.have[0].startswith("linear gives ")


def test_it_can_take_and_give_int8(tmp_path: Path) -> None:
    compiled = compile_model(load(str(DATA / "cortex_m4.pte")), load_board("host"), Options(io=Io.INT8))
    image = build_image(compiled, tmp_path)
    facts = compare(compiled, image, run_image(compiled, image))
    assert {compiled.graph[n].dtype for n in (*compiled.graph.inputs, *compiled.graph.outputs)} == {DType.INT8}
    assert (facts.max_error, facts.reference) == (0, "the graph")


# --- cortex_m ----------------------------------------------------------------------------------------------


def reference(call: AtenCall, args: list[Any]) -> torch.Tensor:
    """Return what ExecuTorch's reference implementation of the operator computes."""
    if call.target == "aten::constant_pad_nd":
        return torch.constant_pad_nd(*args)
    if call.target == "aten::clone":
        return args[0].contiguous()
    if call.target == "aten::view":
        return args[0].reshape(args[1])
    operator = getattr(torch.ops.cortex_m, call.target.removeprefix("cortex_m::")).default
    newest = operators.known_schemas()[call.target][-1].parameters  # the installed version may lack some of them
    given = {p.name: arg for p, arg in zip(newest, args, strict=True)}
    given |= {name: torch.empty(0, dtype=torch.uint8) for name in operators.WORKSPACE} | {"dtype": torch.int8}
    return operator(*(given[p.name] for p in operator._schema.arguments))


def check_each_call(program: AtenProgram, x: torch.Tensor) -> torch.Tensor:
    """Every operator gives what ExecuTorch's gives for the same inputs, up to one step. Returns the last result."""
    values = {program.inputs[0].name: x} | {n: torch.from_numpy(c.copy()) for n, c in program.constants.items()}

    def resolved(arg: Any) -> Any:
        if isinstance(arg, Ref):
            return values[arg.name]
        return [resolved(a) for a in arg] if isinstance(arg, tuple) else arg

    for call in program.calls:
        names = dict.fromkeys(a.name for a in call.args if isinstance(a, Ref) and a.name not in program.constants)
        inputs = [values[n] for n in names]
        want = reference(call, [resolved(a) for a in call.args])
        made = alone(program, call, list(names), [i.contiguous().numpy() for i in inputs], want.dim())
        step = 1.0 if want.dtype is torch.int8 else 1e-6
        assert np.abs(made.astype(np.float64) - want.numpy()).max() <= step, call
        assert isinstance(call.results[0], str)
        values[call.results[0]] = want
    return values[program.outputs[0]]


def alone(program: AtenProgram, call: AtenCall, names: list[str], inputs: list[Array], rank: int) -> Array:
    def given(name: str, x: Array) -> AtenInput:
        dtype = DType.of(x.dtype.name)
        assert dtype is not None
        return AtenInput(name, x.shape, dtype, tuple(range(x.ndim)))

    assert isinstance(call.results[0], str)
    specs = tuple(given(n, x) for n, x in zip(names, inputs, strict=True))
    one = replace(program, inputs=specs, calls=(call,), outputs=(call.results[0],), output_orders=(tuple(range(rank)),))
    (made,) = interpret(to_graph(one), inputs).values()
    return made


@pytest.mark.parametrize(("name", "cpu"), [("mixed", "M55"), ("sine", "M4")])
def test_cortex_m_operators_mean_what_executorch_computes(name: str, cpu: str) -> None:
    module, inputs = mixed() if name == "mixed" else (case(name).module(), case(name).inputs())
    program = read_pte(cortex_m(module, inputs, cpu), name)
    want = check_each_call(program, inputs[0])
    graph = lower_graph(to_graph(program))
    assert float_layers(graph) == []
    x = inputs[0].numpy().transpose(program.inputs[0].order)
    (made,) = interpret(graph, [np.ascontiguousarray(x)]).values()
    op = graph.producer()[graph.outputs[0]].op
    assert isinstance(op, Dequantize)
    assert np.abs(made - want.numpy()).max() <= 3 * op.scale


def int8(*shape: int) -> Array:
    return np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)


FACTORS = {"f": np.array([2**30, 3 * 2**29, 2**30 + 7, 2**31 - 1], np.int32), "s": np.array([-8, -9, -7, -8], np.int32)}
UP = (Ref("w"), Ref("bias"), (2, 2), (1, 1), (1, 0), (1, 1), 5, -7, Ref("f"), Ref("s"), -100, 127, None, None)


@pytest.mark.parametrize(
    ("target", "x", "args", "constants"),
    [
        ("quantized_mul", int8(3, 8), (-16, Ref("x"), -257, -75, 2022170958, -8), {}),
        ("quantized_batch_matmul", int8(2, 3, 4), (9, Ref("w"), -3, 22, 1664116950, -7, None), {"w": int8(2, 5, 4)}),
        (
            "quantized_transpose_conv2d",
            int8(1, 3, 4, 5),
            UP,
            {"w": int8(4, 3, 3, 3), "bias": np.array([100, -2000, 0, 7], np.int32), **FACTORS},
        ),
        ("transpose", int8(2, 3, 4), ((2, 0, 1),), {}),
        ("softmax", int8(5, 6), (0, 3, -128, 1483748608, 20, -7936), {}),
        ("quantized_activation", int8(2, 9), (Ref("t"),), {"t": int8(256)}),
    ],
)
def test_each_operator_is_near(target: str, x: Array, args: Any, constants: dict[str, Array]) -> None:
    call = AtenCall(f"cortex_m::{target}", (Ref("x"), *args), ("y",), (None,))
    given = AtenInput("x", x.shape, DType.INT8, tuple(range(x.ndim)))
    check_each_call(AtenProgram("m", (given,), constants, (call,), ("y",), ((),)), torch.from_numpy(x))


def row_of(target: str, x: Array, args: Any, constants: dict[str, Array]) -> Array:
    """Return what Baretorch computes for one operator."""
    call = AtenCall(f"cortex_m::{target}", (Ref("x"), *args), ("y",), (None,))
    given = AtenInput("x", x.shape, DType.INT8, tuple(range(x.ndim)))
    (made,) = interpret(to_graph(AtenProgram("m", (given,), constants, (call,), ("y",), (given.order,))), [x]).values()
    return made


POOL = ((2, 2), (1, 2), (0, 0), False, 3, 1 << 30, 1, None)


@pytest.mark.parametrize(
    ("target", "args", "constants"),
    [
        ("quantized_transpose_conv2d", UP, {"w": int8(4, 3, 3, 3), "bias": np.arange(4, dtype=np.int32), **FACTORS}),
        ("quantized_avg_pool2d", POOL, {}),
        ("quantized_max_pool2d", ((2, 2), (1, 2), (0, 0), (1, 1), False, 0, 0, -99, 99), {}),
    ],
)
def test_the_explicit_layout_is_the_same_operator(target: str, args: Any, constants: dict[str, Array]) -> None:
    """Operators of ExecuTorch 1.5 whose names end in `_nhwc` have images in another order, and no other difference."""
    x = int8(1, 3, 4, 6)
    want = row_of(target, x, args, constants)
    made = row_of(f"{target}_nhwc", np.ascontiguousarray(x.transpose(0, 2, 3, 1)), args, constants)
    np.testing.assert_array_equal(made, want.transpose(0, 2, 3, 1))


@pytest.mark.parametrize(("scale", "zero"), [(1.75, -20), (0.3, 5), (510.5, -128)])
def test_a_quotient(scale: float, zero: int) -> None:
    """A quotient is rounded from float in ExecuTorch, and is 0 where the divisor is."""
    x, y = np.meshgrid(np.arange(-128, 128), np.arange(-128, 128))
    given = x.astype(np.int8), y.astype(np.int8)
    made = row_of("quantized_div", given[0], (3, Ref("b"), -7, zero, scale), {"b": given[1]})
    with np.errstate(all="ignore"):
        quotient = np.where(y == -7, 0, (x - 3) / (y + 7))
    want = np.clip(np.rint(quotient * scale) + zero, -128, 127)
    assert np.abs(made - want).max() <= 1
    assert (made[y == -7] == zero).all() and (made == want).mean() > 0.9


def test_a_quotient_without_a_scale_is_refused() -> None:
    with pytest.raises(CompileError, match="0 cannot be a scale"):
        row_of("quantized_div", int8(2, 2), (0, Ref("b"), 0, 0, 0.0), {"b": int8(2, 2)})


def test_limits_of_stored_numbers() -> None:
    """The Cortex-M passes leave clamp as it is, on int8."""
    x = int8(2, 9)
    call = AtenCall("aten::clamp", (Ref("x"), 7, None), ("y",), (x.shape,))
    program = AtenProgram("m", (AtenInput("x", x.shape, DType.INT8, (0, 1)),), {}, (call,), ("y",), ((0, 1),))
    (made,) = interpret(lower_graph(to_graph(program)), [x]).values()
    np.testing.assert_array_equal(made, np.clip(x, 7, 127))


def test_cortex_m_programs_get_the_passes_of_others() -> None:
    graph = lower_graph(to_graph(read_pte((DATA / "cortex_m.pte").read_bytes(), "m")))
    layers = ["qconv2d", "qconv2d", "qadd", "max_pool2d", "qconv2d", "lookup", "qmul", "qavg_pool2d", "reshape"]
    assert [n.op.name for n in graph.nodes] == ["quantize", *layers, "qlinear", "qsoftmax", "lookup", "dequantize"]


def changed(target: str, index: int, value: Any) -> AtenProgram:
    """The fixture with another argument in the first call of this operator."""
    program = read_pte((DATA / "cortex_m.pte").read_bytes(), "m")
    at = next(i for i, c in enumerate(program.calls) if c.target == f"cortex_m::{target}")
    call = program.calls[at]
    args = (*call.args[:index], value, *call.args[index + 1 :])
    return replace(program, calls=(*program.calls[:at], replace(call, args=args), *program.calls[at + 1 :]))


@pytest.mark.parametrize(
    ("target", "index", "value", "text", "at"),
    [
        ("quantized_linear", 5, 3, "quantized_linear: weights with a zero point are not supported", "v167"),
        ("quantized_linear", 7, (-5,), "a multiplier is negative or huge", "v167"),
        ("quantized_linear", 6, 300, "300 cannot be a zero point or limit of int8", "v167"),
        ("quantized_linear", 1, Ref("c21"), "an int8 layer's weight is not int8", "v167"),
        ("quantized_avg_pool2d", 3, (1, 1), "quantized_avg_pool2d: padding is not supported", "v146"),
        ("quantized_max_pool2d", 7, 5, "quantized_max_pool2d: the zero point changes", "v93"),
        ("quantized_add", 3, 9, "quantized_add: an input's scale is 64 times the output's or more", "v81"),
        ("softmax", 3, 0, "softmax: the zero point 0 is not supported", "v178"),
        ("quantize_per_tensor", 1, 0.0, "0 cannot be a scale", "v32"),
        ("quantize_per_tensor", 2, 200, "the zero point 200 is outside of the stored type", "v32"),
    ],
)
def test_what_cannot_be_converted_is_refused_by_name(target: str, index: int, value: Any, text: str, at: str) -> None:
    with pytest.raises(CompileError) as caught:
        to_graph(changed(target, index, value))
    assert caught.value.what == text
    assert caught.value.at == (f"{at} = cortex_m::{target}",)
    assert caught.value.have


def test_limits_of_a_max_pool_are_kept() -> None:
    graph = to_graph(changed("quantized_max_pool2d", 9, 20))
    x = np.random.default_rng(0).normal(size=graph[graph.inputs[0]].shape).astype(np.float32)
    values = interpret(graph, [x], keep=True)
    pooled = next(n.outputs[0] for n in graph.nodes if n.op.name == "lookup")
    assert values[pooled].max() == 20


@pytest.mark.parametrize("target", ["maximum", "minimum"])
@pytest.mark.parametrize("constant", [True, False])
def test_the_larger_and_the_smaller(target: str, constant: bool) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-128, 128, (2, 2, 8)).astype(np.int8)
    b = np.array([5], np.int8) if constant else b
    given = AtenInput("a", a.shape, DType.INT8, (0, 1)), AtenInput("b", b.shape, DType.INT8, (0, 1))
    call = AtenCall(f"cortex_m::{target}", (Ref("a"), Ref("b")), ("y",), (a.shape,))
    constants = {"b": b} if constant else {}
    program = AtenProgram("m", given[: 1 if constant else 2], constants, (call,), ("y",), ((0, 1),))
    graph = lower_graph(to_graph(program))
    (made,) = interpret(graph, [a] if constant else [a, b]).values()
    np.testing.assert_array_equal(made, getattr(np, target)(a, b))
    assert [n.op.name for n in graph.nodes] == [target]
