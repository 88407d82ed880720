"""A picture of the answers to streamed inputs, drawn with matplotlib."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from baretorch.errors import CompileError
from baretorch.files.ownership import png
from baretorch.files.write import put

if TYPE_CHECKING:
    from baretorch.explore.sweep import SweepTrace


def need_matplotlib() -> None:
    """Fails before anything is run if a picture cannot be drawn."""
    import importlib.util

    if importlib.util.find_spec("matplotlib") is None:
        raise CompileError(
            "matplotlib is needed for --png and is not installed", try_='`pip install "baretorch[plot]"`'
        )


def write_png(trace: SweepTrace, title: str, path: Path) -> None:
    """Predicted dots on the true curve, the error below. The file appears whole or not at all."""
    from matplotlib.figure import Figure

    known = trace.sweep.truth is not None
    expected = [trace.sweep.expected_value(i) for i in range(len(trace.x))]
    curve, name = (trace.truth, "truth") if known else (expected, trace.sweep.reference)
    order = np.argsort(trace.x)
    x, y, line = (np.asarray(values)[order] for values in (trace.x, trace.predicted, curve))
    figure = Figure(figsize=(8, 6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    above.plot(x, line, color="0.6", linewidth=2, label=name)
    above.plot(x, y, ".", color="tab:red", label="predicted by the board")
    above.set_title(title)
    above.legend()
    below.axhline(0, color="0.8")
    below.plot(x, y - line, color="tab:blue")
    below.set_ylabel("error")
    below.set_xlabel("input")
    picture = BytesIO()
    figure.savefig(picture, dpi=120, format="png")
    put(path, picture.getvalue(), png, "--png")
