"""Vela as a program: what it compiles is read, and what it says when it does not becomes our errors."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from baretorch.errors import CompileError
from baretorch.ir.graph import DType, Graph
from baretorch.measure.units import npu_takes
from baretorch.npu import vela
from baretorch.npu.payload import INPUT, OUTPUT
from baretorch.npu.to_tosa import to_tosa
from baretorch.npu.use import delegate_to_npu
from baretorch.ops.elementwise import Add
from baretorch.options import Input, Options, UseNpu
from baretorch.targets.boards import load_board
from tests.cli.program import baretorch
from tests.npu.stand_in import NPU
from tests.npu.test_partition import Net

BOARD = load_board("corstone-300")


@pytest.fixture
def graph() -> Graph:
    g = Net("net")
    x = g.image("x")
    return g.graph((x,), (g.sum(g.table(x), x),))


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, version: str, body: str = "") -> None:
    """Install a program called vela that reports this version and then runs `body`."""
    program = folder / "vela"
    answer = f"import sys\nif '--version' in sys.argv:\n    print({version!r})\n    sys.exit()\n{body}\n"
    program.write_text(f"#!{sys.executable}\n{answer}")
    program.chmod(0o755)
    monkeypatch.setenv("BARETORCH_VELA", str(folder))


def refusal(graph: Graph) -> str:
    with pytest.raises(CompileError) as error:
        vela.compile_tosa(to_tosa(graph), NPU)
    return error.value.render()


def test_what_vela_compiles(graph: Graph) -> None:
    result = vela.compile_tosa(to_tosa(graph), NPU)
    payload = result.payload
    assert payload.accelerator.name == NPU.accelerator
    assert [(s.region, s.size) for s in payload.inputs] == [(INPUT, 60)]
    assert [(s.region, s.size) for s in payload.outputs] == [(OUTPUT, 60)]
    assert 0 < result.cycles < 100_000


def test_what_it_does_not_know_is_reported(graph: Graph) -> None:
    with pytest.raises(vela.VelaRefused, match="No_Such_Mode"):
        vela.compile_tosa(to_tosa(graph), replace(NPU, memory_mode="No_Such_Mode"))


def test_missing(graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BARETORCH_VELA", str(tmp_path / "nowhere"))
    with pytest.raises(CompileError, match="BARETORCH_VELA names no folder"):
        vela.is_installed()
    monkeypatch.setenv("BARETORCH_VELA", str(tmp_path))
    assert refusal(graph) == (
        "error: Vela is not installed\n"
        "  need  ethos-u-vela 5.2.0 or newer: it compiles for Ethos-U\n"
        "  try   pip install 'baretorch[ethos-u]', or an environment of its own that BARETORCH_VELA names"
    )


def test_too_old(graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "5.1.0")
    assert refusal(graph) == (
        "error: Vela 5.1.0 is too old\n"
        f"  at    {tmp_path / 'vela'}\n"
        "  need  5.2.0 or newer: streams of older ones were seen to compute something else\n"
        "  try   pip install --upgrade ethos-u-vela"
    )


def test_no_program(graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "what?")
    assert refusal(graph) == (
        f"error: Vela does not start\n  at    {tmp_path / 'vela'}\n  have  what?\n  try   {tmp_path / 'vela'} --version"
    )


def test_no_answer(graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "5.2.1", "print('Error: out of luck'); print('bye'); sys.exit(1)")
    with pytest.raises(vela.VelaRefused, match=r"^Error: out of luck$"):
        vela.compile_tosa(to_tosa(graph), NPU)


def test_operators_left_on_the_cpu_are_a_refusal(graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = (
        "import os; os.mkdir('out'); open('out/a.npz', 'w'); open('out/a.csv', 'w'); print('CPU operators = 2 (50%)')"
    )
    stand_in(tmp_path, monkeypatch, "5.2.1", body)
    with pytest.raises(vela.VelaRefused, match="CPU operators = 2"):
        vela.compile_tosa(to_tosa(graph), NPU)


def test_what_cannot_be_read_is_a_refusal(graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vela 5.2.0 was seen to give an output no address: the offset is 2^64 - 1, and NumPy makes a float of it."""
    body = (
        "import os; os.mkdir('out'); open('out/a.npz', 'w'); print('CPU operators = 0 (0%)')\n"
        "open('out/a.csv', 'w').write('cycles_total\\n5\\n')"
    )
    stand_in(tmp_path, monkeypatch, "5.2.1", body)
    with pytest.raises(
        vela.VelaRefused, match=r"^its output cannot be used: this is not an output of Vela: it ends early"
    ):
        vela.compile_tosa(to_tosa(graph), NPU)


def test_without_vela_all_stays_on_the_cpu_with_a_reason(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BARETORCH_VELA", str(tmp_path))
    found = delegate_to_npu(graph, BOARD, Options())
    assert found is not None and not found.regions and found.graph is graph
    assert {left.why for left in found.left} == {"Vela is not installed"}
    with pytest.raises(CompileError, match="Vela is not installed"):
        delegate_to_npu(graph, BOARD, Options(npu=UseNpu.REQUIRE))


def test_off(graph: Graph) -> None:
    assert delegate_to_npu(graph, BOARD, Options(npu=UseNpu.OFF)) is None
    assert delegate_to_npu(graph, load_board("pico"), Options(npu=UseNpu.AUTO)) is None


def test_a_board_without_an_npu(graph: Graph) -> None:
    with pytest.raises(CompileError) as error:
        delegate_to_npu(graph, load_board("pico"), Options(npu=UseNpu.REQUIRE))
    assert error.value.render() == (
        "error: --npu require: pico has no NPU\n"
        "  need  a chip whose TOML has [npu], such as corstone-300\n"
        "  try   leave it out"
    )


def test_require_lists_all_that_stays_on_the_cpu() -> None:
    g = Net("net")
    x = g.image("x")
    graph = g.graph((x,), (g.log_softmax(g.table(g.log_softmax(x))),))
    with pytest.raises(CompileError) as error:
        delegate_to_npu(graph, BOARD, Options(npu=UseNpu.REQUIRE))
    assert error.value.render() == (
        "error: --npu require: 2 operators of the model do not run on the NPU of corstone-300\n"
        "  have  qlog_softmax qlog_softmax: TOSA has no operator for what qlog_softmax computes\n"
        "        qlog_softmax qlog_softmax_2: TOSA has no operator for what qlog_softmax computes\n"
        "  need  an int8 model of which the NPU takes everything but quantize and dequantize\n"
        "  try   --npu auto: the CPU does the rest"
    )


def test_require_of_a_float_model() -> None:
    g = Net("net")
    x = g.input("x", (1, 8), DType.FLOAT32)
    graph = g.graph((x,), (g.add(Add(), x, x),))
    with pytest.raises(CompileError) as error:
        delegate_to_npu(graph, BOARD, Options(npu=UseNpu.REQUIRE))
    assert (error.value.have, error.value.try_) == (("add add: it is float32",), ("--int8",))


def test_ops_lists_what_the_npu_takes() -> None:
    takes = npu_takes(BOARD.chip)["ethos-u55-256"]
    assert "qconv2d, qconv_transpose2d, qlinear, " in takes and "qnorm" not in takes
    assert npu_takes(load_board("pico").chip) == {}
    assert "ethos-u55-256 takes in int8 cat, " in baretorch("ops", "qconv2d", "--board", "corstone-300").out


def test_rows_are_the_cpus(graph: Graph) -> None:
    found = delegate_to_npu(graph, BOARD, Options(input=Input.ROWS))
    assert found is not None and not found.regions
    assert {left.why for left in found.left} == {"with --input rows the CPU asks for the rows"}
