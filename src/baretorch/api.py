"""The Python interface: what the command line does, as objects.

model = baretorch.compile(net, (example,), board="pico2w")
model.memory.arena, model.c_files["model.c"]
image = model.build("build/net")
outputs = model.run(x)
int8 = baretorch.compile(net, (example,), board="pico2w", calibration=samples)
"""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from baretorch import frontends, pipeline
from baretorch.emulators import open_machine
from baretorch.emulators.session import Answer, Session
from baretorch.errors import CompileError
from baretorch.firmware.types import Image
from baretorch.plan import types as plan
from baretorch.targets.boards import load_board

WORDS = {  # what options of compile() may be, beside those that are numbers or names
    "optimize": ("speed", "size"),
    "observer": ("histogram", "minmax"),
    "io": ("float", "int8"),
    "input": ("whole", "rows"),
    "buffers": ("arena", "caller"),
    "weights": ("flash", "ram"),
}


@dataclass(frozen=True)
class Memory:
    """Bytes the model itself takes: no runtime, no stack."""

    arena: int
    lower_bound: int
    weights: int


@dataclass
class Model:
    """A model compiled for a board. Building and running happen when asked for, once."""

    compiled: pipeline.Compiled
    toolchain: str | None = None
    emulator: str | None = None
    _image: Image | None = field(default=None, repr=False)
    _session: Session | None = field(default=None, repr=False)

    @property
    def c_files(self) -> dict[str, str]:
        """The generated C by file name."""
        return dict(self.compiled.c.files)

    @property
    def memory(self) -> Memory:
        plan = self.compiled.plan
        return Memory(plan.arena, plan.lower_bound, plan.weight_bytes())

    def build(self, folder: str | Path | None = None) -> Image:
        """The image for the board, in `folder` or in a temporary one."""
        if self._image is None or folder is not None:
            if folder is None:
                temporary = tempfile.TemporaryDirectory(prefix="baretorch-")
                atexit.register(temporary.cleanup)
                folder = temporary.name
            self.close()
            self._image = pipeline.build_image(self.compiled, Path(folder), self.toolchain)
        return self._image

    def run(self, *inputs: Any) -> Answer:
        """Run on the emulated chip, which stays up between calls. Takes tensors or arrays; gives arrays. They hold real
        numbers, also where the image itself takes and gives int8."""
        if self._session is None:
            machine = open_machine(self.build(), self.compiled.c.run, self.emulator)
            self._session = Session(machine, self.compiled.graph, self.compiled.source.program)
        return self._session(*inputs)

    def evaluate(self, metrics: Callable[[Callable[..., Answer]], Mapping[str, float]]) -> dict[str, float]:
        """What `metrics(run)` finds, with a `run` that runs on the emulated chip: evaluate() of model files is one."""
        return dict(metrics(self.run))

    def report(self, path: str | Path) -> None:
        """Write one HTML page about memory, time and accuracy, measured on the emulated chip with the examples."""
        from baretorch.report.facts import compare
        from baretorch.report.findings import Report
        from baretorch.report.page import write_page
        from baretorch.report.profile import make_profile

        image = self.build()
        run = pipeline.run_image(self.compiled, image, self.emulator)
        facts = compare(self.compiled, image, run)
        write_page(Report(facts, make_profile(self.compiled, image, run)), Path(path))

    @property
    def instructions(self) -> int | None:
        """Exactly what the last run() executed on the chip; None before it, and where they are not counted."""
        counts = self._session.machine.instructions() if self._session else ()
        return counts[-1] if counts else None

    def close(self) -> None:
        """End the emulation."""
        if self._session is not None:
            self._session.close()
        self._session = None


def compile(
    model: Any,
    inputs: Sequence[Any] | None = None,
    *,
    board: str,
    name: str = "model",
    optimize: str = "speed",
    toolchain: str | None = None,
    emulator: str | None = None,
    int8: bool = False,
    calibration: Iterable[Any] | None = None,
    keep_float: Sequence[str] = (),
    observer: str = "histogram",
    io: str = "float",
    ram: int | None = None,
    input: str = "whole",
    buffers: str = "arena",
    weights: str = "flash",
    place: Mapping[str, str] | None = None,
) -> Model:
    """Compile an nn.Module with example inputs, or a model file (.py, .pt2, .pte), for a board. With `int8` or
    `calibration`, inputs of the kind it will see, it is quantized; a model file brings its own calibration(). The
    `observer` "histogram" cuts outliers off, "minmax" keeps them. With `io="int8"` the image takes and gives int8. The
    rest are the command line's options of these names; `place` is a dict of layers and banks."""
    for option, value in (
        ("optimize", optimize),
        ("observer", observer),
        ("io", io),
        ("input", input),
        ("buffers", buffers),
        ("weights", weights),
    ):
        if value not in WORDS[option]:
            raise CompileError(f"compile(): {option} is {value!r}", need=" or ".join(map(repr, WORDS[option])))
    memory = plan.Memory(place or {}, ram, input == "rows", buffers == "caller", weights == "ram")
    target = load_board(board)  # first: it fails faster
    how = frontends.Int8(tuple(keep_float), observer) if int8 or calibration is not None else None
    if isinstance(model, (str, Path)):
        source = frontends.load(str(model), int8=how if calibration is None else None)
    elif inputs is None:
        raise CompileError("compile() needs example inputs for an nn.Module", need="a tuple of example tensors")
    else:
        source = frontends.from_module(model, inputs, name)
    if how and source.float_program is None:
        source = frontends.quantized(source, how, calibration)
    return Model(pipeline.compile_source(source, target, optimize, io=io, memory=memory), toolchain, emulator)
