"""`.pte` files with delegates for an Ethos-U: ExecuTorch's own, made by keep_executorch.py, and those that we write."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console, RenderableType

from baretorch import pipeline
from baretorch.errors import CompileError
from baretorch.explore.advice import advise
from baretorch.explore.fit import Fitter
from baretorch.exports.ethos_u_pte import write_npu_pte
from baretorch.frontends import Source
from baretorch.ir.graph import Array, interpret
from baretorch.ir.io import arrange_inputs, store_inputs
from baretorch.measure.facts import compare
from baretorch.measure.profile import make_profile
from baretorch.measure.units import BROUGHT, npu_warnings
from baretorch.npu import reference, vela
from baretorch.npu.use import delegate_to_npu
from baretorch.ops.delegate import Delegate
from baretorch.ops.helpers.executor import NPU
from baretorch.options import Input, Options, UseNpu
from baretorch.pipeline import LoweredModel
from baretorch.plan import make_plan
from baretorch.report.findings import Report
from baretorch.report.page.write import make_page
from baretorch.report.terminal.report import report_screen
from baretorch.targets.boards import load_board
from tests.cli.program import baretorch
from tests.models import compile_model, int8_file
from tests.zoo.zoo import MODELS, lowered

FILES = Path(__file__).parent / "executorch"
BOARDS = {
    "image": "corstone-300",
    "channels_last": "corstone-300",
    "pair": "corstone-300",
    "u85": "corstone-320",
}
RPS = Path(__file__).parents[2] / "examples" / "rps" / "model.py"


def render(shown: RenderableType) -> str:
    with Console(width=120, record=True, file=StringIO()) as console:
        console.print(shown)
    return console.export_text()


def read(name: str) -> tuple[Source, list[Array]]:
    """The file with its inputs, and PyTorch's answers."""
    with np.load(FILES / f"{name}.answers.npz") as file:
        xs, ys = ([file[key] for key in sorted(file) if key[0] == kind] for kind in "xy")
    found = pipeline.read(str(FILES / f"{name}.pte"))
    return replace(found, examples=tuple(arrange_inputs(found.graph, xs, "inputs"))), ys


def on_board(found: Source, board: str, folder: Path, options: Options) -> tuple[Array, ...]:
    compiled = compile_model(found, load_board(board), options)
    run = pipeline.run_image(compiled, pipeline.build_image(compiled, folder))
    return tuple(port.from_memory(y) for port, y in zip(compiled.graph.gives(), run.outputs, strict=True))


@pytest.mark.parametrize("name", BOARDS)
def test_the_emulated_npu_answers_as_pytorch_does(name: str) -> None:
    """To the last bit, with quantize and dequantize around it."""
    found, answers = read(name)
    graph = pipeline.lower(found).graph
    made = interpret(graph, store_inputs(graph, found.examples))
    for port, y in zip(graph.gives(), answers, strict=True):
        np.testing.assert_array_equal(port.from_memory(made[port.tensor.name]), y)
    assert any("no result to compare with" in note for note in found.notes)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "pair" else pytest.mark.slow) for name in BOARDS]
)
def test_so_does_the_board(name: str, tmp_path: Path) -> None:
    """Inputs go into the scratch and outputs out of it; nothing is asked of Vela."""
    found, answers = read(name)
    for made, y in zip(on_board(found, BOARDS[name], tmp_path, Options(npu=UseNpu.REQUIRE)), answers, strict=True):
        np.testing.assert_array_equal(made, y)


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Advice is by an image whose kernels are functions: --optimize size."""
    compiled = compile_model(read("pair")[0], load_board("corstone-300"))
    image = pipeline.build_image(compiled, tmp_path_factory.mktemp("pair"))
    facts = compare(compiled, image, pipeline.run_image(compiled, image))
    profile = make_profile(compiled, image, facts.run)
    return Report(facts, profile, advise(facts, profile))


def test_a_report_lists_what_runs_where(reported: Report) -> None:
    """The page and the terminal list what runs where. Time is that of the CPU alone, and channels cannot be removed
    from a file's commands."""
    assert [(f.value, f.note) for f in reported.speed() if f.title == "NPU"] == [
        ("unknown", "of the NPU, as Vela estimates; 1 region on ethos-u55-256")
    ]
    assert reported.speed()[0].note.endswith(", without the NPU's time")
    page = make_page(reported)
    assert '<section id="npu">' in page and "<td>quantize</td><td>it is float32</td>" in page and BROUGHT in page
    screen = render(report_screen(reported, Path("report.html")))
    assert "22 bytes in" in screen and "quantize: it is float32" in screen
    assert not any("delegate" in advice.text for advice in reported.advice)


FOREIGN = """\
error: the model was compiled for ethos-u85-256, and nothing else can run its commands
  have  {have}
  need  a board whose chip has ethos-u85-256
  try   {instead}"""
ANEW = "for another NPU, recompile: EthosUCompileSpec names it in ExecuTorch, --board in `baretorch export`"


@pytest.mark.parametrize(
    ("board", "options", "have"),
    [
        ("corstone-300", Options(), "corstone-300 has ethos-u55-256"),
        ("pico", Options(), "pico has no NPU"),
        ("corstone-320", Options(npu=UseNpu.OFF), "--npu off"),
        ("corstone-320", Options(input=Input.ROWS), "with --input rows the CPU asks for the rows"),
    ],
)
def test_nothing_else_can_run_its_commands(board: str, options: Options, have: str) -> None:
    graph = read("u85")[0].graph
    with pytest.raises(CompileError) as error:
        delegate_to_npu(graph, load_board(board), options)
    assert error.value.render() == FOREIGN.format(have=have, instead="--npu auto" if have == "--npu off" else ANEW)


def test_without_vela_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BARETORCH_VELA", str(tmp_path))
    found = delegate_to_npu(read("pair")[0].graph, load_board("corstone-300"), Options(npu=UseNpu.REQUIRE))
    assert found is not None and [r.bytes_in for r in found.regions] == [22] and found.cycles is None
    assert npu_warnings(found) == (BROUGHT,)


def test_verbs_that_only_look() -> None:
    """`inspect` plans for no board in particular; `fit` says that it cannot know."""
    graph = read("pair")[0].graph
    assert [step.call.op.name for step in make_plan(graph, load_board("host")).steps if step.executor == NPU] == [
        "delegate"
    ]
    told = baretorch("inspect", str(FILES / "pair.pte")).out
    assert "parameters  0, without those of the NPU\nMACs        0, without those of the NPU\n" in told
    found = Fitter(lambda int8: pipeline.lower(read("pair")[0]), Options()).find(load_board("pico"))
    assert found.error is not None and found.error.what.startswith("the model contains commands for an NPU")


def block(data: bytes, name: bytes) -> int:
    """Where a block of the payload begins."""
    return data.index(name.ljust(16, b"\0"))


def renamed(data: bytes) -> bytes:
    return data.replace(b"weight_data\0", b"height_data\0")


def longer(data: bytes) -> bytes:
    at = block(data, b"cmd_data") + 16
    return data[:at] + struct.pack("<I", 1 << 20) + data[at + 4 :]


def elsewhere(data: bytes) -> bytes:
    """Let the first input begin after the scratch."""
    at = block(data, b"inputs") + 32 + 4 + 7 * 4
    return data[:at] + struct.pack("<I", 4096) + data[at + 4 :]


def smaller(data: bytes) -> bytes:
    at = block(data, b"inputs") + 32 + 4 + 5 * 4
    return data[:at] + struct.pack("<I", 5) + data[at + 4 :]


def overlapping(data: bytes, which: bytes = b"inputs") -> bytes:
    """The second input begins inside the first."""
    at = block(data, which) + 32 + 4 + 7 * 4
    return data[: at + 36] + struct.pack("<I", struct.unpack_from("<I", data, at)[0] + 8) + data[at + 40 :]


def overlapping_outputs(data: bytes) -> bytes:
    return overlapping(data, b"outputs")


def another(data: bytes) -> bytes:
    """An NPU that there is not."""
    at = block(data, b"cmd_data") + 32 + 8
    return data[:at] + struct.pack("<I", 0x7000_0000) + data[at + 4 :]


def wrong_command(data: bytes) -> bytes:
    at = data.index(struct.pack("<I", 0xFFFF << 16), block(data, b"cmd_data"))  # STOP
    return data[: at - 4] + struct.pack("<I", 0x03FF) + data[at:]


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (
            renamed,
            "error: this is not an output of Vela: no block is called 'height_data'\n  at    {at}\n  need  {vela}",
        ),
        (
            longer,
            "error: this is not an output of Vela: block 'cmd_data' has 1,048,576 bytes, of which 1,440 are there\n"
            "  at    {at}\n  need  {vela}",
        ),
        (
            elsewhere,
            "error: this is not an output of Vela: an input or output at 0x1000 has 12 bytes, of 80\n"
            "  at    {at}\n  need  {vela}",
        ),
        (
            smaller,
            "error: a delegate is called with other tensors than it was compiled for\n  at    {at}\n"
            "  have  v2 int8[2, 6], v8 int8[2, 5], v14 int8[2, 5], v15 int8[2, 5]\n"
            "  need  10 bytes, 10 bytes, 10 bytes, 10 bytes",
        ),
        (
            overlapping,
            "error: this is not an output of Vela: the input at 0x28 begins before another one ends, at 0x2c\n"
            "  at    {at}\n  need  {vela}",
        ),
        (
            overlapping_outputs,
            "error: this is not an output of Vela: the output at 0x28 begins before another one ends, at 0x2a\n"
            "  at    {at}\n  need  {vela}",
        ),
        (
            another,
            "error: this is not an output of Vela: no known accelerator has the configuration 0x70000000\n"
            "  at    {at}\n  need  {vela}",
        ),
        (
            wrong_command,
            "error: a delegate's command stream fails on the emulated NPU\n"
            "  have  illegal command: no command has the number 0x03ff, at byte 0x27c of the command stream\n"
            "  need  a stream that Vela made, as ExecuTorch stores it\n"
            "  try   export the model again, with another version of ethos-u-vela",
        ),
    ],
)
def test_damaged_payloads(damage: Callable[[bytes], bytes], text: str, tmp_path: Path) -> None:
    data = (FILES / "pair.pte").read_bytes()
    assert damage(data) != data
    (tmp_path / "pair.pte").write_bytes(damage(data))
    with pytest.raises(CompileError) as error:
        found = pipeline.read(str(tmp_path / "pair.pte"))
        interpret(found.graph, store_inputs(found.graph, found.examples))
    need = "an output of `vela --output-format raw` or of ExecuTorch"
    assert error.value.render() == text.format(at="delegate 0 of forward", vela=need)


def exported(name: str, found: LoweredModel, board: str, folder: Path) -> tuple[LoweredModel, LoweredModel]:
    """A model, and what is read of the file that is written of it."""
    if not vela.is_installed():
        pytest.skip("Vela is not installed: tools/setup.sh test does that")
    info = write_npu_pte(found, load_board(board), folder / f"{name}.pte")
    assert set(info.operators) == {
        "quantized_decomposed::quantize_per_tensor",
        "EthosUBackend",
        "quantized_decomposed::dequantize_per_tensor",
    }
    again = pipeline.read(str(folder / f"{name}.pte"))
    return found, pipeline.lower(replace(again, examples=found.source.examples))


@pytest.mark.slow
@pytest.mark.parametrize("board", ["corstone-300", "corstone-320"])
def test_what_we_write_answers_as_the_image_does(board: str, tmp_path: Path) -> None:
    """Rock, paper, scissors with --npu require, and the exported file, on the board."""
    both = exported("rps", int8_file(str(RPS)), board, tmp_path)
    answers = [on_board(each, board, tmp_path / str(i), Options(npu=UseNpu.REQUIRE)) for i, each in enumerate(both)]
    for a, b in zip(*answers, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_executorch_takes_what_we_write(tmp_path: Path) -> None:
    """Its own reader finds what we wrote, and its runtime opens the program; it has no Ethos-U here."""
    from executorch.exir._serialize._program import deserialize_pte_binary
    from executorch.runtime import Runtime

    exported("sine", lowered("sine", int8=True), "corstone-300", tmp_path)
    data = (tmp_path / "sine.pte").read_bytes()
    program = deserialize_pte_binary(data).program
    (plan,) = program.execution_plan
    assert [type(i.instr_args).__name__ for c in plan.chains for i in c.instructions] == [
        "KernelCall",
        "DelegateCall",
        "KernelCall",
    ]
    assert [d.id for d in plan.delegates] == ["EthosUBackend"]
    loaded = Runtime.get().load_program(data)
    assert loaded.method_names == {"forward"}
    with pytest.raises(RuntimeError):
        loaded.load_method("forward")


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_the_zoo_exported(name: str, tmp_path: Path) -> None:
    """Every model that the NPU takes as a whole means the same when its file is read; others are refused in words."""
    assert reference.is_installed()
    found = lowered(name, int8=True)
    try:
        both = exported(name, found, "corstone-300", tmp_path)
    except CompileError as error:
        assert error.what.startswith("--npu: ")
        assert name in LEFT
        return
    assert name not in LEFT
    graphs = [each.graph for each in both]
    assert any(isinstance(node.op, Delegate) for node in graphs[1].nodes)
    values = [interpret(graph, store_inputs(graph, found.source.examples)) for graph in graphs]
    for a, b in zip(graphs[0].outputs, graphs[1].outputs, strict=True):
        np.testing.assert_array_equal(values[0][a], values[1][b])


LEFT = {
    "encoder",
    "gru",
    "kws_raw",
    "kws_stream",
    "lstm",
    "rfft512",
    "streaming_gru",
    "vit_tiny",
}
