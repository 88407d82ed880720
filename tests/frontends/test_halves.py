"""Models with float16 and bfloat16: computed in float32, with inputs and outputs stored as declared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.frontends.lower import check_module, names
from torch import nn

import baretorch
from baretorch.errors import CompileError
from baretorch.frontends import from_module, load
from baretorch.frontends.pte.reader import read_pte_methods
from baretorch.frontends.source import Source
from baretorch.ir.graph import DType, Graph, interpret
from baretorch.ir.io import arrange_inputs, real_outputs, store_inputs
from baretorch.ops.halves import from_half, to_half
from baretorch.options import Io, Options
from baretorch.passes.equivalence import TOLERANCE, TOLERANCES, Reference, difference
from baretorch.passes.wide_io import wide_io
from baretorch.pipeline import lower

HALVES = {torch.float16: DType.FLOAT16, torch.bfloat16: DType.BFLOAT16}
both = pytest.mark.parametrize("dtype", HALVES, ids=str)


class Net(nn.Module):
    """A convolution, a pool, a layer, and a number that is cast inside the model."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.conv = nn.Conv2d(2, 4, 3, padding=1)
        self.fc = nn.Linear(16, 5)
        self.register_buffer("scale", torch.tensor(1.5))

    def forward(self, x: torch.Tensor) -> Any:
        y = nn.functional.max_pool2d(torch.relu(self.conv(x)), 2).flatten(1)
        wide = (y.float() * self.scale.float()).to(x.dtype)
        return torch.softmax(self.fc(wide), -1), y > 1


class Count(nn.Module):
    """A model with state in halves."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("sum", torch.full((3,), 0.25))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.sum.add_(x)
        return self.sum * 2


def example(dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(1, 2, 4, 4, generator=torch.Generator().manual_seed(1)).to(dtype)


def run(graph: Graph, source: Source) -> tuple[np.ndarray, ...]:
    found = interpret(graph, store_inputs(graph, source.examples))
    return real_outputs(graph, [found[name] for name in graph.outputs])


@both
def test_a_model_in_halves(dtype: torch.dtype) -> None:
    source = from_module(Net().to(dtype).eval(), (example(dtype),), "net")
    graph = source.graph
    half = HALVES[dtype]
    assert [t.dtype for t in graph.of((*graph.inputs, *graph.outputs))] == [half, half, DType.BOOL]
    assert {t.dtype for t in graph.constants()} <= {DType.FLOAT32, DType.INT64}
    assert source.arithmetic is half
    assert source.notes == (f"{half.label}: computed in float32; inputs and outputs are stored as declared",)
    lowered = lower(source).graph
    want = source.expected
    assert want is not None
    soft, truth = run(lowered, source)
    np.testing.assert_allclose(soft, want[0], atol=TOLERANCES[half], rtol=0)
    np.testing.assert_array_equal(truth, want[1])


@both
def test_weights_are_the_halves_themselves(dtype: torch.dtype) -> None:
    net = nn.Linear(7, 3).to(dtype)
    graph = from_module(net, (torch.ones(1, 7, dtype=dtype),), "net").graph
    weight = next(t for t in graph.constants() if t.shape == (3, 7))
    np.testing.assert_array_equal(weight.numbers, net.weight.detach().float().numpy())


def test_only_the_border_is_half() -> None:
    graph = from_module(Net().half().eval(), (example(torch.float16),), "net").graph
    halves = [t.name for t in graph.tensors.values() if t.dtype.is_half]
    assert set(halves) == {graph.inputs[0], graph.outputs[0]}
    assert [name for name in names(graph) if "float16" in name] == ["from_float16", "to_float16"]


def test_models_of_float32_have_no_halves() -> None:
    graph = check_module(Net(), example(torch.float32))
    assert not any("float16" in name for name in names(graph))
    assert from_module(Net(), (example(torch.float32),), "net").arithmetic is DType.FLOAT32


def test_halves_inside_a_model_of_float32() -> None:
    class Mixed(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.half().relu().float()

    source = from_module(Mixed(), (torch.randn(4),), "mixed")
    assert source.arithmetic is DType.FLOAT16 and len(source.notes) == 1
    assert names(lower(source).graph) == ["clamp"]


@both
@pytest.mark.parametrize("io", list(Io))
def test_other_types_of_inputs_and_outputs(dtype: torch.dtype, io: Io) -> None:
    source = from_module(nn.Sequential(nn.Linear(4, 3), nn.ReLU()).to(dtype), (torch.ones(1, 4, dtype=dtype),), "net")
    options = Options(int8=io is Io.INT8, io=io)
    graph = lower(source, options).graph
    want = DType.INT8 if io is Io.INT8 else DType.FLOAT32
    assert {t.dtype for t in graph.of((*graph.inputs, *graph.outputs))} == {want}


@both
def test_int8_takes_float32(dtype: torch.dtype) -> None:
    source = from_module(nn.Linear(4, 3).to(dtype), (torch.ones(1, 4, dtype=dtype),), "net")
    graph = lower(source, Options(int8=True)).graph
    assert graph[graph.inputs[0]].dtype is DType.FLOAT32 and graph.is_int8


@both
def test_state_in_halves(dtype: torch.dtype) -> None:
    source = from_module(Count().to(dtype), (torch.full((3,), 0.5, dtype=dtype),), "count")
    graph = lower(source).graph
    assert graph[graph.state[0].name].dtype is DType.FLOAT32
    memory: dict[str, np.ndarray] = {}
    given = store_inputs(graph, source.examples)
    runs = [real_outputs(graph, tuple(interpret(graph, given, memory=memory).values()))[0] for _ in range(2)]
    np.testing.assert_array_equal(runs, [np.full(3, 1.5), np.full(3, 2.5)])
    assert source.expected is not None and source.expected_again is not None
    np.testing.assert_array_equal(runs, [source.expected[0], source.expected_again[0]])


@both
def test_every_half_is_exact(dtype: torch.dtype) -> None:
    bits = np.arange(1 << 16).astype(np.uint16)
    real = from_half(bits, HALVES[dtype])
    np.testing.assert_array_equal(real, torch.from_numpy(bits).view(dtype).float().numpy())
    number = ~np.isnan(real)
    np.testing.assert_array_equal(to_half(real[number], HALVES[dtype]), bits[number])


@both
def test_inputs_of_run(dtype: torch.dtype) -> None:
    """Float32, halves of PyTorch and NumPy, and stored bits mean the same."""
    half = HALVES[dtype]
    graph = from_module(nn.ReLU(), (torch.ones(3, dtype=dtype),), "net").graph
    real = np.array([0.1, -2, 3e4], np.float32)
    stored = to_half(real, half)
    ways = [real, torch.from_numpy(real).to(dtype), stored, from_half(stored, half)]
    ways += [real.astype(np.float16)] if half is DType.FLOAT16 else []
    for way in ways:
        (found,) = store_inputs(graph, arrange_inputs(graph, (way,)))
        np.testing.assert_array_equal(found, stored)
    with pytest.raises(CompileError) as refused:
        arrange_inputs(graph, (np.ones(3),))
    assert refused.value.need == (f"float32[3] or {half.label}[3]",)


@both
def test_pte(dtype: torch.dtype, tmp_path: Path) -> None:
    pytest.importorskip("executorch.exir")
    from executorch.exir import to_edge

    net, x = Net().to(dtype).eval(), example(dtype)
    data = bytes(to_edge(torch.export.export(net, (x,))).to_executorch().buffer)
    (tmp_path / "net.pte").write_bytes(data)
    program = read_pte_methods(data, "net")["forward"]
    assert [i.dtype for i in program.inputs] == [HALVES[dtype]] and program.halves == (HALVES[dtype], None)
    source = load(str(tmp_path / "net.pte"))
    np.savez(tmp_path / "inputs.npz", x=x.float().numpy())
    graph = lower(source).graph
    found = interpret(graph, store_inputs(graph, [x.float().numpy()]))
    soft, truth = real_outputs(graph, tuple(found.values()))
    with torch.no_grad():
        want = net(x)
    np.testing.assert_allclose(soft, want[0].float().numpy(), atol=TOLERANCES[HALVES[dtype]], rtol=0)
    np.testing.assert_array_equal(truth, want[1].numpy())


@both
def test_an_image_in_halves(dtype: torch.dtype) -> None:
    """An image at the border is moved as halves, before or after the conversion."""
    net = nn.Sequential(nn.Conv2d(2, 3, 1), nn.MaxPool2d(2)).to(dtype)
    source = from_module(net, (example(dtype),), "net")
    model = lower(source)
    (found,) = run(model.graph, source)
    with torch.no_grad():
        want = net(example(dtype)).float().numpy()
    np.testing.assert_allclose(found, want, atol=TOLERANCES[HALVES[dtype]], rtol=0)
    graph = wide_io(model.graph)
    assert not any(t.dtype.is_half for t in graph.tensors.values())
    stored = [x.astype(np.float32) for x in store_inputs(graph, source.examples)]
    (wide,) = interpret(graph, stored).values()
    np.testing.assert_allclose(wide, want, atol=TOLERANCES[HALVES[dtype]], rtol=0)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
def test_floats_of_a_byte_are_refused_by_name(dtype: torch.dtype) -> None:
    name = str(dtype).removeprefix("torch.")
    with pytest.raises(CompileError) as refused:
        from_module(nn.Flatten(), (torch.ones(2, 3).to(dtype),), "net")
    assert refused.value.render() == (
        f"error: inputs() returns a tensor of {name}\n  need  float32, float16 or bfloat16\n  try   x.float()"
    )
    with pytest.raises(CompileError, match=f"weight is of {name}"):
        from_module(nn.Linear(3, 2).to(dtype), (torch.ones(2, 3),), "net")

    class Inside(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.to(dtype)

    with pytest.raises(CompileError, match=f"a cast from float32 to {name} is not supported"):
        lower(from_module(Inside(), (torch.ones(2, 3),), "net"))


@both
def test_pt2(dtype: torch.dtype, tmp_path: Path) -> None:
    net, x = nn.Linear(4, 3).to(dtype), torch.ones(1, 4, dtype=dtype)
    torch.export.save(torch.export.export(net, (x,)), tmp_path / "net.pt2")
    source = load(str(tmp_path / "net.pt2"))
    assert source.graph[source.graph.inputs[0]].dtype is HALVES[dtype]
    assert lower(source).graph.nodes


@both
def test_a_board_computes_them(dtype: torch.dtype) -> None:
    x = example(dtype)
    net = Net().to(dtype).eval()
    compiled = baretorch.compile(net, (x,), board="mps2-an386", name="net")
    soft, truth = compiled.run(x)
    with torch.no_grad():
        want = net(x)
    assert soft.dtype == np.float32
    np.testing.assert_allclose(soft, want[0].float().numpy(), atol=TOLERANCES[HALVES[dtype]], rtol=0)
    np.testing.assert_array_equal(truth, want[1].numpy())


def reference(arithmetic: DType) -> Reference:
    want = (np.array([1.0, -0.5], np.float32),)
    return Reference(want, 1, lambda seed: want, arithmetic=arithmetic)


@pytest.mark.parametrize("dtype", [DType.FLOAT32, *TOLERANCES])
def test_the_tolerance_follows_the_type(dtype: DType) -> None:
    """A difference just within it is accepted, one just beyond it is not; float32 allows no more than before."""
    limit = TOLERANCES.get(dtype, TOLERANCE)
    assert limit == {"float32": 1e-4, "float16": 2**-8, "bfloat16": 2**-5}[dtype.label]
    for share, wrong in ((0.9, False), (1.1, True)):
        have = (np.array([1.0, -0.5 + share * limit], np.float32),)
        assert (difference(have, reference(dtype)) is not None) is wrong
