"""Reads, compares and restores the parts of an object that can change, whatever its type.

Each way to hold something is an Aspect, and an object may have several: the elements of a list and the attributes of
its class. New kinds of objects need a row in `_ASPECTS` at most.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, MutableMapping, MutableSequence, MutableSet
from copyreg import _slotnames  # type: ignore[attr-defined]
from dataclasses import dataclass
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import numpy as np
import torch
from torch import nn

ABSENT = object()
_INTERNAL = frozenset(vars(nn.Module())) - {"_forward_hooks", "_forward_pre_hooks"}
_LIBRARIES = frozenset({"torch", "torchao", "numpy", *sys.stdlib_module_names}) - {"types", "__main__"}
_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.memory_format, range)
_PARTS = {partial: ("func", "args", "keywords"), MethodType: ("__self__", "__func__")}  # whose own parts never change


@dataclass(frozen=True)
class Aspect:
    """One way to read a part of an object. `read` returns a shallow copy: a dict, whose entries change one by one, or
    another value, which changes as a whole if `same` is false. `suffix` is the path of an entry."""

    has: Callable[[Any], bool]
    read: Callable[[Any], Any]
    put_back: Callable[[Any, Any], None]
    same: Callable[[Any, Any], bool] | None = None
    suffix: str = ".{}"
    table: str = ""

    def inside(self, before: Any) -> Iterator[tuple[str, Any, Any]]:
        """Yield the path, key and value of every entry."""
        entries = before.items() if isinstance(before, dict) else enumerate(before) if type(before) is list else ()
        for key, value in entries:
            yield self.suffix.format(key), key, value


def aspects(value: Any) -> list[Aspect]:
    """Return the parts of a value that can change; none for constants, and for objects that are not inspected."""
    return [] if isinstance(value, _PLAIN) else [aspect for aspect in _ASPECTS if aspect.has(value)]


def is_foreign(cls: Any) -> bool:
    """Report whether a class or function belongs to torch, NumPy or the standard library, whose internals are not
    inspected."""
    return (cls.__module__ or "").partition(".")[0] in _LIBRARIES


def user_classes(value: Any) -> Iterator[type]:
    """Yield the classes of an object that do not belong to a library."""
    return (cls for cls in type(value).__mro__ if not is_foreign(cls))


def same_value(a: Any, b: Any) -> bool:
    """Report whether rebinding a name from one to the other changes nothing: the same object, an equal constant, a view
    of the same memory, or a container of such."""
    if a is b:
        return True
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return _place(a) is not None and _place(a) == _place(b)
    if type(a) is not type(b):
        return False
    if isinstance(a, _PLAIN):
        return bool(a == b) or (a != a and b != b)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same_value, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(map(same_value, a.values(), b.values()))
    return False


def same_numbers(a: Any, b: Any) -> bool:
    """Report whether two tensors or arrays hold the same numbers; NaN equals NaN."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    try:
        if isinstance(a, torch.Tensor) and torch.equal(a, b):
            return True
        return bool(((a == b) | ((a != a) & (b != b))).all())
    except (RuntimeError, NotImplementedError, TypeError):  # sparse tensors and the like
        return a is b


def clone(tensor: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return tensor.detach().clone()


def refill(held: MutableMapping[Any, Any], before: MutableMapping[Any, Any]) -> None:
    """Give a mapping these entries again, in this order."""
    if list(held) != list(before) or any(held[key] is not each for key, each in before.items()):
        held.clear()
        held.update(before)


def _place(tensor: torch.Tensor) -> tuple[Any, ...] | None:
    """Return a dense tensor's place in memory."""
    if tensor.layout is not torch.strided:
        return None
    return tensor.untyped_storage()._cdata, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype


def _numbers(tensor: torch.Tensor) -> tuple[int, torch.Tensor]:
    """Return how often a tensor was changed in place, and its values; tensors of inference mode have no count."""
    return 0 if tensor.is_inference() else int(tensor._version), clone(tensor)


def _put_numbers(tensor: torch.Tensor, before: tuple[int, torch.Tensor]) -> None:
    version = 0 if tensor.is_inference() else int(tensor._version)
    if before[0] != version or not same_numbers(before[1], tensor):
        tensor.data.copy_(before[1])


def _put_array(array: Any, before: Any) -> None:
    if not same_numbers(before, array):
        array[...] = before


def _has_attributes(value: Any) -> bool:
    if isinstance(value, (nn.Module, torch.Tensor, FunctionType)):
        return not isinstance(value, FunctionType) or not is_foreign(value)
    return not isinstance(value, type) and not is_foreign(type(value))


def _attributes(value: Any) -> dict[str, Any]:
    own = getattr(value, "__dict__", {})
    if isinstance(value, nn.Module):
        own = {name: each for name, each in own.items() if name not in _INTERNAL}
    if isinstance(value, torch.Tensor):
        own = {name: each for name, each in own.items() if not name.startswith("_dynamo")}  # set by torch.cond
    slots = () if isinstance(value, (torch.Tensor, FunctionType)) else _slotnames(type(value))
    return {**own, **{name: getattr(value, name) for name in slots if hasattr(value, name)}}


def _put_attributes(value: Any, before: dict[str, Any]) -> None:
    own, now = getattr(value, "__dict__", None), _attributes(value)
    for name in {**now, **before}:
        if now.get(name, ABSENT) is not before.get(name, ABSENT):
            if own is not None and name not in _slotnames(type(value)):
                own.pop(name, None)
                own.update({name: before[name]} if name in before else {})
            elif name in before:
                object.__setattr__(value, name, before[name])
            else:
                object.__delattr__(value, name)


def _class_attributes(cls: type) -> dict[str, Any]:
    """Return values and functions of a class, without descriptors and Python's own attributes."""
    return {
        name: value
        for name, value in vars(cls).items()
        if not name.startswith(("__", "_abc_"))
        and (isinstance(value, FunctionType) or not (callable(value) or hasattr(type(value), "__get__")))
    }


def _put_class_attributes(cls: type, before: dict[str, Any]) -> None:
    for name in _class_attributes(cls).keys() - before.keys():
        delattr(cls, name)
    for name, each in before.items():
        if vars(cls).get(name, ABSENT) is not each:
            setattr(cls, name, each)


def _captured_values(function: FunctionType) -> dict[str, Any]:
    """Return the variables that a function captures from enclosing functions."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found


def _put_captured(function: FunctionType, before: dict[str, Any]) -> None:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        if name in before and _captured_values(function).get(name, ABSENT) is not before[name]:
            cell.cell_contents = before[name]


def _put_elements(value: Any, before: list[Any]) -> None:
    if isinstance(value, MutableSequence) and (
        len(value) != len(before) or any(a is not b for a, b in zip(value, before, strict=True))
    ):
        value.clear()
        value.extend(before)


def _put_set(value: MutableSet[Any], before: set[Any]) -> None:
    if value != before:
        value.clear()
        value |= before


def _position(iterator: Any) -> Any:
    """Return the pickled form of a Python iterator, with iterators inside it expanded too."""

    def apart(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return tuple(map(apart, value))
        return _position(value) if _iterates(value) else value

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pickling iterators is deprecated
        try:
            return apart(iterator.__reduce_ex__(2)[1:])
        except TypeError:
            return repr(iterator)


def _iterates(value: Any) -> bool:
    return isinstance(value, Iterator) and type(value).__module__ in ("itertools", "builtins")


def _keep(value: Any, before: Any) -> None:
    """Restore nothing: the parts do not change, and Python iterators only go forward."""


def _table(name: str) -> Aspect:
    """Return the aspect for a dict of a module whose entries are attributes."""
    return Aspect(
        lambda v: isinstance(v, nn.Module),
        lambda v: dict(vars(v)[name]),
        lambda v, before: refill(vars(v)[name], before),
        table=name,
    )


NUMBERS_INSIDE = Aspect(
    lambda v: isinstance(v, torch.Tensor),
    _numbers,
    _put_numbers,
    lambda a, b: a[0] == b[0] and same_numbers(a[1], b[1]),
)
_ASPECTS = (
    NUMBERS_INSIDE,
    Aspect(lambda v: isinstance(v, np.ndarray), lambda v: v.copy(), _put_array, same_numbers),
    Aspect(_has_attributes, _attributes, _put_attributes),
    *map(_table, ("_parameters", "_buffers", "_modules")),
    Aspect(lambda v: isinstance(v, type) and not is_foreign(v), _class_attributes, _put_class_attributes),
    Aspect(lambda v: isinstance(v, MutableMapping), dict, refill, suffix="[{!r}]"),
    Aspect(lambda v: isinstance(v, (MutableSequence, tuple)), list, _put_elements, same_value, suffix="[{}]"),
    Aspect(lambda v: isinstance(v, MutableSet), set, _put_set, lambda a, b: a == b),
    Aspect(lambda v: isinstance(v, FunctionType) and not is_foreign(v), _captured_values, _put_captured),
    Aspect(lambda v: type(v) in _PARTS, lambda v: {name: getattr(v, name) for name in _PARTS[type(v)]}, _keep),
    Aspect(_iterates, _position, _keep, same_value),
)
