"""Compares the sizes that a `.pt2` states for its values with those that its operators produce. All later code trusts
them."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from baretorch.frontends.pt2.archive import damaged

_leaves = torch.utils._pytree.tree_leaves


def check_shapes(exported: Any) -> None:
    """Raise CompileError if a stored tensor or a result does not have the stated size. Only sizes are computed."""
    stored = {**exported.state_dict, **exported.constants}
    nodes = {node.name: node for node in exported.graph.nodes}
    for spec in exported.graph_signature.input_specs:
        if isinstance(stored.get(spec.target), torch.Tensor):
            _need_same(nodes[spec.arg.name].meta["val"], stored[spec.target], str(spec.target))
    _check(exported.graph_module)


def _check(module: GraphModule) -> None:
    for node in module.graph.nodes:
        if node.op != "call_function":
            continue
        if isinstance(node.target, OpOverload):
            _need_same(node.meta["val"], _infer(node), node.name)
        elif node.target is operator.getitem:
            _need_same(node.meta["val"], node.args[0].meta["val"][node.args[1]], node.name)
        else:
            _check_parts(module, node)


def _infer(node: Node) -> Any:
    """Return an operator's result for arguments of the stated sizes, without memory for it."""
    mode = next((x.fake_mode for a in node.all_input_nodes for x in _stated([a])), None) or FakeTensorMode()
    args, kwargs = map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
    with mode, torch.no_grad():
        return node.target(*args, **kwargs)


def _check_parts(module: GraphModule, node: Node) -> None:
    """Check the programs that an operator of control flow takes; their arguments follow them."""
    flat = _leaves(node.args)
    parts = {a: getattr(module, str(a.target)) for a in flat if isinstance(a, Node) and a.op == "get_attr"}
    parts = {a: part for a, part in parts.items() if isinstance(part, GraphModule)}
    after = 1 + max((i for i, a in enumerate(flat) if a in parts), default=-1)
    given = _stated(flat[after:])
    asks = node.target is torch.ops.higher_order.while_loop  # the first part says whether to go on
    for i, part in enumerate(parts.values()):
        _need_same(_stated(part.graph.find_nodes(op="placeholder")), given, node.name)
        _check(part)
        if not (asks and i == 0):
            (output,) = part.graph.find_nodes(op="output")
            _need_same(node.meta["val"], _stated(_leaves(output.args)), node.name)


def _stated(nodes: Iterable[Any]) -> list[torch.Tensor]:
    """Return tensors of the sizes that the nodes state."""
    values = [_leaves(n.meta.get("val")) for n in nodes if isinstance(n, Node)]
    return [v for some in values for v in some if isinstance(v, torch.Tensor)]


def _need_same(stated: Any, made: Any, name: str) -> None:
    have, want = (_types(t for t in _leaves(x) if isinstance(t, torch.Tensor)) for x in (stated, made))
    if have != want:
        raise damaged(f"{name} is said to be {have or 'nothing'} and is {want or 'nothing'}")


def _types(tensors: Iterable[torch.Tensor]) -> str:
    return ", ".join(f"{str(t.dtype).removeprefix('torch.')}{list(t.shape)}" for t in tensors)
