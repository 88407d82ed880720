"""Rejects words that make readers stop: in pages, help, error texts and docstrings. Names of classes are unique.

BETTER lists phrases that read like a translation, and what to write instead.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from baretorch.cli import VERBS, cli

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "baretorch"

BETTER = {
    r"tells?|told": "reports, prints, lists, shows",
    r"behind(?! an? cache)": "after",
    r"beside": "next to, in addition to, compared with",
    r"so many": "N, or the count itself",
    r"anew": "again; rebuilt, regenerated",
    r"nobody|whoever": "no module, a process that",
    r"(?<!there )(?:is|are) no(?! longer| more|\.)": "is not a valid X, invalid X",
    r"that is none": "is not a valid X",
    r"(?:worked|found) out": "computed, detected",
    r"made again": "rebuilt, recomputed",
    r"lies": "is, is stored",
    r"the (?:whole )?road|the (?:very )?door": "the pipeline, the interface",
    r"of ours": "Baretorch's",
}
WORDS = re.compile("|".join(rf"\b(?:{words})\b" for words in BETTER), re.IGNORECASE)
FRAGMENT = re.compile(r"(What|Of|The same|By|As|In|So|All|With|From|That|Without)\b")


def prose(page: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a page without code."""
    inside = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if re.match(r"(?:\d\.)? *```", line):
            inside = not inside
        elif not inside:
            yield number, re.sub(r"`[^`]*`", "", line)


def pages() -> list[Path]:
    found = [*ROOT.glob("*.md"), *(p for d in ("docs", "examples", "zoo") for p in (ROOT / d).rglob("*.md"))]
    return sorted(found)


def code(page: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a page's fenced blocks: commands, what they print, and programs with comments."""
    plain = dict(prose(page))
    yield from ((n, line) for n, line in enumerate(page.read_text().splitlines(), 1) if n not in plain)


def web_pages() -> list[Path]:
    return sorted(p for kind in ("html", "js") for p in PACKAGE.rglob(f"*.{kind}"))


def bad_lines(page: Path) -> list[str]:
    found = sorted([*prose(page), *code(page)])
    return [f"{number}: {hit[0]!r} in {line}" for number, line in found if (hit := WORDS.search(line))]


@pytest.mark.parametrize("page", pages(), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_pages(page: Path) -> None:
    assert bad_lines(page) == []


@pytest.mark.parametrize("command", [cli, *VERBS], ids=lambda c: c.name or "")
def test_help(command: click.Command) -> None:
    with click.Context(command, **cli.context_settings) as context:  # click keeps the help option that it makes
        text = command.get_help(context)
    assert not WORDS.search(text), WORDS.findall(text)
    for parameter in command.params:
        help = getattr(parameter, "help", None)
        assert help is None or FRAGMENT.match(help) is None, help


@pytest.mark.parametrize("page", web_pages(), ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_web_pages(page: Path) -> None:
    """The pages of report, tune and studio, and the scripts that fill them."""
    lines = enumerate(page.read_text().splitlines(), 1)
    assert [f"{number}: {hit[0]!r} in {line}" for number, line in lines if (hit := WORDS.search(line))] == []


def test_strings() -> None:
    """Texts in the source: notes, warnings, screens, and errors without a golden file."""
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}: {hit[0]!r} in {node.value!r}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
        if (hit := WORDS.search(re.sub(r"`[^`]*`", "", node.value)))
    ]
    assert found == []


def test_error_texts() -> None:
    found = {
        path.name: hit[0] for path in (ROOT / "tests/cli/golden").glob("*.txt") if (hit := WORDS.search(read(path)))
    }
    assert found == {}


def test_generated_c() -> None:
    found = {
        path.name: hit[0] for path in (ROOT / "tests/emit/golden").glob("*.txt") if (hit := WORDS.search(read(path)))
    }
    assert found == {}


def read(path: Path) -> str:
    return path.read_text(errors="replace")


def docstrings(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the docstrings of a folder, or of a single module, with their places and without code."""
    for path in sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text:
                    place = f"{path.relative_to(ROOT)}:{getattr(node, 'name', 'module')}"
                    yield place, re.sub(r"`[^`]*`", "", text)


def bad_docstrings(folder: Path) -> list[str]:
    """List docstrings whose first line is a fragment, and those with words that read like a translation."""
    return [
        f"{place}: {hit[0]!r}"
        for place, text in docstrings(folder)
        if (hit := FRAGMENT.match(text) or WORDS.search(text))
    ]


def packages() -> list[str]:
    """Return the packages; frontends/ has several that are finished one by one."""
    inner = [p for p in PACKAGE.iterdir() if p.is_dir() and p.name != "frontends"]
    formats = [p for p in (PACKAGE / "frontends").iterdir() if p.is_dir()]
    files = [*PACKAGE.glob("*.py"), *(PACKAGE / "frontends").glob("*.py")]
    names = [*(p for p in [*inner, *formats] if any(p.rglob("*.py"))), *(f.with_suffix("") for f in files)]
    return sorted(p.relative_to(PACKAGE).as_posix() for p in names)


@pytest.mark.parametrize("package", packages())
def test_docstrings(package: str) -> None:
    """The first line makes sense on its own: it is a sentence or an imperative, and uses the field's own words."""
    assert bad_docstrings(PACKAGE / package) == []


@pytest.mark.parametrize("folder", ["benchmarks", "examples", "tests", "tools", "zoo"])
def test_docstrings_of_scripts_and_tests(folder: str) -> None:
    assert bad_docstrings(ROOT / folder) == []


def test_names_of_tests_use_the_same_words() -> None:
    bad = re.compile(
        r"^ *def (test_(?:\w+_)?(?:told|tells?|behind|beside|nobody|whoever|anew|lies?)(?:_\w+)?)\(", re.MULTILINE
    )
    assert [name for path in ROOT.glob("tests/**/*.py") for name in bad.findall(path.read_text())] == []


def test_no_public_class_has_the_name_of_another() -> None:
    names = Counter(
        node.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_no_shared_name_has_two_definitions() -> None:
    """Names that other modules import are defined once, except verbs of the command line, and those that each frontend
    defines for its own format."""
    defined: dict[str, set[str]] = {}
    imported: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        module = "baretorch." + path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".")
        module = module.removesuffix(".__init__")
        tree = ast.parse(path.read_text())
        for node in tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            names = [t.id for t in targets if isinstance(t, ast.Name)]
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names = [node.name]
            for name in names:
                defined.setdefault(name, set()).add(module)
        for each in ast.walk(tree):
            if isinstance(each, ast.ImportFrom):
                for alias in each.names:
                    imported.setdefault(alias.name, set()).add(each.module or "")
    owners = {
        name: {"frontends" if m.startswith("baretorch.frontends.") else m for m in modules & imported.get(name, set())}
        for name, modules in defined.items()
    }
    shared = {name: {m for m in found if not m.startswith("baretorch.cli.")} for name, found in owners.items()}
    assert {name: found for name, found in shared.items() if len(found) > 1} == {}
