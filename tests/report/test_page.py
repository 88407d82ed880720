"""The report's page: opened in a browser it complains of nothing, shows its pictures and answers the pointer."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import baretorch
from baretorch import frontends, pipeline
from baretorch.explore.advice import advise
from baretorch.ir.graph import Graph
from baretorch.measure.facts import compare
from baretorch.measure.layers import layer_of_buffer, when
from baretorch.measure.profile import make_profile
from baretorch.options import Options
from baretorch.plan.schedule import Schedule
from baretorch.plan.types import Bank, Buffer, Layout, Plan
from baretorch.report.findings import Report
from baretorch.report.page.html import Html, el
from baretorch.report.page.layered import arrange
from baretorch.report.page.pictures import DRAWN, lifetimes_picture
from baretorch.report.page.write import make_page
from baretorch.targets.boards import load_board
from tests.models import compile_model, int8_model
from tests.report.browser import Page, opened

EVIL = "<img src=x onerror=alert(1)>&"  # a module may be called so


class Net(nn.Module):
    """A branch that comes together again, under a name that must not become a picture."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.down = nn.Conv2d(8, 8, 3, stride=2, padding=1)
        self.body = nn.Sequential(OrderedDict([(EVIL, nn.Conv2d(8, 8, 3, padding=1)), ("act", nn.ReLU())]))
        self.head = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.down(self.stem(x)))
        x = x + self.body(x)
        return torch.softmax(self.head(x.mean((2, 3))), 1)


def report(folder: Path, int8: bool) -> Report:
    torch.manual_seed(0)
    x = torch.randn(1, 3, 24, 24)
    source = frontends.from_module(Net(), (x,), "net")
    if int8:
        source = int8_model(source, [(torch.randn(1, 3, 24, 24),) for _ in range(4)])
    compiled = compile_model(source, load_board("mps2-an386"))
    image = pipeline.build_image(compiled, folder)
    facts = compare(compiled, image, pipeline.run_image(compiled, image))
    profile = make_profile(compiled, image, facts.run)
    return Report(facts, profile, advise(facts, profile))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return report(tmp_path_factory.mktemp("int8"), int8=True)


@pytest.fixture(scope="module")
def floating(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return report(tmp_path_factory.mktemp("float"), int8=False)


@pytest.fixture(scope="module")
def page(made: Report, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("page")
    (folder / "report.html").write_text(make_page(made), "utf-8")
    with opened(folder / "report.html", folder / "profile") as page:
        yield page


def test_it_opens_quietly_and_needs_nothing_else(page: Page, made: Report) -> None:
    assert page.evaluate("document.title") == "net on mps2-an386 – Baretorch"
    assert page.complaints == []
    assert [url.partition(":")[0] for url in page.requests if not url.startswith("data:")] == ["file"]
    assert len(make_page(made).encode()) < 1_000_000


@pytest.mark.parametrize("section", ["map", "lifetimes", "graph"])
def test_the_pictures_are_there(page: Page, section: str) -> None:
    box = page.evaluate(
        f"(() => {{ const r = document.querySelector('#{section} svg').getBoundingClientRect();"
        " return [r.width, r.height]; })()"
    )
    assert box[0] > 200 and box[1] > 100
    assert page.evaluate(f"document.querySelectorAll('#{section} svg rect').length") > 4


def test_every_buffer_is_drawn_with_its_name_and_size(page: Page, made: Report) -> None:
    drawn = page.evaluate("[...document.querySelectorAll('.tensor')].map(e => e.dataset.name)")
    assert sorted(drawn) == sorted(b.name for b in made.plan.layout.buffers if b.size)
    assert page.evaluate("document.getElementById('tip').hidden")
    name = page.evaluate("[...document.querySelectorAll('.tensor')].at(-1).dataset.name")  # nothing lies on top of it
    buffer = made.plan.layout.buffer(name)
    page.hover(".tensor:last-of-type")
    assert not page.evaluate("document.getElementById('tip').hidden")
    shown = page.evaluate("document.getElementById('tip').innerText").splitlines()
    assert shown[:2] == [name, f"{buffer.size:,} bytes at {buffer.offset:,}"]
    assert shown[2:] == [layer_of_buffer(made.plan, buffer), when(buffer, len(made.plan.phases))]
    page.hover("h1")
    assert page.evaluate("document.getElementById('tip').hidden")


def test_a_click_sorts(page: Page, made: Report) -> None:
    column = "[...document.querySelectorAll('#layers th')].findIndex(h => h.innerText.startsWith('instructions'))"
    cells = f"[...document.querySelectorAll('#layers tbody tr')].map(r => Number(r.cells[{column}].dataset.value))"
    want = sorted((row.instructions for row in made.rows), reverse=True)
    page.evaluate(f"document.querySelectorAll('#layers th button')[{column}].click()")
    assert page.evaluate(cells) == want
    page.evaluate(f"document.querySelectorAll('#layers th button')[{column}].click()")
    assert page.evaluate(cells) == want[::-1]


def test_names_stay_names(page: Page) -> None:
    assert page.evaluate("document.images.length") == 0
    names = page.evaluate("[...document.querySelectorAll('#layers td code')].map(e => e.innerText)")
    assert f"body.{EVIL}" in names


def test_it_is_dark_where_people_like_it_dark(made: Report, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(make_page(made), "utf-8")
    ground = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    for dark in (False, True):
        with opened(tmp_path / "report.html", tmp_path / "profile", dark) as page:
            assert (max(page.evaluate(ground)) < 64) == dark
            assert page.complaints == []


def test_layers_have_weights_and_accuracy_and_add_up(made: Report) -> None:
    rows = {row.name: row for row in made.rows}
    assert sum(row.instructions for row in made.rows) + made.profile.rest == made.profile.instructions
    assert rows["stem"].weights >= 3 * 8 * 9 and rows["stem"].macs == 24 * 24 * 8 * 27
    assert all(row.accuracy for row in made.rows if row.macs)
    assert rows["stem"].dtype == "int8" and rows["stem"].shape == (1, 24, 24, 8)


def test_layers_in_bands_stay_layers(floating: Report, tmp_path: Path) -> None:
    options = Options(ram=int(0.9 * floating.plan.arena))
    compiled = compile_model(floating.facts.compiled.source, floating.facts.compiled.board, options)
    image = pipeline.build_image(compiled, tmp_path)
    facts = compare(compiled, image, pipeline.run_image(compiled, image))
    banded = Report(facts, make_profile(compiled, image, facts.run))
    assert banded.plan.bands
    stem = next(row for row in banded.rows if (row.name, row.op) == ("stem", "conv2d"))
    known = next(row for row in floating.rows if (row.name, row.op) == ("stem", "conv2d"))
    assert stem.steps > 1 and (stem.shape, stem.macs, stem.weights) == (known.shape, known.macs, known.weights)
    assert sum(row.instructions for row in banded.rows) + banded.profile.rest == banded.profile.instructions
    assert str(banded.plan.bands) in make_page(banded)


def test_the_peak_is_alive_together(made: Report) -> None:
    peak = made.peak
    assert peak is not None
    assert peak.live == max(made.plan.live_bytes(i) for i in range(len(made.plan.phases))) <= made.plan.arena
    assert all(b.first <= peak.step <= b.last for b in peak.buffers)


def test_the_memory_map_holds_the_image(made: Report) -> None:
    flash = made.facts.image.flash
    for bank in made.banks:
        end = bank.memory.origin
        for piece in bank.pieces:
            assert piece.address >= end, "pieces overlap"
            end = piece.address + piece.size
        assert end <= bank.memory.origin + bank.memory.size
    code = next(b for b in made.banks if b.memory.kind == "flash")
    weights = sum(p.size for p in code.pieces if p.kind == "weights")
    assert flash.weights <= weights < flash.weights + 16  # its section ends aligned
    assert 0 <= flash.total - code.used < 64  # gaps for alignment
    arena = sum(p.size for b in made.banks for p in b.pieces if p.kind == "arena")
    assert arena == made.facts.image.ram.arena


def test_a_float_model_is_marked_as_such(floating: Report) -> None:
    text = make_page(floating)
    assert "it was not quantized" in text and "SQNR" not in text


def test_the_kernel_of_a_layer_is_in_sight(made: Report) -> None:
    """A page is not wide enough for all columns: the last may be off-screen."""
    text = make_page(made)
    (head,) = re.findall(r"<tr>(?:(?!</tr>).)*>operator<.*?</tr>", text, re.DOTALL)
    assert head.index("kernel") < head.index("MACs")


def test_a_large_plan_makes_no_large_picture() -> None:
    buffers = tuple(Buffer(f"t{i}", 8 + i % 5, i, i + 2, "RAM", 16 * (i % 40)) for i in range(10_000))
    bank = Bank("RAM", 640)
    empty = Graph("net", {}, (), (), ())
    layout = Layout(buffers, (), (bank,), 640, optimal=True)
    plan = Plan(empty, "cortex-m4f", Schedule(()), layout, (), (), ())
    picture = lifetimes_picture(plan, bank, None)
    assert picture.count('class="tensor"') == DRAWN
    assert len(picture) < 300_000


def test_python_writes_the_page_too(tmp_path: Path) -> None:
    model = baretorch.compile(nn.Linear(4, 2), (torch.ones(1, 4),), board="mps2-an386", name="line")
    model.report(tmp_path / "line.html")
    assert "<h1>line</h1>" in (tmp_path / "line.html").read_text("utf-8")


def test_text_is_escaped_wherever_it_goes() -> None:
    assert el("p", "a<b", Html("<i>"), title='"x"') == '<p title="&quot;x&quot;">a&lt;b<i></p>'


@given(st.data())
def test_boxes_of_a_row_do_not_overlap_and_edges_go_down(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 12))
    nodes = [str(i) for i in range(count)]
    pairs = [(a, b) for i, a in enumerate(nodes) for b in nodes[i + 1 :]]
    edges = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    drawing = arrange(nodes, edges, 100, 10)
    for path in drawing.edges:
        assert [spot.row for spot in path] == list(range(path[0].row, path[-1].row + 1)) and len(path) > 1
    every = {id(s): s for s in (*drawing.nodes.values(), *(s for path in drawing.edges for s in path))}.values()
    for row in range(drawing.rows):
        spots = sorted((s for s in every if s.row == row), key=lambda s: s.x)
        for a, b in pairwise(spots):
            assert a.x + a.width / 2 <= b.x - b.width / 2 + 1e-6
        assert all(s.x - s.width / 2 >= -1e-6 for s in spots)
