"""Reading what ExecuTorch exports here and now, judged by PyTorch; and what is refused, with its texts."""

from __future__ import annotations

import importlib.util
from collections import Counter
from dataclasses import replace
from math import isclose
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from executorch.exir import ExecutorchBackendConfig, to_edge_transform_and_lower
from executorch.exir._serialize._flatbuffer_program import _program_to_flatbuffer
from executorch.exir._serialize._named_data_store import NamedDataStoreOutput
from executorch.exir._serialize._program import PTEFile, deserialize_pte_binary, serialize_pte_binary
from executorch.exir._serialize.data_serializer import DataEntry
from executorch.exir.passes import MemoryPlanningPass
from pte_cases import CASES, SOME, Case, case, eager, evaluate, export
from tests.pte import read_pte, write_pte
from torch import nn

from baretorch.errors import CompileError
from baretorch.frontends.aten.program import AtenProgram, Ref
from baretorch.frontends.pte.reader import read_pte_methods

NOT_PLANNED = ExecutorchBackendConfig(
    memory_planning_pass=MemoryPlanningPass(alloc_graph_input=False, alloc_graph_output=False)
)
KEPT_VIEWS = ExecutorchBackendConfig(remove_view_copy=False)


def close(got: list[np.ndarray], want: list[np.ndarray]) -> None:
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", SOME)
def test_default_export_means_the_same(case: Case) -> None:
    module, inputs = case.module(), case.inputs()
    close(evaluate(read_pte(export(module, inputs), case.name), inputs), eager(module, inputs))


@pytest.mark.parametrize("config", [NOT_PLANNED, KEPT_VIEWS], ids=["io_not_planned", "views_kept"])
@pytest.mark.parametrize(
    "name", ["cnn_channels_last", *(pytest.param(n, marks=pytest.mark.slow) for n in ("curves", "recurrent"))]
)
def test_other_memory_plans_mean_the_same(name: str, config: ExecutorchBackendConfig) -> None:
    module, inputs = case(name).module(), case(name).inputs()
    close(evaluate(read_pte(export(module, inputs, config), name), inputs), eager(module, inputs))


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_our_export_means_the_same(case: Case, tmp_path: Path) -> None:
    module, inputs = case.module(), case.inputs()
    write_pte(module, inputs, tmp_path / "model.pte")
    program = read_pte((tmp_path / "model.pte").read_bytes(), case.name)
    close(evaluate(program, inputs), eager(module, inputs))
    assert program.inputs[0].order == ((0, 2, 3, 1) if case.channels_last else tuple(range(len(case.shape))))


@pytest.mark.parametrize(
    "name",
    [
        "cnn_channels_last",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("sine", "cnn", "depthwise", "recurrent")),
    ],
)
def test_constants_are_the_state_dict(name: str) -> None:
    module, inputs = case(name).module(), case(name).inputs()
    program = read_pte(export(module, inputs), name)
    state = [t.numpy() for k, t in module.state_dict().items() if "num_batches" not in k]

    def contents(arrays: list[np.ndarray]) -> Counter[tuple[object, ...]]:
        return Counter((a.shape, str(a.dtype), np.ascontiguousarray(a).tobytes()) for a in arrays)

    assert contents(list(program.constants.values())) == contents(state)


def test_calls_of_the_default_path() -> None:
    program = read_pte(export(case("cnn").module(), case("cnn").inputs()), "cnn")
    targets = [c.target.removeprefix("aten::") for c in program.calls]
    norm, pool = "_native_batch_norm_legit_no_training", "max_pool2d_with_indices"
    assert targets == ["convolution", norm, "relu", pool, "convolution", "relu", pool, "permute", "view", "addmm", norm]
    first_pool = program.calls[3]
    assert first_pool.results[1] is None and first_pool.shapes == ((1, 4, 6, 6), (1, 4, 6, 6))


def test_calls_of_our_path(tmp_path: Path) -> None:
    write_pte(case("cnn").module(), case("cnn").inputs(), tmp_path / "cnn.pte")
    program = read_pte((tmp_path / "cnn.pte").read_bytes(), "cnn")
    targets = [c.target.removeprefix("aten::") for c in program.calls]
    pool = "max_pool2d_with_indices"
    assert targets == ["convolution", "relu", pool, "convolution", "relu", pool, "view", "linear"]


def test_an_output_may_be_an_input_or_a_constant() -> None:
    class Through(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.arange(6.0).reshape(2, 3), requires_grad=False)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return x, torch.relu(x), self.table

    x = torch.randn(2, 3)
    program = read_pte(export(Through(), (x,)), "through")
    assert program.outputs[0] == program.inputs[0].name and program.outputs[2] in program.constants
    close(evaluate(program, (x,)), [x.numpy(), x.relu().numpy(), np.arange(6, dtype=np.float32).reshape(2, 3)])


def test_constants_inside_the_flatbuffer() -> None:
    """The form of old files: no extended header, no segments."""
    module, inputs = case("sine").module(), case("sine").inputs()
    data = export(module, inputs)
    inline = bytes(_program_to_flatbuffer(deserialize_pte_binary(data).program).data)
    assert inline[8:12] != b"eh00"
    got, want = read_pte(inline, "sine"), read_pte(data, "sine")
    assert got.text() == want.text()
    assert all(np.array_equal(got.constants[name], want.constants[name]) for name in want.constants)


def test_constants_that_are_kept_by_name() -> None:
    module, inputs = case("sine").module(), case("sine").inputs()
    program = deserialize_pte_binary(export(module, inputs, ExecutorchBackendConfig(external_constants=True))).program
    program.segments = []  # of the file it came from
    state = module.state_dict()
    named = NamedDataStoreOutput(
        [t.numpy().tobytes() for t in state.values()],
        {name: DataEntry(i, 16, None) for i, name in enumerate(state)},
        {},
    )
    got = read_pte(bytes(serialize_pte_binary(PTEFile(program, named_data=named))), "sine")
    assert sorted(got.constants) == sorted(state)
    assert all(np.array_equal(got.constants[name], t.numpy()) for name, t in state.items())
    close(evaluate(got, inputs), eager(module, inputs))


def test_quantize_and_dequantize_keep_their_names() -> None:
    import executorch.kernels.quantized  # noqa: F401  (its out variants, for export)

    class Rounded(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q = torch.ops.quantized_decomposed.quantize_per_tensor(x, 0.1, 3, -128, 127, torch.int8)
            return torch.ops.quantized_decomposed.dequantize_per_tensor(q, 0.1, 3, -128, 127, torch.int8)

    quantize, dequantize = read_pte(export(Rounded(), (torch.ones(1, 3),)), "rounded").calls
    assert quantize.target == "quantized_decomposed::quantize_per_tensor"
    assert quantize.args[1:5] == (0.1, 3, -128, 127)
    assert dequantize.target == "quantized_decomposed::dequantize_per_tensor"
    assert dequantize.args[0] == Ref(quantize.results[0] or "")


def test_constants_in_another_file_are_refused() -> None:
    module, inputs = case("sine").module(), case("sine").inputs()
    data = export(module, inputs, ExecutorchBackendConfig(external_constants=True))
    assert refusal(data) == (
        "error: the data of net.0.weight is not in this file\n"
        "  need  a .pte that holds its weights\n"
        "  try   export without external constants (.ptd)"
    )


def refusal(data: bytes, method: str = "forward") -> str:
    with pytest.raises(CompileError) as caught:
        read_pte(data, "model", method)
    return caught.value.render()


class Branch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))


class Flattened(nn.Module):
    """flatten(2) is a view in channels-last memory for PyTorch, and wrong in ExecuTorch's runtime."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.conv(x).flatten(2))


def test_control_flow_is_refused() -> None:
    assert refusal(export(Branch(), (torch.ones(1, 3),))) == (
        "error: control flow is not supported\n"
        "  have  2 jumps and 2 moves in forward\n"
        "  try   remove torch.cond, while_loop and scan from the model"
    )


def test_dynamic_shapes_are_refused() -> None:
    batch = ({0: torch.export.Dim("batch", min=1, max=8)},)

    class Relu(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x)

    assert refusal(export(Relu(), (torch.ones(2, 3),), dynamic_shapes=batch)) == (
        "error: dynamic shapes are not supported: 2 tensors\n"
        "  have  up to v0 float32[8, 3]\n"
        "        up to v1 float32[8, 3]\n"
        "  need  one fixed shape for every tensor\n"
        "  try   export without dynamic_shapes"
    )


def test_channels_last_memory_seen_through_a_view_is_refused() -> None:
    module = Flattened().eval().requires_grad_(False).to(memory_format=torch.channels_last)
    x = torch.randn(1, 2, 4, 4).to(memory_format=torch.channels_last)
    text = refusal(export(module, (x,)))
    assert "is a view of channels-last memory, and would see its elements in another order" in text
    assert "have  v" in text and "float32[1, 3, 2, 2] in the order [0, 2, 3, 1]" in text


def test_delegates_are_refused() -> None:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    exported = torch.export.export(case("sine").module(), case("sine").inputs())
    data = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()]).to_executorch().buffer
    assert refusal(bytes(data)) == (
        "error: the program calls 1 delegate, which only ExecuTorch can run\n"
        "  have  1 × XnnpackBackend\n"
        "  need  a program of ATen operators, or delegates for an Ethos-U\n"
        "  try   export it without a partitioner"
    )


def test_other_types_are_refused() -> None:
    class Double(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x)

    text = refusal(export(Double(), (torch.ones(2, dtype=torch.float64),)))
    assert text.startswith("error: tensors of type float64 are not supported\n  at    v0 float64[2]")


@pytest.mark.slow
def test_fixtures_are_what_the_script_makes(tmp_path: Path) -> None:
    data = Path(__file__).parent / "data"
    script = Path(__file__).parents[2] / "tools" / "make_pte_fixtures.py"
    spec = importlib.util.spec_from_file_location("make_pte_fixtures", script)
    assert spec and spec.loader
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    tool.make(tmp_path)
    assert sorted(f.stem for f in tmp_path.glob("*.pte")) == sorted(f.stem for f in data.glob("*.pte"))
    assert sorted(f.stem for f in tmp_path.glob("*.txt")) == sorted(f.stem for f in data.glob("*.txt"))
    for file in sorted(data.glob("*.pte")):
        want, made = (read_pte_methods(f.read_bytes(), file.stem) for f in (file, tmp_path / file.name))
        assert list(made) == list(want)
        for method, program in want.items():
            assert difference(made[method], program) == [], f"{file.stem}: run tools/make_pte_fixtures.py"


def difference(have: AtenProgram, want: AtenProgram) -> list[str]:
    """Where two programs are not the same up to rounding, which differs from CPU to CPU: numbers that were computed
    in float may differ by 1e-5 of themselves, and integers made of such, which are constants, by one as well."""
    found = [name for name in ("inputs", "outputs", "output_orders", "state", "labels", "notes")
             if getattr(have, name) != getattr(want, name)]  # fmt: skip
    found += [] if len(have.calls) == len(want.calls) else ["calls"]
    for h, w in zip(have.calls, want.calls, strict=False):
        same = (h.target, h.results, h.shapes) == (w.target, w.results, w.shapes) and _near(h.args, w.args)
        found += [] if same else [f"{h.target}: {h.args} for {w.args}"]
    found += [] if list(have.constants) == list(want.constants) else ["constants"]
    for name in set(have.constants) & set(want.constants):
        a, b = have.constants[name], want.constants[name]
        same = (a.shape, a.dtype) == (b.shape, b.dtype)
        step = 1e-6 if a.dtype.kind == "f" else 1
        found += [] if same and np.allclose(a.astype(float), b, rtol=1e-5, atol=step) else [name]
    return found


def _near(have: Any, want: Any) -> bool:
    """A large integer is the mantissa of a multiplier, and came from float."""
    if isinstance(want, tuple) and isinstance(have, tuple):
        return len(have) == len(want) and all(map(_near, have, want))
    if isinstance(want, float) or (type(want) is int and abs(want) >= 1 << 20):
        return type(have) is type(want) and isclose(have, want, rel_tol=1e-5)
    return bool(have == want)


def test_a_fixture_that_is_not_what_the_script_makes_is_noticed() -> None:
    program = read_pte((Path(__file__).parent / "data" / "cortex_m.pte").read_bytes(), "cortex_m")
    first, *rest = program.calls
    scale = first.args[1]
    assert isinstance(scale, float)

    def with_scale(value: float) -> AtenProgram:
        return replace(program, calls=(replace(first, args=(first.args[0], value, *first.args[2:])), *rest))

    assert difference(with_scale(scale * (1 + 1e-6)), program) == []
    assert len(difference(with_scale(scale * 1.001), program)) == 1
    name, data = next(iter(program.constants.items()))
    assert difference(replace(program, constants=program.constants | {name: data + 2}), program) == [name]
    assert difference(replace(program, calls=program.calls[:-1]), program) == ["calls"]
