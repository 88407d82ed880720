"""Set up the simulated path to flash of an emulated chip, and compute its time. hooks/flash.c simulates it."""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from baretorch.machines.counts import ROW_ROOM
from baretorch.machines.types import FlashReads
from baretorch.machines.unicorn.state import STRUCTS, VIEWS, CoreState
from baretorch.targets.flash import CONTROLLERS, FIXED_PRICE, FlashCache, FlashPath, Number, Price, Waits, price_of
from baretorch.targets.silicon import Condition
from baretorch.targets.types import Chip

Holds: TypeAlias = Callable[[Iterable[Condition]], bool]
KINDS = ("code", "data")
VISIT = struct.Struct(f"<I4x{4 * VIEWS}Q")  # bt_visit


class FlashSimulation:
    """A view for each number of bytes that a miss may read. `recorded` is the number of accesses that are kept for a
    replay."""

    def __init__(self, chip: Chip, path: FlashPath, recorded: int = 0) -> None:
        bank = chip.memory(chip.code)
        views = [_view(path, fill) for fill in path.fills]
        self._path = path
        fields = CONTROLLERS[path.controller].fields if path.controller != FIXED_PRICE else ()
        self.watched = (
            *fields,
            *(c.name for cache in path.caches for c in cache.when),
        )  # the fields that `publish` reads
        self.prices: list[Price] = []
        self._events = (STRUCTS["bt_event"] * recorded)()
        self._visits: list[tuple[CoreState, mmap.mmap]] = []
        self.state = STRUCTS["bt_flash"](
            view_count=len(views), origin=bank.origin, bytes=bank.size, event_room=recorded
        )
        self.state.views[: len(views)] = views
        if recorded:
            self.state.events = self._events

    def add(self, core: CoreState) -> None:
        """Give the core room for what it reads in a call of the run function."""
        memory = mmap.mmap(-1, VISIT.size * ROW_ROOM)
        core.visits = (STRUCTS["bt_visit"] * ROW_ROOM).from_buffer(memory)
        self._visits.append((core, memory))

    def publish(self, number: Number, holds: Holds) -> None:
        """Copy the settings of the path's registers to the hooks."""
        self.prices = [price_of(self._path, fill, number) for fill in self._path.fills]
        for view, price in zip(self.state.views, self.prices, strict=False):
            view.window, view.page, view.ahead = price.window, price.page, price.ahead
            for slot, cache in _slots(self._path):
                view.caches[slot].on = holds(cache.when)

    def reads(self) -> tuple[FlashReads, ...] | None:
        """Return the reads of the last call, priced by the current registers; None if they did not fit the buffer."""
        if any(core.visit_count > ROW_ROOM for core, _ in self._visits):
            return None
        return tuple(read for core, memory in self._visits for read in self._of_core(core, memory))

    def events(self) -> list[ctypes.Structure]:
        """Return the recorded accesses; none if they did not fit the buffer."""
        count = self.state.event_count
        return [] if count > len(self._events) else self._events[:count]

    def _of_core(self, core: CoreState, memory: mmap.mmap) -> Iterator[FlashReads]:
        sums: dict[int, list[int]] = {}
        for site, *fills in VISIT.iter_unpack(memoryview(memory)[: VISIT.size * core.visit_count]):
            before = sums.setdefault(site, [0] * len(fills))
            sums[site] = [a + b for a, b in zip(before, fills, strict=True)]
        for site, fills in sums.items():
            first_code, first_data, next_code, next_data = fills[:4]
            yield FlashReads(
                core=core.number,
                site=site,
                code_misses=first_code + next_code,
                data_misses=first_data + next_data,
                bytes=sum(fills[:4]) * self._path.fills[0],
                waits=self._waits(fills),
            )

    def _waits(self, fills: list[int]) -> Waits:
        """Return the expected time of the first view, and the best and worst of all views."""
        found = [_cost(price, fills[4 * i : 4 * i + 4]) for i, price in enumerate(self.prices)]
        return Waits(found[0].expected, min(w.best for w in found), max(w.worst for w in found))


def _cost(price: Price, fills: list[int]) -> Waits:
    prices = (price.first, price.first, price.next_code, price.next_data)
    return Waits(
        *(sum(n * cycles for n, cycles in zip(fills, each, strict=True)) for each in zip(*prices, strict=True))
    )


def _slots(path: FlashPath) -> Iterator[tuple[int, FlashCache]]:
    """Yield the caches and their places in a view, which are those of the kinds that they serve first."""
    for slot, kind in enumerate(KINDS):
        cache = path.cache_of(kind)
        if cache is not None and (kind == "code" or cache is not path.cache_of("code")):
            yield slot, cache


def _view(path: FlashPath, fill: int) -> ctypes.Structure:
    view = STRUCTS["bt_view"](fill_bits=fill.bit_length() - 1)
    for slot, cache in _slots(path):
        view.caches[slot] = STRUCTS["bt_cache"](
            lines=(STRUCTS["bt_line"] * (cache.sets * cache.ways))(),
            ways=cache.ways,
            set_mask=cache.sets - 1,
            line_bits=cache.line.bit_length() - 1,
        )
    code, data = map(path.cache_of, KINDS)
    view.cache_of[:] = (0, 0 if data is not None and data is code else 1)
    return view
