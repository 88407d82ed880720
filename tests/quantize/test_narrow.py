"""Narrow requantization: what the quantizer chooses, that 32 bits are enough for it, and that all kernels agree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from baretorch.frontends import from_module
from baretorch.ir.graph import Array, Builder, DType, Graph, Quant, interpret
from baretorch.ir.io import as_real, store_inputs
from baretorch.ir.verify import verify
from baretorch.machines.host_program import on_host
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.helpers.kernel import Call, data_of
from baretorch.ops.int8.arithmetic import requantize
from baretorch.ops.int8.narrow_requant import LEAST_MULTIPLIER, narrow_form
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.int8.qlinear import QLinear
from baretorch.ops.layout import Reshape
from baretorch.ops.linear import Linear
from baretorch.passes.to_int8 import to_int8
from baretorch.quantize.observers import per_channel
from baretorch.quantize.quantize import narrow_weights
from baretorch.targets.boards import load_board
from tests.models import cnn, cnn_input, compile_model, int8_model

SCALES = {"x": Quant((0.031,), (-7,)), "image": Quant((0.11,), (-128,)), "y": Quant((0.2,), (3,))}


def noted(spread: float = 0.0) -> Graph:
    """A convolution and a linear layer between noted tensors. Rows of weights differ by e^`spread` in size."""
    rng = np.random.default_rng(3)
    b = Builder()
    x = b.input("x", (1, 5, 5, 3), DType.FLOAT32)
    taps = rng.standard_normal((8, 3, 3, 3)) * np.exp(spread * rng.standard_normal((8, 1, 1, 1)))
    image = b.add(
        Conv2d(), x, b.const("taps", np.float32(taps)), b.const("b", np.float32(taps.sum((1, 2, 3)))), name="image"
    )
    flat = b.add(Reshape((1, 72)), image, name="flat")
    y = b.add(Linear(), flat, b.const("rows", rng.standard_normal((10, 72)).astype(np.float32)), name="y")
    notes = SCALES | {"flat": SCALES["image"]}
    notes |= {name: per_channel(data_of([b.tensors[name]], 0)) for name in ("taps", "rows")}
    graph = verify(b.graph([x], [y]))
    return replace(graph, tensors={n: replace(t, quant=notes.get(n)) for n, t in graph.tensors.items()})


def layers(graph: Graph) -> list[Call[Any]]:
    found = [n for n in graph.nodes if isinstance(n.op, (QConv2d, QLinear))]
    return [Call(n.op, graph.of(n.inputs), graph.of(n.outputs)) for n in found]


def test_what_is_chosen_is_narrow_and_little_coarser() -> None:
    wide, narrow = noted(spread=1.0), narrow_weights(noted(spread=1.0))
    assert [narrow_form(call) for call in layers(to_int8(wide))] == [None, None]
    forms = [narrow_form(call) for call in layers(to_int8(narrow))]
    for form, name in zip(forms, ("taps", "rows"), strict=True):
        assert form is not None and form.multiplier.max() >= LEAST_MULTIPLIER
        before, after = wide[name].quant, narrow[f"{name}_narrow"].quant
        assert before is not None and after is not None
        coarser = np.array(after.scale) / np.array(before.scale)
        assert (coarser >= 1).all() and (coarser <= 1 + 1 / (form.multiplier - 0.999)).all()


def test_32_bits_are_enough_for_every_sum() -> None:
    """The rule in 32 bits gives what docs/arithmetic.md says, up to the least and the largest sum that can be; with one
    bit more it would not be exact any more."""
    for call in layers(to_int8(narrow_weights(noted()))):
        form = narrow_form(call)
        assert form is not None
        weight, bias, multiplier = (data_of(call.inputs, i) for i in (1, 2, 3))
        rows = weight.reshape(len(weight), -1).astype(np.int64)
        ends = [bias + (np.where(rows > 0, a, b) * rows).sum(1) for a, b in ((127, -128), (-128, 127))]
        op = call.op
        offset = (op.zero << form.shift) + (1 << form.shift - 1)
        used = 0
        for share in np.linspace(0, 1, 101):
            acc = np.rint(ends[0] * share + ends[1] * (1 - share)).astype(np.int64)
            wide = acc * form.multiplier + offset
            assert (np.abs(wide) < 1 << 31).all()
            used = max(used, int(np.abs(wide).max()))
            made = np.clip(wide >> form.shift, op.lo, op.hi).astype(np.int8)
            np.testing.assert_array_equal(made, requantize(acc, multiplier, op.shift, op.zero, op.lo, op.hi))
        assert used >= 1 << 29, "the multipliers could have more bits"


def test_what_would_be_too_coarse_stays_wide() -> None:
    """The bias alone takes all bits there are, and the zero point takes none of it back."""
    graph = noted()
    large = replace(graph["b"], data=np.full(8, 3e5, np.float32))
    image = replace(graph["image"], quant=Quant((3000.0,), (0,)))
    made = narrow_weights(replace(graph, tensors={**graph.tensors, "b": large, "image": image}))
    assert "taps_narrow" not in made.tensors and "rows_narrow" in made.tensors


def test_layers_that_share_a_weight_get_each_their_own() -> None:
    b = Builder()
    x = b.input("x", (1, 4), DType.FLOAT32)
    weight = b.const("w", np.random.default_rng(1).standard_normal((4, 4)).astype(np.float32))
    once = b.add(Linear(), x, weight, name="image")
    y = b.add(Linear(), once, weight, name="y")
    graph = verify(b.graph([x], [y]))
    notes = SCALES | {"w": per_channel(data_of([graph["w"]], 0))}
    made = narrow_weights(replace(graph, tensors={n: replace(t, quant=notes[n]) for n, t in graph.tensors.items()}))
    assert [n.inputs[1] for n in made.nodes] == ["w_narrow", "w_narrow_2"]
    assert all(narrow_form(call) is not None for call in layers(to_int8(made)))


def test_a_computer_computes_what_the_interpreter_does() -> None:
    graph = to_int8(narrow_weights(noted()))
    x = np.random.default_rng(5).standard_normal((1, 5, 5, 3)).astype(np.float32)
    with on_host(graph) as run:
        made: Array = run([x])[graph.outputs[0]]
    np.testing.assert_array_equal(made, interpret(graph, [x])[graph.outputs[0]])


def test_boards_whose_cores_gain_get_narrow_layers() -> None:
    model = int8_model(from_module(cnn(), (cnn_input(),), "net"), [(cnn_input(),)])
    wide, narrow = (compile_model(model, load_board(board)) for board in ("mps2-an386", "cluster8"))
    assert all(narrow_form(call) is None for call in layers(wide.graph))
    assert len(layers(narrow.graph)) == len(layers(wide.graph)) > 0
    assert all(narrow_form(call) is not None for call in layers(narrow.graph))
    again = compile_model(narrow.model, load_board("cluster8"))
    assert again.graph is narrow.graph and again.c.files == narrow.c.files
    # What a run is compared with are the answers of the new scales, a step of the output apart from the others.
    for said, other, name in zip(
        *(m.model.int8_answers or () for m in (narrow, wide)), wide.graph.outputs, strict=True
    ):
        np.testing.assert_allclose(said, other, atol=0.05 * float(np.abs(other).max()), err_msg=name)
    computed = interpret(narrow.graph, store_inputs(narrow.graph, narrow.source.examples))
    for said, name in zip(narrow.model.int8_answers or (), narrow.graph.outputs, strict=True):
        np.testing.assert_allclose(said, as_real(narrow.graph[name], computed[name]), atol=0.02)


def test_files_that_are_quantized_keep_their_scales() -> None:
    """Quantized files have a graph in int8, and Baretorch has no calibration data for them."""
    model = int8_model(from_module(cnn(), (cnn_input(),), "net"), [(cnn_input(),)])
    file = replace(model, quantization=None)
    assert compile_model(file, load_board("cluster8")).graph is file.graph
