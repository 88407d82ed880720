"""Tiles that were measured are taken for the model and chip of their file, and for nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from baretorch.errors import CompileError
from baretorch.explore.tile_search import search_tiles
from baretorch.ops.kernel import Call
from baretorch.options import Units
from baretorch.plan.choices import (
    ANY,
    PLANNED,
    Cost,
    Shape,
    Tiling,
    layer_of,
    model_of,
    read_choices,
    to_json,
)
from baretorch.plan.types import Plan
from baretorch.report.kernels import Measured
from tests.units.test_beside import AUTO, compiled

CHIP, CORES = "cluster8", 8


def layer(name: str) -> str:
    """The words for a layer of the model."""
    plan = compiled().plan
    node = plan.graph.producer()[name]
    return layer_of(Call(node.op, plan.graph.of(node.inputs), plan.graph.of(node.outputs)))


def tiles(plan: Plan, name: str) -> int:
    return sum(any(step.call.y.name == name for step in phase.steps) for phase in plan.phases)


def same(a: Plan, b: Plan) -> bool:
    steps = [[(s.kernel.symbol, s.operands, s.executor) for s in plan.steps] for plan in (a, b)]
    return steps[0] == steps[1] and a.layout.buffers == b.layout.buffers and len(a.phases) == len(b.phases)


def planned(row: Tiling, folder: Path, units: Units = Units.AUTO) -> Plan:
    (folder / "a.json").write_text(to_json([row]))
    return compiled(replace(AUTO, kernels=str(folder / "a.json"), units=units)).plan


def test_tiles_hold_for_a_chip_and_a_model(tmp_path: Path) -> None:
    plain = compiled().plan
    row = Tiling(CHIP, CORES, model_of(plain.graph, plain.steps), layer("sum"), Shape("rows", 5), {})
    assert tiles(plain, "sum") != 5
    assert tiles(planned(row, tmp_path), "sum") == 5
    for other in (replace(row, chip="x"), replace(row, cores=4), replace(row, model="x"), replace(row, take=PLANNED)):
        assert same(planned(other, tmp_path), plain)
    alone = compiled(replace(AUTO, units=Units.OFF)).plan
    assert same(planned(row, tmp_path, Units.OFF), alone), "measured with the unit"


def test_a_file_says_which_tiles(tmp_path: Path) -> None:
    row = Tiling("c", 8, "m", "l", Shape("channels", 3), {PLANNED: Cost(2, 2), Shape("channels", 3): Cost(1, 2)})
    (tmp_path / "a.json").write_text(to_json([row]))
    assert read_choices(tmp_path / "a.json") == (row,)


@pytest.mark.parametrize("take", ["rows", "rows 0", "rows 1000000000", "pixels 2", "rows x", ""])
def test_tiles_that_are_none(take: str, tmp_path: Path) -> None:
    row = {"chip": "c", "cores": 8, "model": "m", "layer": "l", "take": take, "tried": {}}
    (tmp_path / "a.json").write_text(json.dumps({"format": 1, "choices": [row]}))
    with pytest.raises(CompileError, match="no file of kernels"):
        read_choices(tmp_path / "a.json")


def test_the_best_that_needs_no_more_room(tmp_path: Path) -> None:
    """Costs are made up: 2 tiles of the depthwise layer are best, 3 would be better but take room."""
    tried: list[Mapping[str, Shape]] = []
    own = layer("depthwise")

    def measure(shapes: Mapping[str, Shape]) -> Measured:
        tried.append(dict(shapes))
        count = shapes.get(own, PLANNED).count
        return Measured(Cost({2: 90, 3: 50}.get(count, 100), 1), {}, 11 if count == 3 else 10)

    def search() -> tuple[Tiling, ...]:
        plan = compiled().plan
        return search_tiles(plan, CHIP, CORES, measure, lambda c: (c.cycles, c.instructions), lambda *_: None)

    found = search()
    assert tried[0] == {}
    assert {row.layer: row.take for row in found if row.take != PLANNED} == {own: Shape("rows", 2)}
    assert all(row.model != ANY and next(iter(row.tried)) == PLANNED for row in found)
    assert search() == found
