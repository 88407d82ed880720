"""A snapshot of everything that a module holds, to detect what a call changes and to undo it.

It covers parameters, buffers and plain attributes of all sub-modules, lists, dicts, sets, tensors and arrays among
them, attributes of the user's own objects, and attributes of the user's module classes. Hooks, training flags and other
internals of torch are left out, as are objects of torch and of the standard library, such as loggers.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, MutableMapping, MutableSequence, MutableSet
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from baretorch.errors import CompileError
from baretorch.frontends.model_file import said
from baretorch.frontends.torch.notices import listening

_INTERNAL = frozenset(vars(nn.Module())) - {"_parameters", "_buffers", "_modules"}
_TABLES = ("_parameters", "_buffers", "_modules")  # dicts whose entries are attributes of the module
_LIBRARIES = frozenset({"torch", "torchao", "numpy", *sys.stdlib_module_names}) - {"types", "__main__"}
_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.memory_format, range)
_ABSENT = object()


@dataclass(frozen=True)
class Change:
    """An attribute that differs from the snapshot. `owner` is the module or class that has it, or another holder."""

    path: str  # from the module that the snapshot is of: encoder.cell.hidden
    owner: Any
    name: str
    before: Any
    after: Any
    table: str = ""  # _parameters or _buffers, for an entry of these

    @property
    def key(self) -> tuple[int, str]:
        """The attribute, whatever its value is."""
        return id(self.owner), self.name

    def now(self) -> Any:
        """The value of the whole attribute."""
        held = vars(self.owner)
        return (held[self.table] if self.table else held).get(self.name, _ABSENT)

    @property
    def existed(self) -> bool:
        return self.before is not _ABSENT

    @property
    def exists(self) -> bool:
        return self.after is not _ABSENT

    @property
    def is_state(self) -> bool:
        """Whether it is a registered buffer with another value: state, which an image keeps."""
        a, b = self.before, self.after
        both = isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
        return self.table == "_buffers" and both and (a.shape, a.dtype) == (b.shape, b.dtype)


@dataclass(frozen=True)
class _Held:
    """An object with contents that can change. `root` is the attribute by which a module has it, and that module."""

    path: str
    value: Any
    contents: Any
    root: tuple[Any, str, str]  # owner, name, table


class Snapshot:
    """The contents of a module, or of another value, at the time of the call."""

    def __init__(self, value: Any) -> None:
        self._held: list[_Held] = []
        self._walk(value)

    def changes(self) -> list[Change]:
        """What differs now, each attribute once, in the order of modules."""
        found: dict[tuple[int, str], Change] = {}
        for held in self._held:
            for change in _compare(held):
                found.setdefault(change.key, change)
        return list(found.values())

    def restore(self, state: bool = True) -> None:
        """Put everything back. Without `state`, registered buffers keep their values."""
        for held in self._held:
            _put_back(held, state)

    def tensors(self) -> Iterator[torch.Tensor]:
        """All tensors that it holds."""
        return (held.value for held in self._held if isinstance(held.value, torch.Tensor))

    def _walk(self, first: Any) -> None:
        seen: set[int] = set()
        pending: deque[tuple[Any, str, tuple[Any, str, str]]] = deque()
        for path, inner in (
            first.named_modules() if isinstance(first, nn.Module) else ()
        ):  # first: a buffer that a list holds, too, is a buffer
            for table in ("_parameters", "_buffers"):
                pending += (
                    (t, f"{path}.{n}".lstrip("."), (inner, n, table)) for n, t in vars(inner).get(table, {}).items()
                )
        pending.append((first, "", (first, "", "")))
        while pending:
            value, path, root = pending.popleft()
            if isinstance(value, _PLAIN) or id(value) in seen:
                continue
            seen.add(id(value))
            contents = _contents(value)
            if contents is None:
                continue
            self._held.append(_Held(path, value, contents, root))
            pending.extend(_inside(value, contents, path, root))


def copied_module(module: Any) -> Any:
    """A copy of a module, with state of its own. Tensors that torch does not copy, because they were computed from
    parameters, lose their history."""
    memo = {id(t): _cloned(t) for t in Snapshot(module).tensors() if not t.is_leaf}
    try:
        with listening():
            return deepcopy(module, memo)
    except Exception as error:
        raise CompileError(
            "the model cannot be copied, so that its state cannot be kept apart",
            have=said(error),
            need="a module that copy.deepcopy() accepts",
        ) from error


@contextmanager
def restored(module: Any) -> Iterator[None]:
    """Undo in the end what the block changes in a module."""
    before = Snapshot(module)
    try:
        yield
    finally:
        before.restore()


class Watch:
    """An attribute that changed once, watched for the next time."""

    def __init__(self, change: Change) -> None:
        self._change = change
        self._value = change.now()
        self._inside = Snapshot(self._value)

    def differs(self) -> bool:
        """Whether it is another object now, or another value."""
        return not same_value(self._value, self._change.now()) or bool(self._inside.changes())


def _contents(value: Any) -> Any:
    """A shallow copy of what can change inside a value; None where nothing can, or where it is not looked at."""
    if isinstance(value, nn.Module):
        if "_parameters" not in vars(value):  # TorchScript, whose attributes are not Python's
            return None
        own = {n: v for n, v in vars(value).items() if n not in _INTERNAL and n not in _TABLES}
        return {"": own, **{table: dict(vars(value)[table]) for table in _TABLES}}
    if isinstance(value, torch.Tensor):
        return _version(value), _cloned(value)
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, type):
        return {n: v for n, v in vars(value).items() if _is_data(n, v)}
    if isinstance(value, MutableMapping):
        return dict(value)
    if isinstance(value, (MutableSequence, tuple)):
        return list(value)
    if isinstance(value, MutableSet):
        return set(value)
    if not callable(value) and hasattr(value, "__dict__") and not _is_foreign(type(value)):
        return dict(vars(value))
    return None


def _inside(
    value: Any, contents: Any, path: str, root: tuple[Any, str, str]
) -> Iterator[tuple[Any, str, tuple[Any, str, str]]]:
    """The values inside, with their paths."""
    if isinstance(value, nn.Module):
        for table, entries in contents.items():
            for name, inner in entries.items():
                yield inner, f"{path}.{name}".lstrip("."), (value, name, table)
        for cls in type(value).__mro__:
            if issubclass(cls, nn.Module) and not _is_foreign(cls):
                yield cls, cls.__name__, (cls, "", "")
    elif isinstance(value, type):
        for name, inner in contents.items():
            yield inner, f"{path}.{name}", (value, name, "")
    elif isinstance(value, (torch.Tensor, np.ndarray, MutableSet)):
        return
    elif isinstance(contents, list):
        for i, inner in enumerate(contents):
            yield inner, f"{path}[{i}]", root
    elif isinstance(value, MutableMapping):
        for key, inner in contents.items():
            yield inner, f"{path}[{key!r}]", root
    else:
        for name, inner in contents.items():
            yield inner, f"{path}.{name}", root


def _compare(held: _Held) -> Iterator[Change]:
    value, before = held.value, held.contents
    owner, name, table = held.root
    if isinstance(value, torch.Tensor):
        if before[0] != _version(value) or not same_numbers(before[1], value):
            yield Change(held.path, owner, name, before[1], value, table)
        return
    now = _contents(value)
    if isinstance(value, nn.Module):
        for each in before:
            for key in dict.fromkeys((*before[each], *now[each])):
                a, b = before[each].get(key, _ABSENT), now[each].get(key, _ABSENT)
                if not same_value(a, b):
                    yield Change(f"{held.path}.{key}".lstrip("."), value, key, a, b, each)
    elif isinstance(value, type):
        for key in dict.fromkeys((*before, *now)):
            a, b = before.get(key, _ABSENT), now.get(key, _ABSENT)
            if not same_value(a, b):
                yield Change(f"{held.path}.{key}", value, key, a, b)
    elif isinstance(value, np.ndarray):
        if not same_numbers(before, value):
            yield Change(held.path, owner, name, before, value, table)
    elif isinstance(before, set):
        if before != now:
            yield Change(held.path, owner, name, before, value, table)
    elif isinstance(before, list):
        if len(before) != len(now) or not all(map(same_value, before, now)):
            yield Change(held.path, owner, name, before, value, table)
    else:
        for key in dict.fromkeys((*before, *now)):
            a, b = before.get(key, _ABSENT), now.get(key, _ABSENT)
            if not same_value(a, b):
                inner = f"[{key!r}]" if isinstance(value, MutableMapping) else f".{key}"
                yield Change(f"{held.path}{inner}", owner, name, a, b, table)


def same_value(a: Any, b: Any) -> bool:
    """Whether rebinding a name from one to the other changes nothing: the same object, an equal constant, a view of
    the same memory, or a container of such."""
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


def frozen(value: Any) -> Any:
    """Return a copy of a value that stays as it is, to be compared by `equal_value`."""
    if isinstance(value, torch.Tensor):
        return _cloned(value)
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, (tuple, list)):
        return tuple(map(frozen, value))
    if isinstance(value, dict):
        return {key: frozen(each) for key, each in value.items()}
    return value


def equal_value(a: Any, b: Any) -> bool:
    """Whether two frozen values are equal, tensors and arrays by their numbers."""
    for kind in (torch.Tensor, np.ndarray):
        if isinstance(a, kind) and isinstance(b, kind):
            return same_numbers(a, b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(equal_value, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(map(equal_value, a.values(), b.values()))
    return same_value(a, b)


def same_numbers(a: Any, b: Any) -> bool:
    """Whether two tensors or arrays hold the same numbers; NaN equals NaN."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    try:
        if isinstance(a, torch.Tensor) and torch.equal(a, b):
            return True
        return bool(((a == b) | ((a != a) & (b != b))).all())
    except (RuntimeError, NotImplementedError, TypeError):  # sparse tensors and the like
        return a is b


def _place(tensor: torch.Tensor) -> tuple[Any, ...] | None:
    """Where a dense tensor is in memory."""
    if tensor.layout is not torch.strided:
        return None
    return tensor.untyped_storage()._cdata, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype


def _version(tensor: torch.Tensor) -> int:
    """How often a tensor was changed in place; tensors of inference mode do not count."""
    return 0 if tensor.is_inference() else int(tensor._version)


def _cloned(tensor: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return tensor.detach().clone()


def _put_back(held: _Held, state: bool) -> None:
    value, before = held.value, held.contents
    if isinstance(value, nn.Module):
        own = vars(value)
        for name in [n for n in own if n not in _INTERNAL and n not in _TABLES and n not in before[""]]:
            del own[name]
        own.update(before[""])
        for table in _TABLES:
            buffers = (
                {} if state or table != "_buffers" else {n: v for n, v in own[table].items() if n in before[table]}
            )
            _refill(own[table], {**before[table], **buffers})
    elif isinstance(value, torch.Tensor):
        kept = not state and held.root[2] == "_buffers"
        if not kept and (before[0] != _version(value) or not same_numbers(before[1], value)):
            value.data.copy_(before[1])
    elif isinstance(value, np.ndarray):
        if not same_numbers(before, value):
            value[...] = before
    elif isinstance(value, type):
        for name in [n for n, v in vars(value).items() if _is_data(n, v) and n not in before]:
            delattr(value, name)
        for name, each in before.items():
            if vars(value)[name] is not each:
                setattr(value, name, each)
    elif isinstance(value, MutableMapping):
        _refill(value, before)
    elif isinstance(value, MutableSequence):
        if len(value) != len(before) or any(a is not b for a, b in zip(value, before, strict=True)):
            value.clear()
            value.extend(before)
    elif isinstance(value, MutableSet):
        if value != before:
            value.clear()
            value |= before
    elif not isinstance(value, tuple):
        _refill(vars(value), before)


def _refill(held: MutableMapping[Any, Any], before: MutableMapping[Any, Any]) -> None:
    if list(held) != list(before) or any(held[key] is not each for key, each in before.items()):
        held.clear()
        held.update(before)


def _is_data(name: str, value: Any) -> bool:
    """Whether a class attribute is a value, and not code or a part of the class itself."""
    return not name.startswith("__") and not name.startswith("_abc_") and not callable(value) and not _describes(value)


def _describes(value: Any) -> bool:
    return hasattr(type(value), "__get__")


def _is_foreign(cls: type) -> bool:
    """Whether a class belongs to torch, NumPy or the standard library: what it keeps is its own business."""
    return cls.__module__.partition(".")[0] in _LIBRARIES
