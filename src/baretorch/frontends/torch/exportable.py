"""Prepares a module for torch.export, and corrects the exported program.

After `self.hidden = new` another tensor is the buffer. torch.export loses that in sub-modules; in the top module it
writes the new value into the old tensor, so that views of the old value become views of the new one. Assignments keep
their meaning if the method runs as it is, and the new values are copied into the old tensors when it returns.

torch writes programs as Python (`self.NAME.weight`), also while it decomposes them, and fails for names that
add_module and ModuleDict accept: keywords, quotes, newlines. Layers and buffers with such names get others; the paths
in messages stay unchanged.
"""

from __future__ import annotations

import keyword
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from functools import wraps
from typing import Any

import torch
from torch import nn
from torch.export.graph_signature import InputKind
from torch.nn.modules import module as torch_module

from baretorch.frontends.torch.calls import entry
from baretorch.ir.graph import numbered

_HOOKS = ("_forward_hooks", "_forward_pre_hooks")
_Slot = tuple[dict[str, Any], str]  # the buffers of a module, and the name of one


def as_exportable(module: nn.Module, method: str) -> nn.Module:
    """Return a module with the same parameters, buffers and sub-modules, whose forward is this method and writes new
    values of buffers in place. torch.export supports only forward."""
    if isinstance(module, torch.fx.GraphModule):
        return module
    called = entry(module, method)

    @wraps(getattr(module, method))
    def forward(*inputs: Any, **named: Any) -> Any:
        slots = list(_slots(module))
        before = [table[name] for table, name in slots]
        attributes = [(vars(inner), dict(vars(inner))) for inner in module.modules()]
        with _without_torchs_hooks():
            results = called(*inputs, **named)
        for now, then in attributes:
            now.update(then)  # without the fake tensors that torch.export computes with
        after: list[Any] = [table.get(name) for table, name in slots]
        rebound = [(slot, a, b) for slot, a, b in zip(slots, before, after, strict=True) if a is not b]
        if not rebound:
            return results
        values = [b.clone() for _, _, b in rebound]
        clones: dict[int, Any] = {}
        results = torch.utils._pytree.tree_map(
            lambda x: clones.setdefault(id(x), x.clone()) if isinstance(x, torch.Tensor) else x, results
        )
        for ((table, name), tensor, _), value in zip(rebound, values, strict=True):
            table[name] = tensor.copy_(value)
        return results

    same = copy(module)
    same.forward = forward
    for hooks in _HOOKS:  # `called` runs the hooks of forward
        setattr(same, hooks, OrderedDict())
    return same


def each_buffer_once(exported: Any) -> Any:
    """Return the program with one input for a buffer that has several names. Otherwise torch loses changes, because it
    uses only one of the names."""
    signature, tensors = exported.graph_signature, {**exported.state_dict, **exported.constants}
    nodes = {node.name: node for node in exported.graph.find_nodes(op="placeholder")}
    buffers = [spec for spec in signature.input_specs if spec.kind is InputKind.BUFFER]
    kept: dict[int, Any] = {}
    for spec in sorted(buffers, key=lambda spec: not nodes[spec.arg.name].users):  # those that are used come first
        if kept.setdefault(id(tensors[spec.target]), spec) is not spec and not nodes[spec.arg.name].users:
            exported.graph.erase_node(nodes[spec.arg.name])
            signature.input_specs.remove(spec)
    exported.graph_module.recompile()
    return exported


def _slots(module: nn.Module) -> Iterator[_Slot]:
    for inner in module.modules():
        yield from ((inner._buffers, name) for name, value in inner._buffers.items() if value is not None)


@contextmanager
def _without_torchs_hooks() -> Iterator[None]:
    """Hide assignments of buffers from torch.export, which would also write each one in place."""
    hooks = torch_module._global_buffer_registration_hooks
    theirs = dict(hooks)
    hooks.clear()
    try:
        yield
    finally:
        hooks.update(theirs)


def plain_names(exported: Any) -> Any:
    """Return the program with valid Python names for parameters, buffers and constants."""
    signature = exported.graph_signature
    specs = [s for s in (*signature.input_specs, *signature.output_specs) if s.target is not None]
    renamed = _rename_paths([*(s.target for s in specs), *exported.state_dict, *exported.constants])
    if all(old == new for old, new in renamed.items()):
        return exported
    for spec in specs:
        spec.target = renamed[spec.target]
    exported._state_dict = _rename_keys(renamed, exported.state_dict)
    exported._constants = _rename_keys(renamed, exported.constants)
    return exported


def _rename_paths(paths: Iterable[str]) -> dict[str, str]:
    """Return a path of valid names for each path; layers keep their names if possible, and no two become equal."""
    layers: dict[str, str] = {}  # the old path of a layer or tensor -> its new path
    taken: set[str] = set()
    parts = {".".join(path.split(".")[: n + 1]): None for path in paths for n in range(path.count(".") + 1)}
    for whole in sorted(parts, key=lambda p: (not all(map(_is_plain, p.split("."))), p.count("."))):
        above, _, name = whole.rpartition(".")
        layers[whole] = _unique_path(f"{layers[above]}." if above else "", name, taken)
    return layers


def _unique_path(above: str, name: str, taken: set[str]) -> str:
    base = name if _is_plain(name) else "_" + re.sub(r"\W", "_", name, flags=re.ASCII)
    path = next(path for path in numbered(f"{above}{base}") if path not in taken)
    taken.add(path)
    return path


def _is_plain(name: str) -> bool:
    """Report whether a name is valid; a number is the name of a layer in a Sequential."""
    return bool(re.fullmatch(r"\w+", name, flags=re.ASCII)) and not keyword.iskeyword(name)


def _rename_keys(renamed: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, Any]:
    return {renamed[name]: value for name, value in values.items()}
