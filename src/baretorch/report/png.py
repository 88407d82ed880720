"""A picture of the answers to streamed inputs, drawn with matplotlib."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from baretorch.errors import CompileError
from baretorch.files.ownership import png
from baretorch.files.write import put
from baretorch.measure.numbers import figure

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

    order = np.argsort(trace.x)
    x, y, line, error = (np.asarray(v)[order] for v in (trace.x, trace.predicted, trace.curve, trace.errors))
    picture = Figure(figsize=(8, 6), layout="constrained")
    above, below = picture.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    above.plot(x, line, color="0.6", linewidth=2, label=trace.sweep.curve_name)
    above.plot(x, y, ".", color="tab:red", label="predicted by the board")
    above.set_title(title)
    above.legend()
    below.axhline(0, color="0.8")
    below.plot(x, error, color="tab:blue")
    below.set_title(f"mean absolute error {figure(float(np.mean(np.abs(error))))}", fontsize="medium")
    below.set_ylabel("error")
    below.set_xlabel("input")
    data = BytesIO()
    picture.savefig(data, dpi=120, format="png")
    put(path, data.getvalue(), png, "--png")
