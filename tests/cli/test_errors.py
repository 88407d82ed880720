"""Every way a user can go wrong: exit code 1, no traceback, exactly this text."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.cli.program import baretorch, check_golden, copy_model


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


def test_syntax_error(folder: Path) -> None:
    (folder / "syntax_error.py").write_text("def model(:\n")
    check_error("syntax_error", "run", "syntax_error.py", "--board", "pico")


def test_missing_file() -> None:
    check_error("missing_file", "compile", "nowhere.py", "--board", "pico", "--out", "c")


def test_unknown_suffix(folder: Path) -> None:
    (folder / "net.tflite").write_bytes(b"")
    check_error("unknown_suffix", "build", "net.tflite", "--board", "pico")


def test_unknown_board(folder: Path) -> None:
    check_error("unknown_board", "run", copy_model("tiny", folder), "--board", "pico2v")


def test_unknown_operator() -> None:
    check_error("unknown_operator", "ops", "conv3d")


def test_dynamic_shapes(folder: Path) -> None:
    import torch

    batch = torch.export.Dim("batch")
    program = torch.export.export(torch.nn.Linear(4, 2), (torch.ones(3, 4),), dynamic_shapes=({0: batch},))
    torch.export.save(program, folder / "net.pt2")
    check_error("dynamic_shapes", "compile", "net.pt2", "--board", "pico", "--out", "c")


def test_truncated_pte(folder: Path) -> None:
    from baretorch.frontends.executorch_export import write_pte
    from tests.cli.models import tiny

    write_pte(tiny.model(), tiny.inputs(), folder / "whole.pte")
    data = (folder / "whole.pte").read_bytes()
    (folder / "net.pte").write_bytes(data[: len(data) // 2])
    check_error("truncated_pte", "compile", "net.pte", "--board", "pico", "--out", "c")


def test_missing_toolchains(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = copy_model("tiny", folder)
    monkeypatch.setenv("PATH", "")
    check_error("missing_gcc", "build", model, "--board", "pico", "--toolchain", "gcc")
    known = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "ziglang" else known(name, *rest)
    )
    check_error("missing_toolchain", "build", model, "--board", "pico")


def test_board_without_emulator(folder: Path) -> None:
    check_error("no_emulator", "run", copy_model("tiny", folder), "--board", "corstone-300")


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
    """A compile and a build that fail leave the files of the last success, and nothing beside them."""
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
