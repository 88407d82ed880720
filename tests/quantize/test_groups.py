"""Which tensors get a scale, which share one, and what is left alone."""

from __future__ import annotations

import numpy as np
import pytest

from baretorch.ir.graph import Builder, DType, Graph, State
from baretorch.ir.text import to_text
from baretorch.ir.verify import verify
from baretorch.ops import OPS
from baretorch.ops.elementwise import Add, Div, Mul
from baretorch.ops.functions import Abs, Exp, Sigmoid
from baretorch.ops.int8.scaled import FIXED, Scaled
from baretorch.ops.layout import Reshape
from baretorch.ops.linear import Linear
from baretorch.ops.move import Cat, Slice
from baretorch.ops.scan import CumSum
from baretorch.ops.softmax import Softmax
from baretorch.passes.order import FLOAT_PASSES
from baretorch.quantize.groups import Groups, find_groups
from baretorch.quantize.observers import MaskedValues, Scores
from tests.zoo.zoo import source


def builder() -> tuple[Builder, str]:
    b = Builder()
    return b, b.input("x", (2, 4), DType.FLOAT32)


def linear(b: Builder, x: str, name: str) -> str:
    return b.add(Linear(), x, b.const(f"{name}_w", np.eye(4, dtype=np.float32)), name=name)


def shared(found: Groups) -> set[frozenset[str]]:
    return {frozenset(group.members) for group in found.activations}


def test_an_operator_with_an_int8_form_declares_its_scales() -> None:
    converts = {"dequantize", "quantize"}
    logic = {"eq", "ne", "lt", "le", "logical_and", "logical_or", "logical_not", "cast"}
    for row in OPS:
        assert (row.scaled is not None) == (row.int8 is not None) or row.op.name in converts | logic, row.op.name


def test_what_is_moved_shares_its_scale() -> None:
    b, x = builder()
    y = linear(b, x, "layer")
    part = b.add(Slice(1, 0, 2), b.add(Reshape((2, 4)), y, name="view"), name="part")
    found = find_groups(verify(b.graph([x], [b.add(Exp(), part, name="end")])))
    assert shared(found) == {frozenset({"x"}), frozenset({"layer", "view", "part"}), frozenset({"end"})}
    assert found.weights == ("layer_w",)
    (group,) = [g for g in found.activations if "part" in g.members]
    assert list(group.seen) == ["layer"], "the rest is made of it"


def test_a_known_range_keeps_its_own_scale_where_it_meets_others() -> None:
    b, x = builder()
    y = b.add(Sigmoid(), x, name="gate")
    found = find_groups(b.graph([x], [b.add(Cat(1), y, linear(b, x, "layer"), name="all")]))
    assert shared(found) == {frozenset({n}) for n in ("x", "gate", "layer", "all")}
    assert [g.fixed for g in found.activations if "gate" in g.members] == [FIXED[Scaled.UNIT]]


def test_a_chain_of_functions_is_rounded_at_its_end() -> None:
    b, x = builder()
    size = b.add(Add(), b.add(Abs(), x, name="size"), b.const("one", np.float32(1)), name="more")
    found = find_groups(b.graph([x], [b.add(Div(), x, size, name="softsign")]))
    assert shared(found) == {frozenset({"x"}), frozenset({"softsign"})}
    b, x = builder()
    twice = b.add(Exp(), x, name="exp")
    found = find_groups(b.graph([x], [b.add(Mul(), twice, twice, name="square"), linear(b, twice, "layer")]))
    assert frozenset({"exp"}) in shared(found), "the layer reads it too"


def test_scores_are_watched_where_the_softmax_takes_them() -> None:
    b, x = builder()
    mask = b.const("mask", np.array([0, 0, 0, -np.inf], np.float32))
    masked = b.add(Add(), linear(b, x, "layer"), mask, name="masked")
    found = find_groups(b.graph([x], [b.add(Softmax(1), masked, name="shares")]))
    meant = {name: how for group in found.activations for name, how in group.seen.items()}
    assert meant["masked"] == Scores(1) and meant["layer"] == MaskedValues()
    (group,) = [g for g in found.activations if "mask" in g.members]
    assert float(next(iter(group.constants.values())).min()) == -32.0, "as far away as it must be"


def test_float_that_is_only_moved_stays_float() -> None:
    b, x = builder()
    y = b.add(CumSum(1), b.add(Reshape((2, 4)), b.add(CumSum(1), linear(b, x, "layer"), name="sum"), name="view"))
    assert frozenset({"sum", "view"}) not in shared(find_groups(b.graph([x], [y])))


def test_state_has_the_scale_of_its_next_value() -> None:
    b, x = builder()
    state = b.input("state", (2, 4), DType.FLOAT32)
    then = b.add(Add(), linear(b, x, "layer"), state, name="then")
    graph = b.graph([x], [then], [State("state", "then", np.full((2, 4), 7, np.float32))])
    (group,) = [g for g in find_groups(verify(graph)).activations if "state" in g.members]
    assert set(group.members) == {"state", "then"} and list(group.seen) == ["then"]
    assert [float(c.max()) for c in group.constants.values()] == [7.0], "it begins so"


def test_what_the_user_keeps_in_float_asks_for_nothing() -> None:
    b, x = builder()
    graph = b.graph([x], [linear(b, linear(b, x, "first"), "last")])
    assert shared(find_groups(graph, {"last"})) == {frozenset({"x"}), frozenset({"first"})}


@pytest.mark.parametrize("name", ["kws", "encoder", "streaming_gru", "squeeze_excite"])
def test_float_passes_leave_what_they_made(name: str) -> None:
    def passed(graph: Graph) -> Graph:
        for step in FLOAT_PASSES:
            graph = verify(step(graph))
        return graph

    once = passed(source(name).graph)
    assert to_text(passed(once), data=False) == to_text(once, data=False)
