"""Projects for the SDKs that people already use: one row each in SDKS, its files below templates/.

A template is a file of that SDK in which @WORDS@ are replaced, in its text and in its name. The model, its example and
a header with the model's name lie together in the folder that the row calls `library`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from baretorch.errors import CompileError, InternalError
from baretorch.exports.example import example_c, example_h, example_of
from baretorch.firmware.types import Image
from baretorch.options import Optimize
from baretorch.pipeline import Compiled, run_image
from baretorch.report.facts import compare
from baretorch.targets.types import Board
from baretorch.version import __version__

TEMPLATES = Path(__file__).parent / "templates"
_WORD = re.compile(r"@([A-Z_]+)@")


Words: TypeAlias = Mapping[str, str]


@dataclass(frozen=True)
class Sdk:
    """One SDK: `boards` are those of ours that it knows, with the words it needs for each; None: it takes any."""

    name: str
    library: str  # where the model goes
    program: str = ""  # templates that it shares with others
    boards: Mapping[str, Words] | None = None


def _called(**boards: str) -> dict[str, Words]:
    """Boards that just have another name there."""
    return {ours.replace("_", "-"): {"SDK_BOARD": theirs} for ours, theirs in boards.items()}


_RASPBERRY = {"PLATFORM": "raspberrypi", "SDK_BOARD": "pico"}
SDKS: tuple[Sdk, ...] = (
    Sdk("cmake", "@NAME@", "plain"),
    Sdk("make", "@NAME@", "plain"),
    Sdk("pico-sdk", "@NAME@", boards=_called(pico="pico", pico4ml="pico", pico2="pico2", pico2w="pico2_w")),
    Sdk("arduino", "@NAME@/src"),
    Sdk(
        "platformio",
        "lib/@NAME@/src",
        boards={
            "pico": _RASPBERRY,
            "pico4ml": _RASPBERRY,
            "nucleo-wb55rg": {"PLATFORM": "ststm32", "SDK_BOARD": "nucleo_wb55rg"},
            "nucleo-h743zi": {"PLATFORM": "ststm32", "SDK_BOARD": "nucleo_h743zi"},
        },
    ),
    Sdk(
        "zephyr",
        "modules/@NAME@/src",
        boards=_called(
            mps2_an385="mps2/an385",
            mps3_an547="mps3/corstone300/an547",
            nucleo_wb55rg="nucleo_wb55rg",
            nucleo_h743zi="nucleo_h743zi",
            microbit="bbc_microbit",
            pico="rpi_pico",
            pico2="rpi_pico2/rp2350a/m33",
            pico2w="rpi_pico2/rp2350a/m33/w",
        ),
    ),
    Sdk("esp-idf", "components/@NAME@", boards=_called(host="esp32", virt_rv32="esp32c3")),
    Sdk(
        "mbed-ce",
        "@NAME@",
        boards={
            "nucleo-wb55rg": {
                "SDK_BOARD": "NUCLEO_WB55RG",
                "PYOCD": "STM32WB55RGVx",
                "OPENOCD": "target/stm32wbx.cfg",
            },
            "nucleo-h743zi": {
                "SDK_BOARD": "NUCLEO_H743ZI2",
                "PYOCD": "STM32H743ZITx",
                "OPENOCD": "target/stm32h7x.cfg",
            },
        },
    ),
)
BY_NAME = {sdk.name: sdk for sdk in SDKS}


def project(compiled: Compiled, sdk: Sdk, figures: Mapping[str, object]) -> dict[str, str]:
    """All files of the project by their paths in it. `figures` are the model's, for README.md and model.json."""
    need_board(sdk, compiled.board)
    example = example_of(compiled)
    name, board = example.names.model, compiled.board
    kept = {**compiled.c.files, "example.h": example_h(example), "example.c": example_c(example)}
    sources = sorted(f"{name}/{path}" for path in kept if path.endswith(".c"))
    words = {
        "NAME": name,
        "UP": name.upper(),
        "VERSION": __version__,
        "BOARD": board.name,
        "CC": f"{board.chip.cpu.gcc_prefix}gcc",
        "CPU_FLAGS": " ".join(board.chip.cpu.gcc),
        "SOURCES": "\n    ".join(sources),
        "OPTIMIZE": "-O2" if compiled.options.optimize is Optimize.SPEED else "-Os",
        "COMMAND": compiled.options.command(board.name, f"project --sdk {sdk.name}"),
        "JUDGE": example.judge,
        "FIGURES": _table(figures),
        **(sdk.boards or {}).get(board.name, {}),
    }
    library = _filled(sdk.library, words)
    files = {f"{library}/{name}/{path}": text for path, text in kept.items()}
    for root in filter(None, ("common", sdk.program, sdk.name)):
        for path in sorted((TEMPLATES / root).rglob("*")):
            if path.is_file():
                relative = str(path.relative_to(TEMPLATES / root))
                there = f"{library}/{relative}" if root == "common" else relative
                files[_filled(there, words)] = _filled(path.read_text("utf-8"), words)
    files[f"{library}/model.json"] = json.dumps(figures, indent=2) + "\n"
    return files


def figures_of(compiled: Compiled, image: Image) -> dict[str, int | float | str]:
    """What the model takes on its board: bytes of an image, and time if an emulator runs the board. An image that an
    emulator shows to be wrong is an error here too."""
    figures: dict[str, int | float | str] = {
        "board": compiled.board.name,
        "code_bytes": image.flash.model_code,
        "weights_bytes": image.flash.weights,
        "ram_bytes": image.ram.arena,
        "multiply_accumulates": compiled.graph.macs(),
    }
    if not compiled.board.emulators:
        return figures
    run = compare(compiled, image, run_image(compiled, image)).to_json()
    timed = {key: run[key] for key in ("instructions", "time_ms", "stack_peak") if run.get(key) is not None}
    return figures | timed


def need_board(sdk: Sdk, board: Board) -> None:
    if sdk.boards is not None and board.name not in sdk.boards:
        raise CompileError(
            f"{sdk.name} does not know {board.name}",
            need=f"one of {', '.join(sorted(sdk.boards))}",
            try_="--sdk cmake or --sdk make, which take any board",
        )


def _filled(text: str, words: Mapping[str, str]) -> str:
    def word(match: re.Match[str]) -> str:
        if match[1] not in words:
            raise InternalError(f"no word for {match[0]} of a template")
        return words[match[1]]

    return _WORD.sub(word, text)


def _table(figures: Mapping[str, object]) -> str:
    return "\n".join(f"| {key.replace('_', ' ')} | {_figure(value)} |" for key, value in figures.items())


def _figure(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
