"""The docs are true: generated pages are fresh, links lead somewhere, snippets and commands work."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

from baretorch import pipeline
from baretorch.cli import VERBS, cli
from baretorch.passes.order import PASSES
from baretorch.targets.boards import board_names, load_board
from baretorch.targets.types import Board

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "baretorch"


def load_make_docs() -> ModuleType:
    sys.path.insert(0, str(ROOT / "tools"))
    spec = importlib.util.spec_from_file_location("make_docs", ROOT / "tools" / "make_docs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make_docs = load_make_docs()
WRITTEN: list[Path] = make_docs.written_pages()
PAGES = sorted({*WRITTEN, *(ROOT / name for name in make_docs.PAGES)})


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, and the line above it."""

    language: str
    text: str
    above: str


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def test_how_it_works_has_short_sections() -> None:
    text = re.sub(r"```.*?```", "", (ROOT / "docs/how-it-works.md").read_text(), flags=re.DOTALL)
    for section in re.split(r"\n(?=##)", text):
        prose = [word for line in section.splitlines() if line[:1] not in ("|", "#") for word in line.split()]
        assert len(prose) <= 120, f"{section.splitlines()[0]}: {len(prose)} words"


FOR_CONTRIBUTORS = [ROOT / "CONTRIBUTING.md", ROOT / "docs/how-it-works.md", *(ROOT / "docs/contributing").glob("*.md")]


@pytest.mark.parametrize("page", FOR_CONTRIBUTORS, ids=lambda page: page.name)
def test_pages_for_contributors_name_files_that_exist(page: Path) -> None:
    """Paths are relative to the repository, to src/baretorch, or to a folder that the page describes."""
    named = re.findall(r"`([\w./-]+(?:/|\.(?:py|c|h|txt|toml)))`", page.read_text())
    generated = {"model.h", "model.c", "weights.h", "weights.c", "glue.c"}
    inner = ("", "tune", "runtime", "frontends/pte", "kernels/linear")
    missing = [
        name
        for name in named
        if name not in generated
        and not re.search(r"NAME|foo", name)
        and not any((folder / name).exists() for folder in (ROOT, *(PACKAGE / path for path in inner)))
    ]
    assert missing == []


def test_how_it_works_lists_the_stages_of_the_pipeline_and_all_passes() -> None:
    text = (ROOT / "docs/how-it-works.md").read_text()
    arrows = next(line for line in (pipeline.__doc__ or "").splitlines() if line.startswith("read -> "))
    stages = re.findall(r"(\w+)(?: \([^)]*\))?(?: ->|$)", arrows)
    packages = {"read": "frontends", "optimize": "passes", "finish": "passes", "delegate": "npu", "build": "firmware"}
    packages |= {"run": "machines"}
    drawn = re.findall(r"[│┤] (\w+)/ ", text)
    assert drawn[: len(stages)] == [packages.get(stage, stage) for stage in stages]
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| [a-z]", text.partition("## Passes")[2], re.MULTILINE)
    names = re.findall(r"`(\w+)`", " ".join(rows))
    assert len(names) == len(set(names))
    assert set(names) == {step.__name__ for step in PASSES} | {"int8_state"}


@cache
def split(page: Path) -> tuple[str, tuple[Block, ...]]:
    """A page's running text, and its fenced blocks."""
    text: list[str] = []
    found: list[Block] = []
    inside: list[str] | None = None
    language = above = ""
    for line in page.read_text().splitlines():
        fence = re.fullmatch(r"(?:\d\.)? *```(\w*)", line)
        if fence is None:
            (text if inside is None else inside).append(line)
        elif inside is None:
            language, above, inside = fence[1], text[-1] if text else "", []
        else:
            found.append(Block(language, "\n".join(inside) + "\n", above))
            inside = None
    assert inside is None, f"{name_of(page)}: a block does not end"
    return "\n".join(text), tuple(found)


def blocks(page: Path) -> tuple[Block, ...]:
    return split(page)[1]


def prose(page: Path) -> str:
    return split(page)[0]


def inline_code(page: Path) -> list[str]:
    return re.findall(r"`([^`\n]+)`", prose(page))


# --- generated text ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", make_docs.PAGES)
def test_generated_page_is_fresh(name: str) -> None:
    assert (ROOT / name).read_text() == make_docs.PAGES[name](), "run `make docs`"


def test_figures_of_boards_are_of_three_models() -> None:
    """A board without figures has not been measured yet; its page says so."""
    rows = json.loads((ROOT / "benchmarks/boards.json").read_text())
    measured = sorted({row["board"] for row in rows})
    assert [row["board"] for row in rows] == [name for name in measured for _ in range(3)], "run benchmarks/boards.py"
    assert set(measured) <= {name for name in board_names() if not load_board(name).hosted}
    for row in rows:
        runs = bool(load_board(row["board"]).emulators)
        assert "misfit" in row or (row["flash"] > 0 and row["ram"] > 0 and ("instructions" in row) == runs)


def transcripts() -> Iterator[Any]:
    """Yield a pytest parameter for each block whose command is run."""
    for page in WRITTEN:
        for match in make_docs.BLOCK.finditer(page.read_text()):
            command, _, output = match[2].partition("\n")
            marks = [pytest.mark.slow] if "slow" in match[1] else []
            yield pytest.param(command, output, match[1].startswith("<!-- error"), id=command[2:], marks=marks)


@cache
def printed(command: str) -> str:
    text: str = make_docs.output_of(command)
    return text


def words_of(output: str) -> str:
    """An output without what depends on compiler, emulator and the machine's arithmetic: figures and drawings."""
    plain = re.sub(r"[\u2500-\u259f\u2800-\u28ff]+", "", output)
    plain = re.sub(r"\b(gcc|zig)\b", "TOOL", plain)
    return "\n".join(
        re.sub(r"0x[\da-f]+|[<+-]?[\d.,]*\d(e-?\d+)?", "#", " ".join(line.split())) for line in plain.splitlines()
    )


@pytest.mark.parametrize(("command", "output", "fails"), transcripts())
def test_shown_output_is_what_the_command_prints(command: str, output: str, fails: bool) -> None:
    fresh = printed(command)
    assert fresh and ("error:" in fresh) == fails
    assert words_of(output) == words_of(fresh), "run `make docs`"
    if "--stage" in command or " boards " in command:  # nothing in it depends on the machine
        assert output == fresh, "run `make docs`"


def test_sine_tutorial_quotes_the_c_that_is_emitted() -> None:
    import baretorch

    model = baretorch.compile(ROOT / "examples/sine/model.py", board="pico2w")
    (quoted,) = [b.text for b in blocks(ROOT / "examples/sine/README.md") if b.language == "c"]
    assert quoted in model.c_files["model.c"]


def test_json_page_lists_the_keys_of_run() -> None:
    data: dict[str, Any] = json.loads(printed("$ baretorch run examples/sine/model.py --board pico2w --json"))
    keys = {k for k in data if k not in ("flash", "ram")}
    keys |= {f"{group}.{k}" for group in ("flash", "ram") for k in data[group]}
    section = (ROOT / "docs/reference/json.md").read_text().split("## run\n")[1].split("\n## ")[0]
    listed = {k for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE) for k in re.findall(r"`([^`]+)`", row)}
    assert listed == keys


# --- links and paths --------------------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{target} does not exist"
        assert not anchor or anchor in anchors(there), f"{target}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_named_exist(page: Path) -> None:
    """A path in `code` is relative to the repository, the package or the page; foo, NAME and my_ stand for yours."""
    for code in inline_code(page):
        if re.fullmatch(r"[\w./-]+/[\w.-]*", code) and not re.search(r"foo|NAME|my_|^build/|^/", code):
            assert any((base / code).exists() for base in (ROOT, PACKAGE, page.parent)), code


def test_every_page_is_linked() -> None:
    """Each page is linked from the README or from another page."""
    linked = {
        (page.parent / target.partition("#")[0]).resolve()
        for page in PAGES
        for target in re.findall(r"\]\(([^)\s#]+[^)\s]*)\)", prose(page))
    }
    assert [name_of(p) for p in PAGES if p not in linked and p != ROOT / "README.md"] == []


def test_the_readme_fits_on_a_screen() -> None:
    text = prose(ROOT / "README.md")
    pictures = re.findall(r"!\[[^]]*\]\(", text)
    assert len(pictures) == 3
    assert len(re.findall(r"\]\(", text)) - len(pictures) <= 12
    assert len([line for line in text.splitlines() if line]) <= 60


def test_the_drawing_of_the_pipeline_is_fresh() -> None:
    import draw_pictures

    assert (ROOT / "docs/pictures/pipeline.svg").read_text() == draw_pictures.pipeline(), "run `make pictures`"
    for drawing in (ROOT / "docs/pictures").glob("*.svg"):
        assert "url(http" not in drawing.read_text(), f"{drawing.name} loads a font from another server"


def test_figures_of_other_tools_are_those_of_the_benchmarks() -> None:
    """The pages for users of other tools repeat figures of docs/benchmarks.md."""
    benchmarks = (ROOT / "docs/benchmarks.md").read_text()
    for page in (ROOT / "docs/coming-from").glob("*.md"):
        figures = set(re.findall(r"\d+(?:,\d{3})+", prose(page)))
        assert figures <= set(re.findall(r"\d+(?:,\d{3})+", benchmarks)), name_of(page)

    def rows(section: int) -> list[list[str]]:
        lines = benchmarks.split("\n## ")[section].splitlines()
        return [[cell.strip().replace(",", "") for cell in line.split("|")[1:-1]] for line in lines]

    times = [float(row[7].removesuffix("x")) for row in rows(1) if row[1:2] == ["Cortex-M4F"] and row[7]]
    shares = [100 * int(row[10]) / int(row[11]) for row in rows(2) if len(row) == 15 and row[11].isdigit()]
    text = " ".join((ROOT / "docs/coming-from/tflm.md").read_text().split())
    assert f"executes {min(times)} to {max(times)} times as many instructions" in text
    assert f"{min(shares):.0f} to {max(shares):.0f} % of its RAM" in text


def test_no_trace_of_a_machine() -> None:
    for page in PAGES:
        assert not re.search(r"/(tmp|work|root|home)/", page.read_text()), name_of(page)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_tables_are_whole(page: Path) -> None:
    """Every row has the cells of the row above it; a table follows an empty line."""
    above = ""
    for line in [*prose(page).splitlines(), ""]:
        if line.startswith("|") and above.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) == len(re.findall(r"(?<!\\)\|", above)), line
        elif line.startswith("|"):
            assert above == "", f"no empty line above {line}"
        above = line


# --- snippets ---------------------------------------------------------------------------------------------------------

PYTHON = [(page, block) for page in PAGES for block in blocks(page) if block.language == "python"]


@pytest.mark.parametrize(("page", "block"), [pytest.param(p, b, id=name_of(p)) for p, b in PYTHON])
def test_python_snippet(page: Path, block: Block) -> None:
    code = compile(block.text, name_of(page), "exec")
    if block.above == "<!-- runnable -->":
        exec(code, {"__name__": "snippet"})


def test_some_snippets_run() -> None:
    assert sum(block.above == "<!-- runnable -->" for _, block in PYTHON) >= 2


def test_the_board_of_the_how_to_loads(tmp_path: Path) -> None:
    page = ROOT / "docs/how-to/your-own-board.md"
    files = {b.text.split("\n")[0].removeprefix("# "): b.text for b in blocks(page) if b.language == "toml"}
    assert set(files) == {"my-board.toml", "rp2040-16m.toml"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    board = load_board(str(tmp_path / "my-board.toml"))
    assert (board.chip.memory("FLASH").size, board.chip.uart.baud) == (16 << 20, 921600)


def test_the_how_to_has_a_fresh_table_for_every_section() -> None:
    page = (ROOT / "docs/how-to/your-own-board.md").read_text()
    assert set(re.findall(r"<!-- keys (\w+) -->", page)) == set(make_docs.sections(Board))
    assert make_docs.key_tables(page) == page, "run `make docs`"


# --- commands ---------------------------------------------------------------------------------------------------------


def commands(page: Path) -> Iterator[str]:
    """The command lines of a page's ```sh and ```console blocks, without prompt."""
    for block in blocks(page):
        lines = [line.strip() for line in block.text.splitlines()]
        if block.language == "console":
            yield from (line.removeprefix("$ ") for line in lines if line.startswith("$ "))
        elif block.language == "sh":
            yield from lines


def parse(arguments: list[str]) -> None:
    """Parse a command line as `baretorch` would, without running it."""
    name, *rest = arguments
    verb = cli.get_command(click.Context(cli), name)
    if verb is None:
        raise click.UsageError(f"no verb {name}")
    verb.make_context(name, rest).close()


COMMANDS = sorted({c for page in PAGES for c in commands(page) if re.search(r"\bbaretorch ", c)})


@pytest.mark.parametrize("line", COMMANDS)
def test_command_line_is_valid(line: str) -> None:
    words = shlex.split(line.partition(" | ")[0], comments=True)
    assert words[0] == "baretorch"
    parse(words[1:])


def test_bad_command_lines_are_noticed() -> None:
    for line in ("fly model.py", "run model.py", "run model.py --board pico --int9", "inspect m.py --stage none"):
        with pytest.raises(click.UsageError):
            parse(line.split())


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_in_running_text_exist(page: Path) -> None:
    """Verb and options of `baretorch …` in the text, where arguments may be left out; and targets of `make …`."""
    verbs = {verb.name: verb for verb in VERBS}
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for code in inline_code(page):
        words = code.split()
        if words[0] == "make" and len(words) > 1:
            assert words[1] in targets, code
        if words[0] == "baretorch" and len(words) > 1:
            verb = verbs.get(words[1])
            assert verb is not None, code
            known = {o for p in verb.params for o in p.opts}
            assert {w for w in words if w.startswith("--")} <= known, code


def test_make_test_all_has_other_cpus_for_all_that_uses_torch() -> None:
    makefile = (ROOT / "Makefile").read_text()
    (listed,) = re.findall(r"^TORCH := \$\(addprefix tests/,((?:.|\\\n)*?)\)$", makefile, re.MULTILINE)
    tests = ROOT / "tests"
    uses = [f for f in tests.rglob("*.py") if re.search(r"^ *(import|from) torch\b|\bZOO\b", f.read_text(), re.M)]
    names = set(listed.replace("\\", "").split())
    assert {f.relative_to(tests).parts[0] for f in uses} - {"models.py"} <= names
    assert [name for name in names if not (tests / name).exists()] == []


# --- error texts ------------------------------------------------------------------------------------------------------


def test_error_texts_of_troubleshooting_are_ours() -> None:
    """Each heading in `code` is the text of an error; … stands for what varies."""
    source = "\n".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    titles = re.findall(r"^### `(.*)`$", (ROOT / "docs/troubleshooting.md").read_text(), re.MULTILINE)
    assert len(titles) > 20
    for title in titles:
        for piece in filter(None, (p.strip() for p in title.removeprefix("warning: ").split("…"))):
            assert piece in source, title
