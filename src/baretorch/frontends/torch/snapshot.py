"""Takes snapshots of everything that a module holds, to detect what a call changes and to undo it.

It covers parameters, buffers and plain attributes of all sub-modules, and whatever these hold in turn: lists, dicts,
sets, tensors, arrays, iterators, objects of the user's own classes with the attributes of these classes, functions with
their attributes and the variables around them, and hooks. Training flags and other internals of torch are left out, as
are global variables, and objects of torch and of the standard library, such as loggers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from baretorch.errors import CompileError
from baretorch.frontends.torch.contents import (
    ABSENT,
    NUMBERS_INSIDE,
    Aspect,
    aspects,
    clone,
    refill,
    same_numbers,
    same_value,
    user_classes,
)
from baretorch.frontends.torch.notices import listen
from baretorch.frontends.user_code import describe_error

_Root = tuple[Any, str, str]  # an attribute of a module or class: owner, name, table


@dataclass(frozen=True)
class AttributeChange:
    """An attribute that differs from the snapshot. `owner` is the module or class that has it, or another holder."""

    path: str  # from the module that the snapshot is of: encoder.cell.hidden
    owner: Any
    name: str
    before: Any
    after: Any
    table: str = ""  # _parameters or _buffers, for an entry of these

    @property
    def key(self) -> tuple[int, str]:
        """Return the attribute, independent of its value."""
        return id(self.owner), self.name

    def now(self) -> Any:
        """Return the current value of the whole attribute."""
        held = vars(self.owner)
        return (held[self.table] if self.table else held).get(self.name, ABSENT)

    @property
    def existed(self) -> bool:
        return self.before is not ABSENT

    @property
    def exists(self) -> bool:
        return self.after is not ABSENT

    @property
    def is_state(self) -> bool:
        """Report whether it is a registered buffer with another value: state, which an image keeps."""
        a, b = self.before, self.after
        both = isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
        return self.table == "_buffers" and both and (a.shape, a.dtype) == (b.shape, b.dtype)


@dataclass(frozen=True)
class _Held:
    """An aspect of an object at the time of the snapshot. `root` is the attribute by which a module or class holds the
    object. If the object `owns` its entries, they are such attributes."""

    path: str
    value: Any
    aspect: Aspect
    before: Any
    root: _Root
    owns: bool

    def root_of(self, key: Any) -> _Root:
        """Return the attribute of a module or class that an entry belongs to."""
        owns = self.owns and isinstance(self.before, dict)
        return (self.value, key, self.aspect.table) if owns else self.root

    def changes(self) -> Iterator[AttributeChange]:
        """Yield the differences to the current state."""
        before, now = self.before, self.aspect.read(self.value)
        if self.aspect.same is not None:
            if not self.aspect.same(before, now):
                owner, name, table = self.root
                then = (
                    before[1]
                    if self.aspect is NUMBERS_INSIDE
                    else self.value
                    if isinstance(before, (tuple, str))
                    else before
                )
                yield AttributeChange(self.path, owner, name, then, self.value, table)
            return
        for key in dict.fromkeys((*before, *now)):
            a, b = before.get(key, ABSENT), now.get(key, ABSENT)
            if not same_value(a, b):
                owner, name, table = self.root_of(key)
                yield AttributeChange(
                    f"{self.path}{self.aspect.suffix.format(key)}".lstrip("."), owner, name, a, b, table
                )

    def resembles(self, other: _Held) -> bool:
        """Report whether two aspects had equal numbers, or as many parts of other kinds with the same names."""
        a, b = self.before, other.before
        if (self.path, self.aspect, type(self.value)) != (other.path, other.aspect, type(other.value)):
            return False
        if self.aspect is NUMBERS_INSIDE:
            return same_numbers(a[1], b[1])
        if isinstance(a, (dict, list)):
            return len(a) == len(b)  # the walk compares the parts
        return self.aspect.same is None or self.aspect.same(a, b)

    def put_back(self, state: bool) -> None:
        """Undo changes. Without `state`, registered buffers keep their values."""
        if not state and self.owns and self.aspect.table == "_buffers":
            now = vars(self.value)["_buffers"]
            refill(now, {**self.before, **{n: v for n, v in now.items() if n in self.before}})
        elif state or self.aspect is not NUMBERS_INSIDE or self.root[2] != "_buffers":
            self.aspect.put_back(self.value, self.before)


class Snapshot:
    """The contents of a module, or of another value, at the time of the call."""

    def __init__(self, value: Any) -> None:
        self._held: list[_Held] = []
        self._fixed: dict[str, Any] = {}  # what cannot change, by its path
        self._walk(value)

    def changes(self) -> list[AttributeChange]:
        """Return the differences to the current state, each attribute once, in the order of modules."""
        found: dict[tuple[int, str], AttributeChange] = {}
        for held in self._held:
            for change in held.changes():
                found.setdefault(change.key, change)
        return list(found.values())

    def restore(self, state: bool = True) -> None:
        """Put everything back. Without `state`, registered buffers keep their values."""
        for held in self._held:
            held.put_back(state)

    def tensors(self) -> Iterator[torch.Tensor]:
        """Yield all tensors in the snapshot."""
        return (held.value for held in self._held if held.aspect is NUMBERS_INSIDE)

    def equals(self, other: Snapshot) -> bool:
        """Report whether two values were equal: tensors and arrays by their numbers, objects by their contents."""
        pairs = list(zip(self._held, other._held, strict=False))
        fixed = [(self._fixed[path], value) for path, value in other._fixed.items() if path in self._fixed]
        return (
            len(self._held) == len(other._held) == len([None for a, b in pairs if a.resembles(b)])
            and self._fixed.keys() == other._fixed.keys()
            and all(same_value(a, b) for a, b in fixed)
        )

    def _walk(self, first: Any) -> None:
        seen: set[int] = set()
        pending: deque[tuple[Any, str, _Root]] = deque()
        modules = dict(first.named_modules()) if isinstance(first, nn.Module) else {}
        owners = set(map(id, modules.values()))  # modules that only a list holds have no buffers that torch.export sees
        for path, inner in modules.items():  # first: a buffer that a list holds, too, is a buffer
            for table in ("_parameters", "_buffers"):
                pending += ((t, f"{path}.{n}".lstrip("."), (inner, n, table)) for n, t in vars(inner)[table].items())
        pending.append((first, "", (first, "", "")))
        while pending:
            value, path, root = pending.popleft()
            found = aspects(value)
            if not found:
                self._fixed[path] = value
            elif id(value) not in seen:
                seen.add(id(value))
                for aspect in found:
                    owns = isinstance(value, type) or id(value) in owners
                    held = _Held(path, value, aspect, aspect.read(value), root, owns)
                    self._held.append(held)
                    pending += (
                        (inner, f"{path}{end}".lstrip("."), held.root_of(key))
                        for end, key, inner in aspect.inside(held.before)
                    )
                pending += ((cls, cls.__name__, (cls, "", "")) for cls in user_classes(value))


def copy_module(module: Any) -> Any:
    """Copy a module with its state. Tensors that torch does not copy, because they were computed from parameters, lose
    their history."""
    memo = {id(t): clone(t) for t in Snapshot(module).tensors() if not t.is_leaf}
    try:
        with listen():
            return deepcopy(module, memo)
    except Exception as error:
        raise CompileError(
            "the model cannot be copied, so that its state cannot be kept apart",
            have=describe_error(error),
            need="a module that copy.deepcopy() accepts",
        ) from error


@contextmanager
def restore_after(module: Any) -> Iterator[None]:
    """Undo the changes of the block in a module at its end."""
    before = Snapshot(module)
    try:
        yield
    finally:
        before.restore()


class Watch:
    """An attribute that changed once, watched for its next change."""

    def __init__(self, change: AttributeChange) -> None:
        self._change = change
        self._value = change.now()
        self._inside = Snapshot(self._value)

    def differs(self) -> bool:
        """Report whether it is another object now, or has another value."""
        return not same_value(self._value, self._change.now()) or bool(self._inside.changes())
