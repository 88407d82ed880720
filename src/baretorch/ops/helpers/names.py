"""The names of an operator in the formats that Baretorch reads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FormatNames:
    """Hold what formats call an operator without attributes. Each format's table gets a row for each name here. Several
    names are separated by spaces; without a name a format has no such operator, or a row of its own."""

    aten: str = ""
    onnx: str = ""
    tflite: str = ""
    tinygrad: str = ""
