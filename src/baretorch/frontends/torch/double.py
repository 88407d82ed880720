"""Runs a PyTorch program in double precision: the result without float32's limits of precision and range."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class InDouble(TorchDispatchMode):  # type: ignore[misc]
    """A mode in which operators compute in float64 instead of float32. State is kept in float32."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func._schema.is_mutable:
            return func(*args, **(kwargs or {}))
        given, named = torch.utils._pytree.tree_map(_wider, (args, kwargs or {}))
        return func(*given, **named)


def _wider(x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        return x.double() if x.dtype is torch.float32 else x
    return torch.float64 if x is torch.float32 else x
