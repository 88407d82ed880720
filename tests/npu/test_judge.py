"""Streams that do not compute their graph are found, and the first operation that differs is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from baretorch.errors import CompileError, InternalError
from baretorch.ir.graph import Builder, DType, Graph, Quant
from baretorch.machines.npu import stream_check as judge_module
from baretorch.machines.npu.commands import Do, decode_commands
from baretorch.machines.npu.faults import NpuFault
from baretorch.machines.npu.stream_check import Judgement, judge, random_inputs
from baretorch.measure.units import npu_warnings
from baretorch.npu import reference, vela
from baretorch.npu.accelerators import Family
from baretorch.npu.partition import WRONG, WrongStream, make_partition
from baretorch.npu.payload import Payload
from baretorch.npu.to_tosa import to_tosa
from baretorch.ops.int8.lookup import Lookup
from baretorch.ops.int8.qbinary import sum_of
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.move import Cat, Slice
from baretorch.ops.pool import MaxPool2d
from baretorch.targets.parts import Npu
from tests.npu.cases import read_case
from tests.npu.stand_in import NPU
from tests.npu.test_partition import Net

A, B, Y = Quant((0.1,), (3,)), Quant((0.07,), (-5,)), Quant((0.13,), (1,))
TABLE = np.random.default_rng(3).integers(-128, 128, 256).astype(np.int8)


TEXT = """\
error: Vela's stream does not compute the graph
  at    qadd: qadd, the first operation that differs
  have  90 of 96 values of qadd differ, by up to 172
  try   --npu off, or another version of ethos-u-vela"""


def chain(sign: int = 1) -> Graph:
    """A pool, a table, and a sum or difference with another input."""
    g = Builder("chain")
    pooled = g.add(MaxPool2d((2, 2), (2, 2)), g.input("x", (1, 8, 6, 8), DType.INT8))
    looked = g.add(Lookup(), pooled, g.const("table", TABLE))
    op = sum_of(A, B, Y, sign)
    assert op is not None
    y = g.add(op, looked, g.input("other", (1, 4, 3, 8), DType.INT8, B))
    g.tensors[looked] = replace(g.tensors[looked], quant=A)
    g.tensors[y] = replace(g.tensors[y], quant=Y)
    return g.graph(("x", "other"), (y,))


def compiled(tosa: bytes) -> Payload:
    if not vela.is_installed():
        pytest.skip("Vela is not installed: tools/setup.sh test does that")
    return vela.compile_tosa(tosa, NPU).payload


@pytest.fixture(scope="module")
def payload() -> Payload:
    return compiled(to_tosa(chain()))


def test_a_right_stream_passes(payload: Payload) -> None:
    graph = chain()
    judge(graph, payload, random_inputs(graph, 2))


def test_the_first_operation_that_differs_is_named(payload: Payload) -> None:
    graph = chain(-1)
    with pytest.raises(CompileError) as error:
        judge(graph, payload, random_inputs(graph, 1))
    assert error.value.what == WRONG
    assert error.value.at == ("qadd: qadd, the first operation that differs",)
    assert "values of" in error.value.have[0]


def test_a_stream_that_faults_is_wrong(payload: Payload) -> None:
    graph = chain()
    at = [c.at for c in decode_commands(payload.commands, payload.accelerator.family) if c.what is Do.ELEMENTWISE][-1]
    cut = payload.commands[:at] + b"\xff\x03\0\0" + payload.commands[at + 4 :]
    with pytest.raises(CompileError) as error:
        judge(graph, replace(payload, commands=cut), random_inputs(graph, 1))
    assert (error.value.what, error.value.at) == (WRONG, ("qadd: qadd",))
    assert "no command has the number 0x03ff" in error.value.have[0]


def test_a_reference_that_differs_from_tosa_is_our_fault(payload: Payload, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = chain()
    monkeypatch.setattr(reference, "run", lambda file, inputs, outputs: [np.zeros((1, 4, 3, 8), np.int8)])
    with pytest.raises(InternalError, match="TOSA and the operator"):
        judge(graph, payload, random_inputs(graph, 1))


def test_sums_that_vela_scales_wrongly_are_found() -> None:
    """Vela 5.2.0 lets a U55 scale the operands of a sum by two factors of 16 bits in the way that takes one factor of
    32 bits and shifts the other operand by 19. So `lower` does not write sums so, but for a U85."""
    graph = chain()
    with pytest.raises(CompileError, match=WRONG) as error:
        judge(graph, compiled(to_tosa(graph, Family.U85)), random_inputs(graph, 1))
    assert error.value.render() == TEXT
    assert TEXT in (Path(__file__).parents[2] / "docs/how-to/use-an-npu.md").read_text("utf-8")


def test_the_known_fault_of_vela_is_found() -> None:
    """Vela 5.2.0 writes both halves of a concatenation of 8 and 8 channels to the same brick, so the second half is
    read without having been written. The stream is Vela's own, for two tables, a concatenation and a sum."""
    case = read_case(Path(__file__).parent / "faults" / "concat-vela-5.2.0.npz")
    with pytest.raises(NpuFault, match="the input reads byte 0x60, which was never written"):
        case.answer()


def test_a_sum_of_what_is_concatenated_is_right() -> None:
    """Vela 5.2.0 lets a product that follows a concatenation read past its end, for a U55 or U65. `lower` puts a table
    that changes nothing between them."""
    net = Net("net")
    x, other = net.image("x", 2), net.image("other", 3)
    joined = net.kept(net.add(Cat(1), net.table(x), net.kept(net.add(Slice(1, 0, 1), other))))
    graph = net.graph((x, other), (net.sum(joined, other),))
    judge(graph, compiled(to_tosa(graph)), random_inputs(graph, 1))


def test_delegates_are_judged_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """When they are compiled for the first time, with random inputs and with those of the examples."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    graph = chain()
    seen: list[int] = []
    examples = random_inputs(graph, 1)[0]

    def by_vela(region: Graph, npu: Npu) -> vela.VelaResult:
        return vela.VelaResult(compiled(to_tosa(region)), 0)

    monkeypatch.setattr(judge_module, "judge", lambda region, payload, samples: seen.append(len(samples)))
    for _ in range(2):
        make_partition(graph, NPU, by_vela, judge=Judgement(graph, examples))
    assert seen == [3]
    monkeypatch.setattr(judge_module, "_emulated_npu", lambda: "another judge")
    make_partition(graph, NPU, by_vela, judge=Judgement(graph, examples))
    assert seen == [3, 3], "what an older emulated NPU called right is judged anew"
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    make_partition(graph, NPU, by_vela, judge=Judgement(graph, examples))


def test_what_a_stream_has_wrong_is_left_to_the_cpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And the rest of its region stays. Unless all is wanted on the NPU: then it is an error."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    graph = chain()

    def wrong(region: Graph, npu: Npu) -> vela.VelaResult:
        return vela.VelaResult(compiled(to_tosa(region, Family.U85)), 0)

    found = make_partition(graph, NPU, wrong, judge=Judgement(graph, None))
    assert [region.layers for region in found.regions] == [("max_pool2d", "lookup")]
    why = f"{WRONG}: qadd: qadd, the first operation that differs; 90 of 96 values of qadd differ, by up to 172"
    assert [(left.op, left.why) for left in found.left] == [("qadd", why)]
    assert npu_warnings(found) == (f"npu: 1 operator stays on the CPU: {why}",)
    with pytest.raises(WrongStream):
        make_partition(graph, NPU, wrong, most=True, judge=Judgement(graph, None))


def test_each_group_of_a_convolution_is_scaled_by_itself() -> None:
    """Vela 5.2.0 scales accumulators that are concatenated wrongly; `lower` concatenates what comes of them."""
    lot = np.random.default_rng(5)
    g = Builder("groups")
    x = g.input("x", (1, 5, 5, 8), DType.INT8)
    weight, bias = lot.integers(-127, 128, (6, 3, 3, 4)).astype(np.int8), lot.integers(-3000, 3000, 6).astype(np.int32)
    multiplier = lot.integers(1 << 21, 1 << 23, 6).astype(np.int32)
    op = QConv2d(x_zero=3, zero=4, shift=0, lo=-90, hi=110, groups=2)
    y = g.add(op, x, g.const("weight", weight), g.const("bias", bias), g.const("multiplier", multiplier))
    graph = g.graph((x,), (y,))
    judge(graph, compiled(to_tosa(graph)), random_inputs(graph, 1))
