"""Run all stages once: train, compile, build, emulate, compare, plot. `make demo` runs it."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import torch

import baretorch

ROOT = Path(__file__).resolve().parents[2]
MODEL = "examples/sine/model.py"
BOARD = "pico2w"
PNG = "build/sine.png"
LIMIT = 0.1


def command(*arguments: str) -> None:
    """A command that you can type yourself."""
    print(f"\n$ baretorch {' '.join(arguments)}", flush=True)
    subprocess.run([sys.executable, "-m", "baretorch", *arguments], cwd=ROOT, check=True)


def largest_error() -> float:
    """Run the same image from Python, and return the largest difference from sin(x)."""
    model = baretorch.compile(ROOT / MODEL, board=BOARD)
    xs = torch.linspace(0, 2 * math.pi, 200)
    error = max(abs(model.run(x.reshape(1, 1)).item() - math.sin(x)) for x in xs)
    model.close()
    return error


def main() -> int:
    """Fails if the chip's sine is not one."""
    command("inspect", MODEL, "--stage", "plan")
    command("monitor", MODEL, "--board", BOARD, "--plot", "--png", PNG)
    command("run", MODEL, "--board", BOARD)
    error = largest_error()
    good = error < LIMIT
    print(f"\nplot       {PNG}")
    print(f"max error  {error:.4f} against sin(x), {'below' if good else 'NOT below'} {LIMIT}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
