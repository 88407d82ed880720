"""Build a compiled model, run it on the emulated chip, and compare its outputs with those of the original model.

Every verb, export and search that needs a run calls `measure_model`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from baretorch.errors import InternalError
from baretorch.files.write import scratch
from baretorch.firmware.types import Image
from baretorch.frontends.consecutive_calls import Calls, consecutive_calls
from baretorch.machines.run import Run
from baretorch.measure.cycles import Time, time_of
from baretorch.measure.facts import OneCoreCost, RunFacts, compare
from baretorch.measure.profile import Profile, make_profile
from baretorch.pipeline import Compiled, build_image, compile_lowered, run_image
from baretorch.stopwatch import timed, watch

Show = Callable[[str, int, int], None]  # (current stage, parts done, all parts); 0, 0: unknown


@dataclass(frozen=True)
class Measurement:
    """A compiled model, its image, and a run of the image. The properties are computed on demand, so the image's files
    must still exist."""

    compiled: Compiled
    image: Image
    run: Run
    calls: Calls | None = None  # with other inputs than the examples

    @cached_property
    def facts(self) -> RunFacts:
        """Compare the run with the original model."""
        with timed("compare"):
            return compare(self.compiled, self.image, self.run, self.calls)

    @cached_property
    def profile(self) -> Profile:
        """Count the run by layers. CompileError if the emulator does not count."""
        return make_profile(self.compiled, self.image, self.run)

    @cached_property
    def time(self) -> Time | None:
        """Estimate the time; None if it is not known, see `time_of`."""
        return time_of(self.image, self.run, self.compiled.partition)


def measure_model(
    compiled: Compiled, image: Image | Path, show: Show = lambda what, done, total: None, other_inputs: bool = False
) -> Measurement:
    """Run the example inputs on the emulated chip, and with `other_inputs` also variations of them. `image` is a folder
    in which to build the image, or the image itself."""
    if isinstance(image, Path):
        show("build", 0, 0)
        with timed("build"):
            image = build_image(compiled, image, lambda file, done, total: show(f"compile {file}", done, total))
    show("emulate", 0, 0)
    with timed("emulate"):
        source, ours = compiled.source, compiled.model.quantization is not None
        calls = consecutive_calls(source, compiled.graph, ours) if other_inputs else None
        return Measurement(compiled, image, run_image(compiled, image, calls), calls)


def on_one_core(compiled: Compiled) -> OneCoreCost:
    """Compile, build and run a model once more, for one core."""
    options = replace(compiled.options, cores=1, core=0)
    with timed("one_core"), watch(), scratch() as folder:  # the stages that follow are not those of the model
        alone = compile_lowered(compiled.model, compiled.board, options)
        found = measure_model(alone, folder)
    if found.run.instructions is None:
        raise InternalError("an emulator that counts several cores does not count one")
    cycles = found.run.emulator_cycles if compiled.board.chip.is_simulated else None
    return OneCoreCost(found.run.instructions, found.image.ram.arena, found.image.flash.model_code, cycles)
