"""Arduino libraries built by the real arduino-builder with the real core, and run on simavr."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from baretorch import pipeline
from baretorch.exports import BY_NAME
from baretorch.exports.project import project_files
from baretorch.options import Io, Options
from baretorch.pipeline import Compiled, read
from baretorch.targets.boards import load_board
from tests.exports.test_projects import FIGURES, ZOO, all_right, compiled, expected_outputs, in_folder, run, steps

SHARE = Path(shutil.which("arduino-builder") or "./none/none").resolve().parents[1] / "share"
CORE = SHARE / "arduino/hardware"
TOOLS = ("arduino-builder", "arduino-ctags", "avr-gcc", "simavr")
missing = [tool for tool in TOOLS if not shutil.which(tool)] + ([] if CORE.is_dir() else ["arduino-core-avr"])
pytestmark = pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")
HARDWARE = Path(__file__).parent / "hardware"
SECONDS = 120  # of ours
UNO = ("arduino:avr:uno", "atmega328p")
MEGA = ("arduino:avr:mega:cpu=atmega2560", "atmega2560")
M1284 = ("baretorch:avr:m1284", "atmega1284p")  # ours, in HARDWARE
RAM = {"kws": 14_000}  # for its arena
ROWS = (  # model, in int8, the board that it is compiled for, and the chip that it runs on
    ("sine", False, "arduino-uno", UNO),
    ("softmax", False, "host", UNO),
    ("sine", True, "arduino-uno", UNO),
    ("streaming_gru", True, "arduino-uno", UNO),
    ("streaming_gru", True, "arduino-mega", MEGA),
    ("kws", True, str(HARDWARE / "m1284.toml"), M1284),
)


@cache
def made(model: str, int8: bool, board: str) -> Compiled:
    options = Options(int8=int8, io=Io.INT8 if int8 else Io.FLOAT, ram=RAM.get(model))
    return pipeline.compile_source(read(str(ZOO / f"{model}.py"), None, options), load_board(board), options)


def built(libraries: Path, sketch: Path, folder: Path, board: str = UNO[0]) -> Path:
    """The program for a board, as Arduino calls it."""
    prefix = Path(shutil.which("avr-gcc") or "").parents[1]
    preferences = {
        "runtime.tools.avr-gcc.path": prefix,
        "runtime.tools.avrdude.path": prefix,
        "runtime.tools.arduinoOTA.path": prefix,
        "tools.ctags.cmd.path": shutil.which("arduino-ctags"),
        "compiler.cpp.extra_flags": "-DDECIMAL_DIG=__DECIMAL_DIG__",  # the core expects a newer gcc than Debian's
    }
    folder.mkdir()
    builder = SHARE / "arduino-builder"
    run(
        "arduino-builder", "-compile", "-hardware", builder, "-hardware", CORE, "-hardware", HARDWARE,
        "-tools", builder, "-libraries", libraries, "-fqbn", board, "-build-path", folder, "-warnings", "all",
        *(f"-prefs={key}={value}" for key, value in preferences.items()), sketch,
        folder=libraries,
    )  # fmt: skip
    return folder / f"{sketch.name}.elf"


def printed(elf: Path, end: str, times: int = 1, chip: str = UNO[1]) -> str:
    """Return the text that the chip sends over its serial port until `end` has occurred `times` times."""
    with subprocess.Popen(
        ["timeout", str(SECONDS), "simavr", "-m", chip, "-f", "16000000", elf],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as child:
        said = ""
        assert child.stdout is not None
        for line in child.stdout:
            said += re.sub(r"\x1b\[\d+m|\.\.$", "", line)
            if said.count(end) == times:
                child.terminate()
    return said


QUICK = ("sine", True, "arduino-uno", UNO)


@pytest.mark.parametrize(
    ("model", "int8", "board", "chip"), [pytest.param(*r, marks=() if r == QUICK else pytest.mark.slow) for r in ROWS]
)
def test_on_a_chip(model: str, int8: bool, board: str, chip: tuple[str, str], tmp_path: Path) -> None:
    """And all bits of the answer are those of board host."""
    libraries = in_folder(project_files(made(model, int8, board), BY_NAME["arduino"], FIGURES), tmp_path / "libraries")
    sketch = libraries / model / "examples/Answer/Answer.ino"
    bits = "({ float f = @; uint32_t b; memcpy(&b, &f, 4); b; }), HEX"
    answer = f"{model}_example_answer(i)"
    sketch.write_text(sketch.read_text().replace(f"{answer}, 6", bits.replace("@", answer)))
    runs = steps(model) + 1
    said = printed(built(libraries, sketch, tmp_path / "build", chip[0]), f"{model}: ", runs, chip[1])
    assert all_right(said, model, runs), said
    host = made(model, int8, "host")
    expected = np.array(expected_outputs(host, runs), np.int8 if int8 else np.float32)
    quant = host.graph[host.graph.outputs[0]].quant
    if int8:
        assert quant is not None
        expected = np.float32(quant.scale[0]) * (expected.astype(np.int32) - quant.zero_point[0]).astype(np.float32)
    found = [int(word, 16) for word in re.findall(r"^\d+: ([0-9A-F]+)", said, re.MULTILINE)]
    assert found == expected.view("u4").tolist()


@pytest.mark.slow
def test_two_models_in_one_sketch(tmp_path: Path) -> None:
    """Both models are int8, and one of them has state."""
    models = ("sine", "streaming_gru")
    for model in models:
        files = project_files(made(model, True, "arduino-uno"), BY_NAME["arduino"], FIGURES)
        in_folder(files, tmp_path / model)
        shutil.copytree(tmp_path / model / model, tmp_path / "libraries" / model)
    sketch = tmp_path / "Both/Both.ino"
    sketch.parent.mkdir()
    sketch.write_text("""
#include <sine.h>
#include <streaming_gru.h>

void setup() {
  Serial.begin(115200);
  sine_example_run();
  streaming_gru_example_run();
  Serial.print("wrong: ");
  Serial.print(sine_example_wrong());
  Serial.print(" ");
  Serial.println(streaming_gru_example_wrong());
}

void loop() {}
""")
    said = printed(built(tmp_path / "libraries", sketch, tmp_path / "build"), "wrong: ")
    assert "wrong: 0 0" in said, said


@pytest.mark.slow
def test_c_for_another_chip_is_refused(tmp_path: Path) -> None:
    """AVR's kernels look for constants in flash: they would not find them."""
    folder = in_folder(project_files(compiled("sine", "host"), BY_NAME["arduino"], FIGURES), tmp_path)
    command = ["avr-gcc", "-mmcu=atmega328p", "-c", "-o", "model.o", "model.c"]
    done = subprocess.run(command, cwd=folder / "sine/src/sine", capture_output=True, text=True, check=False)
    assert done.returncode and '#error "made for another chip: --board arduino-uno or arduino-mega' in done.stderr
