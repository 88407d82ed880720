"""The camera example: its C, what it makes of photographs, and the networks that read them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from baretorch.emit import KERNELS
from baretorch.firmware.toolchain import find_toolchain
from baretorch.frontends.user_code import import_file
from baretorch.options import Optimize
from baretorch.targets.boards import load_board
from baretorch.targets.runtime import RUNTIME, board_header
from tests.zoo.zoo import ROOT

EXAMPLE = ROOT / "examples" / "pico4ml"
FIRMWARE = EXAMPLE / "firmware"
photo = import_file(EXAMPLE / "photo.py")


@pytest.fixture(scope="module")
def vision() -> Any:
    return photo.Vision()


@pytest.fixture(scope="module")
def pictures(vision: Any) -> np.ndarray:
    images, _ = digits(40)
    return np.stack([vision(photo.seen(frame)) for frame in photo.photographs(images, seed=4)])


def digits(count: int) -> tuple[np.ndarray, np.ndarray]:
    with np.load(ROOT / "examples" / "mnist" / "sample.npz") as sample:
        images = sample["t10k_images"][:count].reshape(-1, 784) / np.float32(255)
        return images, sample["t10k_labels"][:count]


def paper(level: int = 200) -> np.ndarray:
    return np.full((photo.VIEW, photo.VIEW), level, np.uint8)


@pytest.mark.parametrize("toolchain", ["gcc", pytest.param("zig", marks=pytest.mark.slow)])
def test_the_c_is_clean(toolchain: str, tmp_path: Path) -> None:
    """The C compiles with all warnings that Baretorch's own files are compiled with."""
    board = load_board("pico4ml")
    (tmp_path / "bt_board.h").write_text(board_header(board, cores=2, app=True))
    tools = find_toolchain(board, toolchain)
    for source in sorted(FIRMWARE.rglob("*.c")):
        tools.compile(source, tmp_path / "one.o", (tmp_path, RUNTIME, KERNELS, FIRMWARE), Optimize.SPEED)


def test_the_demo_fetches_its_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """VS Code starts it without `make`."""
    demo = import_file(EXAMPLE / "demo.py")
    data = import_file(ROOT / "examples" / "mnist" / "data.py")
    there: list[np.ndarray] = []
    monkeypatch.setattr(data, "fetch", lambda: there.append(np.arange(2000)))
    monkeypatch.setattr(data, "images_and_labels", lambda part: (there[0], there[0]))
    monkeypatch.setitem(sys.modules, "data", data)
    monkeypatch.setattr(sys, "path", [*sys.path])
    images, labels = demo._digits()
    assert len(images) == len(labels) == 500


def test_drivers_do_without_the_model() -> None:
    for source in (FIRMWARE / "drivers").iterdir():
        assert not {"vision.h", "screen.h", "model.h", "bt_the_model"} & set(
            source.read_text().replace('"', " ").split()
        )


def test_a_stroke_is_scaled_and_centred(vision: Any) -> None:
    """A bar wherever it is, and however the light falls, becomes one of 20 pixels around the middle."""
    light = np.linspace(0.6, 1, photo.VIEW)
    for left, top, wide, high in ((20, 15, 6, 40), (50, 40, 4, 30), (38, 8, 8, 60)):
        view = paper()
        view[top : top + high, left : left + wide] = 60
        picture = vision((view * light).astype(np.uint8)).reshape(28, 28)
        rows, columns = (np.flatnonzero(picture.max(axis) >= 128) for axis in (1, 0))
        assert 19 <= rows[-1] - rows[0] + 1 <= 21
        assert abs(columns.mean() - 14) <= 1 and abs(rows.mean() - 14) <= 1
        assert abs(len(columns) - 20 * wide / high) <= 2


def test_nothing_to_read(vision: Any) -> None:
    rng = np.random.default_rng(0)
    assert vision(paper()) is None
    assert vision(np.clip(paper() + rng.normal(0, 4, (80, 80)), 0, 255).astype(np.uint8)) is None
    speck = paper()
    speck[40:44, 40:44] = 20
    assert vision(speck) is None
    shadow = (paper() * (1 - 0.3 / (1 + np.exp(-np.linspace(-8, 8, 80))))).astype(np.uint8)
    assert vision(shadow) is None


def test_any_view_is_survived(vision: Any) -> None:
    rng = np.random.default_rng(1)
    for top in (1, 3, 256):
        for _ in range(20):
            made = vision(rng.integers(0, top, (photo.VIEW, photo.VIEW), np.uint8))
            assert made is None or made.size == 784


def test_photographs_look_like_their_digits(vision: Any) -> None:
    """The frame made from a photograph resembles its digit more than other digits made in the same way."""
    images, _ = digits(12)
    near = 0
    for n, frame in enumerate(photo.photographs(images, seed=3)):
        assert frame.shape == (324, 324) and frame.dtype == np.uint8
        picture = vision(photo.seen(frame)).astype(float)
        likeness = [np.corrcoef(picture, image)[0, 1] for image in images]
        near += int(np.argmax(likeness)) == n
    assert near >= 10


@pytest.mark.parametrize("name", [pytest.param("mlp", marks=pytest.mark.slow), "cnn"])
def test_training_on_a_small_budget(name: str, vision: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It learns the few digits it is given."""
    import torch

    train = import_file(ROOT / "examples" / "mnist" / "train.py")
    monkeypatch.setattr(train, "BATCH", 32)
    torch.manual_seed(0)
    file, prepared = train.NETWORKS[name]
    net = file.network()
    images, labels = digits(64)
    part = (images, labels.astype(np.int64))
    photos = train.photographed(images[:8], part[1][:8])
    assert train.accuracy(net, prepared, part) < 0.5
    train.train(net, prepared, part, photos, 15, lambda epoch: None)
    assert train.accuracy(net, prepared, part) > 0.7


@pytest.mark.parametrize(("name", "least"), [("digits", 0.95), ("mlp", 0.92)])
def test_networks_read_photographs(name: str, least: float, pictures: np.ndarray) -> None:
    """The networks read a few photographs in float. `make demo-mnist` shows 500 to the emulated chip."""
    import torch

    module = import_file(EXAMPLE / f"{name}.py")
    x = torch.from_numpy(pictures.astype(np.float32) / 255).reshape(-1, *module.inputs()[0].shape[1:])
    with torch.no_grad():
        found = module.model()(x).argmax(1).numpy()
    assert (found == digits(len(pictures))[1]).mean() >= least
