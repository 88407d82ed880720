"""Bands of rows: the same answer in less memory, and the input's rows asked for in order, each once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baretorch.emulators.run import stored
from baretorch.errors import CompileError
from baretorch.frontends import Int8, load
from baretorch.ir import DType, Graph, Node, Op, Tensor, interpret, verify
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.elementwise import Clamp
from baretorch.ops.pool import AvgPool2d, MaxPool2d
from baretorch.ops.pull import Pull
from baretorch.pipeline import build_image, compile_source, run_image
from baretorch.plan import make_plan
from baretorch.plan.bands import chains, in_bands
from baretorch.plan.types import Memory
from baretorch.targets.boards import load_board

ROOT = Path(__file__).resolve().parents[2]
BOARD = load_board("mps2-an386")


def network(height: int, width: int, layers: list[tuple[Op, int, int]], seed: int = 0) -> Graph:
    """A chain of layers on an image: (operator, kernel size, output channels); pools and clamps have none."""
    rng = np.random.default_rng(seed)
    tensors = {"x": Tensor("x", (1, height, width, 4), DType.FLOAT32)}
    nodes: list[Node] = []
    at = "x"
    for i, (op, kernel, channels) in enumerate(layers):
        inputs = [at]
        if isinstance(op, Conv2d):
            shape = (channels, kernel, kernel, tensors[at].shape[3] // op.groups)
            weight = rng.standard_normal(shape).astype(np.float32)
            tensors[f"w{i}"] = Tensor(f"w{i}", shape, DType.FLOAT32, data=weight)
            inputs.append(f"w{i}")
        (signature,) = op.infer([tensors[n] for n in inputs])
        at = f"t{i}"
        tensors[at] = Tensor(at, signature.shape, signature.dtype)
        nodes.append(Node(op, tuple(inputs), (at,)))
    return verify(Graph("m", tensors, tuple(nodes), ("x",), (at,)))


DEEP = [
    (Conv2d(padding=(1, 1, 1, 1), lo=0.0), 3, 16),
    (Conv2d(stride=(2, 2), padding=(0, 1, 0, 1), groups=16), 3, 16),
    (Conv2d(), 1, 16),
    (Conv2d(padding=(1, 1, 1, 1), pool=(2, 2)), 3, 8),
    (Clamp(0.0, 3.0), 0, 0),
    (MaxPool2d((3, 3), (2, 2), (1, 1, 1, 1)), 0, 0),
]


def same(a: Graph, b: Graph) -> bool:
    x = np.random.default_rng(1).standard_normal(a["x"].shape).astype(np.float32)
    return np.array_equal(interpret(a, [x])[a.outputs[0]], interpret(b, [x])[b.outputs[0]])


layers = st.lists(
    st.one_of(
        st.builds(
            lambda k, s, top, bottom, d, p: (
                Conv2d((s, s), (top, bottom, 1, 1), (d, 1), pool=(p, 1), lo=0.0),
                k,
                4,
            ),
            st.integers(1, 4),
            st.integers(1, 3),
            st.integers(0, 3),
            st.integers(0, 3),
            st.integers(1, 2),
            st.integers(1, 2),
        ),
        st.builds(
            lambda k, s, top: (AvgPool2d((k, 1), (s, 1), (min(top, k // 2), 0, 0, 0), count_include_pad=False), 0, 0),
            st.integers(1, 3),
            st.integers(1, 3),
            st.integers(0, 1),
        ),
        st.just((Clamp(-1.0, 1.0), 0, 0)),
    ),
    min_size=2,
    max_size=5,
)


@settings(max_examples=300, deadline=None)
@given(height=st.integers(6, 24), layers=layers, band=st.integers(1, 6), pull=st.booleans())
def test_any_chain_in_any_bands_computes_the_same(
    height: int, layers: list[tuple[Op, int, int]], band: int, pull: bool
) -> None:
    try:
        graph = network(height, 3, layers)
    except CompileError:
        return  # too small an image for these layers
    for chain in chains(graph):  # where a row depends on padding alone there are several
        assert same(graph, verify(in_bands(graph, chain, band)))
    if len(chains(graph)) != 1 or len(chains(graph)[0]) != len(layers):
        return
    banded = verify(in_bands(graph, chains(graph)[0], band, pull))
    assert same(graph, banded)
    pulls = [n.op for n in banded.nodes if isinstance(n.op, Pull)]
    assert bool(pulls) == pull
    ends = 0
    for op in pulls:  # in order, each row at most once
        assert op.first == ends
        ends = op.first + op.count


def test_ram_is_kept_and_told() -> None:
    graph = network(64, 64, DEEP)
    whole = make_plan(graph, BOARD)
    limit = whole.arena * 2 // 3
    plan = make_plan(graph, BOARD, Memory(ram=limit))
    assert whole.patches is None
    assert plan.arena <= limit
    assert plan.patches is not None and plan.patches.bands > 1
    assert same(graph, plan.graph)


def test_pulled_rows_take_no_memory() -> None:
    graph = network(64, 64, DEEP)
    plan = make_plan(graph, BOARD, Memory(ram=graph["x"].bytes, rows=True))
    assert plan.arena <= graph["x"].bytes
    assert plan.buffer("x").size == 0
    assert same(graph, plan.graph)


def test_a_board_that_is_too_small_asks_for_bands() -> None:
    graph = network(64, 64, DEEP)
    chip = BOARD.chip
    room = make_plan(graph, BOARD).arena * 2 // 3
    memories = tuple(replace(m, size=room + chip.stack_bytes) if m.name == chip.data else m for m in chip.memories)
    small = replace(BOARD, chip=replace(chip, memories=memories))
    plan = make_plan(graph, small)
    assert plan.arena <= room
    assert plan.patches is not None


def test_too_little_ram_names_the_peak() -> None:
    graph = network(64, 64, DEEP)
    with pytest.raises(CompileError, match="does not fit 2,000 bytes of RAM") as caught:
        make_plan(graph, BOARD, Memory(ram=2000))
    assert "arena" in caught.value.render()


def test_rows_of_what_is_no_image() -> None:
    x, y = Tensor("x", (1, 10), DType.FLOAT32), Tensor("y", (1, 10), DType.FLOAT32)
    graph = Graph("m", {"x": x, "y": y}, (Node(Clamp(0.0, 1.0), ("x",), ("y",)),), ("x",), ("y",))
    with pytest.raises(CompileError, match="--input rows"):
        make_plan(graph, BOARD, Memory(rows=True))


# How far the arena of a zoo model goes down, int8 in and out, and whether its input's rows are pulled for it.
SMALLER = {"tinyrps": (12_000, False), "vww": (20_000, True)}


@pytest.mark.parametrize(
    ("model", "board"),
    [
        ("tinyrps", "host"),
        ("vww", "mps2-an386"),
        pytest.param("tinyrps", "mps3-an547", marks=pytest.mark.slow),
        pytest.param("tinyrps", "mps2-an385-v6m", marks=pytest.mark.slow),
        pytest.param("vww", "mps3-an547", marks=pytest.mark.slow),
        pytest.param("vww", "virt-rv32", marks=pytest.mark.slow),
    ],
)
def test_zoo_models_in_bands_answer_the_same_on_the_chip(model: str, board: str, tmp_path: Path) -> None:
    ram, rows = SMALLER[model]
    source = load(str(ROOT / "zoo" / f"{model}.py"), int8=Int8())
    compiled = compile_source(source, load_board(board), io="int8", memory=Memory(ram=ram, rows=rows))
    assert compiled.plan.arena <= ram
    assert compiled.plan.patches is not None
    run = run_image(compiled, build_image(compiled, tmp_path))
    whole = interpret(compiled.graph, stored(compiled.graph, source.examples))
    for name, output in zip(compiled.graph.outputs, run.outputs, strict=True):
        assert output.tobytes() == whole[name].tobytes()
