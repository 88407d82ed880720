"""Measure models x boards: exact instructions on the emulator, bytes from the linker map.

    make bench

writes docs/benchmarks.md and benchmarks/results.json. Nothing here is timed: the same sources give the same
figures on every machine with the same compiler.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from page import markdown
from rich.progress import track

from baretorch import frontends, pipeline
from baretorch.errors import CompileError
from baretorch.firmware.toolchain import find_toolchain
from baretorch.report.facts import compare
from baretorch.targets.boards import load_board

ROOT = Path(__file__).resolve().parents[1]
EVERY = (
    "mps2-an386", "mps2-an385", "mps2-an385-v6m", "mps2-an500", "mps2-an505", "mps3-an547", "microbit",
    "pico", "pico2w", "nucleo-wb55rg", "nucleo-h743zi", "virt-rv32",
)  # fmt: skip
FAST = ("mps2-an386", "mps2-an500", "mps2-an505", "mps3-an547", "virt-rv32")  # QEMU, with floating point in hardware
SOFT = ("mps2-an385-v6m",)

SINE = "examples/sine/model.py"

# model file -> boards
MODELS = {
    SINE: EVERY,
    "zoo/softmax.py": EVERY,
    "zoo/mnist_mlp.py": FAST + SOFT,
    "zoo/ad.py": FAST + SOFT,
    "zoo/kws.py": FAST + SOFT,
    "zoo/tinyrps.py": FAST,
    "zoo/vww.py": FAST,
    "zoo/ic.py": FAST,
}


def measure() -> list[dict[str, Any]]:
    """Sine with both toolchains everywhere; the others with gcc, and on their first board with both."""
    rows: list[dict[str, Any]] = []
    sources = {path: frontends.load(str(ROOT / path)) for path in MODELS}
    jobs = [
        (path, board, toolchain)
        for path, boards in MODELS.items()
        for board in boards
        for toolchain in ("gcc", "zig")
        if toolchain == "gcc" or board == boards[0] or path == SINE
    ]
    for path, name, toolchain in track(jobs, description="measuring"):
        board, source = load_board(name), sources[path]
        try:
            find_toolchain(board, toolchain)
        except CompileError as error:
            print(f"left out: {name} with {toolchain}: {error}", file=sys.stderr)
            continue
        try:
            compiled = pipeline.compile_source(source, board)
            folder = ROOT / "build" / "bench" / f"{source.name}-{name}-{toolchain}"
            image = pipeline.build_image(compiled, folder, toolchain)
        except CompileError as error:
            if "too small" not in error.what:
                raise
            row = {"model": source.name, "board": name, "toolchain": toolchain, "dtype": "float32"}
            rows.append(row | {"misfit": error.what})
            continue
        facts = compare(compiled, image, pipeline.run_image(compiled, image)).to_json()
        rows.append({k: v for k, v in facts.items() if k not in ("outputs", "files")})
    return rows


def versions() -> list[str]:
    """What the figures depend on."""
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
    rows = measure()
    (ROOT / "benchmarks" / "results.json").write_text(json.dumps(rows, indent=1) + "\n")
    (ROOT / "docs" / "benchmarks.md").write_text(markdown(rows, versions()))
    print("wrote docs/benchmarks.md and benchmarks/results.json")


if __name__ == "__main__":
    main()
