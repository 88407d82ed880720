"""The documentation site: every page is listed once, and nothing on it comes from another server."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.report.browser import opened

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import build_site  # noqa: E402


def listed(found: object) -> list[str]:
    """Return the paths in a navigation, in order."""
    if isinstance(found, dict):
        return [path for inner in found.values() for path in listed(inner)]
    return [found] if isinstance(found, str) else [path for inner in found for path in listed(inner)]  # type: ignore


def test_the_navigation_has_every_page_once() -> None:
    names = build_site.pages()
    assert sorted(listed(build_site.navigation(names))) == sorted(f"{name}.md" for name in names)


def test_a_page_that_no_section_lists_is_an_error() -> None:
    with pytest.raises(SystemExit, match=r"does not list \['docs/new'\]"):
        build_site.navigation([*build_site.pages(), "docs/new"])
    with pytest.raises(SystemExit, match=r"lists \['docs/index'\], which do not exist"):
        build_site.navigation([name for name in build_site.pages() if name != "docs/index"])


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://x.test/a.js"></script>',
        "<script async src=//x.test/a.js>",
        '<link rel="stylesheet" href="https://x.test/a.css">',
        '<link href="https://x.test" rel="preconnect">',
        '<img alt="" src="http://x.test/a.png">',
        '@import "https://x.test/a.css"',
        "src: url(https://x.test/a.woff2)",
    ],
)
def test_loads_from_other_servers_are_found(text: str) -> None:
    assert build_site.LOAD.search(text)


@pytest.mark.parametrize(
    "text",
    [
        '<a href="https://x.test">a link</a>',
        '<link rel="canonical" href="https://x.test">',
        '<svg xmlns="http://www.w3.org/2000/svg">',
        "url(data:image/svg+xml;charset=utf-8,<svg xmlns='http://www.w3.org/2000/svg'/>)",
        '<script src="../assets/a.js"></script>',
    ],
)
def test_links_and_names_are_not_loads(text: str) -> None:
    assert not build_site.LOAD.search(text)


@pytest.mark.parametrize("name", build_site.pages())
def test_lists_look_the_same_on_the_site(name: str) -> None:
    """Python-Markdown, which the site uses, needs an empty line before a list, and 4 spaces inside an item."""
    inside, above = False, ""
    for number, line in enumerate((ROOT / f"{name}.md").read_text().splitlines(), 1):
        indent, text = len(line) - len(line.lstrip()), line.lstrip()
        where = f"{name}.md:{number}: {line}"
        item, previous = (re.match(r"([-*]|\d+\.) ", text) for text in (text, above.lstrip()))
        if text.startswith("```"):
            inside = not inside
            assert indent % 4 == 0, where
        elif not inside and item:
            assert "```" not in text, where
            assert indent % 4 == 0, where
            deeper = indent > len(above) - len(above.lstrip())
            assert not above or (previous and not deeper) or (above.startswith(" ") and not deeper), where
        above = line


@pytest.mark.slow
def test_the_site_builds_and_its_search_finds_a_word(tmp_path: Path) -> None:
    """It is built without warnings, and opened as a file: what its scripts load counts, too."""
    python = ROOT / ".venv" / "site" / "bin" / "python"
    run = subprocess.run([python, ROOT / "tools" / "build_site.py"], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "No issues found" in run.stdout + run.stderr
    with opened(build_site.HTML / "docs" / "what-run-does.html", tmp_path) as page:
        page.until("[...document.images].every(i => i.complete && i.naturalWidth > 0)")
        page.evaluate("document.querySelector('.md-search__button').click()")
        found = "[...document.querySelectorAll('*')].map(e => e.shadowRoot).find(Boolean)"
        page.until(f"{found}?.querySelector('input')")
        page.until(f"({found}.querySelector('input').focus(), {found}.activeElement !== null)")
        page.call("Input.insertText", text="watchdog")
        page.until(f"[...{found}.querySelectorAll('a')].some(a => a.href.includes('/reference/python.html'))")
        assert page.evaluate(f"{found}.querySelector('input').value") == "watchdog"
        assert page.complaints == []
        assert [address for address in page.requests if not address.startswith(("file:", "data:", "blob:"))] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "warning"), [("none.md", "page does not exist"), ("#none", "anchor does not exist")]
)
def test_dead_links_are_errors(tmp_path: Path, target: str, warning: str) -> None:
    """The generator runs on a page of its own, with the site's configuration."""
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "README.md").write_text(f"# Title\n\n[link]({target})\n")
    configuration = build_site.configuration(build_site.pages()) | {"nav": ["README.md"]}
    (tmp_path / "mkdocs.yml").write_text(json.dumps(configuration))
    zensical = ROOT / ".venv" / "site" / "bin" / "zensical"
    run = subprocess.run([zensical, "build", "--strict"], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode != 0
    assert warning in run.stdout + run.stderr
