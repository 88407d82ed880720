"""The emulated HM01B0 alone: what each register that the firmware of examples/pico4ml writes does to frames, and that
everything else is refused by name."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from baretorch.machines.rp2040js.machine import PROGRAM
from baretorch.machines.rp2040js.node import find_node, is_installed

pytestmark = pytest.mark.skipif(not is_installed(), reason="rp2040js is not installed")

DRIVER = Path(__file__).parents[2] / "examples" / "pico4ml" / "firmware" / "drivers" / "hm01b0.c"
HERE = Path(__file__).parent
Step = list[int] | str

MODE, ORIENTATION, RESET, APPLY = 0x0100, 0x0101, 0x0103, 0x0104
FRAME_LINES, LINE_CLOCKS, STEP_X, STEP_Y, BINNING = 0x0340, 0x0342, 0x0383, 0x0387, 0x0390
EXPOSURE, MEAN, LONGEST, WINDOW, INTERFACE, CLOCKS = 0x2100, 0x2101, 0x2105, 0x3010, 0x3059, 0x3060


def firmware_writes() -> dict[int, int]:
    """Return the registers that the driver writes, in its order, as the C source lists them."""
    source = DRIVER.read_text()
    names = {name: int(value, 0) for name, value in re.findall(r"#define (\w+) (\w+?)u\b", source)}
    table = source[source.index("set_up[][2] = {") : source.index("};", source.index("set_up[][2] = {"))]
    rows = re.findall(r"\{(0x[0-9a-f]{4}), (.+?)\},", table)
    return {int(register, 16): eval(value, {}, names) for register, value in rows}


def setting(which: int, *values: int) -> list[int]:
    return [which >> 8, which & 0xFF, *values]


def start(**changed: int) -> list[Step]:
    """Return the steps that start the sensor as the firmware does, with registers changed (`r0101=1`)."""
    values = firmware_writes() | {int(name[1:], 16): value for name, value in changed.items()}
    return [setting(RESET, 0), *(setting(which, value) for which, value in values.items())]


def scene() -> np.ndarray:
    """Return a scene without symmetry, with neither black nor white in it."""
    lot = np.random.default_rng(0)
    return lot.integers(1, 200, (324, 324), dtype=np.uint8)


def run(folder: Path, *programs: list[Step]) -> list[list[Any]]:
    file = folder / "scene.raw"
    file.write_bytes(scene().tobytes())
    library = PROGRAM.with_name("hm01b0.mjs")
    command = [find_node(), str(HERE / "hm01b0.mjs"), str(library), str(file), json.dumps(programs)]
    return list(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def pixels(found: str, wide: int = 324) -> np.ndarray:
    return np.frombuffer(base64.b64decode(found), np.uint8).reshape(-1, wide)


def test_the_firmware_starts_it(tmp_path: Path) -> None:
    ((streams, shape, frame),) = run(tmp_path, [*start(), "streams", "shape", "frame"])
    assert streams and shape == {"wide": 324, "high": 324, "part": 1, "clocks": 376, "lines": 344}
    np.testing.assert_array_equal(pixels(frame), scene())


def test_mirror_and_flip(tmp_path: Path) -> None:
    """The board carries the sensor rotated by 180 degrees: both bits are needed for an upright image."""
    found = run(tmp_path, *([*start(r0101=value), "frame"] for value in range(4)))
    upright = scene()
    for (frame,), want in zip(found, (upright[::-1, ::-1], upright[::-1], upright[:, ::-1], upright), strict=True):
        np.testing.assert_array_equal(pixels(frame), want)


def test_orientation_after_a_reset_is_that_of_the_sensor(tmp_path: Path) -> None:
    steps = [step for step in start() if step[:2] != [0x01, 0x01]]
    ((frame,),) = run(tmp_path, [*steps, "frame"])
    np.testing.assert_array_equal(pixels(frame), scene()[::-1, ::-1])


def test_lines_and_frames_have_their_lengths(tmp_path: Path) -> None:
    longer = start(r0340=2, r0341=0, r0342=1, r0343=0x90, r2105=1, r2106=0xFE)
    ((shape,),) = run(tmp_path, [*longer, "shape"])
    assert (shape["clocks"], shape["lines"]) == (400, 512)


def test_window_and_binning(tmp_path: Path) -> None:
    window: dict[str, int] = {"r3010": 1, "r0340": 1, "r0341": 0x04, "r2105": 1, "r2106": 0x02}
    small: dict[str, int] = {
        "r3010": 1,
        "r0340": 0,
        "r0341": 0x80,
        "r0342": 0,
        "r0343": 0xD7,
        "r2105": 0,
        "r2106": 0x7E,
    }
    steps = {"r0383": 3, "r0387": 3, "r0390": 3}
    found = run(tmp_path, [*start(**window), "frame"], [*start(**small, **steps), "shape", "frame"])
    np.testing.assert_array_equal(pixels(found[0][0]), scene()[40:284])
    shape, frame = found[1]
    assert (shape["wide"], shape["high"]) == (162, 122)
    means = scene()[40:284].reshape(122, 2, 162, 2).mean((1, 3))
    np.testing.assert_array_equal(pixels(frame, 162), np.floor(means + 0.5))


def test_the_mean_follows_its_target(tmp_path: Path) -> None:
    ((frame,),) = run(tmp_path, [*start(r2101=0xBE), "frame"])
    np.testing.assert_array_equal(pixels(frame), np.minimum(255, 2 * scene().astype(int)))


def test_bits_are_sent_in_the_order_of_the_register(tmp_path: Path) -> None:
    ((frame,),) = run(tmp_path, [*start(r3060=0x20), "frame"])
    want = np.packbits(np.unpackbits(scene()[..., None], axis=2, bitorder="little"), axis=2)[..., 0]
    np.testing.assert_array_equal(pixels(frame), want)


def test_grouped_registers_wait_until_they_are_applied(tmp_path: Path) -> None:
    change = setting(ORIENTATION, 0)
    found = run(tmp_path, [*start(), change, "frame", setting(APPLY, 1), "frame"])[0]
    np.testing.assert_array_equal(pixels(found[0]), scene())
    np.testing.assert_array_equal(pixels(found[1]), scene()[::-1, ::-1])


def test_the_number_of_a_register_counts_up(tmp_path: Path) -> None:
    """A transfer of several bytes writes, or reads, one register after the other."""
    lengths = setting(FRAME_LINES, 0x02, 0x00, 0x01, 0x90)
    found = run(tmp_path, [lengths, setting(FRAME_LINES), *["read"] * 4], [setting(0x0000), "read", "read"])
    assert found == [[0x02, 0x00, 0x01, 0x90], [0x01, 0xB0]]


def test_standby_reset_and_the_count_of_frames(tmp_path: Path) -> None:
    stop = [*start(), "streams", setting(MODE, 0), "streams"]
    reset = [*start(), setting(RESET, 1), "streams", setting(MODE), "read", setting(ORIENTATION), "read"]
    count = [*start(), "frame", "frame", setting(0x0005), "read"]
    found = run(tmp_path, stop, reset, count)
    assert found[:2] == [[True, False], [False, 0, 0]] and found[2][-1] == 2


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ([setting(0x0202, 1)], "register 0x0202 is not modelled, and 0x01 is written"),
        ([setting(0x0001, 1)], "register 0x0001 is read-only, and 0x01 is written"),
        ([setting(0x0205), "read"], "register 0x0205 is not modelled, and is read"),
        ([setting(FRAME_LINES), "read"], "register 0x0340 is read before it is written"),
        ([setting(ORIENTATION, 4)], "value 0x04 of register 0x0101 is not modelled"),
        ([setting(MODE, 3)], "value 0x03 of register 0x0100 is not modelled"),
        ([setting(RESET, 2)], "value 0x02 of register 0x0103 is not modelled"),
        ([setting(APPLY, 0)], "value 0x00 of register 0x0104 is not modelled"),
        ([setting(STEP_X, 2)], "value 0x02 of register 0x0383 is not modelled"),
        ([setting(STEP_Y, 0)], "value 0x00 of register 0x0387 is not modelled"),
        ([setting(BINNING, 1)], "value 0x01 of register 0x0390 is not modelled"),
        ([setting(EXPOSURE, 0)], "value 0x00 of register 0x2100 is not modelled"),
        ([setting(MEAN, 0)], "value 0x00 of register 0x2101 is not modelled"),
        ([setting(WINDOW, 2)], "value 0x02 of register 0x3010 is not modelled"),
        ([setting(INTERFACE, 0x02)], "value 0x02 of register 0x3059 is not modelled: the board has one data line"),
        ([setting(CLOCKS, 0x31)], "value 0x31 of register 0x3060 is not modelled"),
        ([setting(CLOCKS, 0x10)], "value 0x10 of register 0x3060 is not modelled"),
        ([*start(), setting(CLOCKS, 0x30)], "register 0x3060 is written while the sensor streams"),
        (start(r0343=0x77), "a line of 375 clocks (0x0342) is too short: at least 376 are needed"),
        (start(r0341=0x57, r2106=0x55), "a frame of 343 lines (0x0340) is too short: at least 344 are needed"),
        (start(r2106=0x57), "a maximum exposure of 343 lines (0x2105) is not modelled"),
        (start(r0390=3), "steps 1,1 (0x0383, 0x0387) with binning 0x03 (0x0390)"),
        (start(r0387=3), "steps 1,3 (0x0383, 0x0387) with binning 0x00 (0x0390)"),
        ([s for s in start() if s[:2] != [0x01, 0x04]], "streaming starts before 0x0104 = 1 applies 0x0383, 0x0387"),
        ([s for s in start() if s[:2] != [0x21, 0x01]], "streaming starts before 0x2101 is written"),
        (["read"], "data is transferred before the number of a register"),
    ],
)
def test_what_is_not_modelled_is_refused(steps: list[Step], why: str, tmp_path: Path) -> None:
    *_, last = run(tmp_path, [*steps, "streams"])[0]
    assert why in last["refused"]


def test_every_register_that_the_firmware_writes_is_covered() -> None:
    """A register that is added to the firmware needs a model and a test."""
    known = {MODE, ORIENTATION, APPLY, STEP_X, STEP_Y, BINNING, EXPOSURE, MEAN, WINDOW, INTERFACE, CLOCKS}
    words = {FRAME_LINES, LINE_CLOCKS, LONGEST}
    assert set(firmware_writes()) == known | words | {which + 1 for which in words}
