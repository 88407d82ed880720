"""Finds attributes that a model changes when it is called, and rejects those whose change an image would lose.

`torch.export` keeps changes of registered buffers only. What `forward` assigns to any other attribute is gone after
the call, without an error. Such a model is accepted only where it makes no difference to any later call:

- the attribute is always assigned before it is read, as `self.last_attention = weights` is; or
- it is a cache: only the first call assigns it, to a value that is not computed from those of the inputs, and the model
  gives the same results with it and without it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from baretorch.errors import CompileError
from baretorch.frontends.inputs import COUNT, variations
from baretorch.frontends.torch.calls import LineTracer, flat_tensors, place_of, remembers_elsewhere, types
from baretorch.frontends.torch.modes import FromInputs
from baretorch.frontends.torch.plain import tensor_array
from baretorch.frontends.torch.snapshot import AttributeChange, Snapshot, Watch
from baretorch.ir.distance import is_near
from baretorch.ir.graph import Array

MOST = 4  # attributes that an error names
_OURS = (str(Path(torch.__file__).parent), str(Path(__file__).parent))  # reads of __dict__ here are not the user's
_Key = tuple[int, str]  # the id of a module or class, and the name of an attribute


@dataclass(frozen=True)
class MethodCall:
    """A call of a method of the module, with one set of inputs."""

    method: str
    inputs: tuple[Any, ...]
    turn: int  # 0 for the example inputs, then 1 and 2


@dataclass
class _Calls:
    """The results and changes of a sequence of calls."""

    results: list[tuple[Array, ...] | CompileError] = field(default_factory=list)
    changed: dict[_Key, AttributeChange] = field(default_factory=dict)  # but registered buffers
    state: set[str] = field(default_factory=set)  # registered buffers that changed
    written: set[str] = field(default_factory=set)  # those whose tensor a call changed in place
    late: set[_Key] = field(default_factory=set)  # what changes after each method was called once
    values: list[tuple[_Key, Snapshot]] = field(
        default_factory=list
    )  # of attributes, after each call that changed them


Run = Callable[[str, tuple[Any, ...]], Any]  # calls a method of the module; what the user's code raises is CompileError


def check_attributes(module: nn.Module, methods: Mapping[str, tuple[Any, ...]], run: Run) -> bool:
    """Raise CompileError if calls of the methods change attributes that are not registered buffers, and later calls may
    depend on it.

    Return whether they change any attribute, buffers included. The module is left as it was found. Each method is
    called with three sets of inputs.
    """
    before = Snapshot(module)
    try:
        calls = list(_calls(methods))
        together = _run_calls(module, before, calls, run)
        if together.changed:
            before.restore()
            with _watching(together.changed.values()) as reads:
                apart = _run_calls(module, before, calls, run, reads)
            alive = [change for key, change in together.changed.items() if key in reads.alive]
            dead = [change for key, change in together.changed.items() if key not in reads.alive]
            caches = {c.key: c for c in alive if _is_cache(c, calls, together, apart)}
            lost = [c for c in alive if c.key not in caches]
            lost += _computed_from_inputs(before, calls, caches.values(), run)
            if not all(map(_same, together.results, apart.results)):
                lost = lost or alive or dead
            if dead and not lost:
                bare = _run_calls(module, before, calls[: len(methods)], run, _Reads(), dead)
                lost = [] if all(map(_same, apart.results, bare.results)) else dead
            if lost:
                raise _lost_attributes(before, calls, lost, run)
        for _ in range(2):  # twice, so that a global counter with a period of two is found
            before.restore()
            again = _run_calls(module, before, calls[: len(methods)], run)
            for each, a, b in zip(calls, together.results, again.results, strict=False):
                if not _same(a, b):
                    raise remembers_elsewhere(each.method)
        _check_memory(module, together.state & together.written, together.state)
        before.restore()  # because a call may replace a buffer by a parameter
        _check_memory(module, together.state)
        return bool(together.state or together.changed)
    finally:
        before.restore()


def _calls(methods: Mapping[str, tuple[Any, ...]]) -> Iterator[MethodCall]:
    """Yield three calls of each method, with three sets of inputs."""
    for turn in range(1 + COUNT):
        for name, inputs in methods.items():
            yield MethodCall(name, vary_inputs(inputs, turn - 1) if turn else tuple(inputs), turn)


def vary_inputs(inputs: Sequence[Any], which: int) -> tuple[Any, ...]:
    """Return other inputs of the same structure, shapes and types."""
    given = flat_tensors(tuple(inputs))
    other = iter(variations([tensor_array(x) for x in given])[which])
    return tuple(
        torch.utils._pytree.tree_map(
            lambda x: _like(next(other), x) if isinstance(x, torch.Tensor) else x, tuple(inputs)
        )
    )


def _like(array: Array, example: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(example).copy_(torch.from_numpy(array))


@contextmanager
def _seed(number: int) -> Iterator[None]:
    """Seed the random numbers that a model draws; the user's generator stays unchanged."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(number)
        yield


def _run_calls(
    module: nn.Module,
    before: Snapshot,
    calls: Sequence[MethodCall],
    run: Run,
    reads: _Reads | None = None,
    without: Sequence[AttributeChange] = (),
) -> _Calls:
    """Run the calls, each with the registered buffers that the previous one left. With `reads`, other attributes are
    reset before each call, as in an image; those in `without` are missing then."""
    found, settled = _Calls(), None
    for number, each in enumerate(calls):
        if reads is not None:
            before.restore(state=False)
            reads.written.clear()
            for change in without:
                vars(change.owner).pop(change.name, None)
        elif each.turn and settled is None and found.changed:
            settled = Snapshot(module)
        held = [(name, t, t._version) for name, t in module.named_buffers(remove_duplicate=False)]
        try:
            with _seed(number):
                result = run(each.method, each.inputs)
            found.results.append(tuple(tensor_array(x) for x in flat_tensors(result)))
        except CompileError as error:
            if reads is None and each.turn == 0:
                raise
            found.results.append(error)
        found.written |= {name for name, t, version in held if t._version != version}
        every = before.changes()
        changes = [change for change in every if not change.is_state]
        found.state |= {change.path for change in every if change.is_state}
        found.changed = {change.key: change for change in changes} | found.changed
        found.values += ((change.key, Snapshot(change.now())) for change in changes)
        if each.turn:
            found.late |= {change.key for change in (changes if settled is None else settled.changes())}
    return found


def _is_cache(change: AttributeChange, calls: Sequence[MethodCall], together: _Calls, apart: _Calls) -> bool:
    """Report whether only the first calls assign an attribute, with a value that does not depend on the inputs."""
    if change.table or isinstance(change.owner, type) or change.key in together.late:
        return False
    first, *others = [value for found in (together, apart) for key, value in found.values if key == change.key]
    return _is_varied(calls, apart) and all(map(first.equals, others))


def _computed_from_inputs(
    before: Snapshot, calls: Sequence[MethodCall], caches: Collection[AttributeChange], run: Run
) -> list[AttributeChange]:
    """Return the caches whose values are computed from inputs. Other inputs may give other values, even if the three
    sets of inputs do not show it. Calls that do not run in the mode are left out."""
    if not caches:
        return []
    before.restore()
    with FromInputs(flat_tensors([each.inputs for each in calls])) as mode:
        for number, each in enumerate(calls):
            try:
                with _seed(number):
                    run(each.method, each.inputs)
            except CompileError:
                torch._dynamo.reset()  # it would remember the failure of torch.cond
    return [c for c in caches if mode.numbers or any(map(mode.computed, Snapshot(c.now()).tensors()))]


def _is_varied(calls: Sequence[MethodCall], found: _Calls) -> bool:
    """Report whether each method that takes tensors was called with at least two different sets of inputs."""
    given: dict[str, list[list[Array]]] = {}
    for each, result in zip(calls, found.results, strict=True):
        if not isinstance(result, CompileError):
            given.setdefault(each.method, []).append([tensor_array(x) for x in flat_tensors(each.inputs)])
    return all(
        not sets[0] or any(not all(map(np.array_equal, sets[0], other)) for other in sets[1:])
        for sets in given.values()
    )


def _same(a: tuple[Array, ...] | CompileError, b: tuple[Array, ...] | CompileError) -> bool:
    """Report whether two results are equal up to rounding."""
    if isinstance(a, CompileError) or isinstance(b, CompileError):
        return isinstance(a, CompileError) and isinstance(b, CompileError)
    return len(a) == len(b) and all(x.shape == y.shape and _close(x, y) for x, y in zip(a, b, strict=True))


def _close(a: Array, b: Array) -> bool:
    return is_near(a, b, 1e-6)


def _check_memory(module: nn.Module, state: Collection[str], among: Collection[str] | None = None) -> None:
    """Raise CompileError if a buffer that changes shares memory with another tensor, of all or of those named `among`.
    One tensor may have several names."""
    held = [*module.named_buffers(remove_duplicate=False), *module.named_parameters(remove_duplicate=False)]
    places: dict[int, list[tuple[str, torch.Tensor]]] = {}
    for name, t in (each for each in held if state and (among is None or each[0] in among)):
        places.setdefault(t.untyped_storage().data_ptr(), []).append((name, t))
    for memory, inside in places.items():
        changed = next((each for each in inside if each[0] in state), None)
        other = next((name for name, t in inside if changed and t is not changed[1]), None)
        if memory and changed and other:
            raise shared_memory(changed[0], other)


def shared_memory(name: str, other: str) -> CompileError:
    """Return the error for a buffer that shares memory with another tensor."""
    return CompileError(
        f"self.{name} and self.{other} share memory, and a call changes it",
        need="memory of its own for each buffer that changes",
        try_=f"self.{name} = tensor.clone(), where the model shares it with self.{other}",
    )


@dataclass
class _Reads:
    """Attributes that a call has written so far, and those that some call read before it wrote them."""

    written: set[_Key] = field(default_factory=set)
    alive: set[_Key] = field(default_factory=set)


@contextmanager
def _watching(changed: Iterable[AttributeChange]) -> Iterator[_Reads]:
    """Record reads and writes of attributes that change, with a temporary subclass for each affected module."""
    reads, classes = _Reads(), list[tuple[nn.Module, type]]()
    names: dict[int, set[str]] = {}
    owners: dict[int, Any] = {}
    for change in changed:
        if change.table or not isinstance(change.owner, nn.Module):
            reads.alive.add((id(change.owner), change.name))  # parameters and class attributes: taken to be read
        else:
            names.setdefault(id(change.owner), set()).add(change.name)
            owners[id(change.owner)] = change.owner
    try:
        for key, module in owners.items():
            before = type(module)
            try:
                module.__class__ = _watching_class(before, names[key], reads)
                classes.append((module, before))
            except TypeError:  # its layout is not Python's: taken to be read
                reads.alive |= {(key, name) for name in names[key]}
        yield reads
    finally:
        for module, before in classes:
            module.__class__ = before


def _watching_class(cls: Any, names: set[str], reads: _Reads) -> Any:
    """Return a subclass whose instances record reads and writes of these attributes."""

    def __getattribute__(self: Any, name: str) -> Any:
        if name in names and (id(self), name) not in reads.written:
            reads.alive.add((id(self), name))
        elif name == "__dict__" and not sys._getframe(1).f_code.co_filename.startswith(_OURS):
            reads.alive.update((id(self), n) for n in names)
        return cls.__getattribute__(self, name)

    def __setattr__(self: Any, name: str, value: Any) -> None:
        cls.__setattr__(self, name, value)
        if name in names:
            reads.written.add((id(self), name))

    made = {"__getattribute__": __getattribute__, "__setattr__": __setattr__, "__module__": cls.__module__}
    return type(cls)(cls.__name__, (cls,), {**made, "__qualname__": cls.__qualname__})


def _lost_attributes(
    before: Snapshot, calls: Sequence[MethodCall], lost: Sequence[AttributeChange], run: Run
) -> CompileError:
    """Return the error that names the attributes, and where they are changed."""
    first, named = lost[0], lost[:MOST]
    found = [line_of(before, calls, change, run) for change in named]
    more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
    return CompileError(
        f"{found[0][0]}() changes {_title(first)}{more}, {_why(first)}",
        at=[place_of(change.path, line) or "" for change, (_, line) in zip(named, found, strict=True)],
        have=[f"{change.path}: {_describe_change(change)}" for change in named],
        need="everything that the model remembers from call to call in registered buffers of fixed shape",
        try_=list(dict.fromkeys(hint for change in named for hint in _hints(change))),
    )


def _title(change: AttributeChange) -> str:
    if isinstance(change.owner, type):
        return change.path
    kind = {"_parameters": "the parameter ", "_buffers": "the buffer "}.get(change.table, "")
    return f"{kind}self.{change.path}"


def _why(change: AttributeChange) -> str:
    if change.table != "_buffers":
        return "which is not a registered buffer: the change would be lost"
    if isinstance(change.before, torch.Tensor) and change.exists:
        return "whose shape and type must stay as they are"
    return "which must have its shape from the beginning"


def _describe_change(change: AttributeChange) -> str:
    before = _describe(change.before) if change.existed else "not there"
    after = _describe(change.after) if change.exists else "not there"
    return (
        f"{before}, with another value after a call" if before == after else f"{before} before a call, {after} after it"
    )


def _describe(value: Any) -> str:
    if isinstance(value, Iterator):
        return f"an iterator of type {type(value).__name__}"
    if isinstance(value, (tuple, list)) and len(value) > 8:
        return f"a {type(value).__name__} of {len(value)}"
    return types([value])[1:-2]


def _hints(change: AttributeChange) -> Iterator[str]:
    """Yield hints how to register the value of an attribute."""
    value = change.after if change.exists else change.before
    tensors = flat_tensors(value)
    if isinstance(value, Iterator):
        yield f'in __init__: self.register_buffer("{change.name}", torch.tensor(0)) for the position'
        yield "in forward: indexing of a tensor with the position, instead of next()"
        return
    inside = re.search(rf"(?:^|\.){re.escape(change.name)}([.\[].+)$", change.path)
    if inside is not None:  # an entry of a dict or list, or an attribute of an object
        name = re.sub(r"\W+", "_", change.name + inside[1]).strip("_")
        first = _begin(change.before, value) if isinstance(value, torch.Tensor) else "torch.tensor(…)"
        yield f'in __init__: self.register_buffer("{name}", {first})'
        yield f"in forward: self.{name} instead of self.{change.name}{inside[1]}"
    elif isinstance(value, torch.Tensor):
        yield f'in __init__: self.register_buffer("{change.name}", {_begin(change.before, value)})'
    elif isinstance(value, (bool, int, float)):
        begin = change.before if isinstance(change.before, (bool, int, float)) else 0
        yield f'in __init__: self.register_buffer("{change.name}", torch.tensor({begin!r}))'
    elif isinstance(value, tuple) and 0 < len(value) == len(tensors):
        each = (f'self.register_buffer("{change.name}_{i}", {_begin(None, t)})' for i, t in enumerate(tensors))
        yield f"in __init__: {', '.join(each)}"
        names = ", ".join(f"self.{change.name}_{i}" for i in range(len(tensors)))
        yield f"in forward: {names} instead of self.{change.name}"
    else:
        yield f'in __init__: self.register_buffer("NAME", torch.zeros(…)) for each tensor that self.{change.name} holds'


def _begin(before: Any, after: torch.Tensor) -> str:
    """Return the first value of a buffer, as Python code."""
    if isinstance(before, torch.Tensor) and before.any():
        return "…"
    dtype = "" if after.dtype is torch.float32 else f", dtype={after.dtype}"
    return f"torch.zeros({', '.join(map(str, after.shape)) or '()'}{dtype})"


def line_of(before: Snapshot, calls: Sequence[MethodCall], change: AttributeChange, run: Run) -> tuple[str, str | None]:
    """Return the method and the user's line that change an attribute."""
    before.restore()
    for number, each in enumerate(calls):
        watch = Watch(change)
        tracer = LineTracer(watch.differs)
        try:
            with _seed(number), tracer:
                run(each.method, each.inputs)
        except CompileError:
            continue
        if watch.differs():
            return each.method, tracer.found
    return calls[0].method, None
