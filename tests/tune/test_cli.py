"""baretorch tune, all of it, and every way to go wrong."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from baretorch.cli.quantity import SIZE, TIME
from tests.cli.program import baretorch, check_golden

MODEL = """
import torch
from torch import nn

def data(seed, count):
    torch.manual_seed(7)
    centres = 1.5 * torch.randn(4, 16)
    pen = torch.Generator().manual_seed(seed)
    kinds = torch.arange(count) % 4
    return centres[kinds] + torch.randn(count, 16, generator=pen), kinds

def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 4))

def train(model):
    x, y = data(1, 400)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(40):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

def model():
    net = network()
    train(net)
    return net

def inputs(): return (data(2, 1)[0],)

def calibration(): return [(x[None],) for x in data(3, 64)[0]]

def evaluate(run, samples=200):
    x, y = data(2, samples)
    return {"accuracy": sum(int(run(a[None]).argmax()) == int(b) for a, b in zip(x, y)) / len(y), "other": 1.0}
"""
PLAIN = """
import torch
def model(): return torch.nn.Linear(4, 4)
def inputs(): return (torch.ones(1, 4),)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(MODEL)
    (tmp_path / "plain.py").write_text(PLAIN)
    (tmp_path / "bare.py").write_text(PLAIN + "def evaluate(run): return {'accuracy': 1.0}\n")
    few = PLAIN + "def calibration(): return [inputs()]\n"
    (tmp_path / "nan.py").write_text(few + "def evaluate(run): return {'accuracy': float('nan')}\n")
    (tmp_path / "loss.py").write_text(few + "def evaluate(run): return {'mse': 0.25, 'top-1 of 5': 1.0}\n")
    (tmp_path / "losses.py").write_text(few + "def evaluate(run): return {'loss': 0.25, 'mean error': 1.0}\n")
    (tmp_path / "names.py").write_text(
        few + "seen = []\ndef evaluate(run): seen.append(1); return {f'a{len(seen)}': 1.0}\n"
    )
    (tmp_path / "widths.py").write_text("WIDTHS = 0.5, 1\n" + MODEL)
    (tmp_path / "sizes.py").write_text("SIZES = 8, 16\n" + MODEL.replace("def model()", "def model(size=16)"))
    (tmp_path / "defaults.py").write_text("WIDTHS = 0.5, 1\n" + MODEL.replace("def model()", "def model(width)"))
    (tmp_path / "none.py").write_text("SIZES = ()\n" + MODEL)
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "study.db").write_bytes(b"SQLite format 3\0" + bytes(200))
    return tmp_path


@pytest.mark.slow
def test_a_model_is_found_confirmed_and_made_again(folder: Path) -> None:
    arguments = ("tune", "net.py", "--board", "pico", "--flash", "11k", "--accuracy-drop", "3", "--trials", "5")
    result = baretorch(*arguments, "--target-samples", "20", "--out", "t", "--json")
    assert result.code == 0, result.err
    told = result.json()
    chosen = told["chosen"]
    assert chosen["flash"] <= 11 * 1024 < told["int8"]["flash"]
    assert chosen["accuracy"] >= told["original"] - 0.03 and told["budget"]["accuracy"] == told["original"] - 0.03
    assert told["target"] == {"accuracy": chosen["accuracy"], "samples": 20}
    assert told["trials"] == 5 and chosen in told["front"]
    assert not chosen["over"]
    assert {"t/tuned.toml", "t/tuned.html"} <= set(told["files"])
    page = (folder / "t" / "tuned.html").read_text()
    assert page.count("<circle") >= 4 and "most flash, 11,264" in page and f"{chosen['flash']:,}" in page
    # What is written makes the same image, however often.
    images = []
    for out in ("a", "b"):
        made = baretorch("run", "net.py", "--board", "pico", "--config", "t/tuned.toml", "--out", out, "--json")
        assert made.code == 0, made.err
        assert made.json()["flash"]["total"] == chosen["flash"]
        images.append((folder / out / "net.bin").read_bytes())
    assert images[0] == images[1]
    # Also where another computer rounds otherwise: all weights are in the file, none of the model file's own is taken.
    moved = MODEL.replace("    train(net)\n", "    train(net)\n    for p in net.parameters(): p.data *= 1 + 1e-3\n")
    assert moved != MODEL
    (folder / "net.py").write_text(moved)
    made = baretorch("run", "net.py", "--board", "pico", "--config", "t/tuned.toml", "--out", "c", "--json")
    assert made.code == 0, made.err
    assert (folder / "c" / "net.bin").read_bytes() == images[0]
    (folder / "net.py").write_text(MODEL)
    # And the study is there: more trials go on with it.
    again = baretorch(*arguments[:-1], "6", "--target-samples", "20", "--out", "t", "--json")
    assert again.code == 0, again.err
    assert again.json()["trials"] == 6


WIDE = (
    MODEL.replace("def network():", "def network(width):")
    .replace("nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 32)", "nn.Linear(16, width), nn.ReLU(), nn.Linear(width, 32)")
    .replace("def model():", "WIDTHS = 16, 64\n\ndef model(width=64):")
    .replace("net = network()", "net = network(width)")
)


@pytest.mark.slow
def test_a_width_is_chosen_and_written_down(folder: Path) -> None:
    """The narrow one is as good, so that nothing of the wide one is smaller."""
    (folder / "net.py").write_text(WIDE)
    arguments = ("tune", "net.py", "--board", "pico", "--accuracy-drop", "5", "--trials", "6", "--target-samples", "5")
    result = baretorch(*arguments, "--out", "t", "--json")
    assert result.code == 0, result.err
    told = result.json()
    assert told["int8"]["choice"] == "width 64" and told["chosen"]["choice"].startswith("width 16")
    assert "width = 16\n" in (folder / "t" / "tuned.toml").read_text()
    images = []
    for by in (1.0, 1.001):
        other = WIDE.replace("    return net\n", f"    for p in net.parameters(): p.data *= {by}\n    return net\n")
        (folder / "net.py").write_text(other)
        made = baretorch("run", "net.py", "--board", "pico", "--config", "t/tuned.toml", "--out", "a", "--json")
        assert made.code == 0, made.err
        assert made.json()["flash"]["total"] == told["chosen"]["flash"]
        images.append((folder / "a" / "net.bin").read_bytes())
    assert images[0] == images[1]
    again = baretorch("evaluate", "net.py", "--board", "pico", "--config", "t/tuned.toml", "--target-samples", "5")
    assert again.code == 0, again.err


@pytest.mark.slow
def test_budgets_that_nothing_meets(folder: Path) -> None:
    result = baretorch("tune", "net.py", "--board", "pico", "--flash", "8k", "--trials", "2", "--out", "t")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: none of 3 candidates meets all budgets\n")
    assert "nearest to the other budgets: " in result.err and "bytes of flash too many" in result.err
    assert "nearest with that accuracy: " in result.err and "need  accuracy at least" in result.err


@pytest.mark.slow
def test_budgets_of_time_and_ram(folder: Path) -> None:
    """The image takes the reported time."""
    (folder / "bare.py").write_text(
        MODEL.replace("def train(model)", "def learn(model)").replace("train(net)", "learn(net)")
    )
    arguments = ("tune", "bare.py", "--board", "mps2-an386", "--accuracy-drop", "20", "--trials", "6")
    result = baretorch(
        *arguments, "--time", "0.24ms", "--total-ram", "1k", "--out", "t", "--target-samples", "5", "--json"
    )
    assert result.code == 0, result.err
    told = result.json()
    chosen = told["chosen"]
    assert chosen["milliseconds"] <= 0.24 < told["int8"]["milliseconds"]
    assert chosen["ram"] <= 1024
    assert told["notes"] == ["no training: bare.py has no train(model)"]
    made = baretorch("run", "bare.py", "--board", "mps2-an386", "--config", "t/tuned.toml", "--out", "a", "--json")
    assert made.code == 0, made.err
    assert made.json()["time_ms"] == pytest.approx(chosen["milliseconds"])


PERCENT = (
    MODEL.replace("def evaluate", "def judged")
    + """
def evaluate(run, samples=100):
    x, whole = data(2, samples)[0], model().requires_grad_(False)
    far = max(float(abs(torch.as_tensor(run(a[None])) - whole(a[None])).max()) for a in x)
    return {"percent": 100 * judged(run, samples)["accuracy"] if far < 5 else float("nan")}
"""
)


@pytest.mark.slow
def test_what_cannot_be_judged_is_not_chosen(folder: Path) -> None:
    """A trial is so bad that evaluate() finds no number, which loses to any. Half a point of a metric in percent is
    half a percent. The folder's name has a space, and the command can be typed all the same."""
    (folder / "a b").mkdir()
    (folder / "a b" / "MODEL.py").write_text(PERCENT)
    told = baretorch("tune", "a b/MODEL.py", "--board", "mps2-an386", "--trials", "2", "--out", "MODELS/t")
    assert told.code == 0, told.err
    assert "(chosen)" in told.out and "no number" not in told.out and "-1000000000" not in told.out
    at_least, original = (float(re.search(f"percent {word}([0-9.]+)", told.out)[1]) for word in ("at least ", ""))  # type: ignore[index]
    assert original - at_least == pytest.approx(0.5)
    words = shlex.split(" ".join(told.out.partition("again ")[2].split()))
    assert words[:3] == ["baretorch", "run", "a b/MODEL.py"] and "MODELS/t/tuned.toml" in words
    assert baretorch(*words[1:]).code == 0
    assert "percent at least" in (folder / "MODELS" / "t" / "tuned.toml").read_text().splitlines()[0]
    other = baretorch(
        "tune", "a b/MODEL.py", "--board", "mps2-an386", "--trials", "1", "--flash", "1M", "--out", "MODELS/t"
    )
    assert "MODELS/t/tuned.toml was for mps2-an386: percent at least" in " ".join(other.out.split())


@pytest.mark.slow
@pytest.mark.parametrize("board", ["pico", "cluster8"])
def test_the_command_makes_the_image_that_was_measured(board: str, folder: Path) -> None:
    budgets = ("--total-ram", "40k", "--time", "1s", "--accuracy-drop", "20")
    arguments = ("tune", "net.py", "--board", board, *budgets, "--trials", "1", "--target-samples", "2", "--out", "t")
    told = baretorch(*arguments, "--json")
    assert told.code == 0, told.err
    chosen = told.json()["chosen"]
    again = baretorch(*arguments)  # the search is done: it only tells
    assert again.code == 0, again.err
    command = " ".join(again.out.partition("again ")[2].split())
    words = command.removeprefix("baretorch ").split()
    assert words[:2] == ["run", "net.py"] and "t/tuned.toml" in words
    made = baretorch(*words, "--out", "a", "--json")
    assert made.code == 0, made.err
    run = made.json()
    assert (run["flash"]["total"], run["ram"]["total"]) == (chosen["flash"], chosen["ram"])
    assert run["time_ms"] == pytest.approx(chosen["milliseconds"])
    assert chosen["instructions"] <= run["instructions"] < chosen["instructions"] + 500, "of calls between the layers"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("tune_evaluate", ["plain.py"]),
        ("tune_storage", ["net.py", "--storage", "redis://me:secret@host/db"]),
        ("tune_slashes", ["net.py", "--storage", "sqlite://study.db"]),
        ("tune_database", ["net.py", "--storage", "sqlite:////nowhere/at/all/study.db"]),
        ("tune_metric", ["net.py", "--metric", "acuracy", "--samples", "4"]),
        ("tune_join", ["net.py", "--join", "--storage", "sqlite:///study.db", "--samples", "4"]),
        ("tune_file", ["net.onnx"]),
        ("tune_calibration", ["bare.py"]),
        ("tune_nan", ["nan.py"]),
        ("tune_loss", ["loss.py"]),
        ("tune_losses", ["losses.py", "--metric", "mean error"]),
        ("tune_names", ["names.py", "--out", "n"]),
        ("tune_widths", ["widths.py"]),
        ("tune_sizes", ["sizes.py"]),
        ("tune_defaults", ["defaults.py"]),
        ("tune_none", ["none.py"]),
        ("tune_study", ["net.py", "--out", "damaged", "--samples", "4"]),
    ],
)
def test_errors(name: str, arguments: list[str], folder: Path) -> None:
    result = baretorch("tune", *arguments, "--board", "pico")
    assert (result.code, result.out) == (1, ""), result.err
    check_golden(f"error_{name}", re.sub("pico-[0-9a-f]{8}", "pico-HASH", result.err))  # which depends on the compiler


def test_a_time_that_is_unknown(folder: Path) -> None:
    result = baretorch("tune", "net.py", "--board", "host", "--samples", "4", "--time", "30ms")
    assert (result.code, result.out) == (1, ""), result.err
    check_golden("error_tune_time", result.err)


@pytest.mark.parametrize(
    ("text", "bytes_"), [("100", 100), ("1.5k", 1536), ("30KiB", 30720), ("30kb", 30720), ("2M", 1 << 21), ("7B", 7)]
)
def test_sizes(text: str, bytes_: int) -> None:
    assert SIZE.convert(text, None, None) == bytes_


@pytest.mark.parametrize(("text", "milliseconds"), [("5", 5.0), ("30ms", 30.0), ("500us", 0.5), ("1.5s", 1500.0)])
def test_times(text: str, milliseconds: float) -> None:
    assert TIME.convert(text, None, None) == milliseconds


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--join"], "--join needs --storage"),
        (["--flash", "10q"], "10q is not a valid size; write 61440, 60k or 1.5M"),
        (["--flash", "0"], "0 is not a valid size"),
        (["--time", "fast"], "fast is not a valid time; write 30ms or 1.5s"),
        (["--accuracy-drop", "-1"], "-1"),
        (["--accuracy-drop", "nan"], "--accuracy-drop nan is not a finite number of points"),
        (["--flash", "nan"], "nan is not a valid size"),
        (["--total-ram", "-5k"], "-5k is not a valid size"),
        (["--time", "inf"], "inf is not a valid time"),
    ],
)
def test_wrong_usage(arguments: list[str], text: str, folder: Path) -> None:
    result = baretorch("tune", "net.py", "--board", "pico", *arguments)
    assert result.code == 2
    assert text in result.err
