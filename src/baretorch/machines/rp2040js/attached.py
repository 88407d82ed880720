"""A camera and a display at the pins of an emulated RP2040, for images with an application that uses them.

js/camera.mjs is an HM01B0, js/display.mjs an ST7735S. Their pins are those of the board's TOML.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

from baretorch.errors import CompileError
from baretorch.targets.types import Board

SIDE = 324  # pixels across and down a frame


class By(StrEnum):
    """The path of frames to the chip: bit by bit at its pins, for the program of its PIO; or as bytes in that PIO's
    FIFO, which takes a fraction of the time and skips the program."""

    PINS = "pins"
    BYTES = "bytes"


@dataclass(frozen=True)
class Attached:
    """The camera and display at the pins of an emulated RP2040. `frames` is a file of frames, 324 rows of 324 bytes
    each. The camera shows every frame `hold` times, and starts over after the last. With `pictures`, the display
    reports each picture as PNG in base64."""

    frames: Path
    by: By = By.PINS
    hold: int = 1
    pictures: bool = False
    faults: tuple[tuple[str, float, float], ...] = ()  # what fails, from one millisecond after power-up to another

    def about(self, board: Board, events: int) -> dict[str, Any]:
        """Return the description that js/attached.mjs reads."""
        size = self.frames.stat().st_size
        if size == 0 or size % SIDE**2:
            raise CompileError(
                f"{self.frames} holds no frames", have=f"{size} bytes", need=f"a multiple of {SIDE} x {SIDE}, not 0"
            )
        return {
            "events": events,
            "faults": self.faults,
            "camera": {
                "pins": _pins(board, "camera"),
                "frames": str(self.frames.absolute()),
                "by": self.by,
                "hold": self.hold,
            },
            "display": {"pins": _pins(board, "display"), "pictures": self.pictures},
        }


def _pins(board: Board, part: str) -> dict[str, int]:
    found = {name: pin for owner, name, pin in board.pins if owner == part}
    if not found:
        raise CompileError(f"{board.name} has no {part}", need=f"[pins.{part}] in its TOML, as that of pico4ml")
    return found


class AttachedEvents:
    """Events that camera and display report: a frame was sent, with its number modulo 256 and that of its scene; a
    picture was shown."""

    def __init__(self) -> None:
        self.file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._read = 0

    def new(self) -> Iterator[dict[str, Any]]:
        """Yield the events since the last call."""
        raw = os.pread(self.file.fileno(), os.fstat(self.file.fileno()).st_size - self._read, self._read)
        whole = raw[: raw.rfind(b"\n") + 1]
        self._read += len(whole)
        yield from map(json.loads, whole.splitlines())
