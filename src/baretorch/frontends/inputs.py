"""The inputs of a model: in the structures that compile() and run() accept, and varied, so that a model can be compared
for more than one input."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.source import Source
from baretorch.ir.graph import Array

SHRINK = (0.75, 0.5)  # factors for real numbers, which stay in the range of the example
COUNT = len(SHRINK)


def as_inputs(inputs: Any, model: Any, method: str = "forward", who: str = "inputs()") -> tuple[Any, ...]:
    """Return the arguments of a method. A tuple or a list has one for each, a dict has them by parameter name. Anything
    else is the only argument, including a dict for a method with one parameter."""
    if isinstance(inputs, (tuple, list)):
        return tuple(inputs)
    if not isinstance(inputs, dict) or is_trainable(model):
        return (inputs,)
    function = getattr(model, method, model)
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return (inputs,)
    if inputs and set(inputs) <= set(parameters):
        try:
            bound = inspect.signature(function).bind(**inputs)
        except TypeError as error:
            raise _wrong_names(inputs, method, function, who) from error
        if bound.kwargs:
            raise _wrong_names(inputs, method, function, who)
        return bound.args
    if len(parameters) == 1:
        return (inputs,)
    raise _wrong_names(inputs, method, function, who)


def is_trainable(model: Any) -> bool:
    """Report whether a model is one that baretorch.trainable() returned, which converts itself to a Source."""
    return callable(getattr(model, "as_source", None))


def _wrong_names(inputs: dict[Any, Any], method: str, function: Any, who: str) -> CompileError:
    parameters = inspect.signature(function).parameters.values()
    named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name in inputs]
    if named:
        return CompileError(
            f"{method}() takes {', '.join(named)} by keyword only, and an image takes inputs in order",
            have=f"{method}{inspect.signature(function)}",
            need="positional parameters",
            try_=f"def {method}(self, {', '.join(p.name for p in parameters)}), without *",
        )
    return CompileError(
        f"{who} has a dict that does not fit {method}()",
        have=f"the keys {', '.join(map(repr, inputs))}",
        need=f"the parameters of {method}{inspect.signature(function)}, by their names and without gaps",
        try_="a tuple of tensors, in the order of the parameters",
    )


def flat_like(source: Source, inputs: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the inputs one by one, in the order of the C interface."""
    if not named and (all(hasattr(x, "shape") for x in inputs) or not list(_leaves(inputs))):
        return tuple(inputs)
    names = [port.tensor.name for port in source.graph.takes()]
    whole = dict(named) if not inputs else inputs[0] if len(inputs) == 1 and not named else None
    if isinstance(whole, dict) and set(whole) == set(names):
        return tuple(whole[name] for name in names)
    for arguments in _arguments(source, inputs, named, whole):
        wanted = dict(_leaves(source.torch.inputs[source.method])) if source.torch else {}
        found = dict(_leaves(arguments))
        if found.keys() == wanted.keys():
            return tuple(found[path] for path in wanted)
    if isinstance(whole, (list, tuple)) and len(whole) == len(names):
        return tuple(whole)
    raise CompileError(
        "the inputs of run() are not those of the model",
        have=f"the names {', '.join(map(str, whole))}" if isinstance(whole, dict) else f"{len(inputs)} arguments",
        need=f"{', '.join(names)}, in this order or by these names",
    )


def _arguments(
    source: Source, inputs: Sequence[Any], named: Mapping[str, Any], whole: Any
) -> Iterator[tuple[Any, ...]]:
    """Yield the arguments of the method that the inputs may represent; none without a PyTorch module."""
    torch = source.torch
    if torch is None or torch.module is None or source.method not in torch.inputs:
        return
    if named:
        try:
            yield inspect.signature(getattr(torch.module, source.method)).bind(*inputs, **named).args
        except TypeError:
            return
    else:
        yield tuple(inputs)
        if whole is not None:
            yield as_inputs(whole, torch.module, source.method, "run()")


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield the tensors and arrays in nested dicts, lists and tuples, with their paths."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif isinstance(value, (list, tuple)):
        for i, inner in enumerate(value):
            yield from _leaves(inner, (*path, i))
    elif hasattr(value, "shape"):
        yield path, value


def variations(inputs: Sequence[Array]) -> list[tuple[Array, ...]]:
    """Return two sets of inputs that differ from the example and from each other, if that is possible.

    Values are moved along the first dimension that has several. Real numbers are scaled down as well. Integers keep to
    the values of the example, or to 0 and half of it if they are all equal, so that indices stay valid.
    """
    return [tuple(_vary(x, which) for x in inputs) for which in range(COUNT)]


def _vary(x: Array, which: int) -> Array:
    axis = next((i for i, size in enumerate(x.shape) if size > 1), None)
    moved = x if axis is None else np.roll(x, which + 1, axis)
    if x.dtype.kind in "fc":
        if not x.any():
            rng = np.random.default_rng(which)
            return np.asarray(rng.standard_normal(x.shape), x.dtype)
        return np.asarray(moved * SHRINK[which], x.dtype)
    if x.dtype.kind in "iu" and np.array_equal(moved, x) and x.size:
        least = x.min()
        return np.full_like(x, least if least < x.max() else 0 if which else max(least, 0) // 2)
    return np.array(moved)
