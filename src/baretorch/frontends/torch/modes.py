"""Modes in which PyTorch runs the model that Baretorch is compared with: with equal elements in order, in double
precision, or while it is recorded what is computed from the inputs.

torch.topk, sort without `stable`, kthvalue, median, nanmedian and mode return any of the indices of equal elements, and
which one depends on the algorithm: after a ReLU, where many elements are 0, it is seldom the first. No comparison can
undo that, as later layers may have used the index. So whenever the original model computes the answers that ours are
compared with, these operators choose as ours do. The values are the same, and every index is one that PyTorch might
have returned. argmax, argmin, and max and min along a dimension are documented to return the first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload
from torch.fx import GraphModule
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten


class FirstOfEquals(TorchDispatchMode):  # type: ignore[misc]
    """A mode in which operators that may choose among equal elements order them by their index; mode() takes the last
    of them."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        own = _ORDERED.get(func)
        if own is not None and args[0].dim():
            return own(*args, **given)
        if getattr(func, "_opname", "") in _NAMES:
            with self:  # in inference mode, operators arrive that are made of others
                made = func.decompose(*args, **given)
            if made is not NotImplemented:
                return made
        return func(*args, **given)


def orders_elements(program: Any) -> bool:
    """Return whether an exported program has operators that this mode is for. PyTorch's control flow does not run in
    such a mode, so in programs with branches and loops ties stay as PyTorch breaks them."""
    modules = (m for m in program.graph_module.modules() if isinstance(m, GraphModule))
    targets = {node.target for module in modules for node in module.graph.nodes if node.op == "call_function"}
    names = {getattr(target, "_opname", "") for target in targets}
    return bool(names & _NAMES) and not any(isinstance(target, HigherOrderOperator) for target in targets)


def _topk(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Any, Any]:
    values, indices = _sort(x, dim, largest)
    return values.narrow(dim, 0, k).contiguous(), indices.narrow(dim, 0, k).contiguous()


def _sort(x: Any, dim: int = -1, descending: bool = False, stable: bool | None = True) -> Any:
    return aten.sort.stable(x, stable=True, dim=dim, descending=descending)


def _kthvalue(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    values, indices = _sort(x, dim)
    at = torch.full_like(indices.narrow(dim, 0, 1), k - 1)
    return _take(values, at, dim, keepdim), _take(indices, at, dim, keepdim)


def _median(x: Any, dim: int, keepdim: bool = False, quiet: bool = False) -> tuple[Any, Any]:
    """Take the first NaN if there is one and NaN counts."""
    values, indices = _sort(x, dim)
    numbers = (x == x).sum(dim, keepdim=True)
    at = (numbers - 1).clamp(min=0) // 2
    at = at if quiet else torch.where(numbers < x.shape[dim], numbers, at)
    return _take(values, at, dim, keepdim), _take(indices, at, dim, keepdim)


def _nanmedian(x: Any, dim: int, keepdim: bool = False) -> tuple[Any, Any]:
    return _median(x, dim, keepdim, quiet=True)


def _mode(x: Any, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    values, indices = aten.mode.default(x, dim, True)
    equal = x == values
    last = x.shape[dim] - 1 - equal.flip(dim).to(torch.uint8).argmax(dim, keepdim=True)
    at = torch.where(equal.any(dim, keepdim=True), last, indices)
    return (values, at) if keepdim else (values.squeeze(dim), at.squeeze(dim))


def _take(x: Any, at: Any, dim: int, keepdim: bool) -> Any:
    return x.gather(dim, at) if keepdim else x.gather(dim, at).squeeze(dim)


_ORDERED: dict[Any, Callable[..., tuple[Any, Any]]] = {
    aten.topk.default: _topk,
    aten.sort.default: _sort,
    aten.sort.stable: _sort,
    aten.kthvalue.default: _kthvalue,
    aten.median.dim: _median,
    aten.nanmedian.dim: _nanmedian,
    aten.mode.default: _mode,
}
_NAMES = {"topk", "sort", "argsort", "msort", "kthvalue", "median", "nanmedian", "mode"}


class InDouble(TorchDispatchMode):  # type: ignore[misc]
    """A mode in which operators compute in float64 instead of float32 and less. State is kept in its own type."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func._schema.is_mutable:
            return func(*args, **(kwargs or {}))
        given, named = torch.utils._pytree.tree_map(_wider, (args, kwargs or {}))
        return func(*given, **named)


_NARROWER = (torch.float32, torch.float16, torch.bfloat16)


def _wider(x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        return x.double() if x.dtype in _NARROWER else x
    return torch.float64 if isinstance(x, torch.dtype) and x in _NARROWER else x


class FromInputs(TorchDispatchMode):  # type: ignore[misc]
    """A mode that records which memory holds what is computed from the values of these tensors. `numbers` reports
    whether Python numbers are. PyTorch's control flow does not run in it."""

    def __init__(self, inputs: Iterable[Any]) -> None:
        super().__init__()
        self.numbers = False
        self._found: set[StorageWeakRef] = set()
        self._add(inputs)

    def computed(self, tensor: Any) -> bool:
        return tensor.layout is torch.strided and StorageWeakRef(tensor.untyped_storage()) in self._found

    def _add(self, values: Any) -> None:
        for x in torch.utils._pytree.tree_leaves(values):
            if isinstance(x, torch.Tensor) and x.layout is torch.strided:
                self._found.add(StorageWeakRef(x.untyped_storage()))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [x for x in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        results = func(*args, **(kwargs or {}))
        if any(map(self.computed, given)) and not _FROM_SHAPES.search(func.name()):
            self._add((results, given if isinstance(func, OpOverload) and func._schema.is_mutable else ()))
            self.numbers |= isinstance(results, (bool, int, float, complex))
        return results


_FROM_SHAPES = re.compile(r"^aten::(new_|\w+_like(\.|$)|(zero|fill)_|sym_)")  # operators that read no values
