"""Tracks the memory of an ExecuTorch program while its instructions are followed, and finds its mutable buffers.

ExecuTorch keeps a mutable buffer in planned memory, at a place of its own, and changes it in place, as a rule by a
`copy_` at the end of the method. The file need not call it one, nor name it, nor hold its initial value. Several
methods can share one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from baretorch.frontends.pte.schema import DelegateCall, Items, KernelCall, Program, PteMethod, TensorValue, damaged


@dataclass(frozen=True)
class PlacedValue:
    """A value in memory: its name, and the tensor it was written as."""

    name: str
    tensor: TensorValue


class PteMemory:
    """The value in each range of planned memory. Tensors without a place or without bytes are kept separately."""

    def __init__(self, banks: Sequence[int]) -> None:
        self._banks = banks
        self._starts: list[list[int]] = [[] for _ in banks]  # of the ranges in use, sorted; they never overlap
        self._held: dict[tuple[int, int], PlacedValue] = {}  # by bank and start
        self._alone: dict[int, PlacedValue] = {}

    def write(self, name: str, tensor: TensorValue) -> None:
        """Store a value in the tensor's bytes; every value that shares a byte with it is overwritten."""
        place = self._place(tensor)
        if place is None:
            self._alone[tensor.index] = PlacedValue(name, tensor)
            return
        bank, start = place
        starts = self._starts[bank]
        first = bisect_left(starts, start)
        if first and starts[first - 1] + self._held[bank, starts[first - 1]].tensor.bytes > start:
            first -= 1
        last = bisect_left(starts, start + tensor.bytes)
        for gone in starts[first:last]:
            del self._held[bank, gone]
        starts[first:last] = [start]
        self._held[place] = PlacedValue(name, tensor)

    def read(self, tensor: TensorValue) -> PlacedValue | None:
        """Return the value in the tensor's bytes if it is one whole value of the tensor's type."""
        place = self._place(tensor)
        held = self._alone.get(tensor.index) if place is None else self._held.get(place)
        if held is None or (held.tensor.dtype, held.tensor.bytes) != (tensor.dtype, tensor.bytes):
            return None
        return held

    def _place(self, tensor: TensorValue) -> tuple[int, int] | None:
        if tensor.memory is None or tensor.bytes == 0:
            return None
        bank, start = tensor.memory
        if bank >= len(self._banks) or start + tensor.bytes > self._banks[bank]:
            raise damaged(f"{tensor} is outside the planned memory")
        return tensor.memory


OWN_BANK = 1  # each method has its own; ExecuTorch puts the buffers that methods share in a bank beyond it

_Identity: TypeAlias = tuple[object, ...]


@dataclass(frozen=True)
class Kept:
    """A mutable buffer as one method sees it. `initial` is the tensor of any method that has initial data; None if
    the file contains no initial data."""

    name: str
    tensor: TensorValue
    initial: TensorValue | None


class UniqueNames:
    """Gives each value a unique name: `stem`, then `stem_2`, `stem_3` …"""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._versions: Counter[str] = Counter()

    def fresh(self, stem: str) -> str:
        while True:
            self._versions[stem] += 1
            name = stem if self._versions[stem] == 1 else f"{stem}_{self._versions[stem]}"
            if name not in self._taken:
                self._taken.add(name)
                return name


def find_state(program: Program, methods: Mapping[str, PteMethod]) -> dict[str, tuple[Kept, ...]]:
    """Return the mutable buffers of each method. The same name in two methods is the same buffer."""
    held: dict[str, dict[_Identity, TensorValue]] = {}  # where several tensors are at one place, the first
    names: dict[_Identity, str] = {}
    initial: dict[_Identity, TensorValue] = {}
    given = UniqueNames()
    for m, plan in methods.items():
        computed, changed = _find_written(program, plan)
        held[m] = {}
        for t in plan.values:
            if not isinstance(t, TensorValue) or t.constant or t.index in computed:
                continue
            identity = _identity(m, t)
            held[m].setdefault(identity, t)
            if identity not in names and (t.index in changed or _is_declared(t)):
                names[identity] = given.fresh(t.key or f"state{len(names)}")
            if t.buffer:
                initial.setdefault(identity, t)
    return {
        m: tuple(Kept(names[i], t, initial.get(i)) for i, t in tensors.items() if i in names)
        for m, tensors in held.items()
    }


def _find_written(program: Program, plan: PteMethod) -> tuple[set[int], set[int]]:
    """Return the tensors that are inputs or results of operators, and those that are changed in place but are
    neither."""
    computed, changed = set(plan.inputs), set[int]()
    for call in plan.instructions:
        if isinstance(call, DelegateCall):
            computed |= set(call.args)  # its inputs were computed before
            continue
        if not isinstance(call, KernelCall) or not call.args:
            continue
        last = call.args[-1]
        if call.in_place:
            changed |= {call.args[0]} - computed
        elif 0 <= last < len(plan.values) and isinstance(items := plan.values[last], Items):
            program.spend(len(items.indices))
            computed |= set(items.indices)
        else:
            computed.add(last)
    return computed, changed


def _is_declared(t: TensorValue) -> bool:
    """Report whether the file declares it as a mutable buffer."""
    return t.buffer != 0 or t.key != ""


def _identity(method: str, t: TensorValue) -> _Identity:
    """Return a key that is equal for tensors that are one buffer."""
    if t.key:
        return t.key, t.shape, t.scalar_type
    if t.memory is None:
        return method, t.index
    return (method, t.memory) if t.memory[0] <= OWN_BANK else (t.memory, t.shape, t.scalar_type)
