"""Write the generated parts of the docs: `make docs`.

The pages in PAGES are generated as a whole, from the tables of the compiler itself. In all other pages, a ```console
block below the line `<!-- output -->` shows what its command prints: `baretorch …` or `python examples/…`. The command
is run in a folder that contains only examples/, and the rest of the block is replaced. `<!-- error -->` marks a command
that must fail; with `, slow` in the mark, its test belongs to the long suite. A table below the line
`<!-- keys CLASS -->` lists the TOML keys that are declared on that class.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import re
import runpy
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

import board_pages
import click
import python_page
import source_tree
from markdown_tables import cell, table

from baretorch.cli import EXIT_CODES, VERBS, cli, run_command
from baretorch.explore.support import aten_names, support, types_of
from baretorch.frontends.tflite.lowering import SHORTS, TfliteRow
from baretorch.frontends.tflite.table import CUSTOM, NOT_INT8
from baretorch.frontends.tflite.table import TABLE as TFLITE
from baretorch.frontends.tinygrad import math, moves, nn
from baretorch.measure.numbers import capacity, frequency
from baretorch.targets.boards import board_names, load_board
from baretorch.targets.toml import ADDRESSES, DeclaredKey, keys_of
from baretorch.targets.types import Board

ROOT = Path(__file__).resolve().parents[1]
NOTE = "<!-- Written by `make docs`; do not edit. -->\n"
KEYS = re.compile(r"(?<=<!-- keys )(\w+)( -->\n\n)(?:\|.*\n)+")
BLOCK = re.compile(r"(<!-- (?:output|error)(?:, slow)? -->\n```console\n)(.*?)(```\n)", re.DOTALL)


def boards_page() -> str:
    """Return the board table and one memory map per chip, from the TOML files."""
    boards = [load_board(name) for name in board_names()]
    rows = [
        (
            f"[`{b.name}`](../boards/{b.name}.md)",
            b.title,
            b.chip.cpus,
            frequency(b.chip.clock_hz),
            capacity(b.chip.memory(b.chip.code).size),
            capacity(b.chip.memory(b.chip.data).size),
            ", ".join(b.emulators) or "none",
            ", ".join(b.flash_methods) or "–",
        )
        for b in boards
    ]
    titles = ("board", "what it is", "CPU", "clock", "flash", "RAM", "emulators", "flashed by")
    text = [
        NOTE,
        "# Boards",
        "",
        "`baretorch boards` prints this table, `baretorch boards pico2w` one board. The first emulator that is",
        "installed runs the image. [Your own board](../how-to/your-own-board.md) is one TOML file.",
        "",
        *table(titles, rows, "lllrrrll"),
        "",
        "Flash and RAM are the banks that image and data go to; a chip may have more, see below.",
        "",
        "## Notes",
        "",
        *table(("board", "console and flashing"), [(f"`{b.name}`", b.notes) for b in boards], "ll"),
        "",
        "## Memory maps",
        "",
    ]
    maps = [
        (b.chip.name, m.name, m.kind, f"`0x{m.origin:08x}`", capacity(m.size), role(b.chip.code, b.chip.data, m.name))
        for b in {b.chip.name: b for b in boards if b.name != "host"}.values()
        for m in b.chip.memories
    ]
    text += table(("chip", "bank", "kind", "origin", "size", "holds"), sorted(maps), "llllrl")
    return "\n".join(text) + "\n"


def role(code: str, data: str, bank: str) -> str:
    return {code: "the image", data: "data, arena, stack"}.get(bank, "–")


def ops_page() -> str:
    """List operators, their kernels, and the PyTorch operators that become them."""
    operators = support()
    made = {name for o in operators for name in o.aten}
    vanish = [f"`{name}`" for name in aten_names() if name not in made]
    text = [
        NOTE,
        "# Operators",
        "",
        "`baretorch ops` prints this, `baretorch ops conv2d` one operator. PyTorch operators are named as",
        "`torch.export` names them (`aten::…`); operators that PyTorch can decompose into these work too.",
        "",
        *table(
            ("operator", "types", "made from"),
            [
                (
                    f"[{o.name}](#{o.name})",
                    ", ".join(sorted({t for k in o.kernels for t in types_of(k)})) or "any",
                    ", ".join(f"`{a}`" for a in o.aten),
                )
                for o in operators
            ],
            "lll",
        ),
        "",
        f"These operators cost nothing, because they change no value at inference: {', '.join(vanish)}.",
    ]
    for o in operators:
        text += ["", f"## {o.name}", "", cell(o.meaning), ""]
        kernels = [(f"`{k.symbol}`", f"`kernels/{k.source}`", ", ".join(types_of(k)), str(k.needs)) for k in o.kernels]
        if kernels:
            text += table(("kernel", "file", "types", "CPU features"), kernels, "llll")
        else:
            text.append("No kernel: the planner gives the result its input's memory.")
    text += [
        "",
        "The planner uses the first kernel of a table that the CPU can run and that fits the shapes. `ref` is",
        "portable C, which runs everywhere; the others compute the same on CPUs with the features named.",
    ]
    return "\n".join(text) + "\n"


def tinygrad_page() -> str:
    """List the methods and layers of tinygrad that have a row."""

    def named(rows: Iterable[str]) -> str:
        methods = [f"`nn.{n}`" if n[0].isupper() else f"`{OPERATORS.get(n, n)}`" for n in rows]
        return ", ".join(sorted(methods))

    text = [
        NOTE,
        "# tinygrad",
        "",
        "These methods of Tensor and layers of tinygrad 0.14.0 become operators. So do methods and layers",
        "built from them: `nn.Linear` calls `linear`, `nn.BatchNorm` `batchnorm`, and `+` is `add`.",
        "See [Bring a tinygrad model](../how-to/tinygrad.md).",
        "",
        *table(
            ("kind", "methods"),
            [("numbers", named(math.ROWS)), ("moves", named(moves.ROWS)), ("layers", named(nn.ROWS))],
            "ll",
        ),
    ]
    return "\n".join(text) + "\n"


OPERATORS = {"__getitem__": "x[…]"}


def tflite_page() -> str:
    """List the operators of TensorFlow Lite that have a row."""

    def made(row: TfliteRow) -> str:
        return ", ".join(f"[{op.name}](ops.md#{op.name})" for op in row.makes) or "–"

    rows = [
        (
            f"`{name}`",
            made(row),
            "–" if name in NOT_INT8 else "yes",
            "yes" if row.sixteen is not None or name in SHORTS else "float",
            row.remark,
        )
        for name, row in sorted(TFLITE.items())
    ]
    custom = [(f"`{name}`", made(row), row.remark) for name, row in sorted(CUSTOM.items())]
    text = [
        NOTE,
        "# TensorFlow Lite",
        "",
        f"These {len(rows)} builtin operators of `.tflite` files become operators of Baretorch. All are",
        "compared with LiteRT's kernels in float, and those marked int8 also in int8, at most one step apart.",
        "With activations of 16 bits (16x8), others than those marked int16 are computed in float.",
        "See [Bring a TensorFlow Lite model](../how-to/tflite.md).",
        "",
        *table(("operator", "becomes", "int8", "int16", "remark"), rows, "lllll"),
        "",
        "## Custom operators",
        "",
        "These operators of TensorFlow Lite Micro's audio front end compute the same bits as there. LiteRT does not",
        "know them. See [From samples to a word](../how-to/tflite.md#from-samples-to-a-word).",
        "",
        *table(("operator", "becomes", "remark"), custom, "lll"),
    ]
    return "\n".join(text) + "\n"


def cli_page() -> str:
    """Return the help of every verb."""
    text = [
        NOTE,
        "# Command line",
        "",
        "With `--json` standard output is one JSON object, also for errors: see [json.md](json.md).",
        "",
        *table(("exit code", "means"), [(str(code), meaning) for code, meaning in EXIT_CODES.items()], "rl"),
        "",
        "```text",
        help_of(cli, "baretorch"),
        "```",
    ]
    for verb in VERBS:
        text += ["", f"## {verb.name}", "", "```text", help_of(verb, f"baretorch {verb.name}"), "```"]
    return "\n".join(text) + "\n"


def help_of(command: click.Command, name: str) -> str:
    settings = {**(cli.context_settings or {}), "terminal_width": 100}
    with click.Context(command, info_name=name, **settings) as context:
        return command.get_help(context)


PAGES: dict[str, Callable[[], str]] = {
    "docs/reference/boards.md": boards_page,
    "docs/reference/ops.md": ops_page,
    "docs/reference/cli.md": cli_page,
    "docs/reference/tinygrad.md": tinygrad_page,
    "docs/reference/tflite.md": tflite_page,
    "docs/reference/python.md": partial(python_page.python_page, NOTE),
    "docs/reference/source-tree.md": partial(source_tree.source_tree_page, NOTE),
    "docs/boards/README.md": partial(board_pages.index_page, NOTE),
    **{f"docs/boards/{name}.md": partial(board_pages.board_page, name, NOTE) for name in board_names()},
}


def written_pages() -> list[Path]:
    """Return the pages that people write."""
    found = [*ROOT.glob("*.md"), *(p for d in ("docs", "examples") for p in (ROOT / d).rglob("*.md"))]
    return sorted(p for p in found if p.relative_to(ROOT).as_posix() not in PAGES)


def sections(kind: Any) -> dict[str, Any]:
    """Return the dataclasses whose keys a TOML file has, by their names."""
    inner = [key.section or key.kind for key in keys_of(kind) if key.section or key.field == "chip"]
    return {kind.__name__: kind} | {name: part for k in inner for name, part in sections(k).items()}


def key_tables(text: str) -> str:
    """Return the page with tables of the keys that are declared now."""

    def rewrite(match: re.Match[str]) -> str:
        keys = [key for key in keys_of(sections(Board)[match[1]]) if key.section is None]
        rows = [(f"`{key.name}`", value_of(key), key.key.about) for key in keys]
        return f"{match[1]}{match[2]}" + "".join(f"{row}\n" for row in table(("key", "value", "meaning"), rows, "lll"))

    return KEYS.sub(rewrite, text)


def value_of(key: DeclaredKey) -> str:
    """Describe the values that a key takes."""
    rule = key.key
    words = {str: "text", int: "number", list: "list", dict: "table"}
    kind = {str: "texts", int: "numbers"}[key.items] if key.items else words[key.raw]
    if rule.bank:
        kind = "bank" if key.items is None else "banks"
    elif key.raw is int and rule.register:
        kind = "address"
    elif rule.choices:
        kind = ", ".join(f"`{choice}`" for choice in rule.choices)
    elif key.raw is int and rule.most < ADDRESSES - 1:
        kind = f"{rule.least} to {rule.most}" if rule.least < rule.most else f"{rule.least}"
    many = "list of " if key.items else "one of " if rule.choices else ""
    condition = f", with `{rule.goes_with}`" if rule.goes_with else ", *optional*" if key.optional else ""
    return f"{many}{kind}{condition}"


def refresh(text: str) -> str:
    """Return the page with what its commands print now."""

    def run_again(match: re.Match[str]) -> str:
        head, body, tail = match.groups()
        command = body.splitlines()[0]
        return f"{head}{command}\n{output_of(command)}{tail}"

    return BLOCK.sub(run_again, key_tables(text))


def output_of(line: str) -> str:
    """Return what `$ baretorch …` or `$ python examples/…` prints, perhaps filtered by `| grep WORD`."""
    words = shlex.split(line)
    words, word = (words[:-3], words[-1]) if words[-3:-1] == ["|", "grep"] else (words, "")
    if words[0] != "$" or words[1] not in RUNNERS or "|" in words:
        raise SystemExit(f"not a command that make_docs runs: {line}")
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), contextlib.chdir(examples_only()):
        RUNNERS[words[1]](words[2:])
    return "".join(f"{row.rstrip()}\n" for row in out.getvalue().splitlines() if word in row)


def run_example(arguments: list[str]) -> None:
    """Run a Python file of examples/ in this process."""
    given, sys.argv = sys.argv, arguments
    try:
        runpy.run_path(arguments[0], run_name="__main__")
    finally:
        sys.argv = given


RUNNERS: dict[str, Callable[[list[str]], object]] = {"baretorch": run_command, "python": run_example}


@cache
def examples_only() -> Path:
    """Return a folder with only examples/, so that the build folder of the checkout does not change."""
    temporary = tempfile.TemporaryDirectory(prefix="baretorch-docs-")
    atexit.register(temporary.cleanup)
    (Path(temporary.name) / "examples").symlink_to(ROOT / "examples")
    return Path(temporary.name)


def main() -> None:
    for name, page in PAGES.items():
        write(ROOT / name, page())
    for path in written_pages():
        write(path, refresh(path.read_text()))


def write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
