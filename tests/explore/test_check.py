"""`baretorch check`: budgets, a baseline, and the files that it reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from baretorch.cli import run_command
from baretorch.errors import CompileError
from baretorch.explore.check import CheckedFigure, check_models, read_baseline, read_checks

MODEL = """
import torch
from torch import nn

WIDTH = 16


def model():
    net = nn.Sequential(nn.Linear(8, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 4)).eval()
    for parameter in net.parameters():
        nn.init.constant_(parameter, 0.125)
    return net


def inputs():
    return (torch.full((1, 8), 0.5),)


def calibration():
    return [(torch.full((1, 8), i / 8),) for i in range(8)]


def evaluate(run):
    answers = [float(run(torch.full((1, 8), i / 8))[0, 0]) for i in range(4)]
    return {"largest": max(answers), "rising": float(answers == sorted(answers))}
"""
BASELINE = "baretorch.baseline.json"
CHECK = '[[model]]\nfile = "net.py"\nboard = "mps2-an386"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(MODEL)
    return tmp_path


def check(*words: str) -> int:
    return run_command(["check", *words])


def rows(captured: str) -> dict[str, list[str]]:
    """Return the rows of the table by figure."""
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in captured.splitlines() if line[:1] == "|"]
    return {row[1]: row for row in cells[2:]}


def test_a_slower_model_fails_until_the_baseline_is_updated(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "baretorch.toml").write_text(CHECK)
    assert check() == 0
    assert "There is no baseline" in capsys.readouterr().out
    assert check("--update") == 0
    before = json.loads((folder / BASELINE).read_text())["models"]["net.py on mps2-an386"]
    capsys.readouterr()
    assert check() == 0
    assert rows(capsys.readouterr().out)["instructions"][5:] == ["0 %", "ok"]

    # Of another length: Python takes cached bytecode for a file of the same second and length.
    (folder / "net.py").write_text(MODEL.replace("WIDTH = 16", "WIDTH = 16 + 2"))
    assert check() == 1
    out = capsys.readouterr().out
    row = rows(out)["instructions"]
    now = int(row[2].replace(",", ""))
    assert now > 1.05 * before["instructions"]
    assert row[5] == f"{100 * (now / before['instructions'] - 1):+.2f} %"
    assert row[6] == "**worse**"
    assert "The model fails." in out and "baretorch check --update" in out

    assert check("--update") == 0
    assert check() == 0
    (folder / "net.py").write_text(MODEL)
    assert check() == 0  # better is not a failure


def test_budgets_and_metrics(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "baretorch.toml").write_text(
        CHECK + "int8 = true\nat_most = { flash = 100, largest = 10 }\nat_least = { rising = 1, instructions = 1 }\n"
    )
    assert check("--json") == 1
    (model,) = json.loads(capsys.readouterr().out)["models"]
    found = {figure["name"]: figure for figure in model["figures"]}
    assert model["model"] == "net.py int8 on mps2-an386"
    assert found["flash"]["verdict"] == "over budget" and found["flash"]["at_most"] == 100
    assert found["rising"]["value"] == 1 and found["rising"]["verdict"] == "ok"
    assert 0 < found["largest"]["value"] <= 10
    assert [name for name, figure in found.items() if figure["verdict"] != "ok"] == ["flash"]


def test_a_model_that_does_not_compile_is_one_row(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "broken.py").write_text("def model():\n    return None\ndef inputs():\n    return ()\n")
    (folder / "baretorch.toml").write_text(CHECK + CHECK.replace("net.py", "broken.py"))
    assert check() == 1
    out = capsys.readouterr().out
    assert "**error**" in out and "error: " in out and "1 of 2 models fail." in out
    assert rows(out)["flash"][6] == "ok"
    assert check("--update") == 1
    assert not (folder / BASELINE).exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no model to check"),
        ("model = 3", "there is no model to check"),
        ("tolerance = -1\n" + CHECK, "tolerance = -1 is not valid"),
        ("tolerence = 1\n" + CHECK, "unknown key 'tolerence'"),
        (CHECK + "int9 = true", "unknown key 'int9'"),
        (CHECK + "int8 = 1", "int8 is 1"),
        (CHECK + "trust = true", "trust cannot be set in this file"),
        (CHECK.replace("net.py", "../net.py"), "file = '../net.py' leads out of the folder"),
        (CHECK + 'int8 = true\ncalibration = "/data.npz"', "calibration = '/data.npz' leads out of the folder"),
        (CHECK.replace("mps2-an386", "../my.toml"), "board = '../my.toml' leads out of the folder"),
        (CHECK + CHECK, "2 models have the same name"),
        (CHECK + 'at_most = { flash = "60k" }', "invalid at_most"),
        (CHECK + "at_most = { ms = nan }", "invalid at_most"),
        (CHECK + f"at_most = {{ flash = 1{'0' * 400} }}", "invalid at_most"),
        ("[[model]]\nboard = 'host'", "file is missing"),
    ],
)
def test_invalid_files(folder: Path, text: str, message: str) -> None:
    (folder / "baretorch.toml").write_text(text)
    with pytest.raises(CompileError) as caught:
        read_checks(folder / "baretorch.toml")
    assert message in caught.value.what
    assert any("baretorch.toml" in place for place in caught.value.at) or "leads out" in message


@pytest.mark.parametrize(("key", "near"), [("int_8", "int8"), ("sample", "samples"), ("Board", "board")])
def test_an_unknown_key_suggests_options_and_own_keys(folder: Path, key: str, near: str) -> None:
    (folder / "baretorch.toml").write_text(CHECK + f"{key} = 1")
    with pytest.raises(CompileError) as caught:
        read_checks(folder / "baretorch.toml")
    assert caught.value.try_ == (f"did you mean {near!r}?",)
    assert "trust" not in str(caught.value.need) and "keep_float" in str(caught.value.need)


def test_no_file(folder: Path) -> None:
    with pytest.raises(CompileError, match=r"^no file baretorch\.toml") as caught:
        read_checks(Path("baretorch.toml"))
    assert caught.value.try_


def test_an_unknown_figure_is_an_error(folder: Path) -> None:
    (folder / "baretorch.toml").write_text(CHECK + "at_most = { risng = 1 }")
    (model,) = check_models(folder / "baretorch.toml", lambda what, done, total: None).models
    assert model.error is not None and model.error.what == "unknown figure or metric 'risng'"
    assert "'rising'" in str(model.error.try_)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "3",
        '{"version": 1, "models": [1]}',
        '{"version": 1, "models": {"a": {"flash": "1"}}}',
        "[" * 9999,
    ],
)
def test_a_damaged_baseline_is_an_error(folder: Path, text: str) -> None:
    (folder / BASELINE).write_text(text)
    with pytest.raises(CompileError, match="baseline"):
        read_baseline(folder / BASELINE)


def test_a_file_of_the_user_is_not_replaced(folder: Path) -> None:
    (folder / "baretorch.toml").write_text(CHECK)
    (folder / BASELINE).write_text("mine")
    assert check("--update") == 1
    assert (folder / BASELINE).read_text() == "mine"


@pytest.mark.parametrize(
    ("figure", "verdict"),
    [
        (CheckedFigure("flash", 101.0, before=100.0), "ok"),
        (CheckedFigure("flash", 101.1, before=100.0), "worse"),
        (CheckedFigure("flash", 50.0, before=100.0), "ok"),
        (CheckedFigure("flash", 1.0, before=0.0), "worse"),
        (CheckedFigure("flash", 0.0, before=0.0), "ok"),
        (CheckedFigure("accuracy", 0.9, least=0.8, before=0.95), "worse"),
        (CheckedFigure("accuracy", 0.99, least=0.8, before=0.9), "ok"),
        (CheckedFigure("accuracy", 0.79, least=0.8), "below budget"),
        (CheckedFigure("loss", 0.9, most=0.8), "over budget"),
        (CheckedFigure("max_error", 2.0, before=1.0), "ok"),
        (CheckedFigure("flash", 104.0, before=100.0, tolerance=5.0), "ok"),
    ],
)
def test_verdicts(figure: CheckedFigure, verdict: str) -> None:
    assert figure.verdict == verdict


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_figures_that_are_no_numbers_do_not_pass(value: float, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A metric of evaluate() may be NaN, which exceeds no limit."""
    monkeypatch.setattr("baretorch.explore.check._measure", lambda model, folder, show: {"accuracy": value})
    (folder / "baretorch.toml").write_text(CHECK + "at_least = { accuracy = 0.9 }")
    found = check_models(folder / "baretorch.toml", lambda *text: None)
    assert not found.passes
    assert f"accuracy is {value}, which no limit can be compared with" in str(found.to_json())
    with pytest.raises(CompileError, match="accuracy is"):
        check_models(folder / "baretorch.toml", lambda *text: None, update=True)


def test_the_action_and_the_hook_call_commands_that_exist() -> None:
    root = Path(__file__).parents[2]
    action, hooks = (root / "action.yml").read_text(), (root / ".pre-commit-hooks.yaml").read_text()
    assert "baretorch check" in action and "GITHUB_STEP_SUMMARY" in action
    assert "entry: baretorch check" in hooks
    assert run_command(["check", "--help"]) == 0


def test_names_with_markup_stay_in_their_cell(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "baretorch.toml").write_text(CHECK + 'name = "a | b\\n[red]"\n')
    assert check() == 0
    assert "| a \\| b [red] | flash |" in capsys.readouterr().out
