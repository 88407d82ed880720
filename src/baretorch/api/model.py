"""The compiled model of the Python interface, which is built, run and measured on demand."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from baretorch import pipeline
from baretorch.api.errors import short_errors
from baretorch.api.summary import Summary
from baretorch.escape import line
from baretorch.files.write import scratch, scratch_of
from baretorch.firmware.app import need_server
from baretorch.firmware.types import Image
from baretorch.frontends.inputs import flat_like
from baretorch.ir.io import Answer, Runner
from baretorch.machines import open_machine
from baretorch.machines.session import Session
from baretorch.measure.facts import warnings_of
from baretorch.measure.run import Measurement, measure_model
from baretorch.options import DEFAULT, Options
from baretorch.report.terminal.progress import notebook_progress
from baretorch.targets.boards import board_names, load_board


@dataclass(frozen=True)
class Memory:
    """The bytes of the model itself, without runtime and stack."""

    arena: int
    lower_bound: int
    weights: int


@dataclass(frozen=True)
class Accuracy:
    """The largest error on the emulated chip against `reference`, such as PyTorch, over `calls` calls with the example
    inputs and variations of them. `largest` is the largest expected magnitude. `max_lsb` is the largest difference from
    the expected int8 results in steps of the output; None for float models."""

    max_error: float
    largest: float
    reference: str
    calls: int
    max_lsb: float | None


class Model:
    """A model compiled for a board. It is built, run and measured on demand, once. Use it in a `with` statement, or
    call close(), to end the emulation and remove temporary files."""

    def __init__(self, compiled: pipeline.Compiled, options: Options = DEFAULT) -> None:
        self.compiled = compiled
        self._options = options
        self._image: Image | None = None
        self._session: Session | None = None
        self._measured: Measurement | None = None
        self._remove: Callable[[], object] | None = None  # removes the temporary folder

    def __repr__(self) -> str:
        graph, memory = self.compiled.graph, self.memory
        dtype = "int8" if graph.is_int8 else "float32"
        sizes = f"arena {memory.arena:,} bytes, weights {memory.weights:,} bytes"
        return f"Model({graph.name} {dtype} for {self.compiled.board.name}: {sizes})"

    def _repr_html_(self) -> str:
        """Return a card for notebooks. It has measured figures if the model was measured before."""
        from baretorch.report.page.card import model_card

        return model_card(self.compiled, self._image, self._measured)

    def __enter__(self) -> Model:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def c_files(self) -> dict[str, str]:
        """The generated C by file name."""
        return dict(self.compiled.c.files)

    @property
    def memory(self) -> Memory:
        """The arena and the weights."""
        plan = self.compiled.plan
        return Memory(plan.arena, plan.layout.lower_bound, plan.weight_bytes())

    @property
    def flash(self) -> int:
        """The bytes of flash of the whole image; build() returns their parts."""
        return self.build().flash.total

    @property
    def ram(self) -> int:
        """The bytes of RAM of the whole image, with the bound of the stack; build() returns their parts."""
        return self.build().ram.total

    @property
    def instructions(self) -> int | None:
        """The number of instructions of the last run(), or of the example inputs before it; None if the emulator does
        not count them."""
        counts = self._session.machine.instructions() if self._session else ()
        return counts[-1] if counts else self._measure().run.instructions

    @property
    def time_ms(self) -> float | None:
        """The estimated time of one inference on the chip in milliseconds; None if it is not known."""
        found: float | None = self._measure().facts.to_json()["time_ms"]
        return found

    @property
    def accuracy(self) -> Accuracy:
        """How the outputs on the emulated chip differ from those of the original model."""
        facts = self._measure().facts
        return Accuracy(facts.max_error, facts.largest, facts.reference, facts.calls, facts.max_lsb)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons to distrust the results, such as unsuitable calibration data and layers that stay in float."""
        return (*warnings_of(self.compiled), *self.compiled.source.notes)

    @short_errors
    def build(self, folder: str | Path | None = None) -> Image:
        """Build the image for the board, in `folder` or in a temporary one."""
        if self._image is None or folder is not None:
            if folder is None:
                folder, self._remove = scratch_of(self)
            self._stop()
            with notebook_progress() as show:
                self._image = pipeline.build_image(
                    self.compiled, Path(folder), lambda file, done, total: show(f"compile {file}", done, total)
                )
        return self._image

    @short_errors
    def run(self, *inputs: Any, **named: Any) -> Answer:
        """Run on the emulated chip, which stays up between calls. Takes tensors or arrays, one by one, by name, or in
        the structure that compile() was given, such as a dict; returns arrays. Where the image stores int8 or int16
        with a scale, float32 holds real numbers, which are quantized, and an array of the stored type holds stored
        values, which are used unchanged. Outputs are real numbers."""
        return self._running()(*flat_like(self.compiled.source, inputs, named))

    @short_errors
    def reset(self) -> None:
        """Reset the state that a model keeps between runs."""
        self._running().reset()

    @short_errors
    def evaluate(self, metrics: Callable[[Runner], Mapping[str, float]]) -> dict[str, float]:
        """Return the result of `metrics(run)`, where `run` uses the emulated chip; evaluate() of a model file fits."""
        return dict(metrics(self._running()))

    @short_errors
    def compare(self) -> Summary:
        """Compare the outputs on the emulated chip with those of the original model, as `baretorch run` does."""
        from baretorch.report.terminal.tables import run_screen

        facts = self._measure().facts
        return Summary(facts.to_json(), run_screen(facts))

    @short_errors
    def profile(self) -> Summary:
        """Count the instructions and cycles of each layer on the emulated chip."""
        from baretorch.report.terminal.profile import profile_screen

        found = self._measure()
        profile = found.profile
        return Summary(profile.to_json(), profile_screen(self.compiled, found.image, found.run.emulator, profile, ()))

    @short_errors
    def fit(self, boards: Sequence[str] | None = None) -> Summary:
        """Report which boards hold the model, by default of all, and which options make it fit the others."""
        from baretorch.explore.fit import Fitter
        from baretorch.report.terminal.fit import fit_screen

        source, options = self.compiled.source, self._options
        targets = [board for board in map(load_board, boards or board_names()) if not board.hosted]
        with notebook_progress() as show:
            fitter = Fitter(
                lambda int8: pipeline.lower(source, replace(options, int8=int8, io=None)),
                options,
                lambda what: show(what, 0, 0),
            )
            found = [fitter.find(board) for board in targets]
        dtype = "int8" if fitter.is_int8() else "float32"
        rows = [each.to_json(options) for each in found]
        data = {"model": source.name, "dtype": dtype, "boards": rows, "notes": fitter.notes}
        return Summary(data, fit_screen(source.name, dtype, options, found, fitter.notes, fitter.warnings))

    @short_errors
    def report(self, path: str | Path) -> None:
        """Write one HTML page about memory, time and accuracy, measured on the emulated chip with the examples."""
        from baretorch.explore.advice import advise
        from baretorch.report.findings import Report
        from baretorch.report.page.write import write_page

        found = self._measure()
        write_page(Report(found.facts, found.profile, advise(found.facts, found.profile)), Path(path))
        if found.facts.mismatch:
            warnings.warn(line(found.facts.warnings[-1]), stacklevel=3)

    @short_errors
    def project(self, sdk: str, folder: str | Path, force: bool = False) -> list[Path]:
        """Write a project for an SDK, with the model as a library. With `force`, also replace files that were changed;
        return the copies of them that were kept."""
        from baretorch.exports import BY_NAME, need_board
        from baretorch.exports.files import need_folder, write
        from baretorch.exports.project import figures_of, project_files
        from baretorch.targets.toml import raise_unknown

        if sdk not in BY_NAME:
            raise_unknown("SDK", sdk, tuple(BY_NAME), at=None)
        board = self.compiled.board
        need_board(BY_NAME[sdk], None if board.hosted else board)
        need_folder(Path(folder))
        compiled = pipeline.compile_lowered(self.compiled.model, board, self._options.for_own_build())
        with scratch() as place:
            figures = figures_of(compiled, pipeline.build_image(compiled, place))
        return write(Path(folder), project_files(compiled, BY_NAME[sdk], figures), force)

    @short_errors
    def flash_board(self, method: str | None = None, drive: str | Path | None = None, port: str | None = None) -> str:
        """Write the image to the board that is plugged in, by its first `method` that works; return the place. `drive`
        is the folder where its USB drive is mounted, and `port` its serial port, if there are several boards."""
        from baretorch.machines.hardware.flash import flash

        chosen = "uf2" if drive and method is None else method
        return flash(self.build(), chosen, [Path(drive)] if drive else None, port)

    def close(self) -> None:
        """End the emulation, and remove the temporary folder that build() made. A later run() builds the image
        again."""
        self._stop()
        if self._remove is not None:
            self._remove()
            self._remove = self._image = self._measured = None

    def _stop(self) -> None:
        if self._session is not None:
            self._session.close()
        self._session = None

    def _running(self) -> Session:
        if self._session is None:
            need_server(self.compiled.options.app)
            machine = open_machine(self.build(), self.compiled.c.run, self.compiled.options.emulator)
            self._session = Session(machine, self.compiled.graph)
        return self._session

    def _measure(self) -> Measurement:
        """Run the examples on an emulated chip of their own, once."""
        if self._measured is None:
            image = self.build()
            with notebook_progress() as show:
                self._measured = measure_model(self.compiled, image, show, other_inputs=True)
        return self._measured
