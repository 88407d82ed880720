"""The camera's firmware around a network, built, and run on an emulated Pico4ML with a camera and a display."""

from __future__ import annotations

import re
import time
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from baretorch import pipeline
from baretorch.firmware.types import Image
from baretorch.machines.rp2040js.attached import Attached
from baretorch.machines.rp2040js.machine import Rp2040JsMachine
from baretorch.machines.types import DeviceHang
from baretorch.options import Options, Weights
from baretorch.targets.boards import load_board

HERE = Path(__file__).resolve().parent
FIRMWARE = HERE / "firmware"
ANSWER = re.compile(r"frame (\d+): (?:(\d), (\d+) %|nothing to read), (\d+) us")
NUMBERS = 256  # the camera counts frames modulo that
PATIENCE = 120  # seconds without a word


def built(model: Path, folder: Path, weights: Weights) -> tuple[Image, str]:
    """The image that `baretorch build MODEL --board pico4ml --int8 --app firmware --weights …` makes, and the name of
    its run function."""
    options = Options(int8=True, app=str(FIRMWARE), weights=weights)
    compiled = pipeline.compile_source(pipeline.read(str(model), None, options), load_board("pico4ml"), options)
    return pipeline.build_image(compiled, folder), compiled.c.run


@dataclass(frozen=True)
class Answer:
    """The firmware's result for a frame: the scene in it, the digit, its probability, and the time that core 0 took."""

    scene: int
    digit: int | None
    percent: int
    us: int


@dataclass
class Watched:
    """The outputs of the demo so far. `pictures` are whole pictures on the display: the time in milliseconds, and a
    PNG."""

    answers: list[Answer] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    pictures: list[tuple[float, bytes | None]] = field(default_factory=list)
    instructions: tuple[int, ...] = ()
    cycles: tuple[int, ...] = ()

    @property
    def pictures_per_second(self) -> float:
        times = [ms for ms, _ in self.pictures]
        return 1000 * (len(times) - 1) / (times[-1] - times[0])


def watch(image: Image, run: str, attached: Attached, until: Callable[[Watched], bool]) -> Watched:
    """Runs the image until it is enough."""
    machine, seen = Rp2040JsMachine(image, run, app=True, attached=attached), Watched()
    scenes: list[int] = []  # of all frames
    text, heard = "", time.monotonic()
    try:
        while not until(seen):
            try:
                text += machine.read(1).decode()
                heard = time.monotonic()
            except DeviceHang:
                if time.monotonic() - heard > PATIENCE:
                    raise
            for event in machine.events.new():
                if "frame" in event:
                    scenes.append(event["scene"])
                else:
                    png = event["png"]
                    seen.pictures.append((event["ms"], None if png is None else b64decode(png)))
            *lines, text = text.split("\n")
            for line in lines:
                _note(line, seen, scenes)
        seen.instructions, seen.cycles = machine.instructions(), machine.cycles()
    finally:
        machine.close()
    return seen


def _note(line: str, seen: Watched, scenes: list[int]) -> None:
    found = ANSWER.fullmatch(line)
    if found is None:
        seen.said.append(line)
        return
    number, digit, percent, us = found.groups()
    frames = len(scenes) - (len(scenes) - int(number)) % NUMBERS  # sent by then, at most as many as now
    seen.answers.append(
        Answer(scenes[frames - 1], int(digit) if digit else None, int(percent) if percent else 0, int(us))
    )


def write_frames(frames: Iterable[np.ndarray], path: Path) -> Path:
    with path.open("wb") as file:
        for frame in frames:
            file.write(frame.tobytes())
    return path


def by_scene(answers: Iterable[Answer]) -> Iterator[Answer]:
    """The first of each scene."""
    seen = set[int]()
    for answer in answers:
        if answer.scene not in seen:
            seen.add(answer.scene)
            yield answer
