"""--config: a precision for each layer, from a TOML."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.program import baretorch, check_golden

MODEL = """
import torch
from torch import nn
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 8), nn.Softmax(-1))
def inputs(): return (torch.ones(1, 1, 8, 8),)
def calibration(): return [(torch.randn(1, 1, 8, 8),) for _ in [torch.manual_seed(1)] * 4]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(MODEL)
    return tmp_path


def test_layers_get_their_precision(folder: Path) -> None:
    (folder / "c.toml").write_text('[layers]\n"0" = "int4"\n"3" = "int4"\n')
    arguments = ("compile", "net.py", "--board", "mps2-an386", "--int8", "--config", "c.toml", "--out", "c")
    assert baretorch(*arguments).code == 0
    text = (folder / "c" / "model.c").read_text()
    assert "bt_qconv2d4_dsp(" in text
    assert "bt_qlinear4_dsp(" in text
    assert "--config c.toml" in (folder / "c" / "model.h").read_text()


def test_layers_of_int16_meet_those_of_int8(folder: Path) -> None:
    (folder / "c.toml").write_text('[layers]\n"0" = "int16"\n"3" = "int16"\n')
    arguments = ("compile", "net.py", "--board", "mps2-an386", "--int8", "--config", "c.toml", "--out", "c")
    assert baretorch(*arguments).code == 0
    text = (folder / "c" / "model.c").read_text()
    called = ["bt_widen_ref(", "bt_qconv2d16_dsp(", "bt_narrow_ref(", "bt_qconv2d16_rows_dsp("]
    assert all(name in text for name in called)


@pytest.mark.parametrize(
    ("io", "called"),
    [("float", ("bt_quantize16_ref(", "bt_dequantize16_ref(")), ("int8", ("bt_widen_ref(", "bt_narrow_ref("))],
)
def test_what_a_model_of_int16_takes_and_gives(io: str, called: tuple[str, str], folder: Path) -> None:
    layer = "def model(): return nn.Linear(8, 4)\ndef inputs(): return (torch.ones(1, 8),)\n"
    (folder / "net.py").write_text(f"import torch\nfrom torch import nn\n{layer}def calibration(): return [inputs()]\n")
    (folder / "c.toml").write_text('[layers]\n"linear" = "int16"\n')
    arguments = ("compile", "net.py", "--board", "mps2-an386", "--int8", "--config", "c.toml", "--out", "c", "--io", io)
    result = baretorch(*arguments)
    assert result.code == 0, result.err
    assert all(name in (folder / "c" / "model.c").read_text() for name in called)


def test_float_is_what_keep_float_does(folder: Path) -> None:
    (folder / "c.toml").write_text('[layers]\n"0" = "int8"\n"3" = "float"\n')
    arguments = ("compile", "net.py", "--board", "mps2-an386", "--int8", "--out", "c")
    assert baretorch(*arguments, "--config", "c.toml").code == 0
    asked = (folder / "c" / "model.c").read_text().partition("*/")[2]  # what follows the command
    assert baretorch(*arguments, "--keep-float", "3").code == 0
    assert (folder / "c" / "model.c").read_text().partition("*/")[2] == asked


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config_layer", '[layers]\n"3O" = "int4"\n'),
        ("config_precision", '[layers]\n"3" = "int-4"\n'),
        ("config_no_weights", '[layers]\n"4" = "int4"\n'),
        ("config_no_toml", '[layers\n"3" = "int4"\n'),
        ("config_no_layers", 'precision = "int4"\n'),
    ],
)
def test_what_a_config_may_not_say(name: str, text: str, folder: Path) -> None:
    (folder / "c.toml").write_text(text)
    result = baretorch("compile", "net.py", "--board", "pico", "--int8", "--config", "c.toml", "--out", "c")
    assert (result.code, result.out) == (1, ""), result.err
    check_golden(f"error_{name}", result.err)


def test_a_config_that_is_not_there(folder: Path) -> None:
    result = baretorch("compile", "net.py", "--board", "pico", "--int8", "--config", "d.toml", "--out", "c")
    assert result.code == 1
    check_golden("error_config_missing", result.err)
