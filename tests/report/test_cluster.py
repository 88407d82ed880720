"""A model on a cluster: its profile adds up, and says who waited for what."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import astuple, replace

import pytest
import torch
from torch import nn

from baretorch import frontends, pipeline
from baretorch.explore.advice import advise
from baretorch.measure.cluster import TracedRun, Use
from baretorch.measure.facts import compare
from baretorch.measure.profile import make_profile
from baretorch.options import Io, Options
from baretorch.report.findings import Report
from baretorch.report.page.cluster import cluster_sections
from baretorch.report.page.roofline import roofs
from baretorch.report.page.timeline import SCALE
from baretorch.report.page.write import make_page
from baretorch.targets.boards import load_board
from tests.models import compile_model, int8_model
from tests.report.browser import Page, opened


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
    source = int8_model(frontends.from_module(Net(), (x,), "net"), [(x,)])
    compiled = compile_model(source, load_board("cluster8"), Options(io=Io.INT8))
    image = pipeline.build_image(compiled, tmp_path_factory.mktemp("cluster"))
    facts = compare(compiled, image, pipeline.run_image(compiled, image))
    profile = make_profile(compiled, image, facts.run)
    return Report(facts, profile, advise(facts, profile))


@pytest.fixture(scope="module")
def found(made: Report) -> TracedRun:
    assert made.profile.traced is not None
    return made.profile.traced


def test_advice_is_for_the_layer_that_takes_most_cycles(made: Report, found: TracedRun) -> None:
    layer = max(found.layers, key=lambda layer: layer.cycles)
    part = f"{100 * layer.cycles / found.cycles:.1f} %"
    told = [advice.text for advice in made.advice if " takes " in advice.text]
    assert len(told) == 1 and told[0].startswith(f"{layer.name} takes {part} of the cycles: ")


def test_no_advice_leaves_all_cores_but_one_idle(made: Report) -> None:
    assert not any(advice.option.startswith(("--ram", "--input rows")) for advice in made.advice)


def test_layers_add_up_to_the_run(made: Report, found: TracedRun) -> None:
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


def test_layers_list_what_cores_waited_for(made: Report, found: TracedRun) -> None:
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


def test_copies_are_as_the_engine_made_them(made: Report, found: TracedRun) -> None:
    dma = load_board("cluster8").chip.cluster
    assert dma is not None and dma.dma is not None
    free = 0
    for moved in found.copies:
        work = moved.work
        assert work.bytes == moved.copy.source.size
        beats = -(-work.bytes // dma.dma.bytes_per_cycle)
        assert work.end - work.begin == beats
        assert work.begin == max(work.asked + dma.dma.start_cycles, free)
        free = work.end
        assert all(v.begin >= work.end for v in found.visits if v.phase == moved.phase), "nobody reads it before"


def test_it_is_printed_as_json(made: Report, found: TracedRun) -> None:
    told = made.profile.to_json()
    assert [core["instructions"] for core in told["cores"]] == list(found.instructions)
    assert told["cycles"] == sum(layer["cycles"] for layer in told["layers"]) + made.profile.own.all.expected
    wide = next(layer for layer in told["layers"] if layer["name"] == "wide")
    assert (wide["unit"], wide["tiles"], len(wide["cores"])) == ("gemm0", wide["copies"], 8)
    assert wide["copied_bytes"] > wide["macs"]
    assert wide["macs_per_cycle"] == round(wide["macs"] / wide["cycles"], 3)
    assert sum(wide["use"].values()) == 8 * wide["cycles"]


@pytest.fixture(scope="module")
def page(made: Report, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("page")
    (folder / "report.html").write_text(make_page(made), "utf-8")
    with opened(folder / "report.html", folder / "profile") as page:
        yield page


def test_the_page_shows_who_did_what_when(page: Page, found: TracedRun) -> None:
    assert page.complaints == []
    lanes = page.evaluate(
        "[...document.querySelectorAll('#timeline .names:not(.addresses) span')].map(e => e.innerText)"
    )
    assert lanes[1:] == [*(f"core {i}" for i in range(8)), "dma0", "gemm0"]
    drawn = page.evaluate("[...document.querySelectorAll('#timeline path.dma')].map(e => e.getAttribute('d'))")
    works = [work for work in found.trace.works if work.unit == "dma0"]
    assert len(drawn) == len(works) == len(found.plan.schedule.copies)
    for d, work in zip(drawn, works, strict=True):
        x, width = map(float, re.findall(r"M([\d.]+) \S+h([\d.]+)", d)[0])
        assert x == pytest.approx(SCALE * (work.begin - found.trace.begin) / found.cycles, abs=0.1)
        assert width == pytest.approx(SCALE * (work.end - work.begin) / found.cycles, abs=0.51)
    buffers = page.evaluate("document.querySelectorAll('#timeline path.filling').length")
    assert buffers == len(works), "each copy fills a buffer of L1"


def test_the_timeline_answers_the_pointer_and_zooms(page: Page, found: TracedRun) -> None:
    page.hover("#timeline .layers .c2")
    told = page.evaluate("document.getElementById('tip').innerText")
    depth = found.layers[2]
    assert told.startswith(f"{depth.name}: qconv2d\n{depth.cycles:,} cycles") and "on 8 cores" in told
    wide = "[...document.querySelectorAll('.pan')].map(e => e.scrollWidth / e.clientWidth)"
    assert page.evaluate(wide) == [1, 1]
    page.evaluate(
        "(() => { const z = document.querySelector('.zoom-by'); z.value = 6; z.dispatchEvent(new Event('input')) })()"
    )
    assert [round(times) for times in page.evaluate(wide)] == [6, 6]
    page.evaluate("document.querySelectorAll('.pan')[0].scrollLeft = 300")
    assert page.until("document.querySelectorAll('.pan')[1].scrollLeft === 300")


def test_a_layer_concurrent_with_others_needs_no_time_of_its_own(made: Report, found: TracedRun) -> None:
    number = next(i for i, layer in enumerate(found.layers) if layer.unit)
    none = tuple(Use() for _ in range(found.cores))
    layers = list(found.layers)
    layers[number] = replace(layers[number], windows=(), uses=none, beside=layers[number].worked)
    visits = tuple(visit for visit in found.visits if visit.layer != number)
    sections = cluster_sections(replace(found, layers=tuple(layers), visits=visits), made.facts.compiled.board.chip)
    assert f"<code>{layers[number].name}</code>" in sections


def test_no_layer_is_above_the_chips_roofs(page: Page, found: TracedRun) -> None:
    chip = load_board("cluster8").chip
    cores, unit, dma = roofs(chip, 8, with_units=True)
    assert (cores.per_cycle, unit.per_cycle, dma.bytes_per_cycle) == (8 * 4, 8 * 8 * 4, 8)
    for layer in found.layers:
        limit = unit.per_cycle if layer.unit else cores.per_cycle
        assert limit is not None and layer.macs <= limit * layer.cycles
        assert layer.copied <= 8 * found.cycles
    dots = page.evaluate("document.querySelectorAll('#roofline circle').length")
    assert dots == sum(layer.macs > 0 for layer in found.layers)
    page.evaluate("document.querySelector('#roofline circle').focus()")
    largest = max((layer for layer in found.layers if layer.macs), key=lambda layer: layer.cycles)
    assert page.evaluate("document.getElementById('tip').innerText").startswith(f"{largest.name}\n")


def test_the_names_of_roofs_and_layers_are_in_nobodys_way(page: Page, found: TracedRun) -> None:
    """Nor is a dot below them, where the line has room elsewhere."""
    near = """(() => {
        const box = e => e.getBoundingClientRect(), all = s => [...document.querySelectorAll('#roofline ' + s)];
        const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
        const letters = t => [...t.textContent].map((_, i) => {
            const p = t.getStartPositionOfChar(i).matrixTransform(t.getScreenCTM());
            return {left: p.x, right: p.x + 4, top: p.y - 6, bottom: p.y};
        });
        const roofs = all('text.here').flatMap(letters), dots = all('circle').map(box);
        const names = all('text.axis').filter(t => t.previousElementSibling.closest('circle, .axis')).map(box);
        return [roofs.length, dots.length, [...dots, ...names].filter(b => roofs.some(r => meet(r, b))).length];
    })()"""
    letters, dots, met = page.evaluate(near)
    assert letters > 20 and dots and not met


def test_the_page_lists_how_layers_were_cut(page: Page, found: TracedRun) -> None:
    rows = page.evaluate(
        "[...document.querySelectorAll('#cuts tbody tr')].map(r => [...r.cells].map(c => c.innerText))"
    )
    wide = next(row for row in rows if row[0] == "wide")
    layer = next(layer for layer in found.layers if layer.name == "wide")
    assert len(rows) == len(found.layers)
    assert wide[1:5] == [str(layer.tiles), "channels", "gemm0", ""]
    assert (wide[5], wide[8]) == (f"{layer.copied:,}", f"{layer.cycles:,}")
    assert found.plan.tiles is not None and str(found.plan.tiles) in page.evaluate(
        "document.querySelector('#cuts').innerText"
    )


def test_a_smaller_arena_is_not_advised_where_tiles_fill_the_scratchpad(made: Report) -> None:
    assert made.facts.compiled.plan.tiles is not None
    assert not [a for a in made.advice if a.option.startswith(("--ram", "--input", "--buffers"))]
