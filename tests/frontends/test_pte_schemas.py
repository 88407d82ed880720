"""Calls in `.pte` files are matched by schema: every argument has a type, and versions of operators are
distinguished."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.fuzz.retype import KINDS, calls, with_arguments, with_kind

from baretorch.errors import CompileError
from baretorch.frontends.aten.cortex_m import ROWS
from baretorch.frontends.aten.program import AtenCall, AtenProgram, Ref
from baretorch.frontends.aten.table import to_graph
from baretorch.frontends.pte import operators
from baretorch.frontends.pte.operators import find_schema, parse
from baretorch.frontends.pte.reader import _read, read_pte_methods
from baretorch.frontends.pte.schema import Items, KernelCall, PteMethod, TensorValue, Value
from baretorch.ir.graph import interpret

DATA = Path(__file__).parent / "data"
ROOT = Path(__file__).parents[2]
FILES = ("cortex_m.pte", "cortex_m4.pte")
INT8, INT32, FLOAT = 1, 3, 6  # scalar types


def load_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tool", ROOT / "tools" / "make_pte_operators.py")
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


def test_the_schemas_of_aten_are_those_of_torch() -> None:
    pytest.importorskip("torch")
    tool = load_tool()
    assert tool.FILE.read_text() == tool.HEAD + "".join(f"{line}\n" for line in tool.schemas())


def test_the_installed_executorch_has_no_other_schemas() -> None:
    spec = importlib.util.find_spec("executorch")
    if spec is None or spec.submodule_search_locations is None:
        pytest.skip("executorch is not installed")
    folder = Path(next(iter(spec.submodule_search_locations)))
    assert len(list(load_tool().defined(folder))) > 15
    assert load_tool().unknown(folder) == []


def test_an_unknown_schema_is_found(tmp_path: Path) -> None:
    for file, text in (("cortex_m/ops/operators.py", "softmax.out(Tensor input, *, Tensor(a!) out) -> Tensor(a!)"),
                       ("dim_order_ops_registry.py", "f.out(Tensor x) -> Tensor")):  # fmt: skip
        path = tmp_path / ("backends" if "/" in file else "exir/passes") / file
        path.parent.mkdir(parents=True)
        path.write_text(f'lib.define("{text}")')
    assert load_tool().unknown(tmp_path) == ["cortex_m::softmax.out(Tensor input)", "dim_order_ops::f.out(Tensor x)"]


@pytest.mark.parametrize("operator", ROWS)
def test_rows_take_the_newest_schema(operator: str) -> None:
    """A row has a parameter for each of the newest schema's; what older versions lack has a default there."""
    versions = operators.known_schemas()[operator]
    assert {s.overload for s in versions} == {"out"}
    newest = versions[-1].parameters
    signature(ROWS[operator].build).bind(None, *newest)
    for older in versions[:-1]:
        names = {p.name for p in older.parameters}
        assert names < {p.name for p in newest}
        missing = [p for p in newest if p.name not in names]
        assert all(p.default is not None or p.name in operators.WORKSPACE for p in missing)


def test_parsing() -> None:
    schema = parse("aten::f.out(Tensor self, SymInt[2]? size=[1, 1], *, Tensor?[] xs, float eps=1e-05, Tensor(a!) out)")
    assert [p.name for p in schema.parameters] == ["self", "size", "xs", "eps"]
    assert schema.text == "aten::f.out(Tensor self, SymInt[2]? size=[1, 1], *, Tensor?[] xs, float eps=1e-05)"
    assert schema.accepts(["Tensor", "int[]", "Tensor?[]", "float"])
    assert schema.accepts(["Tensor", "None", "Tensor[]", "int"]) and schema.accepts(["Tensor", "[]", "[]", "float"])
    for wrong in (
        ["None", "int[]", "Tensor[]", "float"],
        ["Tensor", "int", "Tensor[]", "float"],
        ["Tensor", "int[]", "int[]", "float"],
        ["Tensor", "int[]", "Tensor[]", "bool"],
        ["Tensor", "float[]", "Tensor[]", "float"],
        ["Tensor", "int[]", "Tensor[]"],
        ["Tensor", "int[]", "Tensor[]", "float", "int"],
    ):
        assert not schema.accepts(wrong), wrong
    with pytest.raises(ValueError, match="not a parameter"):
        parse("a::b(Unknown x)")


def read(data: bytes) -> dict[str, AtenProgram]:
    return read_pte_methods(data, "net")


@pytest.mark.parametrize("name", FILES)
def test_arguments_of_another_kind_are_refused(name: str) -> None:
    """Each number, list and tensor of each cortex_m call is made something else in turn."""
    data = (DATA / name).read_bytes()
    assert read(data)
    tried = 0
    for call in calls(data):
        if not call.operator.startswith("cortex_m::"):
            continue
        inputs = len(call.arguments) - 2  # the last two are the result
        for at in range(inputs):
            own = data[call.kinds_at[at]]
            others = {2: (3, 6, 7, 5), 3: (2, 6), 7: (10, 2, 1), 5: (1, 2, 10), 4: (3, 6, 7), 1: (3, 2, 7)}[own]
            for other in others:
                optional = own == 5 and other == 1 and call.operator.endswith(("linear", "conv2d")) and at in (2, 3)
                if optional:
                    continue
                with pytest.raises(CompileError) as refused:
                    read(with_kind(data, call, at, other))
                assert refused.value.what, (call.operator, at, KINDS[other])
                tried += 1
    assert tried > 150


@pytest.mark.parametrize("name", ["cortex_m.pte", "cnn.pte", "quantized.pte", "views.pte"])
def test_arguments_that_are_missing_or_exchanged(name: str) -> None:
    """One argument less is an error that names the operator; an exchange of two kinds is one, too."""
    data = (DATA / name).read_bytes()
    for call in calls(data):
        inputs = call.arguments[:-2]
        kinds = [data[at] for at in call.kinds_at[: len(inputs)]]
        several = KINDS[data[call.kinds_at[-1]]] == "Tensor[]"  # results
        if call.operator.startswith("executorch_prim::") or call.operator.endswith("_") or several:
            continue
        scratch = call.operator.endswith(("conv2d", "avg_pool2d")) and call.operator.startswith("cortex_m")
        for at in range(len(inputs) - scratch):  # without scratch, it would be an older version
            fewer = call.arguments[:at] + call.arguments[at + 1 :]
            with pytest.raises(CompileError, match=f"{call.operator}.*unknown schema"):
                read(with_arguments(data, call, fewer))
        for at in range(len(inputs) - 1):
            if kinds[at] != kinds[at + 1] and 1 not in kinds[at : at + 2]:
                swapped = (*inputs[:at], inputs[at + 1], inputs[at], *call.arguments[at + 2 :])
                with pytest.raises(CompileError):
                    read(with_arguments(data, call, swapped))


def test_the_error_names_types_and_schemas() -> None:
    with pytest.raises(CompileError) as refused:
        find_schema("cortex_m::quantized_avg_pool2d", "out", ["Tensor", "int[]", "int[]", "int[]", "str"], "here")
    text = refused.value.render()
    assert "cortex_m::quantized_avg_pool2d.out(Tensor, int[], int[], int[], str)" in text
    assert text.count("cortex_m::quantized_avg_pool2d.out(Tensor input, int[] kernel_size") == 3
    with pytest.raises(CompileError, match=r"the overload aten::add\.other is unknown"):
        find_schema("aten::add", "other", ["Tensor"], "here")
    assert find_schema("aten::unheard_of", "out", [], "here") is None


@dataclass
class Written:
    """A method under construction, and the Program that the reader asks for constants."""

    values: list[Value] = field(default_factory=list)
    constants: dict[int, bytes] = field(default_factory=dict)

    def number(self, value: Value) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def ints(self, *numbers: int) -> int:
        return self.number(Items(tuple(self.number(n) for n in numbers), "int"))

    def tensor(self, shape: tuple[int, ...], at: int, scalar_type: int = INT8) -> int:
        order = (0, 2, 3, 1) if len(shape) == 4 else tuple(range(len(shape)))
        value = TensorValue(len(self.values), shape, scalar_type, order, 0, (1, at), False, "", False)
        return self.number(value)

    def read(self, inputs: tuple[int, ...], output: int, call: KernelCall) -> AtenProgram:
        """Read the method that makes this call only."""
        method = PteMethod("forward", tuple(self.values), inputs, (output,), (call,), (), (0, 4096))
        program: Any = self
        return _read(program, method, "net", {"forward": ()})

    def spend(self, items: int) -> None:
        pass

    def data_of(self, tensor: TensorValue) -> memoryview:
        return memoryview(self.constants[tensor.buffer])


def pooled(
    ceil_mode: bool | None, scratch: bool, sizes: Sequence[int] = (6, 6), stride: int = 2, kernel: int = 2
) -> AtenProgram:
    """A method that pools, with an argument list of one of the three versions. Scratch is never written."""
    w = Written()
    out = -(-(sizes[0] - kernel) // stride) + 1 if ceil_mode else (sizes[0] - kernel) // stride + 1
    x, y = w.tensor((1, 3, *sizes), 0), w.tensor((1, 3, out, out), 1024)
    args = [x, w.ints(kernel, kernel), w.ints(stride, stride), w.ints(0, 0)]
    args += [] if ceil_mode is None else [w.number(ceil_mode)]
    args += [w.number(4), w.number(1 << 30), w.number(1)]
    args += [w.tensor((64,), 2048)] if scratch else []
    call = KernelCall("cortex_m::quantized_avg_pool2d", "out", (*args, y, y))
    return w.read((x,), y, call)


@pytest.mark.parametrize(("ceil_mode", "scratch"), [(None, False), (None, True), (False, True), (True, True)])
def test_each_version_of_avg_pool2d(ceil_mode: bool | None, scratch: bool) -> None:
    """The versions give the same result if windows fill the image, and scratch memory is not read."""
    graph = to_graph(pooled(ceil_mode, scratch))
    x = np.random.default_rng(0).integers(-128, 128, (1, 6, 6, 3)).astype(np.int8)
    (y,) = interpret(graph, [x]).values()
    want = np.rint(x.reshape(1, 3, 2, 3, 2, 3).astype(np.float64).mean(axis=(2, 4)))
    assert np.abs(y - want).max() <= 1


def test_ceil_mode_with_partial_windows_is_refused_by_name() -> None:
    with pytest.raises(CompileError, match="ceil_mode is not supported where windows reach beyond the image"):
        to_graph(pooled(True, True, (7, 7)))


def test_an_unknown_version() -> None:
    """ceil_mode without scratch was never published."""
    with pytest.raises(CompileError, match=r"cortex_m::quantized_avg_pool2d\.out is called with .* unknown schema"):
        pooled(False, False)


def test_an_older_sum_has_no_limits() -> None:
    """Before March 2026, quantized_add had no activation limits: they are those of int8."""
    w = Written()
    a, b, y = (w.tensor((1, 8), at) for at in (0, 16, 32))
    numbers = [w.number(n) for n in (0, 1 << 30, 1, 0, 1 << 30, 1, 0, 1 << 30, -19)]
    call = KernelCall("cortex_m::quantized_add", "out", (a, *numbers[:3], b, *numbers[3:], y, y))
    made = w.read((a, b), y, call)
    assert made.calls[0].args[-2:] == (-128, 127)


def copied(shape: tuple[int, ...]) -> AtenProgram:
    """A method that copies its input to a mutable buffer, as ExecuTorch 1.0 writes it, and then reads what that copy
    returned: a tensor of its own, in memory that nothing writes to."""
    w = Written()
    x, kept = w.tensor((2, 3), 0, FLOAT), w.tensor((2, 3), 32, FLOAT)
    returned, y = w.tensor(shape, 64, FLOAT), w.tensor((2, 3), 96, FLOAT)
    calls = (
        KernelCall("aten::relu", "out", (x, kept, kept)),
        KernelCall("aten::copy_", "", (kept, x, w.number(False), returned)),
        KernelCall("aten::tanh", "out", (returned, y, y)),
    )
    method = PteMethod("forward", tuple(w.values), (x,), (y,), calls, (), (0, 4096))
    program: Any = w
    return _read(program, method, "net", {"forward": ()})


def test_a_copy_in_place_may_return_another_tensor() -> None:
    program = copied((2, 3))
    assert program.text().splitlines()[-2:] == ["v3 = aten::tanh(v0)", "output v3"]


def test_a_copy_in_place_that_returns_another_shape_is_damage() -> None:
    with pytest.raises(CompileError, match="v1 is changed in place, and v2 is returned"):
        copied((3, 3))


def test_lists_hold_what_they_say() -> None:
    """A list of int that names a tensor is damage."""
    w = Written()
    x, y = w.tensor((2, 3), 0, FLOAT), w.tensor((3, 2), 32, FLOAT)
    dims = w.number(Items((w.number(1), x), "int"))
    call = KernelCall("aten::permute_copy", "out", (x, dims, y, y))
    with pytest.raises(CompileError, match="is Tensor in a list of int"):
        w.read((x,), y, call)


def test_an_operator_that_is_new_is_named() -> None:
    """Its arguments are not read, so that a scratch tensor among them gives no other error."""
    w = Written()
    x, y, scratch = w.tensor((1, 8), 0), w.tensor((1, 8), 16), w.tensor((8,), 32)
    call = KernelCall("cortex_m::quantized_sqrt", "out", (x, scratch, y, y))
    made = w.read((x,), y, call)
    with pytest.raises(CompileError, match="1 operator is not supported: cortex_m::quantized_sqrt"):
        to_graph(made)


def test_a_row_that_lacks_an_argument() -> None:
    """A newer PyTorch may have one more argument. The error appears without a `.pte` file too."""
    made = pooled(None, False)
    call = AtenCall("aten::relu", (Ref(made.inputs[0].name), 3), ("y",), (None,))
    program = AtenProgram("net", made.inputs, {}, (call,), ("y",), ((0, 1, 2, 3),))
    with pytest.raises(CompileError, match="aten::relu is called with arguments of an unknown schema"):
        to_graph(program)
