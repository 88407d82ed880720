"""A new emulator takes at most 3 source files: this test adds new_emulator/toy.py to a copy of the package by the steps
of docs/contributing/tools.md, and runs an image on it."""

from __future__ import annotations

import filecmp
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import baretorch

PACKAGE = Path(baretorch.__file__).parent
NEW = Path(__file__).parent / "new_emulator"
MODEL = Path(__file__).parents[1] / "frontends" / "data" / "cnn.pte"
MOST_FILES = 3

# What is added to tables: file, the line after which it goes, and the new lines.
ROWS = (
    (
        "targets/types.py",
        "EMULATORS: Mapping[str, Emulator] = {\n",
        '    "toy": Emulator(lambda chip: chip.boot == "host", "a toy"),\n',
    ),
    (
        "targets/types.py",
        '    fvp: Annotated[Fvp | None, Key("Arm\'s Fixed Virtual Platform", goes_with="fvp")] = None\n',
        '    toy_model: Annotated[str | None, Key("", pattern=NAME, goes_with="toy", example=\'"t1"\')] = None\n',
    ),
)
BOARD = """title = "Toy"
chip = "host"
emulators = ["toy"]
flash_methods = []
notes = "a toy"
"""


def test_a_new_emulator_costs_three_files_at_most(tmp_path: Path) -> None:
    tree = tmp_path / "src" / "baretorch"
    shutil.copytree(PACKAGE, tree, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(NEW / "toy.py", tree / "machines")
    for file, after, lines in ROWS:
        text = (tree / file).read_text()
        assert text.count(after) == 1, f"{file} has no line {after!r}"
        (tree / file).write_text(text.replace(after, after + lines))

    written = [f.relative_to(tree).as_posix() for f in tree.rglob("*") if f.is_file()]
    same = filecmp.cmpfiles(PACKAGE, tree, written, shallow=False)[0]
    changed = sorted(set(written) - set(same))
    assert changed == ["machines/toy.py", "targets/types.py"] and len(changed) <= MOST_FILES

    def program(*arguments: str) -> dict[str, object]:
        environment = {**os.environ, "PYTHONPATH": str(tree.parent)}
        command = [sys.executable, "-m", "baretorch", *arguments, "--json"]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
        made: dict[str, object] = json.loads(done.stdout)
        return made

    (tmp_path / "mine.toml").write_text(BOARD)
    wrong = program("run", str(MODEL), "--board", "mine.toml")
    assert (wrong["error"], wrong["need"]) == ("emulator toy needs toy_model", ['such as toy_model = "t1"'])
    (tmp_path / "mine.toml").write_text(f'{BOARD}toy_model = "t1000"\n')
    run = program("run", str(MODEL), "--board", "mine.toml", "--emulator", "toy")
    assert (run["emulator"], run["instructions"]) == ("toy", 1), run
    (tmp_path / "mine.toml").write_text(f'{BOARD.replace("host", "rp2040")}toy_model = "t1000"\n')
    assert program("run", str(MODEL), "--board", "mine.toml")["need"] == ["a toy"]
    tools = program("doctor")["tools"]
    assert isinstance(tools, list)
    assert [tool["version"] for tool in tools if tool["name"] == "toy-emulator"] == ["1.0"]
