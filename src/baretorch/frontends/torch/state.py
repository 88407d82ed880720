"""Compares the buffers of a module with those of its exported program, call after call.

torch.export sees assignments of buffers and changes in place. What a model does to the memory of a buffer in other ways
it loses, without an error. Results may show that after many calls only, but the state itself after the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn

from baretorch.errors import CompileError
from baretorch.frontends.inputs import COUNT
from baretorch.frontends.torch.attributes import MethodCall, line_of, shared_memory, vary_inputs
from baretorch.frontends.torch.calls import call_method, flat_tensors, place_of, types
from baretorch.frontends.torch.modes import orders_elements
from baretorch.frontends.torch.plain import attribute, is_random, make_plain, move_and_run, tensor_array, writes
from baretorch.frontends.torch.snapshot import AttributeChange, Snapshot, copy_module
from baretorch.ir.graph import Array
from baretorch.passes.equivalence import Reference, WrongStep, difference

_Calls = list[tuple[Any, ...]]  # the inputs of calls in a row


def check_state(module: nn.Module, method: str, functional: Any, inputs: Sequence[Any]) -> None:
    """Raise CompileError if calls of a method leave other values in the buffers of the module than in those of its
    functional program. Inputs differ from call to call, and state starts with its own and with other numbers, so that
    delays are detected."""
    if any(map(is_random, functional.graph.nodes)):
        return
    plain, ordered = make_plain(functional), orders_elements(functional)
    buffers = dict(module.named_buffers(remove_duplicate=False))
    paths = {id(t): target for target, t in {**functional.state_dict, **functional.constants}.items()}
    written = {node.args[0].target for node in writes(plain)}
    targets = {name: paths.get(id(t), "") for name, t in buffers.items() if paths.get(id(t)) in written}
    random = torch.Generator().manual_seed(0)
    other = {n: t + torch.rand(t.shape, generator=random) for n, t in buffers.items() if t.is_floating_point()}
    for begin in ({}, {name: other[name].to(buffers[name].dtype) for name in targets if name in other}):
        own, calls, want = copy_module(module), _Calls(), list[Array]()
        _set(own, begin)
        try:
            for each in (tuple(inputs), *(vary_inputs(inputs, which) for which in range(COUNT)), tuple(inputs)):
                results = flat_tensors(call_method(own, method, each, ordered))
                want += map(tensor_array, (*results, *map(own.get_buffer, buffers)))
                calls.append(each)
        except CompileError:  # the model rejects these values
            pass
        run = _program(plain, buffers, targets, begin)
        wrong = _find_wrong(calls, want, partial(move_and_run, plain, run, calls, 1), list(buffers))
        if wrong is not None:
            raise _lost_state(module, method, calls, own, *wrong)


def _set(module: Any, values: Mapping[str, torch.Tensor]) -> None:
    for path, value in values.items():
        attribute(module, path).data.copy_(value)


def _program(
    plain: Any, buffers: Mapping[str, torch.Tensor], targets: Mapping[str, str], begin: Mapping[str, torch.Tensor]
) -> Callable[..., list[torch.Tensor]]:
    """Return a function that calls the program with each set of inputs: results and all buffers, after each call."""

    def run(*calls: Any) -> list[torch.Tensor]:
        _set(plain, {targets[name]: value for name, value in begin.items()})
        found = []
        for inputs in calls:
            held = flat_tensors(plain(*inputs))
            held += [attribute(plain, targets[name]) if name in targets else t for name, t in buffers.items()]
            found += [t.clone() for t in held]
        return found

    return run


def _find_wrong(
    calls: _Calls, want: Sequence[Array], moved: Callable[[int], tuple[Array, ...]], names: Sequence[str]
) -> tuple[str, tuple[int, float, float]] | None:
    """Return a buffer that differs, or "" for a result that does, with its index, its difference and its largest
    number."""
    each = len(want) // max(len(calls), 1)

    def part(found: Sequence[Array], state: bool) -> tuple[Array, ...]:
        return tuple(a for i, a in enumerate(found) if (i % each >= each - len(names)) is state)

    def compared(state: bool) -> tuple[int, float, float] | None:
        return difference(part(have, state), Reference(part(want, state), 1, lambda seed: part(moved(seed), state)))

    have = moved(0)
    for state in (True, False):
        found = compared(state)
        if found is not None:
            return names[found[0] % len(names)] if state else "", found
    return None


def _lost_state(
    module: nn.Module, method: str, calls: _Calls, own: nn.Module, name: str, wrong: tuple[int, float, float]
) -> Exception:
    """Return the error that names a buffer, and where it is changed. `own` is the module after the calls."""
    names = [n for n, _ in module.named_buffers(remove_duplicate=False)]
    name = name or next((n for n in names if set(_sharing(own, n)) - set(_sharing(module, n))), "")
    if not name:
        return WrongStep("torch.export", *wrong)
    for other in (*_sharing(own, name), *_sharing(module, name)):
        return shared_memory(name, other)
    parent, _, leaf = name.rpartition(".")
    change = AttributeChange(name, module.get_submodule(parent), leaf, None, None, "_buffers")
    made = [MethodCall(method, inputs, i) for i, inputs in enumerate(calls)]
    before = Snapshot(module)
    try:
        _, line = line_of(before, made, change, lambda method, inputs: call_method(module, method, inputs))
    finally:
        before.restore()
    path = f"self.{name}"
    return CompileError(
        f"{method}() changes the buffer {path} in a way that torch.export loses",
        at=place_of(name, line),
        have=types([module.get_buffer(name)])[1:-2],
        need="buffers with memory of their own, changed by assignment or by operators that end in _",
        try_=f"{path}.copy_(new) or {path} = new",
    )


def _sharing(module: nn.Module, name: str) -> Iterator[str]:
    """Yield other buffers in the same memory."""
    memory = module.get_buffer(name).untyped_storage().data_ptr()
    for other, t in module.named_buffers(remove_duplicate=False):
        if other != name and memory and t.untyped_storage().data_ptr() == memory:
            yield other
