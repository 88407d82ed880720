"""Exercise 10: reading weights from flash: an estimate by hand, and the emulated cache of a Pico 2 W."""

import contextlib
import io
import json
from pathlib import Path

from baretorch.cli import run_command
from baretorch.targets.boards import load_board

MNIST = Path(__file__).resolve().parents[2] / "mnist" / "model.py"

chip = load_board("pico2w").chip
weights = 784 * 400 + 400 * 10  # bytes of int8, each used once per image
assert chip.flash_path is not None
filled = chip.flash_path.fills[0]  # bytes that a miss reads
by_hand = weights // filled

out = io.StringIO()
with contextlib.redirect_stdout(out):
    run_command(["run", str(MNIST), "--board", "pico2w", "--int8", "--io", "int8", "--weights", "flash", "--json"])
misses = json.loads(out.getvalue())["flash_misses"]["data"]
print(f"misses by hand {by_hand:,}, in the emulator {misses:,}")
assert abs(misses - by_hand) < by_hand / 20
