"""The page in a browser: digits drawn with the pointer are read, sliders move answers, trouble is shown and passes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from baretorch.machines.native import NativeMachine
from baretorch.studio.server import StudioServer
from tests.report.browser import Page, opened
from tests.studio.client import live, served
from tests.studio.strokes import DIGITS, Stroke

PTE = Path(__file__).parents[1] / "frontends" / "data"
SETTLED = "document.querySelector('section:not([hidden]) .facts') !== null"


@pytest.fixture(scope="module")
def page(studio: StudioServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with opened(studio.url, tmp_path_factory.mktemp("profile")) as page:
        page.until(SETTLED, 60)
        yield page


def text(page: Page, selector: str) -> str:
    found: str = page.evaluate(f"document.querySelector('section:not([hidden]) {selector}').innerText")
    return found


def draw(page: Page, strokes: list[Stroke], by_finger: bool = False) -> None:
    page.evaluate("document.querySelector('section:not([hidden]) .pad').scrollIntoView({block: 'center'})")
    x, y, wide, high = page.evaluate(
        "(() => { const r = document.querySelector('section:not([hidden]) .pad').getBoundingClientRect();"
        " return [r.x, r.y, r.width, r.height]; })()"
    )
    for stroke in strokes:
        coarse = [*stroke[:-1:2], stroke[-1]]  # as a quick hand gives them
        hand = page.touch if by_finger else page.drag
        hand([(x + wide * a, y + high * b) for a, b in coarse])


def read(page: Page, digit: int, by_finger: bool = False) -> str:
    """Return the chip's output for a drawn digit, when it has seen all of it."""
    page.evaluate("document.querySelector('.clear').click()")
    page.until("document.querySelector('.digit').innerText === '–'")
    draw(page, DIGITS[digit], by_finger)
    page.until("!asking.busy && document.querySelector('.digit').innerText !== '–'")
    return text(page, ".digit")


def test_digits_are_drawn_and_read(page: Page) -> None:
    assert [read(page, digit) for digit in (2, 4)] == ["2", "4"]
    assert page.complaints == []


@pytest.mark.slow
def test_ten_digits_are_drawn_and_read(page: Page) -> None:
    said = {digit: read(page, digit) for digit in DIGITS}
    assert sum(said[digit] == str(digit) for digit in DIGITS) >= 9, said
    assert page.complaints == []


def test_what_is_shown_of_an_answer(page: Page) -> None:
    assert read(page, 3) == "3"
    widths = page.evaluate("[...document.querySelectorAll('.bar-row .fill')].map(e => parseFloat(e.style.width))")
    assert len(widths) == 10 and widths.index(max(widths)) == 3 and abs(sum(widths) - 100) < 1
    assert page.evaluate("document.querySelector('.best b').innerText") == "3"
    ink = page.evaluate(
        "document.querySelector('.seen').getContext('2d').getImageData(0, 0, 28, 28).data.filter(v => v > 200).length"
    )
    assert ink - 784 > 3 * 50  # beside the opaque alpha of each pixel
    tiles = [line for line in text(page, ".tiles").splitlines() if line]
    assert tiles[0] == "Instructions" and int(tiles[1].replace(",", "")) > 1_000_000
    assert "Time" in tiles and any(line.endswith(" ms") for line in tiles)
    assert "weights" in text(page, ".banks") and "arena" in text(page, ".banks")
    page.evaluate("document.querySelector('details').open = true")
    assert page.evaluate("document.querySelectorAll('.map svg rect').length") > 4
    assert "MNIST" in text(page, ".desk")


def test_undo_and_clear(page: Page) -> None:
    page.evaluate("document.querySelector('.clear').click()")
    draw(page, DIGITS[4])
    page.until("!asking.busy")
    page.evaluate("document.querySelector('.undo').click()")
    page.until("!asking.busy")
    assert text(page, ".digit") != "–"
    page.evaluate("document.querySelector('.undo').click()")
    assert text(page, ".digit") == "–"
    assert not page.evaluate("document.querySelector('.hint').hidden")


def test_an_answer_that_is_no_number_is_no_digit(page: Page) -> None:
    answer = "{outputs: [['nan', 'inf', ...Array(8).fill(1)]], seen: Array(784).fill(0)}"
    page.evaluate(f"(() => {{ window.asked = window.ask; window.ask = async () => ({answer}); }})()")
    try:
        assert read(page, 1) == "?"
        assert text(page, ".sure") == "an output is not a finite number"
        assert page.evaluate("document.querySelector('.best')") is None
        assert "NaN" not in text(page, ".bars")
    finally:
        page.evaluate("(() => { window.ask = window.asked; })()")
    assert read(page, 2) == "2"


def test_sliders_move_the_answers_and_trouble_passes(page: Page, studio: StudioServer) -> None:
    page.evaluate("document.getElementById('tab-model').click()")
    page.until(SETTLED)
    shown = "document.querySelector('#panel-model .percent').innerText"
    move = "(() => {{ const s = document.querySelector('input[type=range]'); s.value = {}; s.oninput(); }})()"
    page.evaluate(move.format(0.1))
    first = page.until(f"!asking.busy && {shown}")
    page.evaluate(move.format(0.9))
    assert page.until(f"!asking.busy && {shown}") != first
    session = studio.tabs["model"].live._session
    assert session is not None and isinstance(session.machine, NativeMachine)
    os.kill(session.machine.pid, signal.SIGKILL)
    page.evaluate(move.format(0.1))
    page.until("!document.getElementById('trouble').hidden")
    assert "ended by signal 9" in page.evaluate("document.getElementById('trouble').innerText")
    page.evaluate("document.querySelector('#trouble button').click()")
    page.until(f"document.getElementById('trouble').hidden && {shown} === '{first}'")
    page.evaluate("document.getElementById('tab-digits').click()")


@pytest.mark.slow
def test_a_failed_compilation_stays_to_be_read(tmp_path: Path) -> None:
    file = tmp_path / "net.pte"
    file.write_bytes((PTE / "sine.pte").read_bytes())
    with served(("model", live(file, tmp_path / "work"))) as server, opened(server.url, tmp_path / "profile") as page:
        page.until(f"{SETTLED} && !asking.busy")
        file.write_bytes(b"nothing of the kind")
        page.evaluate("document.querySelector('.again').click()")
        page.until("!document.getElementById('trouble').hidden")
        page.evaluate("document.querySelector('.input button').click()")  # the image before still answers
        page.until("!asking.busy")
        assert "not an ExecuTorch program" in page.evaluate("document.getElementById('trouble').innerText")
        file.write_bytes((PTE / "state.pte").read_bytes())
        page.evaluate("document.querySelector('#trouble button').click()")
        page.until("document.querySelector('.play') !== null && document.getElementById('trouble').hidden")
        page.evaluate("document.querySelector('.play').click()")
        first = page.until("document.querySelector('.tile:last-child b').innerText")
        page.until(f"document.querySelector('.tile:last-child b').innerText !== {first!r}")


@pytest.mark.parametrize(("dark", "width"), [(True, 390), (False, 390), (True, 900)])
@pytest.mark.slow
def test_it_fits_dark_and_narrow_windows(studio: StudioServer, tmp_path: Path, dark: bool, width: int) -> None:
    with opened(studio.url, tmp_path, dark, width) as page:
        page.until(SETTLED)
        for tab in ("digits", "model"):
            page.evaluate(f"document.getElementById('tab-{tab}').click()")
            page.until(SETTLED)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
        assert (max(ground) < 64) == dark
        page.evaluate("document.getElementById('tab-digits').click()")
        page.call("Emulation.setTouchEmulationEnabled", enabled=True)
        assert read(page, 7, by_finger=True) == "7"
        assert page.evaluate("[document.body.scrollTop, window.scrollX]") == [0, 0]  # a finger draws, and moves nothing
        assert page.complaints == []


def test_it_requests_nothing_from_other_servers(page: Page, studio: StudioServer) -> None:
    assert {url.startswith(studio.url) for url in page.requests if not url.startswith("data:")} == {True}
