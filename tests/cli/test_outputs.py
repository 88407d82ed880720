"""Only regular files that Baretorch made are replaced; all else stays, and the error says how to go on."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest
import torch
from torch import nn

import baretorch as api
from baretorch.errors import CompileError
from baretorch.files.ownership import IsOurs, check_file, graph_text, png, pte
from baretorch.files.write import stage_files
from tests.cli.program import baretorch, check_golden, copy_model

OURS = "/* model: interface\n * Made by Baretorch 0.1.0 for host. */\n"


def write(names: list[str], out: str = "out") -> None:
    """Write the files as `compile` and `build` do."""
    with stage_files(Path(out)) as work:
        for name in names:
            (work / name).parent.mkdir(exist_ok=True)
            (work / name).write_text(OURS if name.endswith((".c", ".h")) else "bytes")


def test_what_we_made_is_replaced() -> None:
    names = ["model.h", "bt_board.h", "model.elf", "kernels/bt.S"]
    write(names)
    Path("out/mine.txt").write_text("a note")
    write(names)
    assert Path("out/mine.txt").read_text() == "a note"


@pytest.mark.parametrize("kind", ["file", "link", "dangling link", "folder", "pipe"])
def test_what_others_made_stays(kind: str, folder: Path) -> None:
    (folder / "out").mkdir()
    place, other = folder / "out" / "model.c", folder / "other.c"
    other.write_text(OURS)
    match kind:
        case "file":
            place.write_text("/* my part beside the model that Baretorch makes */\nint main;\n")
        case "link":
            place.symlink_to(other)
        case "dangling link":
            place.symlink_to(folder / "nowhere")
        case "folder":
            place.mkdir()
        case "pipe":
            os.mkfifo(place)
    before = place.lstat()
    with pytest.raises(CompileError) as caught:
        write(["model.c", "model.h"])
    have = {
        "file": "a file of others, or one that changed after Baretorch wrote it",
        "pipe": "a pipe",
        "folder": "a folder",
    }.get(kind, "a symbolic link")
    assert caught.value.render() == (
        "error: out/model.c is not a file that Baretorch made, and stays as it is\n"
        f"  have  {have}\n"
        "  try   another place with --out, or remove it"
    )
    after = place.lstat()
    assert (before.st_ino, before.st_size, before.st_mode) == (after.st_ino, after.st_size, after.st_mode)
    assert not Path("out/model.h").exists() and not (folder / "nowhere").exists()
    assert other.read_text() == OURS


def test_a_link_does_not_lead_out_of_the_folder(folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "elsewhere").mkdir()
    (folder / "out" / "kernels").symlink_to(folder / "elsewhere")
    with pytest.raises(CompileError, match="out/kernels is not a folder that Baretorch made"):
        write(["model.h", "kernels/bt.h"])
    assert list((folder / "elsewhere").iterdir()) == [] and not Path("out/model.h").exists()


def test_images_of_others_stay() -> None:
    Path("out").mkdir()
    Path("out/model.elf").write_text("an image of others")
    with pytest.raises(CompileError, match=r"out/model\.elf is not a file that Baretorch made"):
        write(["model.elf", "bt_board.h"])
    Path("out/bt_board.h").write_text(OURS)
    with pytest.raises(CompileError, match=r"out/model\.elf is not a file that Baretorch made"):
        write(["model.elf", "bt_board.h"])


def test_the_folder_itself_may_be_a_link(folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    (folder / "out").symlink_to(folder / "elsewhere")
    write(["model.h"])
    assert (folder / "elsewhere" / "model.h").read_text() == OURS


@pytest.mark.parametrize(
    ("made", "good", "bad"),
    [
        (pte, b"\x30\0\0\0ET12", b"import torch"),
        (graph_text, b"graph net\n", b"notes"),
        (png, b"\x89PNG\r\n", b"GIF89a"),
    ],
)
def test_other_kinds_are_known_by_their_beginning(made: IsOurs, good: bytes, bad: bytes) -> None:
    Path("file").write_bytes(good)
    check_file(Path("file"), made)
    Path("file").write_bytes(bad)
    with pytest.raises(CompileError, match="file is not a file that Baretorch made"):
        check_file(Path("file"), made)


@pytest.mark.skipif(not Path("/dev/null").is_char_device(), reason="Unix")
def test_a_device_is_no_file() -> None:
    with pytest.raises(CompileError, match="/dev/null is not a file"):
        check_file(Path("/dev/null"))


def test_compile_leaves_files_of_others(folder: Path) -> None:
    model = copy_model("tiny", folder)
    Path("mine").mkdir()
    Path("mine/model.c").write_text("int main(void) { return 0; }\n")
    result = baretorch("compile", model, "--board", "pico", "--out", "mine")
    check_golden("error_out_of_others", result.err)
    assert result.code == 1 and [p.name for p in Path("mine").iterdir()] == ["model.c"]
    again = [baretorch("compile", model, "--board", "pico", "--out", "c", "--json").code for _ in range(2)]
    assert again == [0, 0]


def test_build_leaves_images_of_others_next_to_compiled_files(folder: Path) -> None:
    model = copy_model("tiny", folder)
    assert baretorch("compile", model, "--board", "pico", "--out", "proj", "--json").code == 0
    for name in ("tiny.elf", "tiny.bin", "tiny.map", "tiny.hex", "tiny.uf2"):
        Path("proj", name).write_text("precious")
        result = baretorch("build", model, "--board", "pico", "--out", "proj")
        assert result.code == 1 and f"proj/{name} is not a file that Baretorch made" in result.err
        assert Path("proj", name).read_text() == "precious"
        Path("proj", name).unlink()
    again = [baretorch("build", model, "--board", "pico", "--out", "proj", "--json").code for _ in range(2)]
    assert again == [0, 0]


def test_build_from_python_leaves_files_of_others(folder: Path) -> None:
    model = api.compile(nn.Linear(2, 1).eval(), (torch.ones(1, 2),), board="host", name="net")
    (folder / "b").mkdir()
    (folder / "b" / "model.c").symlink_to(folder / "victim")
    with pytest.raises(CompileError, match=r"model\.c is not a file that Baretorch made"):
        model.build(folder / "b")
    assert not (folder / "victim").exists()


@pytest.mark.parametrize("name", ['a"""b.py', "a'b.py", "a b.py", "back\\slash.py", "new\nline.py", "$(id).py"])
def test_a_new_file_is_python_whatever_it_is_called(name: str) -> None:
    result = baretorch("new", name, "--json")
    assert result.code == 0
    tree = ast.parse(Path(name).read_text("utf-8"))
    assert isinstance(tree.body[0], ast.Expr) and "Try: baretorch run" in str(ast.get_docstring(tree))


def test_the_starters_are_unharmed_by_plain_names() -> None:
    assert baretorch("new", "plain.py").code == 0
    assert "Try: baretorch run plain.py --board pico2w" in Path("plain.py").read_text()
