"""Write a model as a project of an SDK, by filling the SDK's templates."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from baretorch.debug.about import DebugInfo
from baretorch.debug.session import COMMANDS
from baretorch.errors import CompileError, InternalError
from baretorch.exports import Sdk, need_name
from baretorch.exports.board import board_files
from baretorch.exports.example import example_c, example_h, example_of
from baretorch.firmware.types import Image
from baretorch.measure.run import measure_model
from baretorch.options import Console, Optimize
from baretorch.pipeline import Compiled
from baretorch.targets.types import Board
from baretorch.version import __version__

TEMPLATES = Path(__file__).parent / "templates"
RTOS_BYTES = 512  # of a thread's stack: a Cortex-M with an FPU saves 204, and waiting calls need some
UNKNOWN_BYTES = 4096  # of stack, if no bound is known
_WORD = re.compile(r"@([A-Z_]+)@")

Words: TypeAlias = Mapping[str, str]


def project_files(compiled: Compiled, sdk: Sdk, figures: Mapping[str, object]) -> dict[str, str]:
    """Return all files of the project by their paths in it. `figures` are the model's, for README.md and model.json."""
    example = example_of(compiled)
    name, board = example.names.model, compiled.board.with_console(Console.UART)
    need_name(sdk, name)
    kept = {**compiled.c.files, "example.h": example_h(example), "example.c": example_c(example)}
    below = board_files(board) if sdk.bare else {}
    openocd, target = board.openocd, board.sdk.get(sdk.name, {}).get("target")
    stack, why = _stack(board, figures)
    command = compiled.options.command(None if board.hosted else board.name, f"project --sdk {sdk.name}")
    words = {
        "NAME": name,
        "UP": name.upper(),
        "VERSION": __version__,
        "BOARD": "this computer" if board.hosted else board.name,
        "CC": f"{board.chip.cpu.gcc_prefix}gcc",
        "ARCHITECTURES": "avr" if board.chip.cpu.flash_apart else "*",  # Arduino's word for chips
        "AR": f"{board.chip.cpu.gcc_prefix}ar",
        "CPU_FLAGS": " ".join(board.chip.cpu.gcc),
        "MCPU": next((f.removeprefix("-mcpu=") for f in board.chip.cpu.gcc if f.startswith("-mcpu=")), ""),
        "MACHINE": board.qemu_machine or "",
        "PYOCD": board.pyocd_target or "",
        "INTERFACE": openocd.interface if openocd else "",
        "OPENOCD": openocd.target if openocd else "",
        **_build_words(board, name),
        "OPTIMIZE": "-O2" if compiled.options.optimize is Optimize.SPEED else "-Os",
        "COMMAND": f"{command} --out DIR",
        "JUDGE": example.judge,
        "STACK": str(stack),
        "STACK_WHY": why,
        "STACK_MORE": str(RTOS_BYTES),
        "MAIN_STACK": str(stack + sdk.main_stack),
        "FIGURES": "\n".join(f"| {what} | {value} |" for what, value in _format_figures(figures)),
        **sdk.words_for(board),
    }
    each = {
        "EACH_SOURCE": sorted(f"{name}/{path}" for path in kept if path.endswith(".c")),
        "EACH_HEADER": sorted(f"{name}/{path}" for path in kept if not path.endswith(".c")),
        "EACH_BOARD_SOURCE": sorted(path for path in below if path.endswith((".c", ".S"))),
        "EACH_STATE": [str(example.steps)] if compiled.graph.state else [],
        "EACH_PORTABLE": [""] if board.hosted else [],
        "EACH_BOARD": [] if board.hosted else [board.name],
        "EACH_TARGET": [target] if target else [],
        "EACH_KCONFIG": _kconfig(board),
        "EACH_FIGURE": [f"{what}: {value}" for what, value in _format_figures(figures)],
    }
    library = _fill(sdk.library, words)
    files = {f"{library}/{name}/{path}": text for path, text in kept.items()}
    files |= {f"board/{path}": text for path, text in below.items()}
    places = {"common": library, "licence": library.removesuffix("/src"), **sdk.more, sdk.name: ""}
    for root, place in places.items():
        folder = _template(sdk, _fill(root, words))
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                there = Path(place, path.relative_to(folder))
                files[_fill(str(there), words)] = _fill(_repeat(path.read_text("utf-8"), each), words)
    files[f"{library}/model.json"] = json.dumps(figures, indent=2) + "\n"
    if sdk.bare:
        about = DebugInfo(compiled, in_image=False).files() | {COMMANDS.name: COMMANDS.read_text("utf-8")}
        files |= {f"debug/{path}": text for path, text in about.items()}
    return files


def _template(sdk: Sdk, name: str) -> Path:
    """Return a folder of templates; its name may come from the board's TOML."""
    if name not in {path.name for path in TEMPLATES.iterdir()}:
        raise CompileError(f"[sdk.{sdk.name}] of the board names {name!r}, of which there are no templates")
    return TEMPLATES / name


def _build_words(board: Board, name: str) -> Words:
    """Return the words for Make and CMake. C for a board uses its CPU's instructions, so this computer cannot run
    it."""
    cpu = board.chip.cpu
    if board.hosted:
        return {"GOAL": f"{name}_example", "CMAKE_OPTIONS": "", "CMAKE_TARGET": ""}
    system = "-DCMAKE_SYSTEM_NAME=Generic -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY"
    compiler = f'-DCMAKE_C_COMPILER={cpu.gcc_prefix}gcc -DCMAKE_C_FLAGS="{" ".join(cpu.gcc)}"'
    return {"GOAL": f"lib{name}.a", "CMAKE_OPTIONS": f" {system} {compiler}", "CMAKE_TARGET": f" --target {name}"}


def _kconfig(board: Board) -> list[str]:
    """Return the CPU features that Zephyr must enable: without them an FPU is off, and a Cortex-M33 has no DSP."""
    cpu = board.chip.cpu
    fpu = ["depends on CPU_HAS_FPU", "select FPU"] if cpu.has_fpu else []
    dsp = ["depends on CPU_CORTEX_M33", "select ARMV8_M_DSP"] if "-mcpu=cortex-m33" in cpu.gcc else []
    return fpu + dsp


def figures_of(compiled: Compiled, image: Image) -> dict[str, int | float | str]:
    """Measure the model on its board: bytes of an image, and the time if an emulator runs the board. An image whose
    emulated results are wrong is an error."""
    figures: dict[str, int | float | str] = {
        "board": compiled.board.name,
        "code_bytes": image.flash.model_code,
        "weights_bytes": image.flash.weights,
        "ram_bytes": image.ram.arena,
        "multiply_accumulates": compiled.graph.macs(),
    }
    if image.run_stack is not None:
        figures["stack_bytes"] = image.run_stack
    if not compiled.board.emulators:
        return figures
    facts = measure_model(compiled, image).facts
    facts.need_match()
    run = facts.to_json()
    timed = {key: run[key] for key in ("instructions", "time_ms", "stack_peak") if run.get(key) is not None}
    return figures | timed


def _stack(board: Board, figures: Mapping[str, object]) -> tuple[int, str]:
    """Return the stack that a call of the model needs, as a multiple of 8 bytes, and the reason."""
    known = figures.get("stack_bytes")
    if isinstance(known, int) and not board.hosted:
        return -(-known // 8) * 8, f"No chain of its calls needs more than {known} bytes of stack."
    return UNKNOWN_BYTES, f"No bound is known here: {UNKNOWN_BYTES} bytes are a guess; the program prints the real use."


def _fill(text: str, words: Mapping[str, str]) -> str:
    def word(match: re.Match[str]) -> str:
        if match[1] not in words:
            raise InternalError(f"no word for {match[0]} of a template")
        return words[match[1]]

    return _WORD.sub(word, text)


def _repeat(text: str, each: Mapping[str, Sequence[str]]) -> str:
    """Repeat lines with a word that has several values, once for each value."""

    def lines(line: str) -> Iterator[str]:
        word = next((word for word in each if f"@{word}@" in line), None)
        yield from [line] if word is None else (line.replace(f"@{word}@", value) for value in each[word])

    return "".join(made for line in text.splitlines(keepends=True) for made in lines(line))


def _format_figures(figures: Mapping[str, object]) -> list[tuple[str, str]]:
    """Format the figures for people."""
    return [
        (key.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value))
        for key, value in figures.items()
    ]
