"""Slow work is done once, and reports compile nothing."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from baretorch import pipeline
from baretorch.ir.graph import Graph
from baretorch.targets import boards
from tests.cli.program import baretorch, copy_model

SOURCES = Path(pipeline.__file__).parent


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The name of each graph that the passes begin with."""
    seen: list[str] = []

    def first(graph: Graph) -> Graph:
        seen.append(graph.name)
        return graph

    monkeypatch.setattr(pipeline, "FLOAT_PASSES", (first, *pipeline.FLOAT_PASSES))
    return seen


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file of a board or chip was read."""
    counts: Counter[str] = Counter()
    own = boards.read_table

    def read(path: Path) -> object:
        counts[f"{path.parent.name}/{path.stem}"] += 1
        return own(path)

    monkeypatch.setattr(boards, "read_table", read)
    return counts


@pytest.mark.parametrize(
    ("verb", "options"),
    [("run", ()), ("run", ("--int8",)), ("build", ("--int8",)), ("report", ("--int8",)), ("evaluate", ())],
)
def test_passes_and_boards(
    verb: str, options: tuple[str, ...], folder: Path, passes: list[str], loaded: Counter[str]
) -> None:
    result = baretorch(verb, copy_model("judged", folder), "--board", "mps2-an386", *options, "--json")
    assert result.code == 0, result.err
    assert len(passes) == 1
    assert loaded["boards/mps2-an386"] == loaded["chips/mps2-an386"] == 1


def test_reports_compile_nothing() -> None:
    """Reports import nothing that makes graphs, plans, C or images; imports for type checking do not count."""
    makers = ("pipeline", "explore", "emit", "firmware.build", "machines", "cli")
    forbidden = tuple(f"baretorch.{maker}" for maker in makers)
    for path in sorted((SOURCES / "report").rglob("*.py")):
        tree = ast.parse(path.read_text())
        types = [
            node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        ]
        told = {id(inner) for node in types for inner in ast.walk(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and id(node) not in told:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                assert not [n for n in names if n.startswith(forbidden) or n == "baretorch.plan.make_plan"], path.name
