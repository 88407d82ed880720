"""What would make a model smaller or faster on its board. Where a rule can try its advice, it tells what was found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from baretorch.errors import CompileError
from baretorch.passes.to_int8 import float_layers
from baretorch.pipeline import with_io
from baretorch.plan import make_plan
from baretorch.plan.types import Memory, Plan
from baretorch.report.facts import RunFacts, is_int8
from baretorch.report.profile import Profile
from baretorch.report.words import share

_PARTS = (0.35, 0.5, 0.65, 0.8, 0.9)  # of the arena: what --ram might reach
_NOTABLE = 0.25  # a layer with such a share of something is worth a word


@dataclass(frozen=True)
class Advice:
    """What to do and what it brings; `option` is what to write on the command line, empty if the model must change."""

    option: str
    text: str

    def to_json(self) -> dict[str, Any]:
        return {"option": self.option, "text": self.text}


def advise(facts: RunFacts, profile: Profile) -> tuple[Advice, ...]:
    """The rules in the order of how much they usually bring."""
    rules = (_quantize, _bare_io, _bands, _pulled_rows, _size, _float_layers, _portable, _largest_weights, _hottest)
    return tuple(advice for rule in rules for advice in rule(facts, profile))


def _quantize(facts: RunFacts, profile: Profile) -> Iterator[Advice]:
    if not is_int8(facts.compiled.graph) and facts.compiled.source.module is not None:
        weights, arena = facts.image.flash.weights, facts.image.ram.arena
        yield Advice(
            "--int8",
            f"about a quarter of the weights ({weights:,} bytes now) and of the arena ({arena:,} bytes now), and fewer "
            "instructions",
        )


def _bare_io(facts: RunFacts, profile: Profile) -> Iterator[Advice]:
    compiled = facts.compiled
    if not is_int8(compiled.graph):
        return
    bare = with_io(compiled.graph, "int8")
    if len(bare.nodes) == len(compiled.graph.nodes):
        return
    smaller = _tried(facts, Memory(), io="int8")
    edges = [layer for layer in profile.layers if layer.op in ("quantize", "dequantize")]
    saved = sum(layer.instructions for layer in edges)
    arena = ""
    if smaller is not None and smaller.arena < compiled.plan.arena:
        arena = f"arena {smaller.arena:,} instead of {compiled.plan.arena:,} bytes, and "
    yield Advice("--io int8", f"{arena}up to {saved:,} instructions less: the caller gives and takes int8")


def _bands(facts: RunFacts, profile: Profile) -> Iterator[Advice]:
    plan = facts.compiled.plan
    if plan.patches is not None:
        return
    for part in _PARTS:
        found = _tried(facts, Memory(ram=int(plan.arena * part)))
        if found is not None and found.patches is not None:
            yield Advice(
                f"--ram {found.arena}",
                f"arena {found.arena:,} instead of {plan.arena:,} bytes: {found.patches}; same answers, some more "
                "instructions",
            )
            return


def _pulled_rows(facts: RunFacts, profile: Profile) -> Iterator[Advice]:
    plan = facts.compiled.plan
    if any(step.call.op.name == "pull" for step in plan.steps):
        return
    found = _tried(facts, Memory(rows=True))
    if found is not None and found.arena < plan.arena:
        yield Advice(
            "--input rows",
            f"arena {found.arena:,} instead of {plan.arena:,} bytes: a callback gives the image's rows, which need "
            "not lie in RAM",
        )


def _tried(facts: RunFacts, memory: Memory, io: str = "float") -> Plan | None:
    """The plan with other options; None if there is none."""
    compiled = facts.compiled
    try:
        return make_plan(with_io(compiled.graph, io), compiled.board, memory)
    except CompileError:
        return None


def _size(facts: RunFacts, profile: Profile) -> Iterator[Advice]:
    if facts.compiled.optimize == "speed":
        code = facts.image.flash.model_code
        yield Advice("--optimize size", f"less model code ({code:,} bytes now), for more instructions")


def _float_layers(facts: RunFacts, profile: Profile) -> Iterator[Advice]:
    left = float_layers(facts.compiled.graph)
    if left:
        yield Advice("", f"{len(left)} layers still compute in float: in int8 they would take a quarter of the memory")


def _portable(facts: RunFacts, profile: Profile) -> Iterator[Advice]:
    slow = [layer for layer in profile.layers if layer.variant == "ref" and layer.macs]
    taken = sum(layer.instructions for layer in slow)
    if slow and taken > _NOTABLE * profile.instructions:
        names = ", ".join(dict.fromkeys(layer.name for layer in slow[:3]))
        yield Advice("", f"{share(taken, profile.instructions)} of the instructions run in portable kernels: {names}")


def _largest_weights(facts: RunFacts, profile: Profile) -> Iterator[Advice]:
    plan = facts.compiled.plan
    if not plan.constants:
        return
    largest, whole = max(plan.constants, key=lambda c: c.data.nbytes), plan.weight_bytes()
    if whole > 1024 and largest.data.nbytes > _NOTABLE * whole:
        part = share(largest.data.nbytes, whole)
        yield Advice("", f"{largest.name} is {part} of the weights: fewer channels there save most flash")


def _hottest(facts: RunFacts, profile: Profile) -> Iterator[Advice]:
    layer = max(profile.layers, key=lambda layer: layer.instructions, default=None)
    if layer is not None and layer.instructions > _NOTABLE * profile.instructions:
        part = share(layer.instructions, profile.instructions)
        yield Advice("", f"{layer.name} takes {part} of the instructions: a smaller input or fewer channels there")
