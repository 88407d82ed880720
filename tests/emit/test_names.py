"""Any text as the name of anything gives C that compiles, and that says no more than it would with other names."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from baretorch import escape
from baretorch.emit import KERNELS, CFiles, emit
from baretorch.firmware.build import build
from baretorch.ir.graph import Builder, DType, Graph, Origin, State, interpret
from baretorch.machines import open_machine
from baretorch.machines.link import Link
from baretorch.machines.run import call_image
from baretorch.ops.elementwise import Add
from baretorch.ops.linear import Linear
from baretorch.options import DEFAULT, Buffers, Options
from baretorch.plan import make_plan
from baretorch.targets.boards import load_board
from baretorch.targets.runtime import RUNTIME

SOURCE = Path(escape.__file__).parent
GCC = ("cc", "-std=gnu99", "-fsyntax-only", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
CPP = ("c++", "-fsyntax-only", "-x", "c++", "-Wall", "-Wextra", "-Werror")

ODD = (
    "a*/b", "a */ extern int injected; /* b", "a\nb", 'a"b', "a'b", "a//b", "ends\\", "a\\\n#error", "??/", "*??/\n/",
    "", " ", ".", "..", "_", "__", "1", "1a", "a.b", "a_b", "a-b", "é", "名前", "\u202etxt", "\ud800",
    "\x00", "\x1b[31m", "%s%n", "$HOME", "`id`", "#define x y", "AT(", "IN(arena,", "*", "/", "/*", "*/", "n" * 10_000,
    "class", "int", "asm", "typeof", "restrict", "_Bool", "bool", "new", "this", "and", "template", "nullptr",
    "NULL", "linux", "unix", "BT_INF", "BT_LAYER", "AT", "IN", "main", "errno", "stdin", "I", "INT8_MAX", "int8_t",
    "size_t", "__FILE__", "__LINE__", "_Pragma", "__attribute__", "__asm__", "bt_model", "bt_the_model", "wchar_t",
    "arena", "model_arena", "model_run", "model_run_in", "model_reset", "linear_1", "linear_2", "p", "x", "X", "y", "Y",
    "x_count", "x_offset", "model_h", "weights_h", "arena_bytes", "weight", "inputs", "outputs", "memcpy", "y0",
)  # fmt: skip


def graph_of(names: list[str], model: str = "model") -> Graph:
    """Each name is an input, an output, a state, a layer and a constant."""
    b = Builder(model)
    inputs, state, outputs = [], [], []
    for i, name in enumerate(names):
        b.origin = Origin(name, name)
        x = b.input(name, (1, 2), DType.FLOAT32)
        s = b.input(name, (1, 2), DType.FLOAT32)
        w = b.const(f"{name}.{name}", np.full((2, 2), i, np.float32))
        y = b.add(Linear(lo=float(-i)), b.add(Add(), x, s, name=name), w, name=name)
        inputs.append(x)
        state.append(State(s, y, np.full((1, 2), 0.5 + i, np.float32)))
        outputs.append(b.add(Add(), y, x, name=name))
    graph = b.graph(inputs, outputs, state)
    return Graph(graph.name, graph.tensors, graph.nodes, graph.inputs, graph.outputs, graph.state, tuple(names))


def files_of(names: list[str], options: Options = DEFAULT, optimize: str = "speed", model: str = "model") -> CFiles:
    plan = make_plan(graph_of(names, model), load_board("host"), options)
    return emit(model, {"forward": plan}, optimize)


def written(files: CFiles, folder: Path) -> None:
    for name, text in (*files.files.items(), ("glue.c", files.glue)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")


def check(files: CFiles, folder: Path, *compilers: tuple[str, ...]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    written(files, folder)
    for compiler in compilers or (GCC,):
        sources = ["model.h"] if compiler is CPP else ["model.c", "weights.c", "glue.c"]
        run = subprocess.run(
            [*compiler, f"-I{RUNTIME}", f"-I{KERNELS}", "-I.", *sources], cwd=folder, capture_output=True, text=True
        )
        assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("options", [Options(), Options(buffers=Buffers.CALLER)], ids=["arena", "caller"])
@pytest.mark.parametrize("optimize", ["speed", "size"])
def test_odd_names_compile(options: Options, optimize: str, tmp_path: Path) -> None:
    files = files_of(list(ODD), options, optimize)
    check(files, tmp_path, GCC, CPP)
    assert "extern int injected" not in re.sub(r"/\*.*?\*/", "", files.files["model.c"], flags=re.DOTALL)


@pytest.mark.parametrize(
    ("name", "toolchain"),
    [
        ("host", "gcc"),
        ("mps2-an386", "gcc"),
        ("mps2-an386", "zig"),
        pytest.param("host", "zig", marks=pytest.mark.slow),  # Zig first builds a C library for the host
    ],
)
def test_odd_names_run(name: str, toolchain: str, tmp_path: Path) -> None:
    graph, board = graph_of(list(ODD)), load_board(name)
    files = emit("model", {"forward": make_plan(graph, board)})
    written(files, tmp_path)
    sources = [tmp_path / source for source in (*files.sources, "glue.c")]
    machine = open_machine(build("model", board, tmp_path, sources, tmp_path, files.run, toolchain), files.run)
    inputs = [np.full((1, 2), i / 8, np.float32) for i in range(len(ODD))]
    memory: dict[str, np.ndarray] = {}
    try:
        link = Link(machine)
        for _ in range(2):
            want = interpret(graph, inputs, memory=memory)
            for have, output in zip(call_image(link, graph, inputs), graph.outputs, strict=True):
                np.testing.assert_allclose(have, want[output], rtol=1e-6)
    finally:
        machine.close()


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(max_size=12) | st.sampled_from(ODD), min_size=1, max_size=12))
def test_any_names_compile(tmp_path: Path, names: list[str]) -> None:
    check(files_of(names), tmp_path / "c")


@pytest.mark.parametrize(
    "model", ["bt", "bt_model", "int8", "size", "linux", "float", "KWS", "X", "linear", "_", "1", ""]
)
def test_models_may_be_called_as_they_like(model: str, tmp_path: Path) -> None:
    names = ["t", "max", "x", "X", "1", "reset", "model_h", "arena", "run"]
    check(files_of(names, model=model), tmp_path)


def test_methods_that_would_be_called_alike_are_not(tmp_path: Path) -> None:
    methods = ["a.b", "a_b", "a b", "A_B", "", "run", "reset", "*/", "a", "a_run", "x_run", "\n"]
    board = load_board("host")
    plans = {m: make_plan(graph_of(["x", "b_x", "X", "run", m]), board) for m in methods}
    files = emit("m", plans)
    check(files, tmp_path)
    runs = re.findall(r"^void (\w+)\(", files.files["model.h"], re.MULTILINE)
    assert len(runs) == len(set(runs)) == 2 * len(methods) + 2


@pytest.mark.parametrize("options", [Options(), Options(buffers=Buffers.CALLER)], ids=["arena", "caller"])
def test_what_is_not_used_is_marked(options: Options, tmp_path: Path) -> None:
    b = Builder("unused")
    a, c = (b.input(name, (1, 2), DType.FLOAT32) for name in ("a", "c"))
    y = b.add(Linear(), c, b.const("AT(", np.ones((2, 2), np.float32)), name="AT(")
    files = emit("unused", {"forward": make_plan(b.graph([a, c], [y]), load_board("host"), options)})
    check(files, tmp_path)
    assert ("(void)a;" in files.files["model.c"]) == (options.buffers is Buffers.CALLER)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        *(("net.0.weight", "net_0_weight"), ("3x", "_3x"), ("float", "float_"), ("größe", "gr__e"), ("", "t")),
        *(
            ("NULL", "null"),
            ("X", "X"),
            ("I", "I_"),
            ("__FILE__", "file__"),
            ("_x", "_x"),
            ("_Bool", "Bool"),
            ("__", "t"),
        ),
        *(("int8_t", "int8_t_"), ("bt_model", "bt_model_"), ("INT", "int_"), ("n" * 200, "n" * 100), ("a\nb", "a_b")),
    ],
)
def test_c_names(text: str, name: str) -> None:
    assert escape.c_name(text) == name


@given(st.text())
def test_a_comment_ends_where_it_should(text: str) -> None:
    comment = escape.comment(text, text)
    assert comment.startswith("/* ") and comment.endswith(" */") and comment.count("\n") == 1
    assert "*/" not in comment[2:-2] and "/*" not in comment[1:-1]
    comment.replace("\n", "").encode("utf-8")
    assert comment.replace("\n", "").isprintable()


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_c_string_is_that_string(text: str) -> None:
    literal = escape.c_string(text)
    assert literal.isascii() and literal.isprintable() and "??" not in literal
    assert ast.literal_eval(f"b{literal}").decode() == text


# Modules that write C or linker scripts: a comment there that holds anything of others is made by escape.comment.
WRITERS = sorted((*SOURCE.glob("emit/*.py"), SOURCE / "targets/linker.py", SOURCE / "targets/runtime.py"))


@pytest.mark.parametrize("path", WRITERS, ids=lambda p: p.stem)
def test_comments_with_names_are_made_in_one_place(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.JoinedStr):
            text = "".join(p.value if isinstance(p, ast.Constant) else "\0" for p in node.values)
            for found in re.findall(r"/\*(?:(?!\*/).)*", text, re.DOTALL):
                assert "\0" not in found, f"{path.name}:{node.lineno}: use escape.comment"
