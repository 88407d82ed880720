"""A model on a cluster: its profile adds up, and says who waited for what."""

from __future__ import annotations

from dataclasses import astuple

import pytest
import torch
from torch import nn

from baretorch import frontends, pipeline
from baretorch.explore.advice import advise
from baretorch.on_host import on_host
from baretorch.options import Io, Options
from baretorch.quantize.source import quantized
from baretorch.report.cluster import Traced, Use
from baretorch.report.facts import compare
from baretorch.report.findings import Report
from baretorch.report.profile import make_profile
from baretorch.targets.boards import load_board


class Net(nn.Module):
    """Layers for the GEMM unit, for the cores, and one whose weights come in tiles."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(4, 32, 3, padding=1)
        self.depth = nn.Conv2d(32, 32, 3, padding=1, groups=32)
        self.wide = nn.Linear(32 * 8 * 6, 64)
        self.head = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.depth(torch.relu(self.stem(x))))
        return self.head(torch.relu(self.wide(x.flatten(1))))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Report:
    torch.manual_seed(0)
    x = torch.randn(1, 4, 8, 6)
    source = quantized(frontends.from_module(Net(), (x,), "net"), frontends.Int8(), [(x,)], on_host)
    compiled = pipeline.compile_source(source, load_board("cluster8"), Options(io=Io.INT8))
    image = pipeline.build_image(compiled, tmp_path_factory.mktemp("cluster"))
    facts = compare(compiled, image, pipeline.run_image(compiled, image))
    profile = make_profile(compiled, image, facts.run)
    return Report(facts, profile, advise(facts, profile))


@pytest.fixture(scope="module")
def found(made: Report) -> Traced:
    assert made.profile.traced is not None
    return made.profile.traced


def test_layers_add_up_to_the_run(made: Report, found: Traced) -> None:
    run, profile = made.facts.run, made.profile
    assert run.cores is not None and run.emulator_cycles == found.cycles == run.cores.critical_path
    around = found.cycles - sum(layer.cycles for layer in found.layers)
    assert 0 < around < 400
    assert profile.time.all.expected == found.cycles and profile.own.all.expected == around
    assert found.instructions == run.cores.instructions
    assert profile.instructions == sum(run.cores.instructions) > profile.rest > 0
    for core, use in enumerate(found.uses):
        assert use.cycles == found.cycles
        assert use.barrier + use.dma + use.unit == run.cores.waiting[core]
    for layer in found.layers:
        assert all(use.cycles == layer.cycles for use in layer.uses), layer.name


def test_layers_tell_who_waited_for_what(made: Report, found: Traced) -> None:
    layers = {layer.name: layer for layer in found.layers}
    stem, depth, wide = layers["stem"], layers["depth"], layers["wide"]
    assert (stem.unit, depth.unit, wide.unit) == ("gemm0", "", "gemm0")
    assert stem.macs == 8 * 6 * 32 * 4 * 9 and wide.macs == 32 * 48 * 64
    assert stem.use.unit > 0.5 * stem.use.cycles > stem.use.busy
    assert depth.use.unit == 0 and depth.use.busy > 0.7 * depth.use.cycles
    assert len({step.executor for step in depth.steps}) == 8
    assert wide.tiles == len(wide.copies) > 1 and wide.copied >= 32 * 48 * 64
    assert wide.use.dma > 1000 > 100 > depth.use.dma, "but for registers"
    whole = sum(found.uses, Use())
    assert whole.conflict > 0 and whole.load_use > 0 and all(part >= 0 for part in astuple(whole))


def test_copies_are_as_the_engine_made_them(made: Report, found: Traced) -> None:
    dma = load_board("cluster8").chip.cluster
    assert dma is not None and dma.dma is not None
    free = 0
    for moved in found.moved:
        work = moved.work
        assert work.bytes == moved.copy.source.size
        beats = -(-work.bytes // dma.dma.bytes_per_cycle)
        assert work.end - work.begin == beats
        assert work.begin == max(work.asked + dma.dma.start_cycles, free)
        free = work.end
        assert all(v.begin >= work.end for v in found.visits if v.phase == moved.phase), "nobody reads it before"


def test_it_is_told_as_json(made: Report, found: Traced) -> None:
    told = made.profile.to_json()
    assert [core["instructions"] for core in told["cores"]] == list(found.instructions)
    assert told["cycles"] == sum(layer["cycles"] for layer in told["layers"]) + made.profile.own.all.expected
    wide = next(layer for layer in told["layers"] if layer["name"] == "wide")
    assert (wide["unit"], wide["tiles"], len(wide["cores"])) == ("gemm0", wide["copies"], 8)
    assert wide["copied_bytes"] > wide["macs"]
    assert wide["macs_per_cycle"] == round(wide["macs"] / wide["cycles"], 3)
    assert sum(wide["use"].values()) == 8 * wide["cycles"]
