"""A board, a CPU, an SDK and an option each take the files that docs/contributing names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adding import MODEL, PACKAGE, ROOT, ChangedPackage


@pytest.fixture
def package(tmp_path: Path) -> ChangedPackage:
    return ChangedPackage(tmp_path)


def test_a_shipped_board_is_one_toml(package: ChangedPackage) -> None:
    """`make docs` writes its page from the TOML alone."""
    package.write("boards/pico-twin.toml", (PACKAGE / "boards" / "pico.toml").read_text())
    assert package.changed() == ["boards/pico-twin.toml"]
    found = package.command("boards", "pico-twin")
    assert (found["chip"], found["emulators"]) == ("rp2040", ["unicorn", "rp2040js"])
    tools = f"import sys; sys.path.append({str(ROOT / 'tools')!r})"
    page = package.python("-c", f"{tools}; import make_docs; print(make_docs.PAGES['docs/boards/pico-twin.md']())")
    assert "`--board pico-twin`: 2 × cortex-m0plus" in page.stdout, page.stderr


def test_a_cpu_is_one_row(package: ChangedPackage) -> None:
    package.insert(
        "targets/cpus.py",
        "CPUS: tuple[Cpu, ...] = (\n",
        '    Cpu("cortex-m23", frozenset({Feature.V6M}), ("-mcpu=cortex-m23", "-mthumb"), "arm-none-eabi-"),\n',
    )
    assert package.changed() == ["targets/cpus.py"]
    chip = (PACKAGE / "boards" / "chips" / "mps2-an385.toml").read_text()
    (package.folder / "m23.toml").write_text(chip.replace('cpu = "cortex-m3"', 'cpu = "cortex-m23"'))
    text = 'title = "M23"\nchip = "m23"\nemulators = []\nflash_methods = []\nnotes = "none"\n'
    (package.folder / "mine.toml").write_text(text)
    built = package.command("build", str(MODEL), "--board", "mine.toml", "--toolchain", "gcc", "--out", "out")
    assert "error" not in built, built
    assert built["board"] == "mine" and built["flash"]["model_code"] > 0


def test_an_sdk_is_a_folder_of_templates_and_a_row(package: ChangedPackage) -> None:
    package.write("exports/templates/toy/README.md", "# @NAME@ for the toy SDK\n\nStack: @STACK@ bytes.\n")
    row = '    Sdk("toy", "lib/@NAME@", portable={}),\n'
    package.insert("exports/__init__.py", "SDKS: tuple[Sdk, ...] = (\n", row)
    assert package.changed() == ["exports/__init__.py", "exports/templates/toy/README.md"]
    made = package.command("project", str(MODEL), "--sdk", "toy", "--out", "out")
    assert "error" not in made, made
    assert (package.folder / "out" / "README.md").read_text().startswith("# cnn for the toy SDK\n")
    assert (package.folder / "out" / "lib" / "cnn" / "cnn" / "model.c").is_file()


def test_an_option_is_a_declaration_a_group_and_its_reader(package: ChangedPackage) -> None:
    """Command line, help, Python and JSON use the declaration."""
    declaration = '    greeting: Annotated[str, About("Write this into GREETING.", "TEXT")] = "hello"\n'
    package.insert(
        "options.py", '"""The values of all options, in the order in which they are printed."""\n\n', declaration
    )
    package.insert("cli/flags.py", "COMPILE = (", '"greeting", ')
    package.insert(
        "pipeline.py",
        "def write_c(compiled: Compiled, folder: Path) -> tuple[Path, ...]:\n",
        '    put_all(folder, {"GREETING": f"Made by Baretorch {compiled.options.greeting}"})\n',
    )
    assert package.changed() == ["cli/flags.py", "options.py", "pipeline.py"]
    made = package.command("compile", str(MODEL), "--board", "pico", "--out", "out", "--greeting", "good morning")
    assert made["options"]["greeting"] == "good morning", made
    assert (package.folder / "out" / "GREETING").read_text() == "Made by Baretorch good morning"
    assert "--greeting" in package.python("-m", "baretorch", "compile", "--help").stdout
    program = f"import baretorch; print(baretorch.compile({str(MODEL)!r}, board='pico', greeting=3))"
    assert "greeting is 3" in package.python("-c", program).stderr
