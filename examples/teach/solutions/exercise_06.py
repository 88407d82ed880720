"""Exercise 6: the lower bound of an arena, computed from lifetimes as on the worksheet."""

import contextlib
import io
import json
from pathlib import Path

from baretorch.cli import run_command

CNN = Path(__file__).resolve().parents[1] / "cnn.py"

# The worksheet: for each step the tensors that are in use, in bytes of float32. tanh and add work in place.
x, a, b, pooled, y = 1 * 8 * 8 * 4, 4 * 8 * 8 * 4, 4 * 8 * 8 * 4, 4 * 2 * 2 * 4, 3 * 4
steps = {
    "first": x + a,
    "second": a + b,
    "tanh": a + b,  # in place
    "add": a + b,  # in place
    "pool": a + pooled,
    "head": pooled + y,
}
bound = max(steps.values())

out = io.StringIO()
with contextlib.redirect_stdout(out):
    run_command(["inspect", str(CNN), "--json"])
plan = json.loads(out.getvalue())["plan"]
print(f"by hand {bound:,}, by baretorch {plan['lower_bound']:,} bytes")
assert bound == plan["lower_bound"] == plan["arena"]
