"""Arduino libraries built by the real arduino-builder with the real core for the Uno, and run on simavr."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from baretorch import pipeline
from baretorch.exports import BY_NAME, project
from tests.exports.test_projects import FIGURES, compiled, in_folder, run

SHARE = Path(shutil.which("arduino-builder") or "./none/none").resolve().parents[1] / "share"
CORE = SHARE / "arduino/hardware"
TOOLS = ("arduino-builder", "arduino-ctags", "avr-gcc", "simavr")
missing = [tool for tool in TOOLS if not shutil.which(tool)] + ([] if CORE.is_dir() else ["arduino-core-avr"])
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}"),
]
SECONDS = 20


def built(libraries: Path, sketch: Path, folder: Path) -> Path:
    """The Uno's program."""
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
        "arduino-builder", "-compile", "-hardware", builder, "-hardware", CORE, "-tools", builder,
        "-libraries", libraries, "-fqbn", "arduino:avr:uno", "-build-path", folder, "-warnings", "all",
        *(f"-prefs={key}={value}" for key, value in preferences.items()), sketch,
        folder=libraries,
    )  # fmt: skip
    return folder / f"{sketch.name}.elf"


def printed(elf: Path, end: str) -> str:
    """What the Uno says on its serial port, until it says this."""
    with subprocess.Popen(
        ["simavr", "-m", "atmega328p", "-f", "16000000", elf],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as child:
        said = ""
        try:
            assert child.stdout is not None
            for line in child.stdout:
                said += re.sub(r"\x1b\[\d+m|\.\.$", "", line)
                if end in said:
                    break
        finally:
            child.kill()
    return said


@pytest.mark.parametrize("model", ["sine", "softmax"])
def test_on_the_uno(model: str, tmp_path: Path) -> None:
    """And all bits of the answer are those of board host."""
    libraries = in_folder(project(compiled(model, "host"), BY_NAME["arduino"], FIGURES), tmp_path / "libraries")
    sketch = libraries / model / "examples/Answer/Answer.ino"
    bits = "({ float f = @; uint32_t b; memcpy(&b, &f, 4); b; }), HEX"
    answer = f"{model}_example_answer(i)"
    sketch.write_text(sketch.read_text().replace(f"{answer}, 6", bits.replace("@", answer)))
    said = printed(built(libraries, sketch, tmp_path / "build"), f"{model}: ")
    assert f"{model}: right" in said, said
    image = pipeline.build_image(compiled(model, "host"), tmp_path / "host")
    (expected,) = pipeline.run_image(compiled(model, "host"), image).outputs
    found = [int(word, 16) for word in re.findall(r"^\d+: ([0-9A-F]+)", said, re.MULTILINE)]
    assert found == expected.ravel().view("u4")[:16].tolist()


def test_two_models_in_one_sketch(tmp_path: Path) -> None:
    for model in ("sine", "softmax"):
        files = project(compiled(model, "host"), BY_NAME["arduino"], FIGURES)
        in_folder({f"{model}/{name}": text for name, text in files.items()}, tmp_path / model)
        shutil.copytree(tmp_path / model / model / model, tmp_path / "libraries" / model)
    sketch = tmp_path / "Both/Both.ino"
    sketch.parent.mkdir()
    sketch.write_text("""
#include <sine.h>
#include <softmax.h>

void setup() {
  Serial.begin(115200);
  sine_example_run();
  softmax_example_run();
  Serial.print("wrong: ");
  Serial.print(sine_example_wrong());
  Serial.print(" ");
  Serial.println(softmax_example_wrong());
}

void loop() {}
""")
    elf = built(tmp_path / "libraries", sketch, tmp_path / "build")
    assert "wrong: 0 0" in printed(elf, "wrong: 0 0")
