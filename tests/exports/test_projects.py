"""Projects for SDKs: complete, the same each time, and right where the SDK's own tools can build them here."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from errno import ENOSPC
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from baretorch import pipeline
from baretorch.errors import CompileError
from baretorch.exports import BY_NAME, boards_of, need_name
from baretorch.exports.files import RECORD, write
from baretorch.exports.project import figures_of, project_files
from baretorch.ir.io import store_inputs
from baretorch.machines import open_machine
from baretorch.machines.link import Link
from baretorch.machines.run import call_image
from baretorch.options import Optimize, Options
from baretorch.pipeline import Compiled, read
from baretorch.targets.boards import board_names, load_board
from tests.pipes import ending

ROOT = Path(__file__).parents[2]
ZOO = ROOT / "zoo"
MODELS = {"sine": False, "softmax": False, "kws": True, "streaming_gru": False}  # with --int8?
FIGURES = {"board": "host", "code_bytes": 1234}


@cache
def compiled(model: str, board: str, optimize: Optimize = Optimize.SPEED) -> Compiled:
    int8 = MODELS[model]
    options = Options(int8=int8, optimize=optimize)
    return pipeline.compile_source(read(str(ZOO / f"{model}.py"), None, options), load_board(board), options)


def a_board(sdk: str) -> str:
    return boards_of(BY_NAME[sdk])[0] if BY_NAME[sdk].portable is None else "host"


def in_folder(files: dict[str, str], folder: Path) -> Path:
    assert write(folder, files, force=False) == []
    return folder


def run(*command: str | Path, folder: Path) -> str:
    done = subprocess.run([str(c) for c in command], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def readme_commands(readme: str) -> list[str]:
    """Those that README.md gives to build."""
    block = re.search(r"## Build\n\n```sh\n(.*?)```", readme, re.DOTALL)
    assert block is not None
    return [line.partition("#")[0].strip() for line in block[1].splitlines() if not line.startswith("#")]


def exact(main: Path) -> None:
    """Make a program print enough digits of its output to show all bits."""
    text = main.read_text()
    assert re.search(r'printf\("%d: %[gf]\\n"', text)
    main.write_text(re.sub(r'printf\("%d: %[gf]\\n"', r'printf("%d: %.9g\\n"', text))


def numbers(said: str) -> list[float]:
    return [float(np.float32(word)) for word in re.findall(r"^\d+: (\S+)", said, re.MULTILINE)]


def steps(model: str) -> int:
    """How many answers an example has."""
    return 4 if model == "streaming_gru" else 1


def all_right(said: str, model: str, runs: int) -> bool:
    """Report whether a program prints for all `runs` that its outputs are right."""
    return said.count(f"{model}: right") == runs and "WRONG" not in said


def expected_outputs(made: Compiled, runs: int) -> list[float]:
    """Return the outputs of Baretorch's own emulated image, which starts over after the steps of the example."""
    inputs = store_inputs(made.graph, made.source.examples)
    found: list[float] = []
    with TemporaryDirectory() as folder:
        machine = open_machine(pipeline.build_image(made, Path(folder)), made.c.run)
        link = Link(machine)
        for run in range(runs):
            if made.graph.state and run % steps(made.graph.name) == 0:
                link.reset()
            found += map(float, call_image(link, made.graph, inputs)[0].ravel()[:16])
        machine.close()
    return found


@cache
def answers(model: str, board: str, runs: int | None = None) -> list[float]:
    return expected_outputs(compiled(model, board), runs or steps(model))


def test_the_docs_list_what_was_tested() -> None:
    """The page lists for every SDK how it was tested, with tests that exist."""
    page = (ROOT / "docs/how-to/use-an-sdk.md").read_text()
    rows = [
        row.split(" | ") for row in page.partition("## How the projects are tested")[2].splitlines() if "`test_" in row
    ]
    assert {name for row in rows for name in re.findall("`([a-z-]+)`", row[0])} == set(BY_NAME)
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    for name in re.findall(r"`(test_\w+)`", page):
        assert f"def {name}(" in tests, name


def test_boards_have_the_words_of_sdks_and_no_others() -> None:
    for name in board_names():
        for sdk, words in load_board(name).sdk.items():
            assert set(words) <= {*BY_NAME[sdk].needs, *BY_NAME[sdk].words} and BY_NAME[sdk].knows(load_board(name))


def test_words_of_a_board_lead_to_no_other_folder() -> None:
    """A user's own TOML may come from others."""
    model = compiled("sine", "mps2-an385")
    board = replace(model.board, sdk={"vscode": {"server": "qemu/../../../../boards"}})
    with pytest.raises(CompileError, match="of which there are no templates"):
        project_files(replace(model, board=board), BY_NAME["vscode"], FIGURES)


def test_zephyr_enables_what_the_c_needs() -> None:
    """An FPU is off there until something selects it, and DSP instructions are refused on Cortex-M33s."""

    def kconfig(board: str) -> str:
        return project_files(compiled("sine", board), BY_NAME["zephyr"], FIGURES)["modules/sine/zephyr/Kconfig"]

    assert "select" not in kconfig("mps2-an385") and "depends" not in kconfig("mps2-an385")
    assert "\tdepends on CPU_HAS_FPU\n\tselect FPU\n\thelp" in kconfig("nucleo-wb55rg")
    assert "\tselect FPU\n\tdepends on CPU_CORTEX_M33\n\tselect ARMV8_M_DSP\n\thelp" in kconfig("pico2w")


def test_zephyrs_own_options_and_targets_are_not_the_models() -> None:
    """A model may be called net or app, and CONFIG_NET turns on its network, app is the application."""
    files = project_files(compiled("sine", "mps2-an385"), BY_NAME["zephyr"], FIGURES)
    assert "\nCONFIG_BARETORCH_SINE=y\n" in "\n" + files["prj.conf"]
    assert files["modules/sine/zephyr/Kconfig"].startswith("config BARETORCH_SINE\n")
    assert files["modules/sine/zephyr/CMakeLists.txt"].startswith(
        "if(CONFIG_BARETORCH_SINE)\n  zephyr_library_named(baretorch_sine)\n"
    )


@pytest.mark.parametrize(
    ("sdk", "board", "path", "line"),
    [
        ("zephyr", "mps2-an385", "prj.conf", "CONFIG_MAIN_STACK_SIZE=3056"),
        ("esp-idf", "virt-rv32", "sdkconfig.defaults", "CONFIG_ESP_MAIN_TASK_STACK_SIZE=4592"),
    ],
)
def test_main_has_the_stack_that_the_model_needs(sdk: str, board: str, path: str, line: str) -> None:
    """The stack also has 2,048 bytes for printing and Espressif's 3,584."""
    model = compiled("sine", board)
    model = replace(model, board=replace(model.board, sdk={**model.board.sdk, "esp-idf": {"target": "esp32c3"}}))
    files = project_files(model, BY_NAME[sdk], {**FIGURES, "stack_bytes": 1001})
    assert line in files[path].splitlines()


def test_without_a_board_the_user_chooses_the_target() -> None:
    sdk, model = BY_NAME["esp-idf"], compiled("sine", "host")
    files = project_files(model, sdk, FIGURES)
    assert "idf.py set-target YOUR_TARGET\n" in files["README.md"] and "replace `YOUR_TARGET`" in files["README.md"]
    assert "--board" not in files["README.md"] and "IDF_TARGET" not in files["sdkconfig.defaults"]
    model = compiled("sine", "virt-rv32")
    files = project_files(
        replace(model, board=replace(model.board, sdk={"esp-idf": {"target": "esp32c3"}})), sdk, FIGURES
    )
    assert "idf.py set-target esp32c3\n" in files["README.md"] and "YOUR_TARGET" not in files["README.md"]
    assert 'CONFIG_IDF_TARGET="esp32c3"' in files["sdkconfig.defaults"]


@pytest.mark.parametrize(("board", "line"), [("arduino-uno", "architectures=avr"), ("host", "architectures=*")])
def test_arduino_knows_which_chips_a_library_is_for(board: str, line: str) -> None:
    """C for AVR contains its assembly, so the IDE rejects the library for other boards."""
    files = project_files(compiled("sine", board), BY_NAME["arduino"], FIGURES)
    assert line in files["sine/library.properties"].splitlines()


def test_mbeds_settings_are_those_it_reads() -> None:
    """It ignores what it does not know."""
    files = project_files(compiled("sine", "nucleo-wb55rg"), BY_NAME["mbed-ce"], FIGURES)
    for profile in ("", "_bare_metal"):
        settings = json.loads(files[f"mbed_app{profile}.json5"])
        assert set(settings) <= {"config", "macros", "overrides", "target_overrides"}
        assert ("target.application-profile" in settings["target_overrides"]["*"]) == bool(profile)


@pytest.mark.parametrize(
    ("sdk", "name"), [("pico-sdk", "pico"), ("esp-idf", "main"), ("cmake", "test"), ("arduino", "Wire")]
)
def test_names_that_an_sdk_has_itself(sdk: str, name: str) -> None:
    """A header, a component, a target: what is called like it would hide it."""
    with pytest.raises(CompileError, match=f"a project cannot be called {name}"):
        need_name(BY_NAME[sdk], name)
    need_name(BY_NAME[sdk], "net")


def test_a_pico_project_asks_for_the_cmake_it_needs() -> None:
    """set_source_files_properties knows DIRECTORY since 3.18."""
    files = project_files(compiled("sine", "pico2w"), BY_NAME["pico-sdk"], FIGURES)
    assert "PROPERTIES COMPILE_OPTIONS" in files["sine/CMakeLists.txt"].split("DIRECTORY ")[1]
    assert files["CMakeLists.txt"].startswith("cmake_minimum_required(VERSION 3.18...")


def test_boards_have_the_names_that_platformio_knows() -> None:
    """The names are those in its repositories platform-ststm32, -atmelavr and -raspberrypi; its packages are not
    installed."""
    known = {
        "ststm32": {"nucleo_wb55rg_p", "nucleo_h743zi"},
        "atmelavr": {"uno", "megaatmega2560"},
        "raspberrypi": {"pico"},
    }
    named = [load_board(name).sdk["platformio"] for name in boards_of(BY_NAME["platformio"])]
    assert all(words["board"] in known[words["platform"]] for words in named) and named


@pytest.mark.parametrize("name", [pytest.param(m, marks=() if m == "sine" else pytest.mark.slow) for m in MODELS])
@pytest.mark.parametrize("sdk", BY_NAME)
def test_a_project_is_whole_and_always_the_same(sdk: str, name: str) -> None:
    model = compiled(name, a_board(sdk))
    files = project_files(model, BY_NAME[sdk], FIGURES)
    assert files == project_files(model, BY_NAME[sdk], FIGURES)
    assert {"README.md"} < set(files)
    for path, text in files.items():
        assert not re.search(r"@[A-Z_]+@", path + text), path
        assert not re.search(r"/(home|root|work|tmp)/", text), path
    library = Path(min((path for path in files if path.endswith(f"/{name}.h")), key=len)).parent
    assert {"model.h", "model.c", "weights.h", "weights.c", "example.h", "example.c"} <= {
        Path(path).name for path in files if Path(path).parent == library / name
    }
    assert all((ROOT / "LICENSE").read_text() == files[path] for path in files if path.endswith("LICENSE"))
    assert {"LICENSE", "NOTICE"} <= {Path(path).name for path in files}
    assert "code bytes: 1,234" in files[f"{library}/{name}.h"] and json.loads(files[f"{library}/model.json"]) == FIGURES
    for path in files:
        if path.endswith((".json", ".json5")):  # what is JSON is JSON5, too
            json.loads(files[path])
    assert "1,234" in files["README.md"] and ("has 4 steps" in files["README.md"]) == (steps(name) == 4)
    assert re.search(rf"`baretorch project --sdk {sdk} MODEL (--board \S+ )?.*--out DIR`", files["README.md"])


@pytest.mark.parametrize("model", MODELS)
def test_make_builds_it_and_it_is_right(model: str, tmp_path: Path) -> None:
    """The commands of its README build it, and all bits of the output are those of board host."""
    folder = in_folder(project_files(compiled(model, "host"), BY_NAME["make"], FIGURES), tmp_path)
    exact(folder / "main.c")
    said = [run(*command.split(), folder=folder) for command in readme_commands((folder / "README.md").read_text())]
    assert len(said) == 2 and all_right(said[1], model, steps(model))
    assert numbers(said[1]) == answers(model, "host")


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_cmake_builds_it_and_it_is_right(model: str, tmp_path: Path) -> None:
    folder = in_folder(project_files(compiled(model, "host"), BY_NAME["cmake"], FIGURES), tmp_path)
    exact(folder / "main.c")
    for command in readme_commands((folder / "README.md").read_text()):
        run(*command.split(), folder=folder)
    said = run(f"build/{model}_example", folder=folder)
    assert all_right(said, model, steps(model)) and numbers(said) == answers(model, "host")


@pytest.mark.parametrize("sdk", ["make", pytest.param("cmake", marks=pytest.mark.slow)])
@pytest.mark.parametrize("board", ["mps2-an386", pytest.param("arduino-uno", marks=pytest.mark.slow)])
def test_a_library_for_a_board(sdk: str, board: str, tmp_path: Path) -> None:
    """The commands of the README build it with the board's compiler, and the board's linker finds its symbols."""
    folder = in_folder(project_files(compiled("sine", board), BY_NAME[sdk], FIGURES), tmp_path)
    for command in readme_commands((folder / "README.md").read_text()):
        run(*shlex.split(command), folder=folder)
    cpu = load_board(board).chip.cpu
    (library,) = folder.rglob("libsine.a")
    found = run(f"{cpu.gcc_prefix}nm", "--print-armap", library, folder=folder)
    assert "sine_run in model" in found
    assert str(library.relative_to(folder)) in (folder / "README.md").read_text()


@pytest.mark.slow
def test_the_same_command_gives_the_same_bytes(tmp_path: Path) -> None:
    """Two processes with different hash orders write the same bytes to two folders; the second uses the command in
    README.md."""
    command = ["baretorch", "project", "MODEL", "--int8", "--optimize", "size", "--sdk", "vscode"]
    command += ["--board", "mps2-an386", "--out", "DIR"]
    trees = []
    for seed in ("1", "2"):
        folder = tmp_path / seed
        words = {"MODEL": str(ZOO / "kws.py"), "DIR": str(folder)}
        arguments = [words.get(word, word) for word in command[1:]]
        run("env", f"PYTHONHASHSEED={seed}", sys.executable, "-m", "baretorch", *arguments, folder=tmp_path)
        trees.append({p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()})
        made_by = re.search(r"^Made by .*: `(.*)`$", (folder / "README.md").read_text(), re.MULTILINE)
        assert made_by is not None
        command = shlex.split(made_by[1])
    assert trees[0] == trees[1] and len(trees[0]) > 30


def test_a_wrong_answer_is_called_wrong(tmp_path: Path) -> None:
    files = project_files(compiled("sine", "host"), BY_NAME["make"], FIGURES)
    weights = "sine/sine/weights.c"
    damaged = files | {weights: re.sub(r"\n    -?\d", "\n    7", files[weights], count=1)}
    assert damaged != files
    folder = in_folder(damaged, tmp_path)
    done = subprocess.run(["make", "check"], cwd=folder, capture_output=True, text=True, check=False)
    assert "sine: WRONG" in done.stdout and done.returncode != 0


@pytest.mark.skipif(not shutil.which("cmake"), reason="CMake is not installed")
def test_two_models_in_one_cmake_program(tmp_path: Path) -> None:
    """Each as its library, of one optimized for size; the program of the first asks the second too."""
    one = project_files(compiled("sine", "host", Optimize.SIZE), BY_NAME["cmake"], FIGURES)
    two = project_files(compiled("softmax", "host", Optimize.SIZE), BY_NAME["cmake"], FIGURES)
    folder = in_folder(one | {name: text for name, text in two.items() if name.startswith("softmax/")}, tmp_path)
    lists, main = folder / "CMakeLists.txt", folder / "main.c"
    lists.write_text(
        lists.read_text() + "\nadd_subdirectory(softmax)\ntarget_link_libraries(sine_example PRIVATE softmax)\n"
    )
    body = main.read_text().replace('#include "sine.h"', '#include "sine.h"\n#include "softmax.h"')
    asks = 'softmax_example_run();\n    printf("softmax: %d\\n", softmax_example_wrong());'
    main.write_text(body.replace("    return wrong != 0;", f"    {asks}\n    return wrong != 0;"))
    run("cmake", "-S", ".", "-B", "build", folder=folder)
    run("cmake", "--build", "build", folder=folder)
    printed = run("build/sine_example", folder=folder)
    assert "sine: right" in printed and "softmax: 0" in printed


def test_figures_are_of_an_image_that_was_run(tmp_path: Path) -> None:
    model = compiled("sine", "host")
    image = pipeline.build_image(model, tmp_path)
    assert figures_of(model, image)["stack_peak"] == 0, "the host has run it"
    unrun = compiled("sine", "pico2-riscv")
    assert unrun.board.emulators == ()
    assert "stack_peak" not in figures_of(unrun, pipeline.build_image(unrun, tmp_path / "unrun"))


def test_what_the_user_changed_stays(tmp_path: Path) -> None:
    files = {"main.c": "a", "m/model.c": "b"}
    write(tmp_path, files, force=False)
    write(tmp_path, {**files, "main.c": "c"}, force=False)
    assert (tmp_path / "main.c").read_text() == "c", "ours may be replaced"
    (tmp_path / "main.c").write_text("mine")
    with pytest.raises(CompileError) as error:
        write(tmp_path, {"main.c": "d", "m/model.c": "e"}, force=False)
    assert error.value.have == ("main.c",)
    assert (tmp_path / "main.c").read_text() == "mine" and (tmp_path / "m/model.c").read_text() == "b"
    assert write(tmp_path, {"main.c": "d"}, force=True) == [tmp_path / "main.c.orig"]
    assert (tmp_path / "main.c.orig").read_text() == "mine" and (tmp_path / "main.c").read_text() == "d"
    (tmp_path / "main.c").write_text("mine again")
    assert write(tmp_path, {"main.c": "d"}, force=True) == [tmp_path / "main.c.orig1"]


def test_what_is_not_there_any_more_goes(tmp_path: Path) -> None:
    """SDKs compile what they find. What the user changed stays, and a record leads nowhere else."""
    outside = tmp_path / "outside.c"
    outside.write_text("a")
    folder = tmp_path / "p"
    write(folder, {"main.c": "a", "old.c": "b", "mine.c": "c", "lib/old/a.c": "d"}, force=False)
    (folder / "mine.c").write_text("changed")
    record = json.loads((folder / RECORD).read_text())
    record["files"]["../outside.c"] = record["files"]["main.c"]
    (folder / RECORD).write_text(json.dumps(record))
    write(folder, {"main.c": "a"}, force=False)
    assert sorted(p.name for p in folder.iterdir()) == [RECORD, "main.c", "mine.c"] and outside.exists()


def full_after(count: int) -> Callable[[int], None]:
    """A disk that is full after some files."""
    left = iter(range(count))

    def fsync(file: int) -> None:
        if next(left, None) is None:
            raise OSError(ENOSPC, "No space left on device")

    return fsync


def test_all_files_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk leaves the project as it was."""
    write(tmp_path, {"main.c": "a", "m/model.c": "b"}, force=False)
    (tmp_path / "main.c").write_text("mine")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    monkeypatch.setattr(os, "fsync", full_after(2))
    with pytest.raises(CompileError, match="cannot write to"):
        write(tmp_path, {"main.c": "c", "m/model.c": "d"}, force=True)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_record_of_others_stays(tmp_path: Path) -> None:
    """A pipe is not read either."""
    os.mkfifo(tmp_path / RECORD)
    with ending(tmp_path / RECORD), pytest.raises(CompileError, match=rf"{RECORD} was not generated by Baretorch"):
        write(tmp_path, {"main.c": "a"}, force=True)
    (tmp_path / RECORD).unlink()
    (tmp_path / RECORD).write_text("notes")
    with pytest.raises(CompileError, match=rf"{RECORD} was not generated by Baretorch"):
        write(tmp_path, {"main.c": "a"}, force=True)
    assert [path.name for path in tmp_path.iterdir()] == [RECORD]


def test_a_folder_that_is_a_link(tmp_path: Path) -> None:
    """The output folder may be a link; files that are no longer needed are removed there too."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    write(tmp_path / "link/p", {"main.c": "a", "old.c": "b"}, force=False)
    write(tmp_path / "link/p", {"main.c": "a"}, force=False)
    assert [p.name for p in (tmp_path / "disk/p").glob("*.c")] == ["main.c"]


@pytest.mark.parametrize("record", ["", "[]", "{}", '{"files": 3}', "\xff", "[" * 100_000])
def test_a_damaged_record_is_ignored(record: str, tmp_path: Path) -> None:
    (tmp_path / RECORD).write_text(record, "latin-1")
    (tmp_path / "main.c").write_text("mine")
    with pytest.raises(CompileError):
        write(tmp_path, {"main.c": "a"}, force=False)


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out/m").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CompileError):
        write(tmp_path / "out", {"m/model.c": "a"}, force=True)
    assert list((tmp_path / "elsewhere").iterdir()) == []
