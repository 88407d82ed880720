"""Measure models x boards: exact instructions on the emulator, bytes from the linker map.

`make bench` writes docs/benchmarks.md and benchmarks/results.json. Nothing here is timed: the same sources give the
same figures on every machine with the same compiler.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import chain

import forest
import precisions
import ram
import tinygrad_c
from page import markdown
from peers import M0PLUS, M4F, M33, M55, TOOLCHAIN
from rich.progress import track
from tables import PAGE, ROOT, Row

import cluster
from baretorch import pipeline
from baretorch.errors import CompileError
from baretorch.firmware.toolchain import NAMES, find_toolchain
from baretorch.ir.graph import Graph
from baretorch.measure.run import measure_model, on_one_core
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.int8.qlinear import QLinear
from baretorch.options import Compiler, Console, Io, Options
from baretorch.pipeline import LoweredModel
from baretorch.targets.boards import load_board
from baretorch.targets.types import Board

EVERY = (
    M4F, "mps2-an385", M0PLUS, "mps2-an500", M33, M55, "microbit",
    "pico", "pico2w", "nucleo-wb55rg", "nucleo-h743zi", "virt-rv32",
)  # fmt: skip
FAST = (M4F, "mps2-an500", M33, M55, "virt-rv32")  # QEMU, with floating point in hardware
ARDUINOS = ("arduino-uno", "arduino-mega")
PICOS = ("pico", "pico2w")
INT8 = (M4F, "mps2-an500", M33, M55, M0PLUS, "virt-rv32")

SINE = "examples/sine/model.py"
LEFT_OUT = ("outputs", "files", "layers", "options")  # of a run's facts

# (model file, in int8), boards; the slowest first, so that two processes end at about the same time
MODELS: tuple[tuple[str, bool, tuple[str, ...]], ...] = (
    ("zoo/vww.py", True, INT8),
    ("zoo/ic.py", True, INT8),
    ("zoo/kws.py", True, INT8),
    ("zoo/tinyrps.py", True, INT8),
    ("zoo/ad.py", True, (*INT8, *PICOS)),
    ("zoo/mnist_mlp.py", True, INT8),
    (SINE, True, (*EVERY, *ARDUINOS)),
    ("examples/mnist/small.py", True, ARDUINOS),
    ("zoo/kws_raw.py", True, (M4F, "pico2w", M55)),
    ("zoo/vww.py", False, FAST),
    ("zoo/ic.py", False, FAST),
    ("zoo/kws.py", False, (*FAST, M0PLUS)),
    ("zoo/kws_raw.py", False, (*FAST, "pico2w")),
    ("zoo/kws_stream.py", False, (M4F, M33)),
    ("zoo/tinyrps.py", False, FAST),
    ("zoo/ad.py", False, (*FAST, M0PLUS)),
    ("zoo/mnist_mlp.py", False, (*FAST, M0PLUS)),
    ("zoo/softmax.py", False, EVERY),
    ("zoo/rfft512.py", False, (*FAST, M0PLUS)),
    (SINE, False, EVERY),
)
TWO_CORES: tuple[tuple[str, bool, tuple[str, ...]], ...] = (
    ("zoo/vww.py", True, PICOS),
    ("zoo/ic.py", True, PICOS),
    ("zoo/kws.py", True, PICOS),
    ("zoo/vww.py", False, ("pico2w",)),
    ("zoo/ic.py", False, ("pico2w",)),
    ("zoo/kws.py", False, ("pico2w",)),
    ("benchmarks/layers/conv3x3.py", True, PICOS),
    ("benchmarks/layers/conv3x3.py", False, ("pico2w",)),
    ("benchmarks/layers/linear784.py", True, PICOS),
    ("benchmarks/layers/linear784.py", False, ("pico2w",)),
)


def measure(path: str, int8: bool, boards: tuple[str, ...]) -> list[Row]:
    """Return the rows of a model. Float sine is measured with both toolchains everywhere, other models with gcc, and on
    their first board with both."""
    model = pipeline.lower_file(str(ROOT / path), Options(int8=int8))
    both = boards if path == SINE and not int8 else boards[:1]
    jobs = ((load_board(name), toolchain) for name in boards for toolchain in (NAMES if name in both else (TOOLCHAIN,)))
    return [row for board, toolchain in jobs for row in _rows(model, int8, board, toolchain)]


def _rows(model: LoweredModel, int8: bool, board: Board, toolchain: str) -> Iterator[Row]:
    """Yield one row, or none if the toolchain is not installed."""
    dtype = "int8" if int8 else "float32"
    try:
        find_toolchain(board, toolchain)
    except CompileError as error:
        print(f"left out: {board.name} with {toolchain}: {error}", file=sys.stderr)
        return
    folder = ROOT / "build" / "bench" / f"{model.source.name}-{dtype}-{board.name}-{toolchain}"
    try:
        compiled = _compile(model, int8, board, Compiler(toolchain))
        image = pipeline.build_image(compiled, folder)
    except CompileError as error:
        if "too small" not in error.what:
            raise
        row = {"model": model.source.name, "board": board.name, "toolchain": toolchain, "dtype": dtype}
        yield row | {"misfit": error.what}
        return
    facts = measure_model(compiled, image).facts.to_json()
    yield {k: v for k, v in facts.items() if k not in LEFT_OUT} | (_raw(compiled.graph) if int8 else {})


def measure_cores(path: str, int8: bool, boards: tuple[str, ...]) -> list[Row]:
    """Return the rows of a model on two cores, compared with one."""
    model = pipeline.lower_file(str(ROOT / path), Options(int8=int8))
    rows = []
    for name in boards:
        folder = ROOT / "build" / "bench" / f"{model.source.name}-{'int8' if int8 else 'float32'}-{name}-cores"
        options = replace(_options(int8, Compiler(TOOLCHAIN)), cores=2)
        compiled = pipeline.compile_lowered(model.with_io(options.io), load_board(name), options)
        facts = measure_model(compiled, folder).facts
        compared = replace(facts, one_core=on_one_core(compiled)).to_json()
        rows.append({k: v for k, v in compared.items() if k not in LEFT_OUT})
    return rows


def _options(int8: bool, toolchain: Compiler) -> Options:
    """Return the options of an image. All boards use their UARTs, so that code sizes are comparable."""
    return Options(toolchain=toolchain, io=Io.INT8 if int8 else Io.FLOAT, console=Console.UART)


def _compile(model: LoweredModel, int8: bool, board: Board, toolchain: Compiler) -> pipeline.Compiled:
    """Compile an int8 model with int8 inputs and outputs, unless its first layers compute in float."""
    options = _options(int8, toolchain)
    try:
        return pipeline.compile_lowered(model.with_io(options.io), board, options)
    except CompileError as error:
        if not error.what.startswith("--io int8"):
            raise
        return pipeline.compile_lowered(model, board, replace(options, io=Io.FLOAT))


def _raw(graph: Graph) -> dict[str, int]:
    """Return the unpacked bytes of an int8 model's weights and biases, and its number of output channels."""
    layers = [graph.of(n.inputs) for n in graph.nodes if isinstance(n.op, (QLinear, QConv2d))]
    return {
        "raw_weights": sum(weight.bytes + bias.bytes for _, weight, bias, _ in layers),
        "channels": sum(bias.count for _, _, bias, _ in layers),
    }


def versions() -> list[str]:
    """Return the versions of the programs that the figures depend on."""
    lines = []
    for program in ("arm-none-eabi-gcc", "riscv64-unknown-elf-gcc", "qemu-system-arm"):
        try:
            done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
            lines.append(done.stdout.splitlines()[0])
        except (OSError, subprocess.CalledProcessError):
            lines.append(f"{program}: not installed")
    zig = subprocess.run([sys.executable, "-m", "ziglang", "version"], capture_output=True, text=True, check=True)
    return [*lines, f"zig {zig.stdout.strip()}"]


def main() -> None:
    with ProcessPoolExecutor() as pool:
        parts = pool.map(measure, *zip(*MODELS, strict=True))
        both = pool.map(measure_cores, *zip(*TWO_CORES, strict=True))
        total = len(MODELS) + len(TWO_CORES)
        rows = [row for part in track(chain(parts, both), "measuring", total=total) for row in part]
    planned = ram.measure_all()  # before anything here has threads, which processes that are forked would wait for
    tinygrad = tinygrad_c.measure_all()
    (ROOT / "benchmarks" / "results.json").write_text(json.dumps([*rows, *tinygrad], indent=1) + "\n")
    rest = "\n".join(
        [
            tinygrad_c.section(tinygrad),
            precisions.section(precisions.measure_all()),
            ram.section(planned),
            cluster.section(cluster.measure_all()),
            forest.section(forest.measure_all()),
        ]
    )
    PAGE.write_text(f"{markdown(rows, versions())}\n{rest}")
    print(rest)
    print("wrote docs/benchmarks.md and benchmarks/results.json")


if __name__ == "__main__":
    main()
