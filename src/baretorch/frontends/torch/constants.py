"""Evaluates constants: everything that depends on parameters only is computed once, by torch, in a plain program.

Then split, normalised and resampled weights are weights like any other, whatever operators made them, and a product
with one of them is a linear layer.
"""

from __future__ import annotations

import operator
from collections.abc import Collection
from functools import cached_property
from hashlib import sha256
from typing import Any

import torch
from torch.fx import GraphModule, Node

from baretorch.frontends.torch.modes import FirstOfEquals
from baretorch.frontends.torch.plain import attribute, is_random, is_tensor, writes
from baretorch.ir.graph import numbered
from baretorch.passes.fold import LARGEST

aten = torch.ops.aten

# Constants of one number, or of undefined ones: the ATen table creates them where they are read.
_UNIFORM = {
    *("zeros", "ones", "full", "empty", "scalar_tensor"),
    *("zeros_like", "ones_like", "full_like", "empty_like", "new_zeros", "new_ones", "new_full", "new_empty"),
}
# Repeated elements: most readers broadcast, so the repeated tensor need not exist.
_REPEATS = {"expand", "expand_as", "broadcast_to"}
# Products, by which arguments are the summand, the left and the right factor.
_PRODUCTS = {"mm": (None, 0, 1), "bmm": (None, 0, 1), "matmul": (None, 0, 1), "addmm": (0, 1, 2), "baddbmm": (0, 1, 2)}


class ProgramConstants:
    """The constants of a plain program: stored tensors that no run changes, neither of this program nor, by `changing`,
    of another that shares them."""

    def __init__(self, module: GraphModule, changing: Collection[str] = ()) -> None:
        self.module = module
        self.changing = {n.args[0].target for n in writes(module)} | set(changing)

    @cached_property
    def targets(self) -> dict[Any, str]:
        """Return the names of stored tensors, by their content."""
        stored = [n for n in self.module.graph.find_nodes(op="get_attr") if self.is_stored(n)]
        return {_content(self.value(n)): str(n.target) for n in reversed(stored) if self.value(n).is_contiguous()}

    def is_stored(self, node: Any) -> bool:
        return is_tensor(self.module, node) and node.target not in self.changing

    def value(self, node: Node) -> torch.Tensor:
        tensor: torch.Tensor = attribute(self.module, str(node.target)).detach()
        return tensor

    def add(self, before: Node, value: torch.Tensor, stem: str, like: Node) -> Node:
        """Return a `get_attr` node for this tensor: an equal stored one, else a new one, whose name begins with `stem`.
        Its origin is that of `like`."""
        value = value.detach().contiguous()
        content = _content(value)
        target = self.targets.get(content) or self._new(value, stem)
        self.targets[content] = target
        with self.module.graph.inserting_before(before):
            node = self.module.graph.create_node("get_attr", target)
        node.meta = {**like.meta, "val": torch.empty_like(value, device="meta")}
        return node

    def _new(self, value: torch.Tensor, stem: str) -> str:
        parent, _, leaf = stem.rpartition(".")
        owner = self.module.get_submodule(parent)
        name = next(name for name in numbered(leaf) if not hasattr(owner, name))
        owner.register_buffer(name, value)
        return f"{parent}.{name}" if parent else name


def _content(tensor: torch.Tensor) -> Any:
    """Return a key that is equal for tensors with the same shape, type and bits."""
    raw = tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
    return tuple(tensor.shape), tensor.dtype, sha256(raw).digest()


def evaluate_constants(module: GraphModule, changing: Collection[str] = ()) -> None:
    """Compute everything that depends on constants only. Random values, values that are int8 on purpose, and values
    larger than any chip stay."""
    constants = ProgramConstants(module, changing)
    known: set[Node] = set()
    for node in module.graph.nodes:
        if constants.is_stored(node) or _computable(node, known):
            known.add(node)
    values: dict[Node, Any] = {}
    for node in list(module.graph.nodes):
        if node in known and node.op == "call_function" and isinstance(node.meta.get("val"), torch.Tensor):
            readers = [user for user in node.users if user not in known or _stays_call(user)]
            if readers and not _stays_call(node):
                made = constants.add(node, _value(node, constants, values), _stem(node), node)
                for reader in readers:
                    reader.replace_input_with(node, made)
    module.graph.eliminate_dead_code()
    module.recompile()


def _computable(node: Node, known: Collection[Node]) -> bool:
    """Report whether a call's result depends on constants only."""
    if node.op != "call_function":
        return False
    if node.target is operator.getitem:
        return node.args[0] in known
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.name.startswith("aten::") or schema.is_mutable:
        return False
    if is_random(node) or _size(node.meta.get("val")) > LARGEST:
        return False
    if _name(node) in _UNIFORM:  # of a tensor it takes only the shape, of a number the value
        return all(a in known or isinstance(a.meta.get("val"), torch.Tensor) for a in node.all_input_nodes)
    return all(a in known for a in node.all_input_nodes)


def _stays_call(node: Node) -> bool:
    """Report whether a constant stays a call because a non-constant node reads it."""
    return _name(node) in _UNIFORM or _name(node) in _REPEATS


def _value(node: Node, constants: ProgramConstants, values: dict[Node, Any]) -> Any:
    """Return the value of a constant node; `values` caches it."""
    pending = [node]
    while pending:
        last = pending[-1]
        missing = [a for a in _operands(last) if a not in values]
        if last in values or missing:
            pending = pending[:-1] if last in values else [*pending, *missing]
            continue
        values[last] = constants.value(last) if last.op == "get_attr" else _compute(last, values)
    return values[node]


def _operands(node: Node) -> list[Node]:
    return [] if _name(node) in _UNIFORM else list(node.all_input_nodes)


def _compute(node: Node, values: dict[Node, Any]) -> Any:
    def given(a: Node) -> Any:
        val = a.meta["val"]
        return values[a] if a in values else torch.empty(val.shape, dtype=val.dtype)  # only its shape matters

    args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), given)
    with torch.no_grad(), FirstOfEquals():
        made = node.target(*args, **kwargs)
    return torch.zeros_like(made) if "empty" in _name(node) else made


def _stem(node: Node) -> str:
    """Return a name for the constant: the stored tensor that it is computed from, and the last operation."""
    what = _name(node.args[0] if node.target is operator.getitem else node)
    seen, pending = {node}, [node]
    while pending:
        first = pending.pop(0)
        if first.op == "get_attr":
            return f"{first.target}_{what}"
        pending += [a for a in first.all_input_nodes if a not in seen]
        seen.update(pending)
    return what


def products_as_layers(module: GraphModule, changing: Collection[str] = ()) -> None:
    """Convert a product with a constant matrix on the right to a linear layer, with its summand if that is a constant
    row."""
    constants = ProgramConstants(module, changing)
    for node in list(module.graph.nodes):
        if _name(node) in _PRODUCTS:
            _as_layer(constants, node)
    module.graph.eliminate_dead_code()
    module.recompile()


def _as_layer(constants: ProgramConstants, node: Node) -> None:
    summand, x, right = (None if i is None else node.args[i] for i in _PRODUCTS[_name(node)])
    beta, alpha = (node.kwargs.get(name, 1) for name in ("beta", "alpha"))
    assert isinstance(x, Node) and isinstance(right, Node)
    stored = right.args[0] if _name(right) in _REPEATS else right
    if not constants.is_stored(stored) or x.meta["val"].dtype is not torch.float32:
        return
    assert isinstance(stored, Node)
    matrix = constants.value(stored)
    while matrix.dim() > 2 and matrix.shape[0] == 1:
        matrix = matrix[0]
    if matrix.dim() != 2 or tuple(node.meta["val"].shape) != (*x.meta["val"].shape[:-1], matrix.shape[1]):
        return
    arguments = [x, matrix.t() if alpha == 1 else (matrix.double().t() * alpha).float()]
    if summand is not None and beta != 0:  # with beta 0 the summand does not count, even if it is NaN
        if not constants.is_stored(summand):
            return
        row = constants.value(summand)
        if row.numel() != matrix.shape[1] or row.shape[-1:] != (matrix.shape[1],):
            return
        row = row.reshape(-1)
        arguments.append(row if beta == 1 else (row.double() * beta).float())
    names = [f"{stored.target}_t", f"{stored.target}_bias"]
    made = [constants.add(node, a, name, node) for a, name in zip(arguments[1:], names, strict=False)]
    with constants.module.graph.inserting_before(node):
        layer = constants.module.graph.call_function(aten.linear.default, (x, *made))
    layer.meta = dict(node.meta)
    node.replace_all_uses_with(layer)


def _name(node: Any) -> str:
    """Return the short name of an operator: `expand` for aten.expand.default."""
    packet = getattr(node.target, "overloadpacket", None) if isinstance(node, Node) else None
    return packet.__name__ if packet is not None else ""


def _size(val: Any) -> int:
    """Return the size in bytes; a very large number if it is not fixed."""
    some = [v for v in (val if isinstance(val, (tuple, list)) else (val,)) if isinstance(v, torch.Tensor)]
    if any(not isinstance(d, int) for v in some for d in v.shape):
        return LARGEST + 1
    return sum(v.numel() * v.element_size() for v in some)
