"""gdb at a running model: it stops at layers, and tensors are what the interpreter has."""

from __future__ import annotations

import ast
import os
import re
import shutil
import socket
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from baretorch import pipeline
from baretorch.debug.about import DebugInfo
from baretorch.debug.plain import plain_commands
from baretorch.debug.servers import debug_emulator, openocd, start_emulator, start_probe
from baretorch.debug.session import feed, find_gdb, has_python, run_gdb, start_commands
from baretorch.errors import CompileError
from baretorch.escape import gdb_path, gdb_quoted
from baretorch.files.write import put_all
from baretorch.firmware.types import Image
from baretorch.frontends import Source
from baretorch.ir.graph import Array, Builder, DType, Graph
from baretorch.machines.rp2040js import node
from baretorch.ops.functions import Tanh
from baretorch.ops.linear import Linear
from baretorch.options import Compiler, Optimize, Options
from baretorch.pipeline import Compiled
from baretorch.targets.boards import load_board
from baretorch.targets.types import Board
from tests.cli.program import baretorch, check_golden, copy_model
from tests.models import compile_model, int8_file

ZOO = Path(__file__).parents[2] / "zoo"
pytestmark = pytest.mark.skipif(not shutil.which("gdb-multiarch"), reason="gdb-multiarch is not installed")
needs_rp2040js = pytest.mark.skipif(not node.is_installed(), reason="rp2040js is not installed")


def net() -> Graph:
    """Two layers that are the same code, in one buffer, and one more."""
    b = Builder("net")
    x = b.input("x", (1, 4), DType.FLOAT32)
    weight = (np.arange(16, dtype=np.float32).reshape(4, 4) - 7) / 8
    h = b.add(Linear(), x, b.const("one.weight", weight), name="one")
    h = b.add(Linear(), h, b.const("two.weight", weight.T), name="two")
    return b.graph([x], [b.add(Tanh(), h, name="last")])


def compiled(board: Board, optimize: Optimize = Optimize.SPEED, toolchain: Compiler | None = None) -> Compiled:
    given = np.array([[1.0, -0.5, 0.25, 2.0]], np.float32)
    source = Source("net", {"forward": net()}, (given,))
    return pipeline.compile_graph(source, net(), board, Options(optimize=optimize, toolchain=toolchain))


def debugged(model: Compiled, image: Image, emulator: str, script: str, folder: Path, python: bool = True) -> str:
    """Return what gdb prints."""
    commands, start = folder / "script.gdb", folder / "start.gdb"
    commands.write_text(script)
    put_all(image.elf.parent, DebugInfo(model).files())
    gdb = find_gdb(image.board)
    with start_emulator(image, model.c.run, emulator, folder) as server, feed(model, server) as feeder:
        start.write_text(start_commands(model, image.elf.parent, server, python))
        code, printed = run_gdb(gdb, image.elf, start, commands, subprocess.PIPE)
    assert code == 0, printed
    assert feeder.fault == [], feeder.fault
    return printed


def numbers(printed: str, layer: str) -> Array:
    """Return the numbers that print-tensor printed for a layer."""
    rows = printed.splitlines()
    at = next(i for i, row in enumerate(rows) if row.startswith(f"{layer}  "))
    return np.array(ast.literal_eval(next(row for row in rows[at + 1 :] if row.startswith("["))))


SCRIPT = """
break-layer two
continue
print-tensor one compare
print-tensor two
next
print-tensor two compare
print-tensor one
step
layers
continue
"""


@pytest.mark.parametrize(
    ("board", "emulator"),
    [("pico2w", "unicorn"), ("mps2-an386", "qemu"), pytest.param("pico", "rp2040js", marks=needs_rp2040js)],
)
def test_a_layer_and_its_tensors(board: str, emulator: str, tmp_path: Path) -> None:
    model = compiled(load_board(board))
    assert debug_emulator(model.board, None) == ("unicorn" if board == "pico" else emulator)
    assert debug_emulator(model.board, emulator) == emulator
    image = pipeline.build_image(model, tmp_path / "image", debug=True)
    printed = debugged(model, image, emulator, SCRIPT, tmp_path)
    values = DebugInfo(model).values()
    stop = "Breakpoint 3, " if emulator == "qemu" else "Breakpoint 2, "  # there one is for faults
    one, two = printed.split(stop)[1].split("one  ", 1)[1].split("last", 1)[0].split("\ntwo  ")[:2]
    assert np.array_equal(numbers("one  " + one, "one").astype(np.float32), values["one"])
    assert "all 4 numbers are the reference's" in one
    assert "it is not there yet: two makes it, which is layer 2" in two, "gdb stops before the layer"
    after = printed.split("\ntwo  ")[2]
    assert np.array_equal(numbers("two  " + after, "two").astype(np.float32), values["two"]), "`next` runs one layer"
    assert "all 4 numbers are the reference's" in after
    assert "its bytes may hold something else: layer 2 was the last to need it" in after
    assert re.search(r"^\*   3 last: tanh -> float32\[1, 4\]$", printed, re.MULTILINE), "`step` goes into the layer"
    assert printed.count(stop) == 2, "the example comes again"


@pytest.mark.slow
def test_without_python(tmp_path: Path) -> None:
    model = compiled(load_board("mps2-an386"), Optimize.SIZE)
    image = pipeline.build_image(model, tmp_path / "image", debug=True)
    script = "break-layer two\ncontinue\nprint-tensor one\n"
    printed = debugged(model, image, "qemu", script, tmp_path, python=False)
    assert "python" not in plain_commands(DebugInfo(model))
    shown = re.findall(r"^\$1 = \{\{(.*)\}\}$", printed, re.MULTILINE)
    assert np.array_equal(np.float32(shown[0].split(", ")), DebugInfo(model).values()["one"][0])
    assert "float32[1, 4]" in printed


STEPS = """
print $pc == &net_run_in || 1
set var $before = $pc
stepi
print $pc != $before
set var $r5 = 42
print $r5
set var *(float *)&net_arena = 1.5
print *(float *)&net_arena
print net_run_in != 0
"""


@pytest.mark.parametrize(
    ("board", "emulator", "fpu"),
    [
        ("nucleo-wb55rg", "unicorn", "print $s0 * 0\n"),
        pytest.param("pico", "rp2040js", "", marks=[needs_rp2040js, pytest.mark.slow]),
    ],
)
def test_the_stub_steps_and_changes_things(board: str, emulator: str, fpu: str, tmp_path: Path) -> None:
    model = compiled(load_board(board))
    image = pipeline.build_image(model, tmp_path / "image", debug=True)
    printed = debugged(model, image, emulator, STEPS + fpu, tmp_path)
    found = re.findall(r"^\$\d = (.*)$", printed, re.MULTILINE)
    assert found == ["1", "1", "42", "1.5", "1", *(["0"] if fpu else [])]


@needs_rp2040js
@pytest.mark.slow
def test_rp2040js_hears_ctrl_c_asleep(tmp_path: Path) -> None:
    """The image sleeps until a byte arrives, and no byte arrives."""
    model = compiled(load_board("pico"))
    image = pipeline.build_image(model, tmp_path / "image", debug=True)
    with start_emulator(image, model.c.run, "rp2040js", tmp_path) as server, socket.socket(socket.AF_UNIX) as gdb:
        gdb.settimeout(60)
        gdb.connect(server.target)
        gdb.sendall(b"$c#63")
        assert gdb.recv(1) == b"+"
        time.sleep(5)
        gdb.sendall(b"\x03")
        assert gdb.recv(100) == b"$S02#b5"
        gdb.sendall(b"$me0000000,4#00")
        said = b""
        while b"#" not in said:
            said += gdb.recv(100)
        assert said.startswith(b"+$E01#"), "registers are not memory: to read one may change it"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("board", "emulator", "fault"),
    [
        ("pico2w", "unicorn", "bad write of 4 bytes at 0xf0000000"),
        pytest.param("pico", "rp2040js", "HardFault", marks=needs_rp2040js),
        ("mps2-an386", "qemu", "access to an address where nothing answers"),
    ],
)
def test_a_fault_is_seen_where_it_happens(board: str, emulator: str, fault: str, tmp_path: Path) -> None:
    model = compiled(load_board(board))
    files = dict(model.c.files)
    body = files["model.c"]
    at = body.index("static const", body.index("BT_LAYER void tanh"))
    files["model.c"] = body[:at] + "*(volatile int *)0xf0000000 = 1;\n    " + body[at:]
    broken = replace(model, c=replace(model.c, files=files))
    image = pipeline.build_image(broken, tmp_path / "image", debug=True)
    put_all(image.elf.parent, DebugInfo(model).files())
    (tmp_path / "s.gdb").write_text("continue\nbacktrace\ncontinue\n")
    with start_emulator(image, model.c.run, emulator, tmp_path) as server, feed(broken, server) as feeder:
        (tmp_path / "b.gdb").write_text(start_commands(broken, image.elf.parent, server, True))
        gdb = find_gdb(image.board)
        _, printed = run_gdb(gdb, image.elf, tmp_path / "b.gdb", tmp_path / "s.gdb", subprocess.PIPE)
    handlers = "#0" if emulator == "unicorn" else r"#0 .*\n#1 +<signal handler called>\n#2"
    assert re.search(rf"{handlers} .*tanh_\d \(", printed), printed
    assert ("SIGSEGV" if emulator != "qemu" else "Breakpoint 1, bt_fault_entry") in printed
    assert fault in feeder.fault[0].what


@pytest.mark.parametrize("toolchain", [Compiler.GCC, pytest.param(Compiler.ZIG, marks=pytest.mark.slow)])
def test_what_is_flashed_stays_the_same(toolchain: Compiler, tmp_path: Path) -> None:
    """The flashed bytes do not change, and paths of sources do not contain names of this computer."""
    model = compiled(load_board("pico"), toolchain=toolchain)
    plain, told = (pipeline.build_image(model, tmp_path / str(d), debug=d) for d in (False, True))
    assert plain.uf2 is not None and told.uf2 is not None and plain.bin is not None and told.bin is not None
    assert plain.bin.read_bytes() == told.bin.read_bytes() and plain.uf2.read_bytes() == told.uf2.read_bytes()
    assert (plain.flash, plain.ram) == (told.flash, told.ram)
    data = told.elf.read_bytes()
    assert b"model.c" in data and b"debug_line" in data
    roots = {str(tmp_path).encode(), b"/usr/", str(Path(pipeline.__file__).parent).encode(), b"baretorch/runtime"}
    assert not [root for root in roots if root in data]


def test_ctrl_c_is_heard() -> None:
    from baretorch.machines.unicorn.gdb_stub import DebuggerGone, GdbStub

    ours, gdbs = socket.socketpair()
    with socket.socket() as listener, ours, gdbs:
        stub = GdbStub(listener, has_fpu=False)
        stub._gdb = ours
        assert not stub.wants_stop()
        gdbs.sendall(b"\x03")
        assert stub.wants_stop() and not stub.wants_stop()
        gdbs.close()
        with pytest.raises(DebuggerGone):
            stub.wants_stop()


def test_probes() -> None:
    """Boards with known settings have a probe."""
    with pytest.raises(CompileError, match="OpenOCD's settings for mps2-an386 are not known"):
        openocd(load_board("mps2-an386"), 3333)


def test_openocd_reads_no_scripts_of_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would prefer a target/rp2040.cfg there, and a user's own TOML can name any."""
    program = tmp_path / "openocd"
    program.write_text("#!/bin/sh\npwd >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.chdir(tmp_path)
    image = cast(Image, SimpleNamespace(board=load_board("pico")))
    with pytest.raises(CompileError, match="openocd ended") as error, start_probe(image, "openocd", "nowhere"):
        pass
    assert error.value.have == ("/",)


FAKE = """#!/usr/bin/env python3
import os, sys
port = sys.argv[sys.argv.index("--port") + 1]
assert sys.argv[sys.argv.index("--target") + 1] == "cortex_m"
os.execvp("qemu-system-arm", ["qemu-system-arm", "-M", "mps2-an386", "-nodefaults", "-display", "none", "-monitor",
    "none", "-S", "-gdb", f"tcp::{{port}}", "-kernel", "{elf}",
    "-serial", "tcp:localhost:{console},server=on,wait=off"])
"""


@pytest.mark.slow
def test_a_board_with_a_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that is called pyocd, and is QEMU."""
    board = replace(load_board("mps2-an386"), pyocd_target="cortex_m")
    model = compiled(board)
    image = pipeline.build_image(model, tmp_path / "image", debug=True)
    put_all(image.elf.parent, DebugInfo(model).files())
    with socket.create_server(("localhost", 0)) as free:
        console = free.getsockname()[1]
    program = tmp_path / "pyocd"
    program.write_text(FAKE.format(console=console, elf=image.elf))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (tmp_path / "s.gdb").write_text("break-layer two\ncontinue\nprint-tensor one compare\nkill\n")
    with start_probe(image, "pyocd", f"socket://localhost:{console}") as server, feed(model, server):
        (tmp_path / "b.gdb").write_text(start_commands(model, image.elf.parent, server, True))
        gdb = find_gdb(board)
        _, printed = run_gdb(gdb, image.elf, tmp_path / "b.gdb", tmp_path / "s.gdb", subprocess.PIPE)
    assert "all 4 numbers are the reference's" in printed, printed


SWEEP = [
    ("kws", True, "mps2-an386", "qemu"),
    ("kws", True, "pico", "unicorn"),
    pytest.param("streaming_gru", True, "pico", "rp2040js", marks=needs_rp2040js),
    ("streaming_gru", True, "pico2w", "unicorn"),
    ("lenet5", True, "mps3-an547", "qemu"),
    ("kws", True, "virt-rv32", "qemu"),
    ("mobilenet_v2_block", True, "nucleo-wb55rg", "unicorn"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "int8", "board", "emulator"), SWEEP)
def test_all_tensors_of_a_model(name: str, int8: bool, board: str, emulator: str, tmp_path: Path) -> None:
    """After each layer of an int8 model, its output equals the reference, bit for bit."""
    source = int8_file(str(ZOO / f"{name}.py"))
    model = compile_model(source, load_board(board), Options(int8=True))
    image = pipeline.build_image(model, tmp_path / "image", debug=True)
    tensors = DebugInfo(model).tensors()
    steps = model.plan.steps
    lines = ["set print elements 1"]
    integer = 0
    for i, step in enumerate(steps[:-1]):
        lines.append(f"tbreak model.c:{model.c.lines[i + 1]}\ncontinue")
        for y in step.call.outputs:
            assert tensors[y.name].made == i
            if y.dtype is DType.INT8:
                integer += 1
                lines.append(f"print-tensor {y.name} compare")
    printed = debugged(model, image, emulator, "\n".join(lines), tmp_path)
    assert integer > 2
    assert len(re.findall(r"^all \d+ numbers are the reference's$", printed, re.MULTILINE)) == integer, printed
    assert "its bytes may hold" not in printed and "not there yet" not in printed


def test_has_python() -> None:
    assert has_python("gdb-multiarch")
    assert not has_python("true")


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.gdb").write_text("layers\n")
    result = baretorch("debug", copy_model("tiny", tmp_path), "--board", "pico", "--script", "s.gdb", "--json")
    assert result.code == 0, result.err
    said = result.json()
    assert said["server"] == "unicorn" and said["exit_code"] == 0 and Path(said["elf"]).is_file()
    assert re.search(r"^>   1 .*linear", said["output"], re.MULTILINE)
    for wrong in (["--probe", "pyocd"], ["--port", "/dev/x"]):
        assert baretorch("debug", "tiny.py", "--board", "pico", "--script", "s.gdb", *wrong).code == 2
    assert baretorch("debug", "tiny.py", "--board", "pico", "--json").code == 2


@pytest.mark.parametrize("name", ["debug.json", "debug.hex", "debug.gdb"])
@pytest.mark.parametrize("kind", ["file", "link", "pipe"])
def test_files_of_others_stay(name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.gdb").write_text("quit\n")
    Path("precious").write_text("precious")
    Path("out").mkdir()
    target = Path("out") / name
    if kind == "link":
        target.symlink_to("../precious")
    elif kind == "pipe":
        os.mkfifo(target)
    else:
        target.write_text('{"mine": 1}')
    before = target.lstat()
    model = copy_model("tiny", tmp_path)
    result = baretorch("debug", model, "--board", "mps2-an386", "--out", "out", "--script", "s.gdb")
    check_golden(f"error_debug_{kind}", result.err.replace(name, "FILE"))
    assert result.code == 1 and Path("precious").read_text() == "precious"
    assert (target.lstat().st_ino, target.lstat().st_size) == (before.st_ino, before.st_size)


def test_a_folder_whose_name_is_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """gdb would run the second line of a path."""
    folder = tmp_path / "x\nshell touch PWNED #"
    folder.mkdir()
    monkeypatch.chdir(folder)
    Path("s.gdb").write_text("quit\n")
    model = copy_model("tiny", folder)
    result = baretorch("debug", model, "--board", "mps2-an386", "--script", "s.gdb")
    check_golden("error_debug_folder", result.err.replace(str(tmp_path), "PLACE"))
    assert result.code == 1 and not list(tmp_path.rglob("PWNED"))
    result = baretorch("debug", model, "--board", "mps2-an386", "--script", "s.gdb", "--out", str(tmp_path / 'o u"t'))
    assert result.code == 0, result.err
    assert not list(tmp_path.rglob("PWNED"))


def test_names_in_a_model_are_no_commands() -> None:
    b = Builder("net")
    x = b.input("x\nshell touch a", (1, 4), DType.FLOAT32)
    h = b.add(Tanh(), x, name="one\nshell touch b")
    graph = b.graph([x], [b.add(Tanh(), h, name="two\\")])
    source = Source("net", {"forward": graph}, (np.zeros((1, 4), np.float32),))
    model = pipeline.compile_graph(source, graph, load_board("pico"))
    assert not re.search(r"shell|\\$", plain_commands(DebugInfo(model)), re.MULTILINE)


@pytest.mark.parametrize("path", ["/a\nshell id", "/a\rb", "/a\0", "/a\\", "| id", "-v", " x", "x "])
def test_paths_that_gdb_cannot_be_given(path: str) -> None:
    with pytest.raises(ValueError):
        gdb_path(path)


def test_paths_in_quotes() -> None:
    assert gdb_quoted('/a b"c\\') == '"/a b\\"c\\\\"'
    with pytest.raises(ValueError):
        gdb_quoted("/a\nb")
