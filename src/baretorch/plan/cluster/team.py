"""Share layers between the cores of a cluster, which meet at a hardware barrier and multiply several bytes per
cycle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from baretorch.ops.conv2d import flatten_pixels
from baretorch.ops.helpers.cut import Part, part_within
from baretorch.ops.helpers.kernel import Call, Kernel
from baretorch.ops.int8 import quantize
from baretorch.ops.int8.integer import IntTable
from baretorch.ops.int8.integer_rows import Row
from baretorch.ops.int8.lookup import Lookup
from baretorch.plan.cluster.cost import depends_on_shapes, estimate_cycles
from baretorch.plan.constants import Constants, Packs, constants_of
from baretorch.plan.schedule import Step, View
from baretorch.plan.shares import Team, best_cut, make_shares, shares_memory, whole_part

LEAST_CYCLES = 400  # cycles of a layer that is worth a meeting

Cuts: TypeAlias = tuple[tuple[tuple[int, int, int, bool], ...], ...]  # of each part, as in Part


@dataclass
class Memo:
    """Results that a search for tiles needs repeatedly."""

    parts: dict[Step, tuple[Part, ...] | None] = field(default_factory=dict)
    cuts: dict[tuple[object, ...], Cuts | None] = field(default_factory=dict)  # of layers of the same shape
    shares: dict[Step, list[Step]] = field(default_factory=dict)
    tiles: dict[tuple[Step, tuple[int, ...]], list[Step]] = field(default_factory=dict)  # cut at these channels
    packs: Packs = field(default_factory=Packs)


@dataclass(frozen=True)
class ClusterTeam(Team):
    """Cores of a cluster. They share pixels of pointwise convolutions without regard to rows, and what is quantized
    without regard to channels."""

    memo: Memo = field(default_factory=Memo, compare=False)

    def work(self, call: Call[Any], kernel: Kernel[Any]) -> float:
        return estimate_cycles(call, kernel)

    def as_cut(self, call: Call[Any]) -> Call[Any]:
        return quantize.flatten_rows(flatten_pixels(call), Lookup, IntTable, Row)

    def price(self, kernel: Kernel[Any], parts: Sequence[Part]) -> int:
        return sum(kernel.scratch(part.call) for part in parts)

    def may_cut(self, step: Step, parts: Sequence[Part]) -> bool:
        """Return whether each part reads only those bytes of an in-place input that it overwrites. A kernel that
        replaces some channels of each pixel does the same."""
        (y,) = step.writes
        return all(
            step.reads[i].offset + part.offsets[i] == y.offset + part.at
            and [t for t in part.call.inputs if t.data is None][i].bytes == part.call.y.bytes
            and (not part.call.pitch or step.kernel.renews)
            for i in shares_memory(step)
            for part in parts
        )

    def shares(self, step: Step, storage: Mapping[str, View], constants: Constants) -> Iterator[Step]:
        """Yield the steps of the cores that compute a step, with `constants` packed for them."""
        known = self.memo.shares
        if step not in known:
            packed = Constants(packs=self.memo.packs)
            known[step] = list(make_shares(step, self.parts(step), storage, packed, self))
        for part in known[step]:
            given = iter(constants_of(part.call, part.kernel, constants))
            yield replace(part, operands=tuple(next(given) if o.constant else o for o in part.operands))

    def longest(self, step: Step) -> float:
        """Estimate the cycles of the core that has most to do."""
        parts = self.parts(step)
        return max(self.work(call, step.kernel) for call in ([part.call for part in parts] if parts else [step.call]))

    def parts(self, step: Step) -> tuple[Part, ...] | None:
        """Return the parts of a step; None if it stays on one core."""
        known = self.memo.parts
        if step not in known:
            known[step] = self._cut(step)
        return known[step]

    def _cut(self, step: Step) -> tuple[Part, ...] | None:
        """Cut a step, in the same way as another of the same shape."""
        shape = _shape(step)
        if shape is None:
            return best_cut(step, self)
        if shape in self.memo.cuts:
            return self._cut_so(step, self.memo.cuts[shape])
        parts = best_cut(step, self)
        self.memo.cuts[shape] = None if parts is None else tuple(part.cuts for part in parts)
        return parts

    def _cut_so(self, step: Step, cuts: Cuts | None) -> tuple[Part, ...] | None:
        if cuts is None:
            return None
        found = []
        for one in cuts:
            part: Part | None = whole_part(self.as_cut(step.call))
            for axis, start, stop, wide in one:
                part = part and part_within(part, axis, start, stop, wide)
            assert part is not None
            found.append(part)
        return tuple(found)


def _shape(step: Step) -> tuple[object, ...] | None:
    """Return a key that is equal for steps that are cut in the same way; None if shapes alone do not determine the
    cut."""
    call, kernel = step.call, step.kernel
    if not depends_on_shapes(kernel) or step.guards or len(call.outputs) != 1:
        return None
    (y,) = step.writes
    same = tuple((i, step.reads[i].offset - y.offset) for i in shares_memory(step))
    inputs = tuple((t.shape, t.dtype, t.data is None) for t in call.inputs)
    return kernel.symbol, call.op, inputs, call.y.shape, call.y.dtype, call.pitch, same
