"""Flash that costs time: what was simulated for whole models is replayed in Python, access by access."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TypeAlias

import pytest
import torch
from torch import nn

from baretorch import pipeline
from baretorch.frontends import Source, from_module
from baretorch.ir.io import store_inputs
from baretorch.machines.run import run_on
from baretorch.machines.unicorn.machine import UnicornMachine
from baretorch.options import Options, Weights
from baretorch.pipeline import LoweredModel
from baretorch.targets.boards import load_board
from baretorch.targets.flash import FlashPath, Price
from tests.models import compile_model
from tests.zoo.zoo import lowered

CODE, LOAD, RAM, VISIT_ENDS, CALL_BEGINS = range(5)  # what an event is
Fills: TypeAlias = Counter[tuple[int, int, bool]]  # site, kind, whether it went on


class Cache:
    """Sets of lines in the order of their use, and of each line the parts that are there."""

    def __init__(self, size: int, ways: int, line: int) -> None:
        self.ways, self.line, self.count = ways, line, size // ways // line
        self.sets: dict[int, dict[int, set[int]]] = {}

    def has(self, address: int) -> bool:
        number, part = divmod(address, self.line)
        lines = self.sets.setdefault(number % self.count, {})
        parts = lines.pop(number, set())
        there = part in parts
        lines[number] = parts | {part}
        if len(lines) > self.ways:
            del lines[next(iter(lines))]
        return there


class Replay:
    def __init__(self, path: FlashPath, fill: int, price: Price) -> None:
        made = {cache: Cache(cache.size, cache.ways, cache.line) for cache in path.caches}
        code, data = path.cache_of("code"), path.cache_of("data")
        assert code is not None and data is not None
        self.caches = {CODE: made[code], LOAD: made[data], RAM: made[data]}
        self.fill, self.price = fill, price
        self.expects, self.clock = -1, 0  # where the next fill would go on, and when the last one was
        self.visit: Counter[tuple[int, bool]] = Counter()
        self.call: Fills = Counter()

    def event(self, clock: int, address: int, size: int, kind: int, on: int) -> None:
        if kind == CALL_BEGINS:
            self.visit.clear()
            self.call.clear()
        elif kind == VISIT_ENDS:
            for (what, went_on), count in self.visit.items():
                self.call[address, what, went_on] += count
            self.visit.clear()
        else:
            for part in range(address // self.fill, (address + size - 1) // self.fill + 1):
                self.access(clock, part * self.fill, kind, bool(on & 1), handled=bool(on & 2))

    def access(self, clock: int, address: int, kind: int, on: bool, handled: bool) -> None:
        there = on and self.caches[kind].has(address)
        if kind == RAM:
            return
        if not there:
            self.visit[kind, self.goes_on(clock, address, kind)] += not handled
            self.clock = clock
        if (self.price.ahead and kind == CODE) or (not self.price.ahead and not there):
            self.expects = address + self.fill

    def goes_on(self, clock: int, address: int, kind: int) -> bool:
        if address != self.expects:
            return False
        if self.price.ahead:
            return kind == CODE
        begins_page = self.price.page > 0 and address % self.price.page == 0
        return not begins_page and self.price.window > 0 and clock - self.clock <= self.price.window

    def cost(self, site: int) -> tuple[float, ...]:
        """Expected, best and worst."""
        prices = {
            (CODE, False): self.price.first,
            (LOAD, False): self.price.first,
            (CODE, True): self.price.next_code,
            (LOAD, True): self.price.next_data,
        }
        return tuple(sum(self.call[site, *key] * each[i] for key, each in prices.items()) for i in range(3))


def check_by_replay(source: Source | LoweredModel, board: str, folder: Path) -> int:
    """Every figure of every layer is what the own model makes of the accesses; gives how many there were."""
    compiled = compile_model(source, load_board(board), Options(weights=Weights.FLASH))
    made = pipeline.build_image(compiled, folder)
    machine = UnicornMachine(made, compiled.c.run, timed=True, recorded=1 << 24)
    run = run_on(machine, compiled.graph, store_inputs(compiled.graph, compiled.source.examples))
    path, flash = made.board.chip.flash_path, machine.path
    assert path is not None and flash is not None and run.flash
    replays = [Replay(path, fill, price) for fill, price in zip(path.fills, flash.prices, strict=True)]
    events = flash.events()
    assert events, "more accesses than were recorded"
    for e in events:
        for replay in replays:
            replay.event(e.clock, e.address, e.bytes, e.kind, e.on)
    for read in run.flash:
        misses = [sum(replays[0].call[read.site, kind, on] for on in (False, True)) for kind in (CODE, LOAD)]
        assert [read.code_misses, read.data_misses] == misses
        assert read.bytes == sum(misses) * path.fills[0]
        costs = [replay.cost(read.site) for replay in replays]
        assert read.waits == (costs[0][0], min(c[1] for c in costs), max(c[2] for c in costs))
    assert {read.site for read in run.flash} == {site for replay in replays for site, *_ in replay.call}
    assert replays[0].call.total() > 100
    return len(events)


def mlp() -> Source:
    """Return a model with 21 KiB of weights. The others have 16 to 30, and code and data go through the cache too."""
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 160), nn.Softmax(1))
    return from_module(layers, (torch.randn(1, 8),), "mlp")


def linear() -> Source:
    torch.manual_seed(0)
    return from_module(nn.Linear(4, 1000, bias=False), (torch.randn(1, 4),), "linear")


def convolutions() -> Source:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 80))
    return from_module(layers, (torch.randn(1, 1, 8, 8),), "convolutions")


def recurrent() -> Source:
    torch.manual_seed(0)

    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru = nn.GRU(4, 48, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.gru(x)[0][:, -1]  # type: ignore[no-any-return]

    return from_module(Last(), (torch.randn(1, 2, 4),), "recurrent")


SMALL = {"mlp": mlp, "linear": linear, "convolutions": convolutions, "recurrent": recurrent}


@pytest.mark.parametrize(
    ("name", "board"),
    [
        ("mlp", "nucleo-h743zi"),
        ("convolutions", "nucleo-wb55rg"),
        ("linear", "pico"),
        ("recurrent", "pico2w"),
    ],
)
def test_replay(name: str, board: str, tmp_path: Path) -> None:
    assert check_by_replay(SMALL[name](), board, tmp_path) > 1000


@pytest.mark.slow
@pytest.mark.parametrize("board", ["pico", "pico2w", "nucleo-wb55rg", "nucleo-h743zi"])
@pytest.mark.parametrize("name", ["ad", "lenet5", "mnist_mlp"])
def test_replay_of_the_zoo(name: str, board: str, tmp_path: Path) -> None:
    assert check_by_replay(lowered(name, int8=True), board, tmp_path) > 100_000
