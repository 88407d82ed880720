"""Plain torch programs: what torch.export gives, in the one form that everything else here reads and rewrites.

A plain program is a GraphModule whose calls change nothing in place. Parameters and buffers are `get_attr` nodes, and
each buffer that the model changes is written once, by a `copy_` at the end.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
import torch
from torch.fx import Graph, GraphModule, Interpreter, Node

from baretorch.frontends.torch.control_flow import flatten
from baretorch.frontends.torch.modes import FirstOfEquals, InDouble
from baretorch.frontends.torch.notices import listen
from baretorch.ir.graph import Array
from baretorch.passes.equivalence import MOVE

T = TypeVar("T")
aten = torch.ops.aten
torch_unflatten: Any = import_module("torch.export.unflatten")  # `torch.export.unflatten` is a function, too


def make_plain(functional: Any) -> GraphModule:
    """Return the plain program of a functional ExportedProgram. State is copied."""
    with _quick_names():
        module = functional.module(check_guards=False)
    changing = {node.args[0].target for node in writes(module)}
    flatten(module, lambda n: attribute(module, n.target) if n.op == "get_attr" and n.target not in changing else None)
    for node in writes(module):
        target = node.args[0].target
        parent, _, leaf = target.rpartition(".")
        module.get_submodule(parent).register_buffer(leaf, attribute(module, target).clone())
    _keep_old_state(module)
    for node in list(module.graph.nodes):
        if node.target is aten._native_batch_norm_legit_no_training.default:
            _restore_norm(module.graph, node)
    module.graph.eliminate_dead_code()
    module.recompile()
    return module


@contextmanager
def _quick_names() -> Iterator[None]:
    """Replace torch's comparison of module names inside the block. It compiles a regular expression for each pair of
    siblings, which takes half a minute for 5,000 layers."""
    theirs = torch_unflatten._is_call_name

    def is_call_name(call_name: str, base: str) -> bool:
        return call_name == base or (call_name.startswith(f"{base}@") and call_name[len(base) + 1 :].isdecimal())

    torch_unflatten._is_call_name = is_call_name
    try:
        yield
    finally:
        torch_unflatten._is_call_name = theirs


def _keep_old_state(module: GraphModule) -> None:
    """Copy values that are written or returned and share memory with state before state is written; two states that
    swap show why."""
    last = writes(module)
    if not last:
        return
    for node in last:
        node.replace_all_uses_with(node.args[1])  # torch returns the state itself where it returns its next value
    graph, changing = module.graph, {node.args[0] for node in last}
    (output,) = graph.find_nodes(op="output")
    for user in (*last, output):
        for value in [user.args[1]] if user is not output else user.all_input_nodes:
            if find_viewed(value) in changing:
                with graph.inserting_before(last[0]):
                    kept = graph.call_function(aten.clone.default, (value,))
                kept.meta = dict(value.meta)
                target = user.args[0]
                user.replace_input_with(value, kept)
                if user is not output:
                    user.args = (target, kept)


def find_viewed(value: Node) -> Node:
    """Return the source of a view, through all views in between."""
    while value.op == "call_function" and getattr(getattr(value.target, "_schema", None), "arguments", None):
        first = value.target._schema.arguments[0]
        if first.alias_info is None or first.alias_info.is_write or not isinstance(value.args[0], Node):
            break
        value = value.args[0]
    return value


def _restore_norm(graph: Graph, node: Node) -> None:
    """Replace the functional form of batch_norm by batch_norm itself, which all later steps know."""
    *tensors, momentum, eps = node.args
    with graph.inserting_before(node):
        whole = graph.call_function(aten.batch_norm.default, (*tensors, False, momentum, eps, False))
    whole.meta = {**node.meta, "val": node.meta["val"][0]}
    for user in list(node.users):
        if user.target is operator.getitem and user.args[1] == 0:
            user.replace_all_uses_with(whole)


def copy_program(program: T) -> T:
    """Copy a program, or several that share tensors, so that it can be rewritten."""
    with listen():
        return deepcopy(program)


def writes(module: GraphModule) -> list[Node]:
    """Return the nodes that write state: copy_(buffer, next value)."""
    return [n for n in module.graph.nodes if n.target is aten.copy_.default and n.args[0].op == "get_attr"]


def is_random(node: Node) -> bool:
    """Report whether a call returns another value each time. Dropout does so only in training mode."""
    if torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()):
        return False
    names = [argument.name for argument in node.target._schema.arguments]
    given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    flags = [given.get(name, 0) for name in ("dropout_p", "dropout", "p", "train", "training") if name in names]
    return not flags or all(flags)


def attribute(module: Any, path: str) -> Any:
    """Return the value of a `get_attr` node with this target."""
    for part in path.split("."):
        module = getattr(module, part)
    return module


def set_attribute(module: GraphModule, path: str, tensor: Any) -> None:
    """Set the attribute to this tensor, as a parameter. The original module keeps its own."""
    parent, _, leaf = path.rpartition(".")
    owner = module.get_submodule(parent)
    if hasattr(owner, leaf):
        delattr(owner, leaf)
    owner.register_parameter(leaf, torch.nn.Parameter(tensor, requires_grad=tensor.is_floating_point()))


def is_tensor(module: GraphModule, node: Any) -> bool:
    """Report whether a node represents a stored tensor."""
    return isinstance(node, Node) and node.op == "get_attr" and isinstance(attribute(module, node.target), torch.Tensor)


def answers(module: Any, inputs: Sequence[Any], runs: int = 1) -> tuple[Array, ...]:
    """Return the outputs of a plain program for the inputs, flat, run after run. State starts and ends with its initial
    value."""
    with keep_state(module):
        return _runs(module, inputs, runs)


def unrounded_answers(module: Any, inputs: Sequence[Any], runs: int = 1) -> tuple[Array, ...]:
    """Return the outputs of a quantized program with unrounded weights and activations."""
    with keep_state(module):
        return _runs(_Unrounded(module).run, inputs, runs)


@contextmanager
def keep_state(module: GraphModule) -> Iterator[None]:
    """Restore state that changes in the block."""
    before = {n.args[0].target: attribute(module, n.args[0].target).clone() for n in writes(module)}
    try:
        yield
    finally:
        for target, value in before.items():
            attribute(module, target).data.copy_(value)


def exact_answers(module: GraphModule, inputs: Sequence[Any], runs: int) -> tuple[Array, ...] | None:
    """Return the outputs in double precision; None if the program cannot be computed so."""
    try:
        with InDouble():
            return answers(module, inputs, runs)
    except Exception:  # torch raises many kinds for operators of float32 only
        return None


def moved_answers(
    module: GraphModule, inputs: Sequence[Any], runs: int, seed: int, unrounded: bool = False
) -> tuple[Array, ...]:
    """Return the outputs with all inputs, parameters and buffers changed in their last bits; seed 0 changes nothing."""
    return move_and_run(module, _Unrounded(module).run if unrounded else module, inputs, runs, seed)


def move_and_run(module: GraphModule, run: Any, inputs: Sequence[Any], runs: int, seed: int) -> tuple[Array, ...]:
    """Return the result of `run` for the inputs with the last bits changed everywhere; `module` is the one that it
    computes with."""
    generator = torch.Generator().manual_seed(seed)

    def near(x: Any) -> Any:
        if seed == 0 or not isinstance(x, torch.Tensor) or not x.is_floating_point():
            return x
        return x.detach() * (1 + MOVE * (2 * torch.rand(x.shape, generator=generator) - 1)).to(x.dtype)

    stored = {name: near(t) for name, t in (*module.named_parameters(), *module.named_buffers())}
    stored = {name: t.clone() for name, t in stored.items()}  # also those that change
    other = torch.utils._pytree.tree_map(near, tuple(inputs))
    with torch.nn.utils.stateless._reparametrize_module(module, stored):
        return _runs(run, other, runs)


def _runs(callable_: Any, inputs: Sequence[Any], runs: int) -> tuple[Array, ...]:
    with torch.no_grad(), FirstOfEquals():
        results = [torch.utils._pytree.tree_leaves(callable_(*inputs)) for _ in range(runs)]
    return tuple(tensor_array(leaf) for r in results for leaf in r if isinstance(leaf, torch.Tensor))


def tensor_array(leaf: torch.Tensor) -> Array:
    """Copy as NumPy array, with shorter floats as float32."""
    leaf = leaf.detach().cpu()
    return np.array((leaf.float() if leaf.is_floating_point() and leaf.dtype.itemsize < 4 else leaf).numpy())


class _Unrounded(Interpreter):  # type: ignore[misc]
    """Runs a quantized program without rounding computed values: only stored integers are rounded."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.extra_traceback = False

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        name = getattr(getattr(target, "_schema", None), "name", "")
        if name == "quantized_decomposed::quantize_per_tensor":
            return args[0]
        if name == "quantized_decomposed::dequantize_per_tensor" and args[0].is_floating_point():
            return args[0]
        return super().call_function(target, args, kwargs)
