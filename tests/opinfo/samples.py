"""PyTorch's own sample calls of an operator, each compiled and compared with eager PyTorch."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from baretorch.errors import CompileError
from baretorch.frontends import from_module
from baretorch.ir.graph import interpret
from baretorch.passes.order import lower_graph
from tests.opinfo.operators import OPERATORS, WEIGHTS_AFTER, WEIGHTS_FIRST

ELEMENTS = 2000  # of a tensor, at most
RTOL, ATOL = 1e-4, 1e-5


class Kind(Enum):
    """The outcome of a sample. The last two are bugs."""

    PASSED = "passed"
    REFUSED = "refused"
    NOT_EXPORTABLE = "not exportable"
    WRONG = "wrong"
    CRASHED = "crashed"


@dataclass(frozen=True)
class Outcome:
    """`call` shows the sample, `reason` says why it did not pass."""

    kind: Kind
    call: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.call}: {self.reason}"


class Call(nn.Module):
    """One call of an operator: its tensors are inputs or, if they are weights, buffers; the rest is fixed."""

    def __init__(self, name: str, function: Callable[..., Any], sample: Any) -> None:
        super().__init__()
        arguments = (sample.input, sample.args, sample.kwargs)
        self.shown = f"{name}{pytree.tree_map(_show, arguments)}"
        self.function = function
        self.leaves, self.spec = pytree.tree_flatten(arguments)
        places = [i for i, leaf in enumerate(self.leaves) if isinstance(leaf, Tensor)]
        self.weights = places[1:] if name in WEIGHTS_AFTER else places[:1] if name in WEIGHTS_FIRST else []
        self.places = [i for i in places if i not in self.weights]
        self.inputs = tuple(self.leaves[i] for i in self.places)
        for i in self.weights:
            self.register_buffer(f"weight{i}", self.leaves[i])

    def forward(self, inputs: Sequence[Tensor]) -> Any:
        leaves = list(self.leaves)
        for i, tensor in zip(self.places, inputs, strict=True):
            leaves[i] = tensor
        for i in self.weights:
            leaves[i] = getattr(self, f"weight{i}")
        first, args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return self.function(first, *args, **kwargs)


class Calls(nn.Module):
    """Several calls side by side."""

    def __init__(self, calls: Sequence[Call]) -> None:
        super().__init__()
        self.calls = nn.ModuleList(calls)

    def forward(self, *inputs: Sequence[Tensor]) -> Any:
        return [call(own) for call, own in zip(self.calls, inputs, strict=True)]


def outcomes(name: str, most: int = 6) -> list[Outcome]:
    """Return the outcomes of the operator's samples, at most `most` per type."""
    entry = _database()[name]
    return _outcomes([Call(name, entry.op, s) for dtype in OPERATORS[name] for s in _samples(entry, dtype, most)])


def _outcomes(calls: Sequence[Call]) -> list[Outcome]:
    """Compile all samples in one model, because an export takes long however small it is. If it fails, halves of it
    find the samples that do not pass."""
    if not calls:
        return []
    kind, reason = _compiled(calls)
    if kind is Kind.PASSED or len(calls) == 1:
        return [Outcome(kind, call.shown, reason) for call in calls]
    middle = len(calls) // 2
    return _outcomes(calls[:middle]) + _outcomes(calls[middle:])


def _compiled(calls: Sequence[Call]) -> tuple[Kind, str]:
    """Return the outcome of a model of these calls, and the reason."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # PyTorch's, about its own deprecated functions
            source = from_module(Calls(calls), [call.inputs for call in calls], "m")
        graph = lower_graph(source.graph)
        made = interpret(graph, source.examples)
    except CompileError as error:
        exported = "torch.export cannot export" not in error.what
        return Kind.REFUSED if exported else Kind.NOT_EXPORTABLE, error.what
    except Exception as error:
        return Kind.CRASHED, f"{type(error).__name__}: {error}"
    assert source.expected is not None
    for output, want in zip(graph.outputs, source.expected, strict=True):
        have = made[output]
        if (have.shape, have.dtype) != (want.shape, want.dtype):
            return Kind.WRONG, f"{have.dtype}{have.shape}, not {want.dtype}{want.shape}"
        if not np.allclose(have, want, RTOL, ATOL, equal_nan=True):
            return Kind.WRONG, f"{have.ravel()[:4]}, not {want.ravel()[:4]}"
    return Kind.PASSED, ""


@cache
def _database() -> dict[str, Any]:
    """The entries by `name/variant`. Imported late: it takes seconds."""
    from torch.testing._internal.common_methods_invocations import op_db

    return {f"{e.name}/{e.variant_test_name}".removesuffix("/"): e for e in op_db}


def _samples(entry: Any, dtype: str, most: int) -> list[Any]:
    """Samples small enough for a microcontroller, spread over all there are, the same in every run."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    found = [s for s in entry.sample_inputs("cpu", getattr(torch, dtype)) if all(map(_small, _tensors(s)))]
    return [found[i] for i in np.linspace(0, len(found) - 1, min(most, len(found))).astype(int)]


def _tensors(sample: Any) -> Iterator[Tensor]:
    leaves = pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
    return (leaf for leaf in leaves if isinstance(leaf, Tensor))


def _small(tensor: Tensor) -> bool:
    return 0 < tensor.numel() <= ELEMENTS


def _show(leaf: Any) -> Any:
    return f"{leaf.dtype}{list(leaf.shape)}".removeprefix("torch.") if isinstance(leaf, Tensor) else leaf
