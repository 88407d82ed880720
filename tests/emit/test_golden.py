"""The C of tiny models does not change by a character. `python -m tests.emit.test_golden` rewrites the files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from baretorch import __version__
from baretorch.emit import CFiles, emit
from baretorch.ir.graph import Builder, DType, Graph
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.elementwise import Add
from baretorch.ops.functions import Tanh
from baretorch.ops.linear import Linear
from baretorch.ops.softmax import Softmax
from baretorch.options import Buffers, Compiler, Input, Optimize, Options
from baretorch.plan import make_plan
from baretorch.targets.boards import load_board

GOLDEN = Path(__file__).parent / "golden"


def ramp(*shape: int) -> np.ndarray:
    return (np.arange(np.prod(shape), dtype=np.float32) / 8 - 1).reshape(shape)


def perceptron() -> Graph:
    b = Builder("perceptron")
    x = b.input("x", (1, 2), DType.FLOAT32)
    h = b.add(Linear(lo=0.0), x, b.const("hidden.weight", ramp(3, 2)), b.const("hidden.bias", ramp(3)), name="hidden")
    y = b.add(Linear(), h, b.const("out.weight", -ramp(1, 3)), name="out")
    return b.graph([x], [y])


def edge() -> Graph:
    """A convolution with fused pooling, a softmax, and an input that a C compiler would not take as a name."""
    b = Builder("edge")
    x = b.input("float", (1, 4, 4, 1), DType.FLOAT32)
    h = b.add(
        Conv2d(padding=(1, 1, 1, 1), lo=0.0, pool=(2, 2)), x, b.const("conv.weight", ramp(2, 3, 3, 1)), name="conv"
    )
    return b.graph([x], [b.add(Softmax(3), h, name="scores")])


def ports() -> Graph:
    """Two inputs, and outputs that are a result, an input and a constant; equal layers share an instance."""
    b = Builder("ports")
    a = b.input("a", (2,), DType.FLOAT32)
    c = b.input("c", (2,), DType.FLOAT32)
    k = b.const("k", ramp(2))
    s = b.add(Add(), a, b.add(Tanh(), b.add(Tanh(), c)), name="sum")
    return b.graph([a, c], [s, a, k])


def picture() -> Graph:
    """Large enough for bands."""
    b = Builder("picture")
    x = b.input("x", (1, 16, 16, 3), DType.FLOAT32)
    h = b.add(Conv2d(padding=(1, 1, 1, 1)), x, b.const("a.weight", ramp(8, 3, 3, 3)), name="a")
    return b.graph([x], [b.add(Conv2d(stride=(2, 2)), h, b.const("b.weight", ramp(4, 3, 3, 8)), name="b")])


CASES = {
    "perceptron-speed": (perceptron, "speed"),
    "perceptron-size": (perceptron, "size"),
    "edge-speed": (edge, "speed"),
    "ports-speed": (ports, "speed"),
}


def generated(case: str) -> CFiles:
    build, optimize = CASES[case]
    graph, options = build(), Options(optimize=Optimize(optimize))
    plan = make_plan(graph, load_board("host"), options)
    return emit(graph.name, {"forward": plan}, optimize, command=options.command("host"))


def text(files: CFiles) -> str:
    own = [n for n in files.files if not n.startswith("kernels/")]
    return "".join(f"==== {n}\n{files.files[n]}" for n in own) + f"==== glue.c\n{files.glue}"


@pytest.mark.parametrize("case", CASES)
def test_golden(case: str) -> None:
    assert text(generated(case)) == (GOLDEN / f"{case}.txt").read_text()


def test_the_banner_has_the_command() -> None:
    """Escaped, and without what does not matter for the C."""
    options = Options(int8=True, keep_float=("a */ b",), toolchain=Compiler.ZIG, trust=True)
    plan = make_plan(perceptron(), load_board("host"), options)
    files = emit("m", {"forward": plan}, command=options.command("host")).files
    assert files["model.c"].splitlines()[:3] == [
        "/* m: the computation",
        f" * Made by Baretorch {__version__} for host:",
        " * baretorch compile MODEL --board host --int8 --keep-float 'a * / b' */",
    ]


def test_the_same_input_gives_the_same_bytes() -> None:
    assert generated("edge-speed") == generated("edge-speed")


def header(graph: Graph, options: Options) -> str:
    return emit(graph.name, {"forward": make_plan(graph, load_board("host"), options)}).files["model.h"]


@pytest.mark.parametrize(
    ("graph", "options", "sentences"),
    [
        (
            picture(),
            Options(),
            ["inputs and outputs included", "Addresses of inputs and outputs", "Each pointer may be NULL"],
        ),
        (
            picture(),
            Options(input=Input.ROWS),
            ["that have an offset", "Addresses of y. To avoid a copy, pass NULL", "x must not be NULL; y may be"],
        ),
        (
            picture(),
            Options(buffers=Buffers.CALLER),
            ["without inputs", "x, y must not be NULL. It works in x, y: align"],
        ),
        (picture(), Options(input=Input.ROWS, buffers=Buffers.CALLER), ["x, y must not be NULL. It works in y: align"]),
        (
            ports(),
            Options(buffers=Buffers.CALLER),
            ["that have an offset", "Addresses of a, y1, y2. To avoid", "Offsets of a, y1:"],
        ),
    ],
)
def test_the_header_states_which_pointers_are_needed(graph: Graph, options: Options, sentences: list[str]) -> None:
    text = header(graph, options)
    assert [s for s in sentences if s not in text.replace("\n * ", " ")] == []
    assert "\n\n\n" not in text and "*/\n\nvoid" not in text


def test_every_included_file_comes_along() -> None:
    files = generated("edge-speed").files
    for name, content in files.items():
        for line in content.splitlines():
            if line.startswith('#include "'):
                target = (Path(name).parent / line.split('"')[1]).as_posix()
                parts: list[str] = []
                for part in target.split("/"):
                    parts = parts[:-1] if part == ".." else [*parts, part]
                assert "/".join(parts) in files


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for case in CASES:
        (GOLDEN / f"{case}.txt").write_text(text(generated(case)))
