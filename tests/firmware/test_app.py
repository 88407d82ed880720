"""Applications of the user's own: linked with the model, started, on one core or two; and what can be wrong."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import baretorch
from baretorch.errors import CompileError
from baretorch.firmware.build import build
from baretorch.firmware.types import Image
from baretorch.machines import open_machine
from baretorch.machines.rp2040js.machine import Rp2040JsMachine
from baretorch.machines.rp2040js.node import is_installed
from baretorch.machines.types import Machine
from baretorch.options import Console
from baretorch.targets.boards import load_board
from tests.machines.images import GLUE, REVERSE, RUN
from tests.symbols import symbols_of

ASKS = """\
#include "bt_runtime.h"
#include "words/words.h"

void bt_main(void)
{
    uint8_t *in = bt_the_model.inputs[0].data;
    int unused;
    for (unsigned i = 0; i < bt_the_model.inputs[0].bytes; i++) {
        in[i] = (uint8_t)(i + 97);
    }
    bt_model_call();
    for (unsigned i = 0; i < bt_the_model.outputs[0].bytes; i++) {
        bt_console_put(((uint8_t *)bt_the_model.outputs[0].data)[i]);
    }
    for (;;) {
        bt_print(words());
        bt_console_get();
    }
}
"""
WORDS = """\
#include "words.h"
#include "bt_board.h"
const char *words(void) { return " on " BT_BOARD_NAME "\\n"; }
"""
TWO_CORES = """\
#include "bt_runtime.h"

static volatile unsigned from_core1;

void bt_core1_main(void)
{
    for (unsigned i = 1;; i++) {
        from_core1 = i;
    }
}

void bt_main(void)
{
    bt_model_call();
    while (from_core1 < 50) {
    }
    bt_print("core 1 counts\\n");
    for (;;) {
    }
}
"""


def built(tmp_path: Path, files: dict[str, str], board: str = "pico", toolchain: str | None = None) -> Image:
    app, model = tmp_path / "app", tmp_path / "glue.c"
    for name, text in files.items():
        (app / name).parent.mkdir(parents=True, exist_ok=True)
        (app / name).write_text(text)
    model.write_text(GLUE.format(body=REVERSE, inputs=16, outputs=16))
    made = load_board(board).with_console(Console.UART)
    return build("toy", made, tmp_path, [model], tmp_path, RUN, toolchain, app=app)


def said(machine: Machine, until: bytes) -> bytes:
    heard, deadline = b"", time.monotonic() + 60
    while until not in heard:
        assert time.monotonic() < deadline, heard
        heard += machine.read(60)
    return heard


def test_it_runs_instead_of_the_server(tmp_path: Path) -> None:
    files = {"main.c": ASKS, "words/words.c": WORDS, "words/words.h": "const char *words(void);\n"}
    image = built(tmp_path, files, "mps2-an386")
    machine = open_machine(image, RUN)
    try:
        assert said(machine, b"\n") == b"ponmlkjihgfedcba on mps2-an386\n"
        machine.write(b"x")
        assert said(machine, b"\n") == b" on mps2-an386\n"
    finally:
        machine.close()
    assert "bt_serve" not in symbols_of(image.elf)


@pytest.mark.skipif(not is_installed(), reason="rp2040js is not installed")
def test_core_1_is_its_own(tmp_path: Path) -> None:
    machine = Rp2040JsMachine(built(tmp_path, {"main.c": TWO_CORES}), RUN, app=True)
    try:
        assert said(machine, b"\n") == b"core 1 counts\n"
    finally:
        machine.close()


@pytest.mark.parametrize(
    ("files", "what", "found"),
    [
        ({"main.c": "void bt_main(void) { word }\n"}, "--app: gcc does not compile main.c", "word"),
        ({"main.c": "void other(void) {}\n"}, "--app: gcc does not link it with the model", "bt_main"),
    ],
)
def test_wrong_c(files: dict[str, str], what: str, found: str, tmp_path: Path) -> None:
    """The error contains the compiler's own words."""
    with pytest.raises(CompileError) as caught:
        built(tmp_path, files, toolchain="gcc")
    assert caught.value.what == what
    assert any(found in line for line in caught.value.have)
    assert not list(tmp_path.glob("toy.*"))


def test_python_cannot_talk_to_it(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(ASKS)
    sine = Path(__file__).parents[2] / "examples" / "sine" / "model.py"
    model = baretorch.compile(sine, board="pico", app=tmp_path)
    with pytest.raises(CompileError, match="does not run the server"):
        model.run([[0.5]])
