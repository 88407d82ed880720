"""Folds BatchNorm into the layer before it, in a plain program, which does not depend on the classes of the user's
modules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node

from baretorch.frontends.torch.constants import ProgramConstants
from baretorch.frontends.torch.plain import attribute, set_attribute
from baretorch.frontends.torch.read import origin_of

aten = torch.ops.aten

# Layers by their output channels' axis in the weight.
_LAYERS = {
    aten.linear.default: 0,
    aten.conv1d.default: 0,
    aten.conv1d.padding: 0,
    aten.conv2d.default: 0,
    aten.conv2d.padding: 0,
    aten.conv3d.default: 0,
    aten.conv3d.padding: 0,
    aten.conv_transpose1d.default: 1,
    aten.conv_transpose2d.input: 1,
    aten.conv_transpose3d.input: 1,
}
_GROUPS = 6  # which argument of a transposed convolution


@dataclass(frozen=True)
class NormPair:
    """A layer, the BatchNorm after it that is its only reader, and the layer's weight, which no other node reads."""

    layer: Node
    norm: Node
    weight: str
    name: str  # the BatchNorm's
    what: tuple[Any, ...]  # is folded into the weight: the same in programs that share their tensors


def fold_norms(modules: Sequence[GraphModule], changing: Collection[str] = ()) -> tuple[str, ...]:
    """Fold BatchNorm in all of these plain programs, which share their parameters. Return the names of the folded
    layers. If any program reads a weight without BatchNorm, no program folds it."""
    found = [_pairs(module, changing) for module in modules]
    folded: dict[str, None] = {}
    for module, pairs in zip(modules, found, strict=True):
        for pair in pairs:
            if all(_agrees(pair, other, own) for other, own in zip(modules, found, strict=True)):
                fold(module, pair)
                folded[pair.name] = None
    for module in modules:
        module.graph.eliminate_dead_code()
        module.recompile()
    return tuple(folded)


def _agrees(pair: NormPair, module: GraphModule, pairs: Sequence[NormPair]) -> bool:
    """Report whether a program does not read the weight, or folds the same BatchNorm into it."""
    reads = any(n.target == pair.weight and n.users for n in module.graph.find_nodes(op="get_attr"))
    return not reads or any((p.weight, p.what) == (pair.weight, pair.what) for p in pairs)


def _pairs(module: GraphModule, changing: Collection[str]) -> list[NormPair]:
    constants = ProgramConstants(module, changing)
    readers: dict[str, int] = {}
    for node in module.graph.find_nodes(op="get_attr"):
        readers[node.target] = readers.get(node.target, 0) + len(node.users)
    pairs = []
    for norm in module.graph.find_nodes(op="call_function", target=aten.batch_norm.default):
        layer = norm.args[0]
        known = all(t is None or constants.is_stored(t) for t in norm.args[1:5])
        if known and norm.args[3] is not None and norm.args[5] is False and is_plain(layer, constants.is_stored):
            weight = layer.args[1].target
            if readers[weight] == 1:
                what = tuple(a.target if isinstance(a, Node) else a for a in norm.args[1:8])
                pairs.append(NormPair(layer, norm, weight, origin_of(norm).path or norm.name, what))
    return pairs


def is_plain(layer: Any, is_stored: Callable[[Any], bool]) -> bool:
    """Report whether a layer has constants that only one node reads, and channels where BatchNorm expects them."""
    if not isinstance(layer, Node) or layer.target not in _LAYERS or len(layer.users) != 1 or layer.kwargs:
        return False
    bias = layer.args[2] if len(layer.args) > 2 else None
    if not is_stored(layer.args[1]) or not (bias is None or is_stored(bias)):
        return False
    if _LAYERS[layer.target] == 1 and len(layer.args) > _GROUPS and layer.args[_GROUPS] != 1:
        return False  # the groups of a transposed convolution do not have their channels along one axis
    return bool(layer.meta["val"].dim() == layer.args[1].meta["val"].dim())


def fold(module: GraphModule, pair: NormPair) -> None:
    """Fold BatchNorm into the layer, which gets a new weight and bias under their own names."""
    layer, norm = pair.layer, pair.norm

    def value_of(node: Any, default: float) -> torch.Tensor:
        return torch.tensor(default) if node is None else attribute(module, node.target).detach().double()

    gamma, beta, mean, var = (value_of(n, d) for n, d in zip(norm.args[1:5], (1.0, 0.0, 0.0, 1.0), strict=True))
    weight = attribute(module, pair.weight)
    scale = gamma / torch.sqrt(var + norm.args[7])
    column = [1] * weight.dim()
    column[_LAYERS[layer.target]] = -1
    bias = layer.args[2] if len(layer.args) > 2 else None
    shifted = value_of(bias, 0.0) * scale + beta - mean * scale
    set_attribute(module, pair.weight, (weight.detach().double() * scale.reshape(column)).float())
    name = _bias_name(module, pair.weight, bias)
    set_attribute(module, name, shifted.float())
    with module.graph.inserting_before(layer):
        made = module.graph.create_node("get_attr", name)
    made.meta = {**layer.meta, "val": torch.empty(shifted.shape, device="meta")}
    layer.args = (*layer.args[:2], made, *layer.args[3:])
    norm.replace_all_uses_with(layer)
    module.graph.erase_node(norm)


def _bias_name(module: GraphModule, weight: str, bias: Node | None) -> str:
    """Return the bias's own name if no other node reads it, else a new one next to the weight's."""
    if bias is not None:
        same = [node for node in module.graph.find_nodes(op="get_attr") if node.target == bias.target]
        if sum(len(node.users) for node in same) == 1:
            return str(bias.target)
    parent = weight.rpartition(".")[0]
    owner, name = module.get_submodule(parent), "bias"
    while getattr(owner, name, None) is not None:
        name = f"{name}_folded"
    return f"{parent}.{name}" if parent else name
