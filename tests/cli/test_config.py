"""--config: a precision for each layer, from a TOML."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
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
    (folder / "c.toml").write_text('[layers]\n"0" = "int4"\n"3" = "int4g32"\n')
    arguments = ("compile", "net.py", "--board", "mps2-an386", "--int8", "--config", "c.toml", "--out", "c")
    assert baretorch(*arguments).code == 0
    text = (folder / "c" / "model.c").read_text()
    assert "bt_qconv2d4_dsp(" in text
    assert "bt_qlinear4_groups_dsp(" in text
    assert "--config c.toml" in (folder / "c" / "model.h").read_text()


def test_layers_of_int16_meet_those_of_int8(folder: Path) -> None:
    (folder / "c.toml").write_text('[layers]\n"0" = "int16"\n"3" = "int16"\n')
    arguments = ("compile", "net.py", "--board", "mps2-an386", "--int8", "--config", "c.toml", "--out", "c")
    assert baretorch(*arguments).code == 0
    text = (folder / "c" / "model.c").read_text()
    called = ["bt_quantize16_ref(", "bt_qconv2d16_dsp(", "bt_qmax_pool16_dsp(", "bt_qconv2d16_rows_dsp("]
    assert all(name in text for name in called)
    assert text.count("bt_narrow_ref(") == 1, "only before softmax"


def test_float16_is_float_with_half_the_weights(folder: Path) -> None:
    """And a model whose layers are all named may have no int8 at all."""
    layers = {"0": "float16", "1": "float", "2": "float", "3": "float16", "4": "float"}
    (folder / "c.toml").write_text("[layers]\n" + "".join(f'"{name}" = "{p}"\n' for name, p in layers.items()))
    result = baretorch("run", "net.py", "--board", "mps2-an386", "--config", "c.toml", "--json")
    assert result.code == 0, result.err
    found = json.loads(result.out)
    assert 0 < found["max_error"] < 1e-3
    assert found["flash"]["weights"] == 2 * (4 * 9 + 8 * 36) + 4 * (4 + 8)


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


def test_channels_are_left_out_and_weights_are_those_of_a_file(folder: Path) -> None:
    """And --config alone means int8."""
    (folder / "c.toml").write_text('weights = "w.npz"\n[layers]\n"0" = "int4"\n[removed]\n"0" = "0, 2-2"\n')
    made = []
    for value in (0.5, 5.0):
        np.savez(folder / "w.npz", **{"3.bias": np.full(8, value, np.float32)})
        result = baretorch("compile", "net.py", "--board", "mps2-an386", "--config", "c.toml", "--out", "c")
        assert result.code == 0, result.err
        made.append([(folder / "c" / name).read_text() for name in ("model.c", "weights.c")])
    assert "bt_qconv2d4_dsp(" in made[0][0]
    assert ".out = 2," in made[0][0] and ".in = 18," in made[0][0]  # of 4 channels, and of 36 numbers
    biases = [re.findall(r"net_3_bias\[8\] = \{([^}]*)\}", weights)[0] for _, weights in made]
    assert all(int(b) > int(a) for a, b in zip(*(text.split(",") for text in biases), strict=True))


SIZED = """
import torch
from torch import nn
WIDTHS, SIZES = (0.5, 1), (8, 16)
def model(width=1, size=16): return nn.Sequential(nn.Linear(size, int(width * 12)), nn.Linear(int(width * 12), 4))
def inputs(size=16): return (torch.ones(1, size),)
def calibration(size=16): return [inputs(size)]
"""


def test_widths_and_sizes(folder: Path) -> None:
    """Widths and sizes that are not named keep the defaults of the file."""
    (folder / "net.py").write_text(SIZED)
    shapes = {"width = 0.5\n": (16, 6), "size = 8\nwidth = 1\n": (8, 12)}
    for text, (inputs, outputs) in shapes.items():
        (folder / "c.toml").write_text(f"{text}[layers]\n")
        result = baretorch("compile", "net.py", "--board", "mps2-an386", "--config", "c.toml", "--out", "c")
        assert result.code == 0, result.err
        text = (folder / "c" / "model.c").read_text()
        assert f".in = {inputs}," in text and f".out = {outputs}," in text


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
        ("config_no_groups", '[layers]\n"0" = "int4g32"\n'),
        ("config_no_float16", '[layers]\n"4" = "float16"\n'),
        ("config_no_int16", '[layers]\n"2" = "int16"\n'),
        ("config_no_toml", '[layers\n"3" = "int4"\n'),
        ("config_no_layers", 'precision = "int4"\n'),
        ("config_channels", '[layers]\n[removed]\n"0" = "1, 3-2"\n'),
        ("config_whole", '[layers]\n[removed]\n"3" = "1"\n'),
        ("config_all_channels", '[layers]\n[removed]\n"0" = "0-3"\n'),
        ("config_elsewhere", 'weights = "../w.npz"\n[layers]\n'),
        ("config_no_weights_file", 'weights = "w.npz"\n[layers]\n'),
        ("config_other_weights", 'weights = "other.npz"\n[layers]\n'),
        ("config_large_weights", 'weights = "large.npz"\n[layers]\n'),
        ("config_scale", 'weights = "scale.npz"\n[layers]\n'),
        ("config_width", "width = 0.5\n[layers]\n"),
        ("config_size", 'size = "large"\n[layers]\n'),
    ],
)
def test_what_a_config_may_not_say(name: str, text: str, folder: Path) -> None:
    (folder / "c.toml").write_text(text)
    np.savez(folder / "other.npz", **{"3.bias": np.zeros(9, np.float32)})
    np.savez(folder / "scale.npz", **{"scale of x": np.array([-0.5, 3.0])})
    np.savez_compressed(folder / "large.npz", **{"3.bias": np.zeros(1 << 20, np.float32)})
    result = baretorch("compile", "net.py", "--board", "pico", "--config", "c.toml", "--out", "c")
    assert (result.code, result.out) == (1, ""), result.err
    check_golden(f"error_{name}", result.err)


def test_a_weight_beyond_float16(folder: Path) -> None:
    """It is stored divided by a power of two."""
    far = "plain = model\ndef model():\n    net = plain()\n    net[3].weight.data[0, 0] = -7e4\n    return net\n"
    (folder / "net.py").write_text(MODEL + far)
    (folder / "c.toml").write_text('[layers]\n"3" = "float16"\n')
    result = baretorch("compile", "net.py", "--board", "pico", "--config", "c.toml", "--out", "c")
    assert result.code == 0, result.err
    assert "bt_linear_half_f32" in (folder / "c" / "model.c").read_text()


def test_a_config_that_is_not_there(folder: Path) -> None:
    result = baretorch("compile", "net.py", "--board", "pico", "--int8", "--config", "d.toml", "--out", "c")
    assert result.code == 1
    check_golden("error_config_missing", result.err)
