"""Choose the bank of the chip's RAM for each buffer.

All buffers are in one bank if they fit there: the one that holds the program's data, or the one that the user names for
the whole arena. Layers are elsewhere if the user says so, or if the bank is too small: then buffers that are alive at
the fullest step move to another bank, one after the other, until the rest fits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from baretorch.errors import CompileError
from baretorch.ir.graph import Graph
from baretorch.plan.memory.offsets import place_buffers
from baretorch.plan.schedule import View
from baretorch.plan.types import Bank, Buffer, Overlap
from baretorch.targets.types import Board, Chip

ARENA = "arena"  # in the user's wishes: everything that is not named


@dataclass(frozen=True)
class Wishes:
    """The bank of the arena, and the banks of buffers that must be elsewhere."""

    main: str
    of: Mapping[str, str]


@dataclass(frozen=True)
class Placed:
    """Buffers with offsets, the banks they need, the main one first, and whether no offsets need less."""

    buffers: list[Buffer]
    banks: tuple[Bank, ...]
    optimal: bool

    def bytes_in(self, bank: str) -> int:
        return sum(b.size for b in self.banks if b.name == bank)


def make_wishes(
    graph: Graph, storage: Mapping[str, View], board: Board, places: Mapping[str, str], others: Collection[str] = ()
) -> Wishes:
    """Return the user's and the hardware's wishes as banks of buffers.

    The user names a layer by its module's path or a tensor; state stays in the arena. Buffers that `others` than cores
    use are where these reach them. An NPU moves only its own buffers; a unit needs the whole arena within reach.
    """
    known = [m.name for m in board.chip.memories if m.kind == "ram"]
    state = {s.name for s in graph.state}
    of: dict[str, str] = {}
    for layer, bank in places.items():
        if bank not in known:
            raise CompileError(f"{board.name} has no bank of RAM called {bank}", need=" or ".join(known))
        if layer == ARENA:
            continue
        found = {storage[t.name].buffer for t in graph.tensors.values() if layer in (t.name, t.origin.path)} - state
        found = {name for name in found if graph[name].data is None}
        if not found:
            layers = dict.fromkeys(t.origin.path for t in graph.tensors.values() if t.data is None and t.origin.path)
            raise CompileError(
                f"no layer is called {layer}",
                have=", ".join([*graph.inputs, *list(layers)[:12]]),
                try_=f"`--place {ARENA}={bank}` places everything",
            )
        of |= dict.fromkeys(found, bank)
    chip, npu = board.chip, board.chip.npu if others else None
    ram = npu.ram if npu is not None else chip.arena_bank
    main = places.get(ARENA, ram)
    for name in sorted(others):
        bank = of.get(name, main if npu is None or name in state else ram)
        if bank != ram:
            who, off = ("the NPU", "--npu off") if npu is not None else ("a unit of the cluster", "--units off")
            raise CompileError(
                f"--place: {who} cannot access {bank}",
                at=name,
                need=f"{ram} for its inputs and outputs",
                try_=f"leave it out, or {off}",
            )
    return Wishes(main, {**of, **dict.fromkeys(others, ram)} if npu is not None else of)


def place_in_banks(
    buffers: Sequence[Buffer],
    overlaps: Sequence[Overlap],
    state: Collection[str],
    chip: Chip,
    wishes: Wishes,
    cores: int = 1,
    taken: int = 0,
) -> Placed:
    """Place buffers as wished, and if the main bank is too small, move some to other banks. If that does not help,
    place them as wished. Other data takes `taken` bytes of the main bank."""
    first = tried = _split(buffers, overlaps, state, chip, wishes)
    of = dict(wishes.of)
    while (short := tried.bytes_in(wishes.main) + taken - room(chip, wishes.main, cores)) > 0:
        for name, bank in _moves(tried, chip, wishes.main, short, {*state, *of}, cores):
            moved = _split(buffers, overlaps, state, chip, Wishes(wishes.main, {**of, name: bank}))
            if moved.bytes_in(bank) <= room(chip, bank, cores):
                of[name], tried = bank, moved
                break
        else:
            return first
    return tried


def room(chip: Chip, bank: str, cores: int = 1) -> int:
    """Return how many bytes buffers may take of a bank: all but the stacks of the cores that are used."""
    return chip.memory(bank).size - (chip.stacks(cores) if bank == chip.data else 0)


def _split(
    buffers: Sequence[Buffer], overlaps: Sequence[Overlap], state: Collection[str], chip: Chip, wishes: Wishes
) -> Placed:
    done: dict[str, Buffer] = {}
    banks, optimal = [], True
    for bank in dict.fromkeys([wishes.main, *wishes.of.values()]):
        some = [b for b in buffers if wishes.of.get(b.name, wishes.main) == bank]
        names = {b.name for b in some}
        near = [o for o in overlaps if o.reads in names and o.writes in names]
        placed, size, best = place_buffers(some, bank, state, near)
        done |= {b.name: b for b in placed}
        if size or bank == wishes.main:
            banks.append(Bank(bank, size, bank == chip.data))
        optimal = optimal and best
    return Placed([done[b.name] for b in buffers], tuple(banks), optimal and len(banks) == 1)


def _moves(
    tried: Placed, chip: Chip, main: str, short: int, stay: Collection[str], cores: int
) -> Iterator[tuple[str, str]]:
    """Yield buffers to move, and where to: of those alive at the fullest step, first the smallest that makes the rest
    fit."""
    here = [b for b in tried.buffers if b.bank == main]
    fullest = max({b.first for b in here}, key=lambda t: sum(b.size for b in here if b.first <= t <= b.last))
    alive = [b for b in here if b.first <= fullest <= b.last and b.name not in stay and b.size]
    others = [m.name for m in chip.memories if m.kind == "ram" and m.name != main]
    for b in sorted(alive, key=lambda b: (b.size < short, abs(b.size - short))):
        for bank in sorted(others, key=lambda name: -room(chip, name, cores)):
            yield b.name, bank
