"""Tiles that were measured are taken for the model and chip of their file, and for nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from baretorch import pipeline
from baretorch.errors import CompileError
from baretorch.explore.tile_search import search_tiles
from baretorch.ir import interpret
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
from tests.units.test_beside import AUTO, compiled, source

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
    assert planned(row, tmp_path).heeds_kernels and not plain.heeds_kernels
    for other in (replace(row, chip="x"), replace(row, cores=4), replace(row, model="x"), replace(row, take=PLANNED)):
        without = planned(other, tmp_path)
        assert same(without, plain) and without.heeds_kernels == (other.take == PLANNED)
    alone = compiled(replace(AUTO, units=Units.OFF)).plan
    assert same(planned(row, tmp_path, Units.OFF), alone), "measured with the unit"


def test_an_output_begins_in_another_bank(tmp_path: Path) -> None:
    """Three words are left free before it, and nothing else is cut otherwise; the judge has looked at the plan, and
    answers are the same bits."""
    plain = compiled().plan
    row = Tiling(CHIP, CORES, model_of(plain.graph, plain.steps), layer("depthwise"), Shape("", 0, 3), {})
    other = planned(row, tmp_path)
    assert [len(phase.steps) for phase in other.phases] == [len(phase.steps) for phase in plain.phases]
    (name,) = {step.writes[0].storage for step in other.steps if step.call.y.name == "depthwise"}
    assert name == "depthwise"
    own = other.layout.buffer(name)
    assert own.size == plain.layout.buffer(name).size
    together = [b for b in other.layout.buffers if b is not own and b.bank == own.bank and b.meets(own) and b.size]
    assert not any(b.offset < own.offset and b.end > own.offset - 12 for b in together)
    assert own.offset >= 12 and own.end <= next(bank.size for bank in other.layout.banks if bank.name == own.bank)
    of = compiled(replace(AUTO, kernels=str(tmp_path / "a.json")))
    found = pipeline.run_image(of, pipeline.build_image(of, tmp_path / "image"))
    (want,) = interpret(source().graph, source().examples).values()
    assert found.outputs[0].tobytes() == found.first[0].tobytes() == want.tobytes()


def test_a_file_says_which_tiles(tmp_path: Path) -> None:
    row = Tiling("c", 8, "m", "l", Shape("channels", 3), {PLANNED: Cost(2, 2), Shape("channels", 3): Cost(1, 2)})
    (tmp_path / "a.json").write_text(to_json([row]))
    assert read_choices(tmp_path / "a.json") == (row,)
    for text in ("rows 4 bank 2", "as planned bank 8", "as planned", "channels 6"):
        assert str(Shape.of(text)) == text


@pytest.mark.parametrize(
    "take", ["rows", "rows 0", "rows 1000000000", "pixels 2", "rows x", "", "rows 2 bank 0", "rows 2 bank 64"]
)
def test_tiles_that_are_none(take: str, tmp_path: Path) -> None:
    row = {"chip": "c", "cores": 8, "model": "m", "layer": "l", "take": take, "tried": {}}
    (tmp_path / "a.json").write_text(json.dumps({"format": 1, "choices": [row]}))
    with pytest.raises(CompileError, match="no file of kernels"):
        read_choices(tmp_path / "a.json")


def test_the_best_that_needs_no_more_room(tmp_path: Path) -> None:
    """Costs are made up: 2 tiles of the depthwise layer are best, 3 would be better but take room; with them its output
    is best four words further on, and eight words would be."""
    tried: list[Mapping[str, Shape]] = []
    own = layer("depthwise")

    def measure(shapes: Mapping[str, Shape]) -> Measured:
        tried.append(dict(shapes))
        shape = shapes.get(own, PLANNED)
        cycles = {2: 90, 3: 50}.get(shape.count, 100) - {4: 5, 8: 6}.get(shape.bank, 0)
        return Measured(Cost(cycles, 1), {}, 11 if shape.count == 3 or shape.bank == 8 else 10)

    def search() -> tuple[Tiling, ...]:
        plan = compiled().plan
        return search_tiles(plan, CHIP, CORES, measure, lambda c: (c.cycles, c.instructions), lambda *_: None)

    found = search()
    assert tried[0] == {}
    assert {row.layer: row.take for row in found if row.take != PLANNED} == {own: Shape("rows", 2, 4)}
    assert all(row.model != ANY and next(iter(row.tried)) == PLANNED for row in found)
    assert search() == found
