"""Bands of rows: the same answer in less memory, and the input's rows asked for in order, each once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from baretorch.errors import CompileError
from baretorch.frontends import from_module
from baretorch.ir.graph import Builder, DType, Graph, Node, Op, Tensor, interpret
from baretorch.ir.io import store_inputs
from baretorch.ir.verify import verify
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.elementwise import Add, Clamp
from baretorch.ops.input_rows import Pull
from baretorch.ops.move import Cat
from baretorch.ops.pool import AvgPool2d, MaxPool2d
from baretorch.options import Input, Io, Options
from baretorch.passes.rewrite import dead_code
from baretorch.pipeline import build_image, run_image
from baretorch.plan import make_plan
from baretorch.plan.bands import chains, rewrite_in_bands
from baretorch.targets.boards import load_board
from tests.models import compile_model, int8_file

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
        st.builds(
            lambda k, s, top, d, ceil: (MaxPool2d((k, 2), (s, 1), (min(top, k // 2), 0, 0, 1), (d, 1), ceil), 0, 0),
            st.integers(1, 3),
            st.integers(1, 4),
            st.integers(0, 1),
            st.integers(1, 2),
            st.booleans(),
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
    for stage in stages(graph):  # where a row depends on padding alone there are several
        assert same(graph, verify(rewrite_in_bands(graph, stage, band)))
    if [len(stage) for stage in stages(graph)] == [len(layers)]:
        check_bands(graph, stages(graph)[0], band, pull)


def stages(graph: Graph) -> list[tuple[Node, ...]]:
    """Return all layers of each chain."""
    return [tuple(node for block in chain for node in block) for chain in chains(graph)]


def check_bands(graph: Graph, stage: tuple[Node, ...], band: int, pull: bool) -> None:
    """Bands compute the same, and rows are pulled in order, each at most once."""
    banded = verify(rewrite_in_bands(graph, stage, band, pull))
    assert same(graph, banded)
    pulls = [n.op for n in banded.nodes if isinstance(n.op, Pull)]
    assert bool(pulls) == pull
    ends = 0
    for op in pulls:
        assert op.first == ends
        ends = op.first + op.count


@st.composite
def branching(draw: st.DrawFn) -> Graph:
    """Layers that read any tensor before them, and sums and cats of two: in the end all come together."""
    b = Builder("m")
    height = draw(st.integers(6, 20))
    made = [b.input("x", (1, height, 3, 4), DType.FLOAT32)]
    rng = np.random.default_rng(0)
    for i in range(draw(st.integers(2, 9))):
        x = draw(st.sampled_from(made))
        like = [t for t in made if t != x and b.tensors[t].shape == b.tensors[x].shape]
        kind = draw(st.integers(0, 3))
        if kind == 0 and like:
            made.append(b.add(Add(), x, draw(st.sampled_from(like))))
        elif kind == 1 and like:
            both = b.add(Cat(3), x, draw(st.sampled_from(like)))
            weight = rng.standard_normal((4, 1, 1, 8)).astype(np.float32)
            made += [b.add(Conv2d(), both, b.const(f"w{i}", weight))]
        elif kind == 2 and b.tensors[x].shape[1] > 3:
            made.append(b.add(AvgPool2d((2, 1), (2, 1), (0, 0, 0, 0), count_include_pad=False), x))
        else:
            size = draw(st.sampled_from([1, 3]))
            weight = rng.standard_normal((4, size, size, 4)).astype(np.float32)
            made.append(b.add(Conv2d(padding=(size // 2,) * 4, lo=0.0), x, b.const(f"w{i}", weight)))
    read = {name for node in b.nodes for name in node.inputs}
    last = made[-1]
    for name in [t for t in made[:-1] if t not in read]:
        if b.tensors[name].shape == b.tensors[last].shape:
            last = b.add(Add(), last, name)
    return verify(b.graph(["x"], [last, *(t for t in made[1:-1] if t not in read and t != last)][:1]))


@settings(max_examples=300, deadline=None)
@given(graph=branching(), band=st.integers(1, 6), pull=st.booleans())
def test_branches_in_any_bands_compute_the_same(graph: Graph, band: int, pull: bool) -> None:
    graph = dead_code(graph)
    for stage in stages(graph):
        check_bands(graph, stage, band, pull and "x" in stage[0].inputs and reads_only(graph, stage, "x"))


def reads_only(graph: Graph, stage: tuple[Node, ...], name: str) -> bool:
    return all(name not in node.inputs or node in stage for node in graph.nodes)


def test_the_layer_that_needs_the_whole_image_is_named() -> None:
    graph = network(9, 9, [DEEP[0], (AvgPool2d((2, 2), (2, 2), ceil_mode=True), 0, 0), (Conv2d(), 1, 4)])
    with pytest.raises(CompileError, match="--input rows: t1 cannot be computed row by row") as caught:
        make_plan(graph, BOARD, Options(input=Input.ROWS))
    assert caught.value.have == ("avg_pool2d kernel=(2, 2) stride=(2, 2) ceil_mode=True",)


def test_a_block_is_what_branches_and_comes_together() -> None:
    b = Builder("m")
    weight = np.ones((4, 3, 3, 4), np.float32)
    x = b.input("x", (1, 8, 8, 4), DType.FLOAT32)
    first = b.add(Conv2d(padding=(1, 1, 1, 1)), x, b.const("w", weight))
    second = b.add(Conv2d(padding=(1, 1, 1, 1)), first, b.const("w", weight))
    total = b.add(Add(), first, second)
    last = b.add(Conv2d(padding=(1, 1, 1, 1)), total, b.const("w", weight))
    graph = b.graph([x], [last])
    assert [[len(block) for block in chain] for chain in chains(graph)] == [[1, 2, 1]]
    kept = b.graph([x], [last, second])  # a tensor inside that is an output
    assert chains(kept) == []


def test_the_limit_of_ram_is_kept_and_reported() -> None:
    graph = network(64, 64, DEEP)
    whole = make_plan(graph, BOARD)
    limit = whole.arena * 2 // 3
    plan = make_plan(graph, BOARD, Options(ram=limit))
    assert whole.bands is None
    assert plan.arena <= limit
    assert plan.bands is not None and plan.bands.count > 1
    assert same(graph, plan.graph)


def test_pulled_rows_take_no_memory() -> None:
    graph = network(64, 64, DEEP)
    plan = make_plan(graph, BOARD, Options(ram=graph["x"].bytes, input=Input.ROWS))
    assert plan.arena <= graph["x"].bytes
    assert plan.layout.streamed == {"x"} and "x" not in {b.name for b in plan.layout.buffers}
    assert same(graph, plan.graph)


def test_a_board_that_is_too_small_asks_for_bands() -> None:
    graph = network(64, 64, DEEP)
    chip = BOARD.chip
    room = make_plan(graph, BOARD).arena * 2 // 3
    memories = tuple(replace(m, size=room + chip.stack_bytes) if m.name == chip.data else m for m in chip.memories)
    small = replace(BOARD, chip=replace(chip, memories=memories))
    plan = make_plan(graph, small)
    assert plan.arena <= room
    assert plan.bands is not None


def test_too_little_ram_names_the_peak() -> None:
    graph = network(64, 64, DEEP)
    with pytest.raises(CompileError, match="does not fit 2,000 bytes of RAM") as caught:
        make_plan(graph, BOARD, Options(ram=2000))
    assert "arena" in caught.value.render()


def test_rows_of_what_is_no_image() -> None:
    x, y = Tensor("x", (1, 10), DType.FLOAT32), Tensor("y", (1, 10), DType.FLOAT32)
    graph = Graph("m", {"x": x, "y": y}, (Node(Clamp(0.0, 1.0), ("x",), ("y",)),), ("x",), ("y",))
    with pytest.raises(CompileError, match="--input rows"):
        make_plan(graph, BOARD, Options(input=Input.ROWS))


# How far the arena of a zoo model goes down, int8 in and out, and whether its input's rows are pulled for it.
SMALLER = {"tinyrps": (12_000, False), "ic": (24_500, False), "vww": (20_000, True)}


@pytest.mark.parametrize(
    ("model", "board"),
    [
        ("tinyrps", "mps2-an386"),
        pytest.param("ic", "mps2-an386", marks=pytest.mark.slow),
        pytest.param("vww", "mps2-an386", marks=pytest.mark.slow),
        pytest.param("ic", "mps2-an385-v6m", marks=pytest.mark.slow),
        pytest.param("ic", "mps3-an547", marks=pytest.mark.slow),
        pytest.param("tinyrps", "mps3-an547", marks=pytest.mark.slow),
        pytest.param("tinyrps", "mps2-an385-v6m", marks=pytest.mark.slow),
        pytest.param("vww", "mps3-an547", marks=pytest.mark.slow),
        pytest.param("vww", "virt-rv32", marks=pytest.mark.slow),
    ],
)
def test_zoo_models_in_bands_answer_the_same_on_the_chip(model: str, board: str, tmp_path: Path) -> None:
    ram, rows = SMALLER[model]
    source = int8_file(str(ROOT / "zoo" / f"{model}.py"))
    compiled = compile_model(
        source, load_board(board), Options(io=Io.INT8, ram=ram, input=Input.ROWS if rows else Input.WHOLE)
    )
    assert compiled.plan.arena <= ram
    assert compiled.plan.bands is not None
    run = run_image(compiled, build_image(compiled, tmp_path))
    whole = interpret(compiled.graph, store_inputs(compiled.graph, compiled.source.examples))
    for name, output in zip(compiled.graph.outputs, run.outputs, strict=True):
        assert output.tobytes() == whole[name].tobytes()


class Remembers(nn.Module):
    """The image is also the next value of a state."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 4, 3, 2, 1))
        self.register_buffer("before", torch.zeros(1, 16, 16, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layers(x.permute(0, 3, 1, 2)).mean((2, 3)) + self.before.mean()
        self.before.copy_(x)
        return y


class TwoHeads(nn.Module):
    """Two stages read the image."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3, 2))
        self.b = nn.Sequential(nn.Conv2d(3, 2, 5, 4), nn.ReLU(), nn.Conv2d(2, 2, 3))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = x.permute(0, 3, 1, 2)
        return self.a(x).mean((2, 3)), self.b(x).mean((2, 3))


@pytest.mark.parametrize("module", [Remembers(), TwoHeads()], ids=lambda m: type(m).__name__)
def test_rows_of_an_image_that_others_read_are_not_pulled(module: nn.Module) -> None:
    source = from_module(module.eval(), (torch.randn(1, 16, 16, 3),), "m")
    with pytest.raises(CompileError, match="--input rows"):
        compile_model(source, BOARD, Options(input=Input.ROWS))


def test_a_limit_out_of_reach_is_an_error_with_the_least_ram() -> None:
    graph = network(64, 64, DEEP)
    whole = make_plan(graph, BOARD)
    with pytest.raises(CompileError, match="does not fit 100 bytes of RAM") as caught:
        make_plan(graph, BOARD, Options(ram=100))
    (have,) = caught.value.have
    assert "bands" in have and int(have.split()[1].replace(",", "")) < whole.arena


class Wide(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(channels, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 3, 4, 1))
        self.last = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.layers(x.permute(0, 3, 1, 2)).mean((2, 3)))


def test_bands_are_tried_for_the_bank_that_is_too_small() -> None:
    """Though another one, which the user also fills, has more room than is missing."""
    source = from_module(Wide(3).eval(), (torch.randn(1, 100, 162, 3),), "m")
    plan = compile_model(source, load_board("pico2w"), Options(place={"last": "SCRATCH"})).plan
    assert plan.bands is not None and len(plan.layout.banks) == 2


def test_the_error_of_a_board_that_is_too_small_has_the_smallest_plan() -> None:
    source = from_module(Wide(1).eval(), (torch.randn(1, 52, 48, 1),), "m")
    with pytest.raises(CompileError, match=r"microbit: SRAM is [34],\d\d\d bytes too small") as caught:
        compile_model(source, load_board("microbit"))
    assert "bands" in caught.value.have[0]
