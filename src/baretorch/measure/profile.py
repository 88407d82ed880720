"""Count the instructions of a run per layer, and per inner loop of a layer.

Each layer is one call in the run function, in the order of the plan's steps. The emulators count blocks separately for
each call, so a layer's count includes the functions that it calls, and layers that share code have separate counts. A
layer in a branch that was not taken has none. Counts are exact, and layers and the rest (the run function itself) add
up to the run's instructions. So do cycles and flash reads. On a cluster, a layer is all of its steps on all cores;
measure/cluster.py has their cycles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from baretorch.errors import CompileError, InternalError
from baretorch.firmware.types import Image
from baretorch.ir.graph import Array, interpret
from baretorch.ir.io import store_inputs
from baretorch.machines.run import Run
from baretorch.machines.types import Block, ClusterTrace, FlashReads
from baretorch.measure.cluster import TracedRun, Use, match_trace
from baretorch.measure.cycles import (
    Cycles,
    Flash,
    Listing,
    Time,
    copies_of,
    cycles_json,
    cycles_of,
    flash_of,
    read_listing,
)
from baretorch.measure.facts import OneCoreCost
from baretorch.measure.loops import InnerLoop, disassembly, find_loops
from baretorch.plan.schedule import Step
from baretorch.targets.cycles import Timing
from baretorch.targets.parts import Cluster
from baretorch.targets.types import Chip

if TYPE_CHECKING:
    from baretorch.pipeline import Compiled


@dataclass(frozen=True)
class ProfiledLayer:
    """The counts of a step of the plan, or on a cluster of all steps of a layer. The hottest inner loop is first."""

    name: str
    op: str
    shape: str
    kernel: str
    variant: str  # "ref", or the CPU family that the kernel was written for
    macs: int
    instructions: int
    time: Time
    loops: tuple[InnerLoop, ...]
    steps: tuple[Step, ...] = field(compare=False)  # the plan's own

    @property
    def weight(self) -> float:
        """Return the figure that layers are compared by: time if flash costs some, else instructions."""
        return self.time.all.expected if self.time.flash else self.instructions


@dataclass(frozen=True)
class Profile:
    """A run, layer by layer."""

    layers: tuple[ProfiledLayer, ...]
    instructions: int
    own: Time  # of the run function itself
    chip: Chip
    traced: TracedRun | None = None  # on a cluster
    one_core: OneCoreCost | None = None  # the cost on one core of that cluster

    @property
    def rest(self) -> int:
        """Return the instructions of the run function itself, which passes addresses to the layers."""
        return self.instructions - sum(layer.instructions for layer in self.layers)

    @property
    def time(self) -> Time:
        return sum((layer.time for layer in self.layers), self.own)

    @property
    def weight(self) -> float:
        """Return the sum of which the layers' weights are parts."""
        return self.time.all.expected if self.time.flash else self.instructions

    @property
    def macs(self) -> int:
        return sum(layer.macs for layer in self.layers)

    def to_json(self) -> dict[str, Any]:
        """Return the figures for `profile --json`."""
        return {
            "instructions": self.instructions,
            "macs": self.macs,
            **cycles_json(self.time, self.chip),
            "rest": self.rest,
            **(self.traced.to_json() if self.traced else {}),
            **(self.one_core.to_json(self.traced.cycles) if self.traced and self.one_core else {}),
            "layers": [_layer_json(layer, self) for layer in self.layers],
        }


@dataclass(frozen=True)
class LoopCode:
    """The instructions of a loop as text. It is the hottest loop of these layers, which share code."""

    layers: tuple[ProfiledLayer, ...]
    lines: tuple[str, ...]


def hottest_code(profile: Profile, image: Image) -> list[LoopCode]:
    """Disassemble the hottest loop of each layer."""
    users: dict[tuple[int, int], list[ProfiledLayer]] = {}
    for layer in profile.layers:
        if layer.loops:
            users.setdefault((layer.loops[0].start, layer.loops[0].end), []).append(layer)
    return [LoopCode(tuple(layers), tuple(disassembly(image, layers[0].loops[0]))) for layers in users.values()]


def make_profile(compiled: Compiled, image: Image, run: Run) -> Profile:
    """Return the profile of a run. CompileError if the emulator did not count."""
    if run.trace is not None:
        return _of_cluster(compiled, image.board.chip, run.trace)
    if run.cores is not None:
        raise CompileError(
            "a profile describes one core, but the model runs on two", try_="cores=1; `run` shows the work of each core"
        )
    timing = image.board.chip.cpu.timing
    if run.instructions is None or not run.blocks or timing is None:
        raise CompileError(
            f"the emulator {run.emulator} does not report which instructions ran",
            need="a board that unicorn or qemu emulates",
            try_="`baretorch boards` lists them",
        )
    listing = read_listing(image)
    sites: dict[int, list[Block]] = {0: []}
    for block in _sum_visits(run.blocks):
        sites.setdefault(block.site, []).append(block)
    copying = {site for r in run.flash or () if r.copied for site in (r.site, r.copied)}
    own = [block for site in (0, *sorted(copying)) for block in sites.pop(site, [])]
    called = list(sites.values())
    late = copies_of(run, lambda blocks: cycles_of(blocks, listing, timing))
    ran = _ran(compiled)
    if len(called) != sum(ran):
        raise InternalError(f"the run function makes {len(called)} calls for {sum(ran)} steps")
    calls = iter(called)
    blocks = [next(calls) if run else [] for run in ran]
    timed = [(b, _time(b, run.flash, late, listing, timing)) for b in (own, *blocks)]
    layers = tuple(_layer(step, *b, listing) for step, b in zip(compiled.plan.steps, timed[1:], strict=True))
    profile = Profile(layers, run.instructions, timed[0][1], image.board.chip)
    if profile.rest != _instructions(own):
        raise InternalError("the layers and the run function do not add up to the instructions of the run")
    return profile


def _of_cluster(compiled: Compiled, chip: Chip, trace: ClusterTrace) -> Profile:
    cluster = chip.cluster
    assert cluster is not None
    found = match_trace(compiled.plan, trace, cluster, _ran(compiled))
    layers = tuple(
        ProfiledLayer(
            name=layer.name,
            op=layer.steps[0].call.op.name,
            shape=compiled.plan.graph[layer.steps[0].layer].type,
            kernel=layer.steps[0].kernel.symbol,
            variant=layer.steps[0].kernel.variant,
            macs=layer.macs,
            instructions=layer.instructions,
            time=_exact(layer.cycles, layer.uses[0], cluster),
            loops=(),
            steps=layer.steps,
        )
        for layer in found.layers
    )
    own = _exact(found.cycles - sum(layer.cycles for layer in found.layers), found.own[0], cluster)
    return Profile(layers, sum(found.instructions), own, chip, found)


def _exact(cycles: int, core0: Use, cluster: Cluster) -> Time:
    """Return the time of `cycles`, some of which core 0 waited for slower memory."""
    core, slow = cycles - core0.slow, core0.slow
    words = slow // cluster.slow_cycles if cluster.slow_cycles else 0
    return Time(Cycles(core, core, core), Flash(Cycles(slow, slow, slow), 4 * words, 0, words))


def _ran(compiled: Compiled) -> list[bool]:
    """Return whether each step ran in the second call with the example inputs. Conditions are computed here, because
    the compiler may merge two calls of different branches into one. Empty steps have no call."""
    plan, memory = compiled.plan, dict[str, Array]()
    values: Mapping[str, Array] = {}
    if any(step.guards for step in plan.steps):
        inputs = store_inputs(plan.graph, compiled.source.examples)
        interpret(plan.graph, inputs, memory=memory)
        values = interpret(plan.graph, inputs, keep=True, memory=memory)
    holds = [all(bool(values[g.condition.tensor]) == g.holds for g in step.guards) for step in plan.steps]
    return [ran and not step.is_empty for ran, step in zip(holds, plan.steps, strict=True)]


def _sum_visits(blocks: Iterable[Block]) -> Iterable[Block]:
    """Merge blocks with the same call site and address, in the order of the first visit."""
    executed: Counter[tuple[int, int, int]] = Counter()
    taken: Counter[tuple[int, int, int]] = Counter()
    for b in blocks:
        key = (b.site, b.address, b.instructions)
        executed[key] += b.executed
        taken[key] += b.taken
    return (Block(*key, executed[key], taken[key]) for key in executed)


def _instructions(blocks: Iterable[Block]) -> int:
    return sum(b.instructions * b.executed for b in blocks)


def _time(
    blocks: Sequence[Block],
    reads: Sequence[FlashReads] | None,
    late: Mapping[int, Flash],
    listing: Listing,
    timing: Timing,
) -> Time:
    """Estimate the time of the blocks of one site, including the wait for copies that are `late`."""
    core = cycles_of(blocks, listing, timing)
    sites = {block.site for block in blocks}
    waits = sum((late[site] for site in sites if site in late), Flash())
    return Time(core, None if reads is None else flash_of(r for r in reads if r.site in sites) + waits)


def _layer(step: Step, blocks: Sequence[Block], time: Time, listing: Listing) -> ProfiledLayer:
    call = step.call
    return ProfiledLayer(
        name=call.y.layer,
        op=call.op.name,
        shape=call.y.type,
        kernel=step.kernel.symbol,
        variant=step.kernel.variant,
        macs=call.op.macs(call.inputs, call.outputs),
        instructions=_instructions(blocks),
        time=time,
        loops=find_loops(blocks, listing),
        steps=(step,),
    )


def _layer_json(layer: ProfiledLayer, profile: Profile) -> dict[str, Any]:
    times = cycles_json(layer.time, profile.chip)
    found = profile.traced.layers[profile.layers.index(layer)] if profile.traced else None
    return {
        "name": layer.name,
        "op": layer.op,
        "output": layer.shape,
        "kernel": layer.kernel,
        "variant": layer.variant,
        "macs": layer.macs,
        "instructions": layer.instructions,
        **{key: value for key, value in times.items() if not key.endswith("source")},
        **(found.to_json() if found else {}),
        "loops": [asdict(loop) for loop in layer.loops],
    }
