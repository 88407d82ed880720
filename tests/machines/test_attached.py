"""Camera and display of the Pico4ML work with the firmware of examples/pico4ml, around a model that counts ink. The
camera's pixels are on the display, the console prints what vision.c makes of them, and every failure is reported and
survived."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from enum import StrEnum
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image as Picture

from baretorch.errors import CompileError
from baretorch.firmware.build import build
from baretorch.firmware.types import Image
from baretorch.frontends.user_code import import_file
from baretorch.machines.rp2040js.attached import Attached, By
from baretorch.machines.rp2040js.node import is_installed
from baretorch.machines.types import DeviceFault
from baretorch.options import Console, Weights
from baretorch.targets.boards import load_board
from tests.machines.images import GLUE, RUN

EXAMPLE = Path(__file__).parents[2] / "examples" / "pico4ml"
photo, emulate = (import_file(EXAMPLE / f"{name}.py") for name in ("photo", "emulate"))
needs_rp2040js = pytest.mark.skipif(not is_installed(), reason="rp2040js is not installed")

DIGITS = 20
COUNTS_INK = """\
void __attribute__((noinline)) toy_run(const void *from, void *to)
{
    const float *x = from;
    float *y = to;
    uint32_t ink = 0;
    for (uint32_t i = 0; i < 784; i++) {
        ink += x[i] > 0.5f;
    }
    for (uint32_t i = 0; i < 10; i++) {
        y[i] = i == ink % 10 ? 0.75f : 0.0f;
    }
}
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    return around(4 * 784, 4 * 10, tmp_path_factory.mktemp("camera"))


class Breaks(StrEnum):
    """The parts that can fail."""

    UNPLUGGED = "unplugged"  # the camera is missing
    OTHER_CHIP = "other chip"  # a chip with another number is at the camera's address
    NO_FRAMES = "no frames"  # it responds, and sends none
    BUS_STUCK = "bus stuck"  # SDA is held low
    CLOCK_STUCK = "clock stuck"  # SCL is
    DISPLAY_SILENT = "display silent"  # it does nothing
    DISPLAY_STUCK = "display stuck"  # the SPI controller never sends its data


class PinFault(NamedTuple):
    """Something is out of order from one millisecond after power-up to another."""

    what: Breaks
    begin_ms: float
    end_ms: float


def around(inputs: int, outputs: int, folder: Path, app: Path = EXAMPLE / "firmware") -> Image:
    """The firmware around a model with that many bytes."""
    model = folder / "glue.c"
    model.write_text(GLUE.format(body=COUNTS_INK, inputs=inputs, outputs=outputs))
    board = load_board("pico4ml").with_console(Console.UART)
    return build("toy", board, folder, [model], folder, RUN, app=app)


def changed(folder: Path, old: str, new: str) -> Path:
    """Return a copy of the firmware whose camera driver is changed in one place."""
    app = shutil.copytree(EXAMPLE / "firmware", folder / "firmware")
    driver = app / "drivers" / "hm01b0.c"
    source = driver.read_text()
    assert source.count(old) == 1
    driver.write_text(source.replace(old, new))
    return app


@cache
def frames() -> tuple[np.ndarray, ...]:
    with np.load(EXAMPLE.parent / "mnist" / "sample.npz") as sample:
        digits = sample["t10k_images"][:3].reshape(-1, 784) / np.float32(255)
    return tuple(photo.photographs(digits, seed=1))


def watched(image: Image, folder: Path, until: Callable[[Any], bool], *faults: PinFault, by: By = By.BYTES) -> Any:
    file = emulate.write_frames(frames(), folder / "frames.raw")
    return emulate.watch(image, RUN, Attached(file, by, 1, True, faults), until)


def on_display(grey: np.ndarray) -> np.ndarray:
    """Levels of grey as RGB565 shows them."""
    five, six = grey >> 3, grey >> 2
    return np.stack([five << 3 | five >> 2, six << 2 | six >> 4, five << 3 | five >> 2], -1)


def picture(seen: Any, number: int) -> np.ndarray:
    return np.asarray(Picture.open(BytesIO(seen.pictures[number][1])))


def ink(frame: np.ndarray) -> int:
    seen = photo.Vision()(photo.seen(frame))
    assert seen is not None
    return int((seen / 255 > 0.5).sum()) % 10


@needs_rp2040js
def test_frames_reach_display_and_model(image: Image, tmp_path: Path) -> None:
    """Bit by bit at the pins, through the program of PIO."""
    seen = watched(image, tmp_path, lambda w: len(w.pictures) > 2 and len(w.answers) > 1, by=By.PINS)
    assert seen.said == ["pico4ml: toy on pico4ml", "camera: frames come"]
    for number in range(2):
        shown = picture(seen, number)
        assert shown.shape == (160, 80, 3)
        np.testing.assert_array_equal(shown[:80], on_display(photo.seen(frames()[number])))
        answer = seen.answers[number]
        assert (answer.scene, answer.digit, answer.percent) == (number, ink(frames()[number]), 75)
    beside = [picture(seen, n)[80:140, 44:].any(2) for n in (0, 1)]  # a digit and its percents
    assert beside[0].any(1).sum() == 6 and beside[1].any(1).sum() > 40, "no answer yet: a dash"
    vision = photo.Vision()(photo.seen(frames()[0]))  # the answer to the first is in the second picture
    np.testing.assert_array_equal(picture(seen, 1)[92:120, 6:34], on_display(vision.reshape(28, 28)))
    assert 20 <= seen.pictures_per_second < 20.5


@needs_rp2040js
def test_a_camera_that_is_not_flipped_shows_the_scene_upside_down(tmp_path: Path) -> None:
    """The board sends rows from the bottom to the top with 0x0101 = 0x01, and the firmware reads them in the order of
    arrival."""
    app = changed(tmp_path, "#define ORIENTATION 0x03u", "#define ORIENTATION 0x01u")
    seen = watched(around(4 * 784, 4 * 10, tmp_path, app), tmp_path, lambda w: len(w.pictures) > 1)
    np.testing.assert_array_equal(picture(seen, 0)[:80], on_display(photo.seen(frames()[0][::-1])))


@needs_rp2040js
def test_a_register_that_the_camera_does_not_model_ends_the_run(tmp_path: Path) -> None:
    app = changed(tmp_path, "{0x0383, 0x01}", "{0x0205, 0x10}")
    with pytest.raises(DeviceFault) as fault:
        watched(around(4 * 784, 4 * 10, tmp_path, app), tmp_path, lambda w: len(w.pictures) > 1)
    assert "the HM01B0: register 0x0205 is not modelled, and 0x10 is written" in fault.value.render()


@needs_rp2040js
@pytest.mark.slow
def test_digits_that_are_upside_down_are_misread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The small CNN of the demo reads the same photographs with the firmware as it is, and with 0x0101 = 0x01."""
    with np.load(EXAMPLE.parent / "mnist" / "sample.npz") as sample:
        digits, labels = sample["t10k_images"][:DIGITS].reshape(-1, 784) / np.float32(255), sample["t10k_labels"]
    right = []
    for name, value in (("upright", "0x03u"), ("down", "0x01u")):
        folder = tmp_path / name
        folder.mkdir()
        app = changed(folder, "#define ORIENTATION 0x03u", f"#define ORIENTATION {value}")
        monkeypatch.setattr(emulate, "FIRMWARE", app)
        image, symbol = emulate.built(EXAMPLE / "digits.py", folder / "image", Weights.RAM)
        file = emulate.write_frames(photo.photographs(digits, seed=1), folder / "frames.raw")
        seen = emulate.watch(image, symbol, Attached(file, By.BYTES), lambda w: len(scenes(w)) == DIGITS)
        right.append(sum(a.digit == labels[a.scene] for a in emulate.by_scene(seen.answers)))
    assert right[0] >= 0.95 * DIGITS and right[1] <= 0.6 * DIGITS


def scenes(seen: Any) -> set[int]:
    return {answer.scene for answer in seen.answers}


def test_frames_that_are_none(image: Image, tmp_path: Path) -> None:
    (tmp_path / "frames.raw").write_bytes(b"\0" * 1000)
    with pytest.raises(CompileError, match="holds no frames"):
        Attached(tmp_path / "frames.raw").about(image.board, 3)
    (tmp_path / "frames.raw").write_bytes(b"\0" * 324 * 324)
    with pytest.raises(CompileError, match="pico has no camera"):
        Attached(tmp_path / "frames.raw").about(load_board("pico"), 3)


@needs_rp2040js
@pytest.mark.slow
def test_a_model_of_other_sizes_is_reported_and_not_written_to(tmp_path: Path) -> None:
    """Writing 784 floats would exceed the input's 784 bytes with `--io int8`."""
    image = around(784, 10, tmp_path)
    seen = watched(image, tmp_path, lambda w: len(w.pictures) > 3)
    said = "model: it does not take 784 floats and give ten: nothing is read"
    assert seen.said == ["pico4ml: toy on pico4ml", said, "camera: frames come"] and not seen.answers


@needs_rp2040js
@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "begin", "end", "told", "better", "red"),
    [
        (Breaks.UNPLUGGED, 0, 1000, "camera: nobody answers on the I2C bus", "camera: frames come", True),
        (Breaks.UNPLUGGED, 980, 2000, "camera: nobody answers on the I2C bus", "camera: frames come", True),
        (Breaks.BUS_STUCK, 0, 1000, "camera: the I2C bus is held low", "camera: frames come", True),
        (Breaks.BUS_STUCK, 980, 1200, "camera: the I2C bus is held low", "camera: frames come", True),
        (Breaks.CLOCK_STUCK, 0, 1000, "camera: the I2C bus is held low", "camera: frames come", True),
        (Breaks.CLOCK_STUCK, 980, 1200, "camera: the I2C bus is held low", "camera: frames come", True),
        (Breaks.OTHER_CHIP, 0, 1000, "camera: another chip answers", "camera: frames come", True),
        (Breaks.NO_FRAMES, 0, 1200, "camera: no frames come", "camera: frames come", True),
        (Breaks.NO_FRAMES, 980, 1200, "camera: no frames come", "camera: frames come", True),
        (Breaks.NO_FRAMES, 2000, 2200, "camera: no frames come", "camera: frames come", True),  # after rates were shown
        (Breaks.DISPLAY_SILENT, 0, 1e9, "display: it does not answer, or cannot be read", None, False),
        (
            Breaks.DISPLAY_STUCK,
            900,
            1100,
            "display: pictures do not get through",
            "display: pictures get through",
            False,
        ),
    ],
)
def test_faults_are_reported_and_survived(
    what: Breaks, begin: float, end: float, told: str, better: str | None, red: bool, image: Image, tmp_path: Path
) -> None:
    """The firmware says so on the console, and on the display if that is not the trouble, and goes on."""
    fault = PinFault(what, begin, end)

    def recovered(w: Any) -> bool:
        if told not in w.said:
            return len(w.answers) > 30  # nothing has happened
        ready = better is None or better in w.said[w.said.index(told) :]
        w.before = getattr(w, "before", None) or (len(w.answers) if ready else None)
        return ready and len(w.answers) >= w.before + 3

    seen = watched(image, tmp_path, recovered, fault)
    assert told in seen.said
    assert all(a.digit == ink(frames()[a.scene]) for a in seen.answers)
    reds = [(picture(seen, n)[:80] == (255, 52, 49)).all(-1).sum() for n in range(len(seen.pictures))]
    assert (max(reds, default=0) > 50) == red, "a text on the display"
    if red:
        rates = [picture(seen, n)[142:160, 44:] for n in (int(np.argmax(reds)), 0)]
        np.testing.assert_array_equal(*rates, err_msg="0.0, as at the beginning")
    assert bool(seen.pictures) == (what is not Breaks.DISPLAY_SILENT)


@needs_rp2040js
@pytest.mark.slow
def test_by_bytes_as_by_pins(image: Image, tmp_path: Path) -> None:
    """Skipping the PIO program gives the same results and pictures, and the same times up to that of a bit."""
    found, times = [], []
    for by in By:
        (tmp_path / by).mkdir()
        seen = watched(image, tmp_path / by, lambda w: len(w.pictures) > 6, by=by)
        answers = [(a.scene, a.digit, a.percent) for a in seen.answers[:5]]
        found.append((answers, [picture(seen, n).tolist() for n in range(5)]))
        times.append([*(a.us / 1000 for a in seen.answers[:5]), *(ms for ms, _ in seen.pictures[:5])])
    assert found[0] == found[1]
    np.testing.assert_allclose(times[0], times[1], rtol=0, atol=0.002)  # milliseconds
