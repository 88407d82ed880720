"""Make the card that notebooks show for a model: figures in a row, without a style sheet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from baretorch.measure.numbers import figure, frequency
from baretorch.report.page.html import Html, el

if TYPE_CHECKING:
    from baretorch.firmware.types import Image
    from baretorch.measure.run import Measurement
    from baretorch.pipeline import Compiled

BOX = "border: 1px solid #8884; border-radius: 10px; padding: 12px 18px; max-width: 60em"
ROW = "display: flex; flex-wrap: wrap; gap: 10px 28px; margin: 8px 0 0"


def model_card(compiled: Compiled, image: Image | None, measured: Measurement | None) -> str:
    """Return the card. Figures of the image and of a run are shown if they are known already."""
    graph, plan, chip = compiled.graph, compiled.plan, compiled.board.chip
    tiles = [("arena", f"{plan.arena:,}", "bytes"), ("weights", f"{plan.weight_bytes():,}", "bytes")]
    if image is not None:
        tiles += [("flash", f"{image.flash.total:,}", "bytes"), ("RAM", f"{image.ram.total:,}", "bytes")]
    tiles.append(("MACs", f"{graph.macs():,}", ""))
    if measured is not None:
        facts = measured.facts
        known = facts.to_json()
        if known["instructions"] is not None:
            tiles.append(("instructions", f"{known['instructions']:,}", ""))
        if known["time_ms"] is not None:
            tiles.append(("time", figure(known["time_ms"]), "ms, estimated"))
        tiles.append(("largest error", facts.error_words, f"against {facts.reference}"))
    dtype = "int8" if graph.is_int8 else "float32"
    about = f"{dtype} for {compiled.board.title}: {chip.cpu.name} at {frequency(chip.clock_hz)}"
    return el(
        "div",
        el("div", el("b", graph.name), f" {about}"),
        el("div", *(_tile(*tile) for tile in tiles), style=ROW),
        style=BOX,
    )


def _tile(title: str, value: str, unit: str) -> Html:
    small = "font-size: 85%; opacity: 0.75"
    return el(
        "div",
        el("div", title, style=small),
        el("div", el("b", value, style="font-size: 130%"), " ", el("span", unit, style=small)),
    )
