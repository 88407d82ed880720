"""The facts of a run, by the names that `--json` promises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.firmware.types import Image
from baretorch.frontends.consecutive_calls import consecutive_calls, in_graph
from baretorch.frontends.source import Source
from baretorch.ir.distance import largest, largest_distance
from baretorch.ir.graph import Array
from baretorch.ir.io import real_outputs, store_inputs
from baretorch.ir.ties import replace_tied_indices
from baretorch.machines.run import Run
from baretorch.machines.types import Cores
from baretorch.measure.cycles import Time, cycles_json, time_of
from baretorch.measure.memory_map import ram_banks
from baretorch.measure.numbers import figure
from baretorch.measure.units import npu_json, npu_warnings, units_json
from baretorch.ops.helpers.executor import CORE0
from baretorch.ops.int8.quantize import Dequantize
from baretorch.passes.layerwise import Layerwise, compare_layers
from baretorch.passes.order import FINAL_PASSES, run_passes
from baretorch.passes.to_int8 import explain_float, float_layers

if TYPE_CHECKING:
    from baretorch.frontends.consecutive_calls import Calls
    from baretorch.pipeline import Compiled
    from baretorch.quantize.accuracy import LayerAccuracy

TOLERANCE = 1e-3  # of the largest expected magnitude; fp32 kernels stay far below
INT8_TOLERANCE = 0.25  # for files that came quantized; rounding in their layers stays below
FEW_STEPS = 8  # of an output's scale, which may be large compared with small numbers


@dataclass(frozen=True)
class OneCoreCost:
    """The cost of a model on one core, to compare with several; `cycles` if they are exact."""

    instructions: int
    arena: int
    model_code: int
    cycles: int | None = None

    @property
    def path(self) -> int:
        """Return the figure to compare with the critical path of several cores."""
        return self.instructions if self.cycles is None else self.cycles

    def to_json(self, path: int) -> dict[str, Any]:
        """Return the figures, and the speed-up of several cores with this critical path."""
        return {"speedup": round(self.path / path, 3), "one_core": asdict(self)}


@dataclass(frozen=True)
class RunFacts:
    """A verified run: the model, the image and what the emulator measured."""

    compiled: Compiled
    image: Image
    run: Run
    reference: str  # what the outputs were compared with: "PyTorch", or "the graph" if there is no original to run
    max_error: float
    largest: float = 0.0  # largest magnitude among the expected outputs
    max_lsb: float | None = None  # int8: largest difference from the reference's int8, in steps of the output's scale
    one_core: OneCoreCost | None = None  # model on several cores: its cost on one
    calls: int = 2  # consecutive calls that were compared
    rejected: str | None = None  # why the reference rejects an input that was made of the examples
    wrong: str | None = None  # how the outputs differ from the reference's

    @cached_property
    def time(self) -> Time | None:
        """Estimate the time; None if it is not known, see `time_of`."""
        return time_of(self.image, self.run, self.compiled.partition)

    @cached_property
    def layers(self) -> tuple[LayerAccuracy, ...]:
        """Compare each int8 layer with float; empty if Baretorch did not quantize the model."""
        return _layers(self.compiled)

    @cached_property
    def layerwise(self) -> Layerwise | None:
        """Compare each layer of a quantized file with the file's own runtime; None if that is not possible."""
        return _layerwise(self.compiled)

    @property
    def error_words(self) -> str:
        """Format the largest error; it is not known if int8 cannot represent the values."""
        model = self.compiled.model
        unlike = not np.isfinite(self.max_error) and model.source.has_odd_inputs and model.quantization is not None
        return "not known" if unlike else figure(self.max_error)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what a user should know before trusting the figures."""
        return (*warnings_of(self.compiled), *self._fewer_calls(), *self._not_finite(), *self._inaccurate())

    @property
    def other_warnings(self) -> tuple[str, ...]:
        """Return the warnings without layers that stay float, for places that list those layers."""
        own = (*self._fewer_calls(), *self._not_finite(), *self._inaccurate())
        return (*self.compiled.model.warnings, *npu_warnings(self.compiled.partition), *own)

    @property
    def mismatch(self) -> bool:
        """Return whether the image's answers differ from those of the reference."""
        return bool(self._inaccurate())

    def need_match(self) -> None:
        """Raise CompileError if the image's answers are wrong, so that its figures mean nothing."""
        if wrong := self._inaccurate():
            raise CompileError(
                "the image computes wrong results on the emulated chip",
                have=wrong,
                try_="`baretorch run` with the same options compares more inputs; `baretorch debug` stops at layers",
            )

    def _fewer_calls(self) -> tuple[str, ...]:
        if self.rejected is None:
            return ()
        return (f"calls: {self.calls} were compared; {self.reference} rejects another input ({self.rejected})",)

    def _not_finite(self) -> tuple[str, ...]:
        """Report the first output that has NaN or infinities, even where the reference has them too. Inputs that have
        them are reported by the source."""
        floats = [(i, y) for i, y in enumerate(self.run.first) if y.dtype.kind == "f" and not np.isfinite(y).all()]
        examples = self.compiled.source.examples
        if not floats or not all(np.isfinite(x).all() for x in examples if x.dtype.kind == "f"):
            return ()
        number, y = floats[0]
        what = "NaN" if np.isnan(y).any() else "infinite"
        odd = int((~np.isfinite(y)).sum())
        more = f"; so are numbers of {len(floats) - 1} more" if len(floats) > 1 else ""
        return (f"outputs: output {number} is {what} for the example inputs ({odd:,} of {y.size:,} numbers){more}",)

    def _inaccurate(self) -> tuple[str, ...]:
        if self.wrong is not None:
            return (self.wrong,)
        int8, steps = self.compiled.graph.is_int8, self.max_lsb or 0.0
        tolerance = INT8_TOLERANCE if int8 else tolerance_of(self.compiled.source)
        judged = int8 and self.compiled.model.quantization  # with real data, by `evaluate`
        fits = self.max_error <= tolerance * self.largest or 0 < steps <= FEW_STEPS
        if self.calls > 2 or judged or fits:  # more calls were judged together
            return ()
        return (_inaccuracy(self.max_error, tolerance, self.largest, self.reference),)

    def to_json(self) -> dict[str, Any]:
        """Return the object of `run --json`; figures that are not known are null."""
        run = self.run
        return image_json(self.compiled, self.image) | {
            "emulator": run.emulator,
            "instructions": run.instructions,
            "cores": cores_json(run.cores, self.one_core) if run.cores else None,
            **cycles_json(self.time, self.image.board.chip),
            "emulator_cycles": run.emulator_cycles,
            "stack_peak": run.stack_peak,
            "reference": self.reference,
            "max_error": number(self.max_error),
            "calls": self.calls,
            "warnings": list(self.warnings),
            "max_lsb": self.max_lsb,
            "float_layers": float_layers(self.compiled.graph),
            "layers": [layer.to_json() for layer in self.layers],
            "layerwise": self.layerwise.to_json() if self.layerwise else None,
            "outputs": [finite(o) for o in run.outputs],
        }


def _inaccuracy(error: float, limit: float, largest: float, reference: str) -> str:
    return (
        f"inaccurate: the largest error {error:.3g} is more than {limit:g} of the largest expected value {largest:.3g} "
        f"of {reference}"
    )


def cores_json(cores: Cores, alone: OneCoreCost | None) -> dict[str, Any]:
    """Return what each core did; `waiting` is the share of all cores' time."""
    count, path = len(cores.instructions), cores.critical_path
    return {
        "count": count,
        "instructions": list(cores.instructions),
        "critical_path": path,
        "waiting": round(sum(cores.waiting) / (count * path), 4),
        **(alone.to_json(path) if alone else {}),
    }


def warnings_of(compiled: Compiled) -> tuple[str, ...]:
    """Return the warnings that are known before a run: about inputs, calibration, and layers of an int8 model that stay
    float although no option keeps them."""
    left = explain_float(compiled.graph, chosen=False)
    floats = (f"float: {layers} {'stay' if ', ' in layers else 'stays'} float: {why}" for layers, why in left)
    idle = compiled.options.shared_cores > 1 and all(step.executor == CORE0 for step in compiled.plan.steps)
    alone = ("cores: no layer is large enough to be shared, or can be: core 1 does nothing",) if idle else ()
    return (*compiled.model.warnings, *floats, *alone, *npu_warnings(compiled.partition))


def compiled_json(compiled: Compiled) -> dict[str, Any]:
    """Return the part of `compile --json` and `build --json` that needs no image."""
    plan = compiled.plan
    return {
        "model": compiled.graph.name,
        "board": compiled.board.name,
        "optimize": compiled.options.optimize,
        "options": compiled.options.to_json(),
        "macs": compiled.graph.macs(),
        "arena_lower_bound": plan.layout.lower_bound,
        "arena_proof": plan.proof,
        "bands": plan.bands.to_json() if plan.bands else None,
    }


def image_json(compiled: Compiled, image: Image) -> dict[str, Any]:
    """Return the object of `build --json`: the part of `run --json` that needs no run."""
    return compiled_json(compiled) | {
        "toolchain": image.toolchain,
        "dtype": "int8" if compiled.graph.is_int8 else "float32",
        "clock_hz": image.board.chip.clock_hz,
        "flash": asdict(image.flash),
        "ram": asdict(image.ram)
        | {"banks": [{"memory": m.name, "size": m.size, "used": used} for m, used in ram_banks(image)]},
        "npu": npu_json(compiled),
        "units": units_json(compiled),
        "tiles": compiled.plan.tiles.to_json() if compiled.plan.tiles else None,
        "files": {kind: str(path) for kind, path in image_files(image).items()},
    }


def image_files(image: Image) -> dict[str, Path]:
    """Return the files of an image by kind; the one to flash by hand comes first."""
    pairs = (("uf2", image.uf2), ("elf", image.elf), ("hex", image.hex), ("bin", image.bin), ("map", image.map))
    return {kind: path for kind, path in pairs if path is not None}


def compare(compiled: Compiled, image: Image, run: Run, calls: Calls | None = None) -> RunFacts:
    """Compare the image's outputs with those of the original model, or of the interpreted graph if the original cannot
    be run. A model that Baretorch quantized is compared with its int8 graph too, which the image must compute exactly.
    With `calls`, compare the outputs for other inputs as well."""
    first, again = compiled.source.expected, compiled.source.expected_again
    reference = compiled.source.library
    if first is None or again is None:
        ask = in_graph(compiled.graph)
        first, again = ask(compiled.source.examples), ask(compiled.source.examples)
        reference = "the graph"
    first_real, again_real = real_outputs(compiled.graph, run.first), real_outputs(compiled.graph, run.outputs)
    given = store_inputs(compiled.graph, compiled.source.examples)
    answers = ((first_real, first), (again_real, again))
    error = max(largest_error(replace_tied_indices(compiled.graph, given, have, want), want) for have, want in answers)
    int8 = compiled.model.int8_answers
    lsb = None if int8 is None else round(_steps(compiled, first_real, int8), 3)
    facts = RunFacts(compiled, image, run, reference, error, largest_magnitude(again), lsb)
    if calls is None and compiled.model.quantization:
        return replace(facts, wrong=differs_from_graph(compiled, run))
    return facts if calls is None else _with_calls(facts, calls)


def differs_from_graph(compiled: Compiled, run: Run) -> str | None:
    """Describe how the results of the example calls differ from the compiled graph's; None if they do not."""
    calls = consecutive_calls(compiled.source, compiled.graph, own=True, other_inputs=False)
    answers = [real_outputs(compiled.graph, y) for y in (run.first, run.outputs)]
    return _unexplained(compiled, answers, calls, own=True)


def _unexplained(compiled: Compiled, answers: Sequence[tuple[Array, ...]], calls: Calls, own: bool) -> str | None:
    wrong = wrong_answers(compiled, answers, calls.expected, own)
    return wrong if wrong is not None and not calls.explains(answers) else None


def _with_calls(facts: RunFacts, calls: Calls) -> RunFacts:
    """Add the comparison of answers to other inputs. Answers of a model that we quantized are compared with its int8
    graph, because the cost of int8 is measured with real data, not with made-up inputs."""
    compiled = facts.compiled
    answers = [real_outputs(compiled.graph, y) for y in (facts.run.first, facts.run.outputs, *facts.run.others)]
    ours = compiled.model.quantization is not None
    wrong = _unexplained(compiled, answers, calls, ours)
    facts = replace(facts, calls=len(answers), rejected=calls.rejected, wrong=wrong)
    if ours:
        return facts
    pairs = list(zip(answers, calls.expected, strict=True))
    steps = round(max(_steps(compiled, have, want) for have, want in pairs), 3)
    return replace(
        facts,
        max_error=max(largest_error(have, want) for have, want in pairs),
        largest=max(map(largest_magnitude, calls.expected)),
        max_lsb=None if facts.max_lsb is None else max(facts.max_lsb, steps),
    )


def wrong_answers(
    compiled: Compiled,
    answers: Sequence[tuple[Array, ...]],
    expected: Sequence[tuple[Array, ...]],
    own: bool = False,
) -> str | None:
    """Describe how answers differ from those of the reference; None if they do not. The reference is the model's own
    library, or the compiled graph: with `own`, and for a model that we quantized. Rounding may change one answer of a
    hundred."""
    graph, ours = compiled.graph, own or compiled.model.quantization is not None
    exact = not graph.is_int8 or (ours and not float_layers(graph) and not compiled.partitions)
    limit = tolerance_of(compiled.source) if exact else INT8_TOLERANCE
    largest = max(map(largest_magnitude, expected), default=0.0)
    errors = [
        error
        for have, want in zip(answers, expected, strict=True)
        if (error := largest_error(have, want)) > limit * largest
        and (exact or not 0 < _steps(compiled, have, want) <= FEW_STEPS)
    ]
    if len(errors) <= len(answers) // 100:
        return None
    return _inaccuracy(max(errors), limit, largest, _reference(compiled, ours))


def _reference(compiled: Compiled, ours: bool) -> str:
    source = compiled.source
    return "the int8 graph" if ours else source.library if source.eager else "the graph"


def _layerwise(compiled: Compiled) -> Layerwise | None:
    source = compiled.source
    if source.layers is None or not source.graph.is_quantized:
        return None
    return compare_layers(source.library, source.layers())


def _layers(compiled: Compiled) -> tuple[LayerAccuracy, ...]:
    """Compare each layer with float, over the examples and the calibration samples that were kept."""
    quantization = compiled.model.quantization
    if quantization is None:
        return ()
    from baretorch.quantize import accuracy

    samples = (compiled.source.examples, *quantization.samples)
    float_graph = run_passes(quantization.float_graph, FINAL_PASSES)[-1][1]  # in the same pieces
    return accuracy.compare_layers(compiled.graph, float_graph, samples)


def _steps(compiled: Compiled, outputs: tuple[Array, ...], expected: tuple[Array, ...]) -> float:
    """Return the largest difference between outputs that have scales, in steps of these."""
    producer = compiled.graph.producer()
    worst = 0.0
    for name, have, want in zip(compiled.graph.outputs, outputs, expected, strict=True):
        quant = compiled.graph[name].quant
        made = producer.get(name)
        scale = quant.scale[0] if quant else made.op.scale if made and isinstance(made.op, Dequantize) else None
        if scale is not None:
            worst = max(worst, largest_error((have,), (want,)) / scale)
    return worst


def tolerance_of(source: Source) -> float:
    """Return how far results may be from those of a float model, relative to its largest number."""
    return max(TOLERANCE, source.tolerance)


def largest_magnitude(arrays: tuple[Array, ...]) -> float:
    """Return the largest finite absolute value."""
    return max(map(largest, arrays), default=0.0)


def largest_error(outputs: tuple[Array, ...], expected: tuple[Array, ...]) -> float:
    """Return the largest difference; infinite if one is NaN and the other is not."""
    return max((largest_distance(have, want) for have, want in zip(outputs, expected, strict=True)), default=0.0)


def number(value: float) -> float | str:
    """Return a number for JSON, where NaN and infinity become text."""
    return value if np.isfinite(value) else str(value)


def finite(array: Array) -> Any:
    """Return nested lists of `number`s for JSON."""
    if array.dtype.kind != "f" or bool(np.isfinite(array).all()):
        return array.tolist()
    flat = [number(v) for v in array.reshape(-1).tolist()]
    return np.array(flat, dtype=object).reshape(array.shape).tolist()
