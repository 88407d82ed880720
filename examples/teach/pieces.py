"""Compute the linear pieces of the sine network from its weights: the kinks, and the straight lines between them.

`python examples/teach/pieces.py` prints them; `--png FILE` also draws them with matplotlib.
"""

from __future__ import annotations

import argparse
import math
import runpy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SINE = Path(__file__).resolve().parents[1] / "sine" / "model.py"
LOW, HIGH = 0.0, 2 * math.pi


@dataclass(frozen=True)
class Weights:
    """The weights and biases of a network 1-n-m-1 with ReLU, in float64."""

    w1: np.ndarray
    b1: np.ndarray
    w2: np.ndarray
    b2: np.ndarray
    w3: np.ndarray
    b3: np.ndarray

    def first(self, x: np.ndarray) -> np.ndarray:
        """Return the units of the first layer before their ReLU, one row per x."""
        return x[:, None] * self.w1[:, 0] + self.b1

    def second(self, x: np.ndarray) -> np.ndarray:
        """Return the units of the second layer before their ReLU."""
        return np.maximum(self.first(x), 0) @ self.w2.T + self.b2

    def parts(self, x: np.ndarray) -> np.ndarray:
        """Return the contribution of each unit of the second layer to the output."""
        return np.maximum(self.second(x), 0) * self.w3[0]

    def output(self, x: np.ndarray) -> np.ndarray:
        return self.parts(x).sum(1) + self.b3[0]


def weights_of(model: Any) -> Weights:
    layers = [layer for layer in model.net if hasattr(layer, "weight")]
    arrays = [p.detach().numpy().astype(np.float64) for layer in layers for p in (layer.weight, layer.bias)]
    return Weights(*arrays)


def first_kinks(w: Weights) -> np.ndarray:
    """Return where a unit of the first layer crosses zero: w x + b = 0, so x = -b / w."""
    with np.errstate(divide="ignore", invalid="ignore"):
        crossings = -w.b1 / w.w1[:, 0]
    return np.sort(crossings[(crossings > LOW) & (crossings < HIGH)])


def second_kinks(w: Weights) -> np.ndarray:
    """Return where a unit of the second layer crosses zero.

    Between two kinks of the first layer each of these units is a straight line, which crosses zero at most once.
    """
    ends = np.concatenate([[LOW], first_kinks(w), [HIGH]])
    values = w.second(ends)
    found = []
    for left, right, a, b in zip(ends, ends[1:], values, values[1:], strict=False):
        crosses = a * b < 0
        found += list(left + (right - left) * a[crosses] / (a[crosses] - b[crosses]))
    return np.sort(found)


def main() -> None:
    arguments = argparse.ArgumentParser(description="Compute the linear pieces of the sine network.")
    arguments.add_argument("--png", type=Path, help="draw the pieces")
    given = arguments.parse_args()
    w = weights_of(runpy.run_path(str(SINE))["model"]())
    first, second = first_kinks(w), second_kinks(w)
    ends = np.concatenate([[LOW], np.sort([*first, *second]), [HIGH]])
    dense = np.linspace(LOW, HIGH, 20_001)
    straight = np.interp(dense, ends, w.output(ends))
    print(f"kinks of the first layer, x = -b / w     {len(first)}")
    print(f"kinks of the second layer                {len(second)}")
    print(f"straight pieces                          {len(ends) - 1}")
    print(f"pieces against network, largest error    {np.abs(straight - w.output(dense)).max():.0e}")
    print(f"network against sin(x), largest error    {np.abs(w.output(dense) - np.sin(dense)).max():.3f}")
    print("\nthe five longest pieces")
    print("from    to      slope    slope of sin(x) in the middle")
    longest = np.sort(np.argsort(ends[:-1] - ends[1:])[:5])
    for left, right in zip(ends[longest], ends[longest + 1], strict=True):
        below, above = w.output(np.array([left, right]))
        slope, wanted = (above - below) / (right - left), math.cos((left + right) / 2)
        print(f"{left:<6.3f}  {right:<6.3f}  {slope:>6.3f}  {wanted:>6.3f}")
    if given.png:
        draw(w, first, second, given.png)


def draw(w: Weights, first: np.ndarray, second: np.ndarray, path: Path) -> None:
    """Draw the network with its kinks, what each unit of the second layer contributes, and the error."""
    from matplotlib.figure import Figure

    picture = Figure(figsize=(8, 9), layout="constrained")
    top, middle, bottom = picture.subplots(3, 1, sharex=True, height_ratios=(3, 3, 1))
    x = np.linspace(LOW, HIGH, 2001)
    top.plot(x, np.sin(x), color="0.6", linewidth=4, label="sin(x)")
    top.plot(x, w.output(x), color="tab:red", label="network")
    top.plot(first, w.output(first), "o", color="black", label=f"{len(first)} kinks of the first layer")
    top.plot(second, w.output(second), "^", color="tab:blue", label=f"{len(second)} kinks of the second layer")
    top.set_title("The network is a chain of straight pieces")
    top.legend()
    middle.plot(x, w.parts(x), linewidth=1)
    middle.set_title("What each unit of the second layer adds to the output")
    bottom.axhline(0, color="0.8")
    bottom.plot(x, w.output(x) - np.sin(x), color="tab:blue")
    bottom.set_title("network − sin(x)")
    bottom.set_xlabel("x")
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(path, dpi=90)


if __name__ == "__main__":
    main()
