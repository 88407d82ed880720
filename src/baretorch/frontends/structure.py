"""Accepts the inputs of a run in the structures that compile() accepts: one by one, by name, in a list, a tuple or a
dict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from inspect import signature
from typing import Any

from baretorch.errors import CompileError
from baretorch.frontends.model_file import as_inputs
from baretorch.frontends.source import Source


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
            yield signature(getattr(torch.module, source.method)).bind(*inputs, **named).args
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
