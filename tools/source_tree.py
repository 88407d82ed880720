"""Make docs/reference/source-tree.md: all packages of src/baretorch with their docstrings, in the order of the data."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "baretorch"
STAGES = (
    *("frontends", "ir", "ops", "passes", "quantize", "npu", "plan", "emit", "firmware", "machines", "measure"),
    *("report", "targets", "units", "files", "explore", "tune", "exports", "debug", "studio", "cli"),
)
DATA = {
    "boards": "Boards, chips and the rules of emulated chips, as TOML.",
    "kernels": "The C of all operators: one folder per operator, one file per variant.",
    "runtime": "The C of images other than the model: start-up code, console, counter, watchdog, drivers.",
}


def source_tree_page(note: str) -> str:
    """Return the page, with `note` as its first line."""
    modules = [(p.name, docstring(p)) for p in sorted(SOURCE.glob("*.py")) if not p.name.startswith("__")]
    lines = [
        note,
        "# The source tree",
        "",
        "The packages of `src/baretorch`, in the order in which data passes through them. Read `pipeline.py` first: it",
        "calls the stages in this order. `python tools/size.py` prints the size of each package.",
        "",
        "```text",
        *rows(modules, ""),
        "",
    ]
    for name in STAGES:
        lines += rows([(f"{name}/", docstring(SOURCE / name / "__init__.py"))], "")
        lines += rows([(f"{p.name}/", docstring(p / "__init__.py")) for p in inner(SOURCE / name)], "  ")
    lines += ["", *rows([(f"{name}/", about) for name, about in DATA.items()], ""), "```"]
    return "\n".join(lines) + "\n"


def inner(folder: Path) -> list[Path]:
    """Return the packages in a package."""
    return sorted(path.parent for path in folder.glob("*/__init__.py"))


def rows(entries: list[tuple[str, str]], indent: str) -> list[str]:
    return [f"{indent + name:<16} {about}" for name, about in entries]


def docstring(path: Path) -> str:
    """Return the first sentence of a module's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text()))
    assert text, f"{path} has no docstring"
    return re.split(r"(?<=\.) ", " ".join(text.split("\n\n")[0].split()))[0]
