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

from peers import PEERS, Figures
from rich.progress import track

from baretorch import frontends, pipeline
from baretorch.errors import CompileError
from baretorch.firmware.toolchain import find_toolchain
from baretorch.report.facts import compare
from baretorch.targets.boards import load_board

ROOT = Path(__file__).resolve().parents[1]
MODELS = {"sine": "examples/sine/model.py"}
BOARDS = (
    "mps2-an386", "mps2-an385", "mps2-an385-v6m", "mps2-an500", "mps2-an505", "mps3-an547", "microbit",
    "pico", "pico2w", "nucleo-wb55rg", "nucleo-h743zi", "virt-rv32",
)  # fmt: skip
TOOLCHAINS = ("gcc", "zig")


def measure() -> list[dict[str, Any]]:
    rows = []
    jobs = [(m, b, t) for m in MODELS for b in BOARDS for t in TOOLCHAINS]
    sources = {m: frontends.load(str(ROOT / path)) for m, path in MODELS.items()}
    for model, name, toolchain in track(jobs, description="measuring"):
        board = load_board(name)
        try:
            find_toolchain(board, toolchain)
        except CompileError as error:
            print(f"left out: {name} with {toolchain}: {error}", file=sys.stderr)
            continue
        compiled = pipeline.compile_source(sources[model], board)
        image = pipeline.build_image(compiled, ROOT / "build" / "bench" / f"{model}-{name}-{toolchain}", toolchain)
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


def markdown(rows: list[dict[str, Any]]) -> str:
    text = [
        "# Benchmarks",
        "",
        "Written by `make bench`; do not edit. Instructions are exact counts of executed instructions per inference",
        "on the emulator (second call, from the run function's first instruction through its return); bytes come from",
        "the linker map. Measured with:",
        "",
        *(f"- {line}" for line in versions()),
        "",
        "## Beside the peers, Cortex-M4F (mps2-an386, gcc)",
        "",
        "Peers' code and RAM are whole images without the model and without stack; ours are given both ways: the model",
        "and its kernels alone (what the goal is about), and the whole image.",
        "",
        "| model | | instructions | code | RAM |",
        "|---|---|--:|--:|--:|",
    ]
    for row in rows:
        peers = PEERS.get((row["model"], row["dtype"]))
        if row["board"] != "mps2-an386" or row["toolchain"] != "gcc" or peers is None:
            continue
        name = f"{row['model']} {row['dtype']}"
        ram = row["ram"]
        ours = Figures(row["instructions"], row["flash"]["model_code"], ram["arena"] + ram["model_static"])
        text += [
            _line(name, "TFLM", peers.tflm),
            _line("", "ExecuTorch", peers.executorch),
            _line("", "**goal**", peers.goal),
            _line("", f"**Baretorch** ({_met(ours, peers.goal)})", ours),
            _line("", "Baretorch, whole image", Figures(None, row["flash"]["code"], ram["arena"] + ram["static"])),
        ]
    text += [
        "",
        "## Every board",
        "",
        "Model code: functions and constants reachable from the run function, compiler support routines included.",
        "",
        "| model | board | toolchain | emulator | instructions | model code | code | weights | arena | static "
        "| stack | max error |",
        "|---|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for r in rows:
        flash, ram = r["flash"], r["ram"]
        text.append(
            f"| {r['model']} {r['dtype']} | {r['board']} | {r['toolchain']} | {r['emulator']} | {r['instructions']:,} "
            f"| {flash['model_code']:,} | {flash['code']:,} | {flash['weights']:,} "
            f"| {ram['arena']:,} | {ram['static']:,} | {ram['stack']:,} | {r['max_error']:.1e} |"
        )
    return "\n".join(text) + "\n"


def _line(model: str, who: str, f: Figures) -> str:
    cells = ("–" if v is None else f"{v:,}" for v in (f.instructions, f.code, f.ram))
    return f"| {model} | {who} | {' | '.join(cells)} |"


def _met(ours: Figures, goal: Figures) -> str:
    """Which goals are met, in words."""
    missed = [
        what
        for what, have, want in (
            ("instructions", ours.instructions, goal.instructions),
            ("code", ours.code, goal.code),
            ("RAM", ours.ram, goal.ram),
        )
        if have is not None and want is not None and have > want
    ]
    return f"misses {', '.join(missed)}" if missed else "goals met"


def main() -> None:
    rows = measure()
    (ROOT / "benchmarks" / "results.json").write_text(json.dumps(rows, indent=1) + "\n")
    (ROOT / "docs" / "benchmarks.md").write_text(markdown(rows))
    print("wrote docs/benchmarks.md and benchmarks/results.json")


if __name__ == "__main__":
    main()
