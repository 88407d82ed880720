"""A new emulator takes at most 3 source files: this test adds new_emulator/toy.py to a copy of the package by the steps
of docs/contributing/tools.md, and runs an image on it."""

from __future__ import annotations

from pathlib import Path

from tests.adding import MODEL, ChangedPackage

NEW = Path(__file__).parent / "new_emulator"

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
    package = ChangedPackage(tmp_path)
    package.write("machines/toy.py", (NEW / "toy.py").read_text())
    for file, after, lines in ROWS:
        package.insert(file, after, lines)
    assert package.changed() == ["machines/toy.py", "targets/types.py"]

    (tmp_path / "mine.toml").write_text(BOARD)
    wrong = package.command("run", str(MODEL), "--board", "mine.toml")
    assert (wrong["error"], wrong["need"]) == ("emulator toy needs toy_model", ['such as toy_model = "t1"'])
    (tmp_path / "mine.toml").write_text(f'{BOARD}toy_model = "t1000"\n')
    run = package.command("run", str(MODEL), "--board", "mine.toml", "--emulator", "toy")
    assert (run["emulator"], run["instructions"]) == ("toy", 1), run
    (tmp_path / "mine.toml").write_text(f'{BOARD.replace("host", "rp2040")}toy_model = "t1000"\n')
    assert package.command("run", str(MODEL), "--board", "mine.toml")["need"] == ["a toy"]
    tools = package.command("doctor")["tools"]
    assert isinstance(tools, list)
    assert [tool["version"] for tool in tools if tool["name"] == "toy-emulator"] == ["1.0"]
