"""Advise how to make a model smaller or faster on its board. Rules that can try their advice report the result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from baretorch.errors import CompileError
from baretorch.files.write import scratch
from baretorch.ir.graph import Graph
from baretorch.measure.facts import RunFacts
from baretorch.measure.numbers import share
from baretorch.measure.profile import Profile
from baretorch.ops.delegate import Delegate
from baretorch.ops.fft import Fft, Irfft, Rfft, row_length
from baretorch.ops.helpers.kernel import Call
from baretorch.options import Buffers, Input, Io, Optimize, Options
from baretorch.passes.to_int8 import could_be_int8
from baretorch.pipeline import build_image, compile_graph, emit_plans, with_io
from baretorch.plan import make_plan
from baretorch.plan.types import Plan

_PARTS = (0.35, 0.5, 0.65, 0.8, 0.9)  # of the arena, for --ram
_NOTABLE = 0.25  # least share of a layer that is mentioned
_CONVERSIONS = ("quantize", "dequantize")  # of inputs and outputs, which `--io int8` leaves to the caller


@dataclass(frozen=True)
class Advice:
    """An advice and its effect; `option` is for the command line, and empty if the model must change."""

    option: str
    text: str


@dataclass(frozen=True)
class _Case:
    """A model that was built and run."""

    facts: RunFacts
    profile: Profile

    @property
    def plan(self) -> Plan:
        return self.facts.compiled.plan

    @property
    def options(self) -> Options:
        return self.facts.compiled.options

    @property
    def is_filled(self) -> bool:
        """Return whether tiles fill a cluster's scratchpad, so that a smaller arena saves nothing."""
        return self.plan.tiles is not None

    def replan(self, graph: Graph | None = None, **changes: Any) -> Plan | None:
        """Return the plan of another graph, or of this one with other options; None if it cannot be planned."""
        compiled = self.facts.compiled
        partition, options = compiled.partition, replace(self.options, **changes)
        try:
            if graph is not None and partition is not None:  # delegate again, as the graph has changed
                return compile_graph(compiled.source, graph, compiled.board, options).plan
            own = compiled.graph if partition is None else partition.graph
            return make_plan(graph or own, compiled.board, options)
        except CompileError:
            return None

    def smaller(self, plan: Plan | None) -> str:
        """Describe the arena of another plan; empty if it is not smaller."""
        if plan is None or plan.arena >= self.plan.arena:
            return ""
        return f"arena {plan.arena:,} instead of {self.plan.arena:,} bytes"


def advise(facts: RunFacts, profile: Profile) -> tuple[Advice, ...]:
    """Apply the rules, those that usually save most first."""
    case = _Case(facts, profile)
    team = facts.compiled.board.chip.is_team  # all cores but one would idle during bands
    rules = (_quantize, _bare_io, *(() if team else (_bands, _input_rows)), _callers_buffers, _size)
    hints = (_float_layers, _portable, _largest_weights, _hottest)
    return tuple(advice for rule in (*rules, *hints) for advice in rule(case))


def _quantize(case: _Case) -> Iterator[Advice]:
    compiled, image = case.facts.compiled, case.facts.image
    if not compiled.graph.is_int8 and len(compiled.source.graphs) == 1:  # several cannot be quantized yet
        yield Advice(
            "--int8",
            f"about a quarter of the weights ({image.flash.weights:,} bytes now) and of the arena "
            f"({image.ram.arena:,} bytes now), and fewer instructions",
        )


def _bare_io(case: _Case) -> Iterator[Advice]:
    bare = _bare(case)
    if bare is None:
        return
    smaller = case.smaller(case.replan(bare))
    saved = sum(layer.instructions for layer in case.profile.layers if layer.op in _CONVERSIONS)
    arena = f"{smaller}, and " if smaller else ""
    yield Advice("--io int8", f"{arena}up to {saved:,} fewer instructions: inputs and outputs are int8")


def _bare(case: _Case) -> Graph | None:
    """Return the graph with int8 inputs and outputs instead of conversions; None if there are no conversions, or if
    they must stay."""
    graph = case.facts.compiled.graph
    if not graph.is_int8:
        return None
    try:
        bare = with_io(graph, Io.INT8)
    except CompileError:  # a layer at the border computes in float
        return None
    return bare if len(bare.nodes) != len(graph.nodes) else None


def _bands(case: _Case) -> Iterator[Advice]:
    if case.plan.bands is not None or case.is_filled:
        return
    for part in _PARTS:
        found = case.replan(ram=int(case.plan.arena * part))
        if found is not None and found.bands is not None:
            text = f"{case.smaller(found)}: {found.bands}; same results, some more instructions"
            yield Advice(f"--ram {found.arena}", text)
            return


def _input_rows(case: _Case) -> Iterator[Advice]:
    in_rows = case.options.input is Input.ROWS
    smaller = "" if in_rows or case.is_filled else case.smaller(case.replan(input=Input.ROWS))
    if smaller:
        text = f"{smaller}: a callback supplies the image's rows, so the image need not be in RAM"
        yield Advice("--input rows", text)


def _callers_buffers(case: _Case) -> Iterator[Advice]:
    direct = case.options.buffers is Buffers.CALLER
    smaller = "" if direct or case.is_filled else case.smaller(case.replan(buffers=Buffers.CALLER))
    if smaller:
        yield Advice("--buffers caller", f"{smaller}: inputs and outputs stay where the caller has them")


def _size(case: _Case) -> Iterator[Advice]:
    code, found = case.facts.image.flash.model_code, _code_for_size(case)
    if found is not None and found < code:
        text = f"model code {found:,} instead of {code:,} bytes: layers share kernels, mostly for more instructions"
        yield Advice("--optimize size", text)


def _code_for_size(case: _Case) -> int | None:
    """Measure the model's code with each kernel compiled once; None if that is so already, or if it cannot be built."""
    compiled = case.facts.compiled
    if case.options.optimize is Optimize.SIZE:
        return None
    options = replace(case.options, optimize=Optimize.SIZE)
    small = emit_plans(compiled.model, compiled.plans, compiled.board, options, blank=True)
    with scratch() as folder:
        try:
            return build_image(small, folder).flash.model_code
        except CompileError:  # more code than the board holds
            return None


def _float_layers(case: _Case) -> Iterator[Advice]:
    left = could_be_int8(case.facts.compiled.graph)
    if left:
        some, they = (
            (f"{len(left)} layers still compute", "they") if len(left) > 1 else ("a layer still computes", "it")
        )
        names = ", ".join(dict.fromkeys(left[:3]))
        yield Advice("", f"{some} in float: in int8 {they} would take a quarter of the memory: {names}")


def _portable(case: _Case) -> Iterator[Advice]:
    slow = [layer for layer in case.profile.layers if layer.variant == "ref" and layer.macs]
    taken = sum(layer.instructions for layer in slow)
    if slow and taken > _NOTABLE * case.profile.instructions:
        names = ", ".join(dict.fromkeys(layer.name for layer in slow[:3]))
        yield Advice(
            "", f"{share(taken, case.profile.instructions)} of the instructions run in portable kernels: {names}"
        )


def _largest_weights(case: _Case) -> Iterator[Advice]:
    """Name the layer with the most weights. Constants in tiles are added up by layer."""
    layout, whole = case.plan.layout, case.plan.weight_bytes()
    found = []
    for layer in case.profile.layers:
        names = {o.storage for step in layer.steps for o in step.operands if o.constant}
        found.append((sum(layout.constant(name).data.nbytes for name in names), layer))
    most, largest = max(found, key=lambda pair: pair[0], default=(0, None))
    if largest is None or isinstance(largest.steps[0].call.op, Delegate):  # commands, or the weights of many layers
        return
    if whole > 1024 and most > _NOTABLE * whole:
        yield Advice(
            "", f"{largest.name} has {share(most, whole)} of the weights: fewer channels there save most flash"
        )


def _hottest(case: _Case) -> Iterator[Advice]:
    """Name the layer with the most instructions, or on a cluster, where cores wait for units, the most cycles."""
    profile, traced = case.profile, case.profile.traced
    layers, whole = [layer.instructions for layer in profile.layers], profile.instructions
    if traced is not None:
        layers, whole = [layer.cycles for layer in traced.layers], traced.cycles
    bare = () if _bare(case) is None else _CONVERSIONS  # _bare_io has advice for those
    pairs = (pair for pair in zip(layers, profile.layers, strict=True) if pair[1].op not in bare)
    most, layer = max(pairs, key=lambda pair: pair[0], default=(0, None))
    if layer is None or isinstance(layer.steps[0].call.op, Delegate):  # nothing to advise about a driver
        return
    if most > _NOTABLE * whole:
        what = "instructions" if traced is None else "cycles"
        yield Advice("", f"{layer.name} takes {share(most, whole)} of the {what}: {_instead(layer.steps[0].call)}")


def _instead(call: Call[Any]) -> str:
    """Suggest a change with fewer instructions. Kernels for transforms of powers of two are many times faster."""
    if isinstance(call.op, (Fft, Rfft, Irfft)):
        n = row_length(call)
        if n & (n - 1):
            below = 1 << (n.bit_length() - 1)
            return f"make n_fft a power of two ({below} or {2 * below} instead of {n})"
        return "fewer or shorter transforms there"
    return "a smaller input or fewer channels there"
