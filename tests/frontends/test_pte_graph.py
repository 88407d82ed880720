"""The two ways in, .pte and torch.export, give the same Graph up to names and origin."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from executorch.exir import ExecutorchBackendConfig
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
from pte_cases import STATEFUL, case, eager, export
from tests.pte import read_pte, write_pte

from baretorch.frontends.aten.table import to_graph
from baretorch.frontends.torch.export import export_module, read_exported
from baretorch.ir.graph import Graph, interpret
from baretorch.passes.order import lower_graph

NAMES = (
    *(c.name for c in STATEFUL),
    "sine",
    "cnn",
    "cnn_channels_last",
    "depthwise",
    "depthwise_channels_last",
    "residual",
)

QUICK = {
    ("default", "swap"),
    ("default", "depthwise"),
    ("ours", "window"),
    ("ours", "cnn_channels_last"),
    ("ours", "sine"),
}

STORED = ExecutorchBackendConfig(passes=[InitializedMutableBufferPass([""])])


def same(a: Graph, b: Graph) -> None:
    """Equal operators on equally connected tensors; constants may differ by the rounding of folded arithmetic."""
    names = dict(zip(a.inputs, b.inputs, strict=True))
    names |= {one.name: other.name for one, other in zip(a.state, b.state, strict=True)}
    assert [n.op for n in a.nodes] == [n.op for n in b.nodes]
    for one, other in zip(a.nodes, b.nodes, strict=True):
        for x, y in zip(one.inputs, other.inputs, strict=True):
            if a[x].data is None:
                assert names[x] == y
            else:
                assert b[y].data is not None
                np.testing.assert_allclose(a[x].data, b[y].data, rtol=1e-5, atol=1e-6)
        names |= dict(zip(one.outputs, other.outputs, strict=True))
    assert tuple(names[o] for o in a.outputs) == b.outputs
    for before, after in zip(a.state, b.state, strict=True):
        assert names[before.next] == after.next
        np.testing.assert_array_equal(before.initial, after.initial)
    for x, y in names.items():
        assert (a[x].shape, a[x].dtype) == (b[y].shape, b[y].dtype)


@pytest.mark.parametrize(
    ("way", "name"),
    [
        pytest.param(way, name, marks=() if (way, name) in QUICK else pytest.mark.slow)
        for way in ("default", "ours")
        for name in NAMES
    ],
)
def test_pte_and_torch_export_give_the_same_graph(name: str, way: str, tmp_path: Path) -> None:
    module, inputs = case(name).module(), case(name).inputs()
    if way == "default":
        data = export(module, inputs, STORED)
    else:
        write_pte(module, inputs, tmp_path / "model.pte")
        data = (tmp_path / "model.pte").read_bytes()
    from_pte = lower_graph(to_graph(read_pte(data, name)))
    from_torch = lower_graph(to_graph(read_exported(export_module(module, inputs), name)))
    same(from_pte, from_torch)
    x = inputs[0].numpy()
    stored = x.transpose(0, 2, 3, 1) if case(name).channels_last else x
    made = interpret(from_pte, [np.ascontiguousarray(stored)])
    for output, want in zip(from_pte.outputs, eager(module, inputs), strict=True):
        if made[output].shape != want.shape:
            want = want.transpose(0, 2, 3, 1)
        np.testing.assert_allclose(made[output], want, rtol=1e-5, atol=1e-5)
