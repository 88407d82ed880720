"""Exercise 9: the price of a missing FPU: the sine on a Pico and on a Pico 2 W."""

from pathlib import Path

import torch

import baretorch

SINE = Path(__file__).resolve().parents[2] / "sine" / "model.py"


def instructions(board: str) -> int:
    compiled = baretorch.compile(SINE, board=board)
    compiled.run(torch.ones(1, 1))
    count = compiled.instructions
    compiled.close()
    return count or 0


counts = {board: instructions(board) for board in ("pico", "pico2w")}
ratio = counts["pico"] / counts["pico2w"]
print(f"a Pico needs {ratio:.0f} times the instructions of a Pico 2 W")
assert ratio > 10
