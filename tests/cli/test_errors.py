"""Every way a user can go wrong: exit code 1, no traceback, exactly this text."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from baretorch.errors import CompileError
from baretorch.files.write import stage_files
from tests.cli.program import baretorch, boards_in, check_golden, copy_model


def check_error(name: str, *arguments: str) -> None:
    result = baretorch(*arguments)
    assert (result.code, result.out) == (1, ""), result.err
    assert "Traceback" not in result.err
    check_golden(f"error_{name}", result.err)
    as_json = baretorch(*arguments, "--json")
    assert as_json.code == 1
    assert as_json.err == ""
    assert result.err.startswith(f"error: {as_json.json()['error']}\n")


@pytest.mark.parametrize(
    "model",
    ["no_model", "raises", "control_flow", "unsupported", "float64", "large_weights", "large_arena"],
)
def test_models(model: str, folder: Path) -> None:
    """Models that cannot be read, exported, compiled or held."""
    check_error(model, "run", copy_model(model, folder), "--board", "microbit")


@pytest.mark.parametrize(("name", "file"), [("int8_methods", "methods.pte"), ("int8_already", "kws_int8.tflite")])
def test_files_that_cannot_be_quantized(name: str, file: str) -> None:
    data = Path(__file__).parents[1] / "frontends" / "data"
    check_error(name, "run", str(data / file), "--board", "pico", "--int8")


@pytest.mark.parametrize("what", ["code", "weights"])
def test_ram_for_nothing(what: str, folder: Path) -> None:
    """Where flash is as fast as RAM."""
    (folder / "net.py").write_text(HEAD)
    check_error(f"{what}_in_ram", "build", "net.py", "--board", "mps2-an386", f"--{what}", "ram")


@pytest.mark.parametrize(
    ("name", "verb", "more"),
    [
        ("compile", "compile", ["--board", "pico", "--out", "c"]),
        ("nothing", "build", ["--board", "pico"]),
        ("no_engine", "build", ["--board", "nucleo-h743zi"]),
        ("two_cores", "build", ["--board", "pico", "--cores", "2"]),
        ("cluster", "build", ["--board", "cluster8"]),
    ],
)
def test_nothing_to_stream(name: str, verb: str, more: list[str], folder: Path) -> None:
    (folder / "net.py").write_text(HEAD)
    check_error(f"stream_{name}", verb, "net.py", "--weights", "stream", *more)


def test_syntax_error(folder: Path) -> None:
    (folder / "syntax_error.py").write_text("def model(:\n")
    check_error("syntax_error", "run", "syntax_error.py", "--board", "pico")


HEAD = """import sys
import numpy, torch
from torch import nn
def model(): return nn.Linear(4, 2)
def inputs(): return (torch.ones(1, 4),)
"""
FORWARD = """class Net(nn.Module):
    def forward(self, x): {}
def model(): return Net()
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("file_base_exception", "raise GeneratorExit"),
        ("model_state_dict", "def model(): return nn.Linear(4, 2).state_dict()"),
        ("methods_none", "def methods(): return None"),
        ("methods_number", "def methods(): return {3: inputs()}"),
        ("inputs_none", "def inputs(): return None"),
        ("inputs_numpy", "def inputs(): return numpy.ones((1, 4), 'float32')"),
        ("inputs_two", "def inputs(): return torch.ones(1, 4), torch.ones(1, 4)"),
        ("inputs_sparse", "def inputs(): return (torch.ones(1, 4).to_sparse(),)"),
        ("inputs_shape", "def inputs(): return (torch.ones(1, 5),)"),
        ("inputs_int64", "def inputs(): return (torch.ones(1, 4, dtype=torch.int64),)"),
        ("inputs_float64", "def inputs(): return (torch.ones(1, 4, dtype=torch.float64),)"),
        ("forward_raises", FORWARD.format("raise ValueError('boom')")),
        ("forward_exits", FORWARD.format("sys.exit(0)")),
        ("forward_index", FORWARD.format("return x[:, torch.tensor([9])]")),
        ("forward_no_outputs", FORWARD.format("return ()")),
        ("forward_none", FORWARD.format("return None")),
        ("forward_number", FORWARD.format("return x, 3.0")),
        ("forward_no_inputs", FORWARD.format("return torch.ones(3)").replace(", x", "") + "def inputs(): return ()"),
        ("calibration_exits", "def calibration():\n    yield inputs()\n    sys.exit(0)"),
        ("calibration_raises", "def calibration():\n    yield inputs()\n    raise ValueError('disk gone')"),
        ("calibration_stacked", "def calibration(): return torch.ones(9, 4)"),
        ("calibration_batches", "def calibration(): return [(torch.ones(8, 4), torch.ones(8))]"),
        ("calibration_number", "def calibration(): return 5"),
        ("calibration_large", "def calibration(): yield torch.full((1, 4), 1e38)"),
        ("calibration_no_function", "calibration = 3"),
    ],
)
def test_mistakes_in_model_files(name: str, text: str, folder: Path) -> None:
    (folder / "net.py").write_text(f"{HEAD}{text}\n")
    check_error(name, "compile", "net.py", "--board", "pico", "--int8", "--out", "c")


def test_a_missing_package_is_installed_for_this_python(folder: Path) -> None:
    (folder / "net.py").write_text("import no_such_package.part\n")
    result = baretorch("run", "net.py", "--board", "pico")
    assert result.err.splitlines()[-1] == f"  try   {sys.executable} -m pip install no_such_package"


@pytest.mark.filterwarnings("ignore")
def test_a_module_that_is_quantized_in_eager_mode(folder: Path) -> None:
    made = "torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(4, 2)), {nn.Linear})"
    (folder / "net.py").write_text(f"{HEAD}def model(): return {made}\n")
    result = baretorch("run", "net.py", "--board", "pico")
    what, *_, remedy = result.err.splitlines()
    assert what.startswith("error: the module is quantized in eager mode") and "--int8" in remedy


def test_the_smallest_arena_is_named(folder: Path) -> None:
    model = copy_model("tiny", folder)
    result = baretorch("compile", model, "--board", "pico", "--ram", "1", "--out", "c")
    found = re.search("try   --ram ([0-9]+)", result.err)
    assert found, result.err
    assert baretorch("compile", model, "--board", "pico", "--ram", found[1], "--out", "c").code == 0
    assert baretorch("compile", model, "--board", "pico", "--ram", str(int(found[1]) - 1), "--out", "c").code == 1


@pytest.mark.parametrize("value", ["{'b': 1}", "None", "'x'", "'0.95'", "torch.ones(3)"])
def test_metrics_that_are_no_numbers(value: str, folder: Path) -> None:
    (folder / "net.py").write_text(f"{HEAD}def evaluate(run): return {{'a': {value}}}\n")
    result = baretorch("evaluate", "net.py", "--board", "host", "--float")
    assert result.code == 1
    assert result.err.startswith("error: evaluate() returns no number for 'a'\n  at    net.py\n  have  ")


def test_an_evaluate_that_wants_a_module(folder: Path) -> None:
    (folder / "net.py").write_text(f"{HEAD}def evaluate(model):\n    model.eval()\n    return {{'a': 1.0}}\n")
    check_error("evaluate_module", "evaluate", "net.py", "--board", "host", "--float")


def test_evaluate_a_missing_file() -> None:
    check_error("missing_file", "evaluate", "nowhere.py", "--board", "pico")


def test_monitor_empty_answers(folder: Path) -> None:
    (folder / "net.py").write_text(HEAD + FORWARD.format("return x[:, :0]"))
    check_error("monitor_empty", "monitor", "net.py", "--board", "mps2-an386")


def test_odd_inputs_are_a_warning(folder: Path) -> None:
    (folder / "net.py").write_text(HEAD + "def inputs(): return (torch.full((1, 4), torch.nan),)\n")
    (warning,) = baretorch("run", "net.py", "--board", "host", "--json").json()["warnings"]
    assert warning.startswith("inputs: inputs() has NaN or infinite values")


def test_odd_inputs_in_int8_are_no_error_of_the_model(folder: Path) -> None:
    odd = "def inputs(): return (torch.full((1, 4), torch.nan),)\n"
    (folder / "net.py").write_text(f"{HEAD}{odd}def calibration(): return [(torch.ones(1, 4),)]\n")
    result = baretorch("run", "net.py", "--board", "host", "--int8")
    assert "which int8 cannot represent: its results are not compared" in " ".join(result.out.split())
    assert [line.split()[:4] for line in result.out.splitlines() if "max error" in line] == [
        ["max", "error", "not", "known"]
    ]


def test_missing_file() -> None:
    check_error("missing_file", "compile", "nowhere.py", "--board", "pico", "--out", "c")


def test_unknown_suffix(folder: Path) -> None:
    (folder / "net.h5").write_bytes(b"")
    check_error("unknown_suffix", "build", "net.h5", "--board", "pico")


def test_weights_without_a_program(folder: Path) -> None:
    (folder / "net.pt").write_bytes(b"")
    check_error("weights_file", "build", "net.pt", "--board", "pico")


def test_a_program_in_training_mode(folder: Path) -> None:
    import torch
    from torch import nn

    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Dropout(0.5))
    torch.export.save(torch.export.export(net, (torch.ones(1, 1, 5, 5),)), folder / "net.pt2")
    check_error("training_mode", "compile", "net.pt2", "--board", "pico", "--out", "c")


def test_a_layer_to_keep_that_is_none(folder: Path) -> None:
    layers = "nn.Sequential(*(nn.Linear(4, 4) for _ in range(11)))"
    (folder / "net.py").write_text(f"{HEAD}def model(): return nn.Sequential({layers}, nn.ReLU())\n")
    check_error("keep_float", *["compile", "net.py", "--board", "pico", "--out", "c", "--int8", "--keep-float", "0.1O"])


def test_unknown_board(folder: Path) -> None:
    check_error("unknown_board", "run", copy_model("tiny", folder), "--board", "pico2v")


def test_unknown_operator() -> None:
    check_error("unknown_operator", "ops", "conv4d")


def test_dynamic_shapes(folder: Path) -> None:
    import torch

    batch = torch.export.Dim("batch")
    program = torch.export.export(torch.nn.Linear(4, 2), (torch.ones(3, 4),), dynamic_shapes=({0: batch},))
    torch.export.save(program, folder / "net.pt2")
    check_error("dynamic_shapes", "compile", "net.pt2", "--board", "pico", "--out", "c")


def test_truncated_pte(folder: Path) -> None:
    from tests.cli.models import tiny
    from tests.pte import write_pte

    write_pte(tiny.model(), tiny.inputs(), folder / "whole.pte")
    data = (folder / "whole.pte").read_bytes()
    (folder / "net.pte").write_bytes(data[: len(data) // 2])
    check_error("truncated_pte", "compile", "net.pte", "--board", "pico", "--out", "c")


def test_export_for_an_npu(folder: Path) -> None:
    model = copy_model("tiny", folder)
    check_error("export_no_npu", "export", model, "--npu", "--board", "pico", "--out", "net.pte")
    check_error("export_npu_float", "export", model, "--npu", "--board", "corstone-300", "--out", "net.pte")
    assert not (folder / "net.pte").exists()


@pytest.mark.parametrize("words", [("--npu",), ("--board", "corstone-300"), ("--int8",)])
def test_export_flags_that_go_together(words: tuple[str, ...], folder: Path) -> None:
    result = baretorch("export", copy_model("tiny", folder), "--out", "net.pte", *words)
    assert result.code == 2 and "--npu" in result.err


def test_a_missing_emulator_is_an_error_before_the_model_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    result = baretorch("run", "no_such_model.py", "--board", "mps3-an547")
    assert result.code == 1 and result.err.startswith("error: board mps3-an547 needs QEMU\n")


@pytest.mark.parametrize("flag", ["--place", "--shape", "--state"])
def test_two_values_for_one_key(flag: str, folder: Path) -> None:
    result = baretorch("compile", copy_model("tiny", folder), "--board", "pico", flag, "a=b", flag, "a=c", "--out", "c")
    assert result.code == 2 and f"{flag} has two values for a: b and c" in result.err


def test_missing_toolchains(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = copy_model("tiny", folder)
    monkeypatch.setenv("PATH", "")
    check_error("missing_gcc", "build", model, "--board", "pico", "--toolchain", "gcc")
    known = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "ziglang" else known(name, *rest)
    )
    check_error("missing_toolchain", "build", model, "--board", "pico")


def test_missing_toolchain_of_avr(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zig makes no code for it."""
    model = copy_model("tiny", folder)
    check_error("avr_by_zig", "build", model, "--board", "arduino-uno", "--toolchain", "zig")
    monkeypatch.setenv("PATH", "")
    check_error("missing_avr_gcc", "build", model, "--board", "arduino-uno")


@pytest.mark.parametrize("board", ["arduino-uno", "arduino-mega"])
def test_more_weights_than_an_avr_reads(board: str, folder: Path) -> None:
    check_error(f"large_weights_{board}", "run", copy_model("large_weights", folder), "--board", board)


def test_constants_that_an_avr_has_in_ram() -> None:
    model = Path(__file__).parents[2] / "zoo/streaming_gru.py"
    check_error("constants_in_ram", "run", str(model), "--board", "arduino-mega")


def test_an_image_too_large_for_an_avr(folder: Path) -> None:
    """Its code and RAM are known once it is linked for a chip with more of both."""
    check_error("large_image_arduino-uno", "run", copy_model("large_image", folder), "--board", "arduino-uno")


def test_board_without_emulator(folder: Path) -> None:
    check_error("no_emulator", "run", copy_model("tiny", folder), "--board", "pico2-riscv")


def test_board_without_usb(folder: Path) -> None:
    check_error("no_usb", "build", copy_model("tiny", folder), "--board", "microbit", "--console", "usb")


def test_emulator_of_another_board(folder: Path) -> None:
    check_error("wrong_emulator", "run", copy_model("tiny", folder), "--board", "pico", "--emulator", "qemu")


def test_existing_file_of_new(folder: Path) -> None:
    model = copy_model("tiny", folder)
    before = (folder / model).read_text()
    check_error("new_exists", "new", model)
    assert (folder / model).read_text() == before


def test_no_board_to_flash(folder: Path) -> None:
    (folder / "drive").mkdir()
    model = copy_model("tiny", folder)
    check_error("no_drive", "flash", model, "--board", "pico2w", "--drive", "drive")


def test_export_of_a_program_without_module(folder: Path) -> None:
    import torch

    torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)), folder / "net.pt2")
    check_error("export_pt2", "export", "net.pt2", "--out", "net.pte")


def test_output_that_is_a_file(folder: Path) -> None:
    (folder / "c").write_text("precious")
    (folder / "link").symlink_to("nothing")
    check_error("out_is_a_link_to_nothing", "compile", copy_model("tiny", folder), "--board", "pico", "--out", "link")
    check_error("out_is_a_file", "compile", copy_model("tiny", folder), "--board", "pico", "--out", "c")
    assert (folder / "c").read_text() == "precious"


def test_a_page_that_is_a_folder(folder: Path) -> None:
    (folder / "page").mkdir()
    model = copy_model("tiny", folder)
    check_error("page_is_a_folder", "report", model, "--board", "mps2-an386", "--out", "page")
    assert [p.name for p in folder.iterdir() if p.name.startswith(".")] == []


def test_a_report_needs_counts(folder: Path) -> None:
    check_error("report_on_the_host", "report", copy_model("tiny", folder), "--board", "host")


def test_a_report_without_task(folder: Path) -> None:
    check_error("report_without_task", "report", copy_model("tiny", folder), "--board", "mps2-an386", "--evaluate")


def test_failure_keeps_what_there_is(folder: Path) -> None:
    """A compile and a build that fail leave the files of the last success, and no others."""
    good, bad = copy_model("tiny", folder), copy_model("large_arena", folder)
    for verb in ("compile", "build"):
        assert baretorch(verb, good, "--board", "microbit", "--out", "out").code == 0
        before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
        assert baretorch(verb, bad, "--board", "microbit", "--out", "out").code == 1
        assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts} == before


def test_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ValueError("a promise is broken")

    monkeypatch.setattr("baretorch.targets.boards.board_names", broken)
    result = baretorch("boards")
    assert (result.code, result.out) == (70, "")
    check_golden("error_internal", result.err)
    assert baretorch("boards", "--json").json()["error"] == "internal error: ValueError: a promise is broken"
    assert "Traceback" in baretorch("boards", "--debug").err


def test_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("baretorch.targets.boards.board_names", interrupted)
    result = baretorch("boards")
    assert (result.code, result.out, result.err.strip()) == (130, "", "")


def test_interrupt_in_json(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("baretorch.targets.boards.board_names", interrupted)
    result = baretorch("boards", "--json")
    assert (result.code, result.json()["error"]) == (130, "interrupted")


@pytest.mark.parametrize("option", ["--out", "--board"])
def test_empty_values(option: str) -> None:
    values = {"--board": "pico", "--out": "c"} | {option: ""}
    result = baretorch("compile", "tiny.py", *(word for pair in values.items() for word in pair), "--json")
    assert result.code == 2
    assert result.json() == {
        "error": f"Invalid value for '{option}': the value is empty",
        "at": [],
        "have": [],
        "need": [],
        "try": [],
    }


def test_files_move_all_or_none(folder: Path) -> None:
    (folder / "out" / "b").mkdir(parents=True)
    (folder / "out" / "a").write_text("Made by Baretorch once")
    with pytest.raises(CompileError, match="out/b was not generated by Baretorch"), stage_files(Path("out")) as work:
        for name in "ab":
            (work / name).write_text("new")
    assert (folder / "out" / "a").read_text() == "Made by Baretorch once"


def test_new_below_a_file(folder: Path) -> None:
    (folder / "afile").write_text("")
    result = baretorch("new", "afile/x.py")
    assert result.code == 1 and result.err.startswith("error: cannot write afile/x.py\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux")
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_full_standard_output(options: list[str]) -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "baretorch", "boards", *options]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("error: cannot write to standard output\n") and "Traceback" not in done.stderr


@pytest.mark.parametrize("dtype", ["float64"])
def test_a_cast_to_a_type_that_is_not_supported(folder: Path, dtype: str) -> None:
    (folder / "net.py").write_text(
        "import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n"
        f"        return x.to(torch.{dtype})\n\n\n"
        "def model():\n    return Net()\n\n\ndef inputs():\n    return (torch.ones(2, 3),)\n"
    )
    check_error(f"cast_{dtype}", "compile", "net.py", "--board", "pico", "--out", "c")


@pytest.mark.parametrize(
    ("name", "options"),
    [("not_finite", ()), ("rows", ("--input", "rows")), ("int8", ("--int8", "--io", "int8"))],
)
def test_inputs_that_are_checked(name: str, options: tuple[str, ...], folder: Path) -> None:
    number = "nan" if name == "not_finite" else "1"
    (folder / "checked.py").write_text(
        "import torch\n"
        "def model(): return torch.nn.Conv2d(1, 1, 3)\n"
        f"def inputs(): return (torch.full((1, 1, 8, 8), float('{number}')),)\n"
        "def calibration(): return [(torch.rand(1, 1, 8, 8),)]\n"
    )
    check_error(f"check_inputs_{name}", "run", "checked.py", "--board", "host", "--check-inputs", *options)


def test_a_project_that_cannot_be(folder: Path) -> None:
    (folder / "net.py").write_text(
        "import torch\ndef model(): return torch.nn.Linear(2, 1)\ndef inputs(): return (torch.ones(1, 2),)\n"
    )
    check_error("project_board", "project", "net.py", "--sdk", "pico-sdk", "--board", "microbit", "--out", "p")
    project = ("project", "net.py", "--sdk", "pico-sdk", "--board", "microbit", "--out", "p")
    (listed,) = boards_in(baretorch(*project).err)
    assert {"pico", "pico2", "pico4ml"} < set(listed) and "microbit" not in listed
    check_error("project_no_board", "project", "net.py", "--sdk", "zephyr", "--out", "p")
    check_error("project_on_the_host", "project", "net.py", "--sdk", "esp-idf", "--board", "host", "--out", "p")
    assert not (folder / "p").exists()
    (folder / "p").mkdir()
    (folder / "p/README.md").write_text("mine")
    check_error("project_changed", "project", "net.py", "--sdk", "make", "--board", "host", "--out", "p")
    assert [path.name for path in (folder / "p").iterdir()] == ["README.md"]
    (folder / "file").write_text("")
    (folder / "time.py").write_text((folder / "net.py").read_text())
    check_error("project_name", "project", "time.py", "--sdk", "make", "--board", "host", "--out", "q")
    (folder / "all.py").write_text((folder / "net.py").read_text())
    check_error("project_name_of_sdk", "project", "all.py", "--sdk", "cmake", "--board", "host", "--out", "q")
    (folder / "two.py").write_text(
        "import torch\n"
        "class Two(torch.nn.Module):\n"
        "    def one(self, x): return x + 1\n"
        "    def two(self, x): return x + 2\n"
        "def model(): return Two()\n"
        "def methods(): return {'one': (torch.ones(2),), 'two': (torch.ones(2),)}\n"
    )
    check_error("project_methods", "project", "two.py", "--sdk", "make", "--board", "host", "--out", "q")
    assert not (folder / "q").exists()
    check_error("project_file", "project", "net.py", "--sdk", "make", "--board", "host", "--out", "file")


def test_debug(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Boards that gdb cannot look into, and what it needs."""
    model = copy_model("tiny", folder)
    check_error("debug_host", "debug", model, "--board", "host", "--script", __file__)
    check_error("debug_simavr", "debug", model, "--board", "arduino-uno", "--emulator", "simavr", "--script", __file__)
    (listed,) = boards_in(baretorch("debug", model, "--board", "host", "--script", __file__).err)
    assert {"mps2-an386", "corstone-300", "pico", "virt-rv32"} < set(listed)
    assert not {"host", "arduino-uno", "cluster8", "pico2-riscv"} & set(listed)
    check_error("debug_script", "debug", model, "--board", "pico", "--script", "none.gdb")
    probe = ("--script", __file__, "--port", "none", "--probe")
    check_error("debug_openocd_board", "debug", model, "--board", "mps2-an386", *probe, "openocd")
    (listed,) = boards_in(baretorch("debug", model, "--board", "mps2-an386", *probe, "openocd").err)
    assert {"microbit", "nucleo-wb55rg", "pico"} < set(listed) and "mps2-an386" not in listed
    check_error("debug_pyocd_board", "debug", model, "--board", "mps2-an386", *probe, "pyocd")
    monkeypatch.setenv("PATH", "")
    check_error("debug_no_gdb", "debug", model, "--board", "pico", "--script", __file__)


@pytest.mark.parametrize(
    ("name", "board", "ms"), [("none", "mps2-an386", 1000), ("short", "pico", 5), ("long", "pico", 9000)]
)
def test_watchdog(name: str, board: str, ms: int, folder: Path) -> None:
    check_error(f"watchdog_{name}", "run", copy_model("tiny", folder), "--board", board, "--watchdog", str(ms))


@pytest.mark.parametrize(
    ("name", "board"), [("missing", "pico"), ("empty", "pico"), ("host", "host"), ("idle", "pico")]
)
def test_app(name: str, board: str, folder: Path) -> None:
    """A folder that is not there or has no C, a board that takes none, an application that never runs the model, and
    leaves core 1 alone."""
    app = folder / "app"
    if name != "missing":
        app.mkdir()
    if name == "idle":
        (app / "main.c").write_text("void bt_main(void) { for (;;) { } }\n")
    check_error(f"app_{name}", "build", copy_model("tiny", folder), "--board", board, "--app", "app")
