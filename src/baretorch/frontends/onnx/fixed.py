"""Makes constants of inputs, as `--fix sr=16000` states."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.escape import quote, short
from baretorch.frontends.onnx.proto import dtype_of, tensor_of
from baretorch.frontends.untrusted import ROOM, too_large
from baretorch.ir.graph import Array, DType

TRUTHS = {"true": "1", "false": "0"}


def fix_inputs(model: Any, values: Mapping[str, str], state: Mapping[str, str]) -> None:
    """Replace inputs of a model by constants: a number for all elements, or one for each."""
    inputs = {i.name: i for i in model.graph.input if i.name not in state}
    for name, text in values.items():
        if name in state:
            raise CompileError(f"--fix: {quote(name)} is state", need=f"--fix or --state {short(name)}, not both")
        if name not in inputs:
            raise CompileError(f"--fix: the model has no input {quote(name)}", have=", ".join(inputs) or "no inputs")
        kind = inputs[name].type.WhichOneof("value")
        if kind != "tensor_type":
            raise CompileError(f"--fix: {quote(name)} is a {str(kind).removesuffix('_type')}", need="a tensor")
        dtype = dtype_of(inputs[name].type.tensor_type.elem_type, f"the input {name!r}")
        numbers = [_number(name, word.strip(), dtype) for word in text.split(",")]
        data = _reshape(name, np.array(numbers, dtype.numpy), inputs[name].type.tensor_type)
        others = [t for t in model.graph.initializer if t.name != name]
        if len(others) < len(model.graph.initializer):
            del model.graph.initializer[:]
            model.graph.initializer.extend(others)
        model.graph.initializer.append(tensor_of(data, name))


def _number(name: str, word: str, dtype: DType) -> int | float:
    """Return a number that the type can hold."""
    try:
        plain = TRUTHS.get(word.lower(), word)
        number = float(plain) if dtype is DType.FLOAT32 else int(plain)
        with np.errstate(all="ignore"):
            held = np.array(number).astype(dtype.numpy)
        if np.isfinite(held) and (dtype is DType.FLOAT32 or held == number):
            return number
    except (ValueError, OverflowError):
        pass
    raise CompileError(f"--fix {short(name)}={short(word)}: {quote(word)} is not a number of type {dtype.label}")


def _reshape(name: str, data: Array, declared: Any) -> Array:
    """Return numbers in the declared shape. An open size is 1, or one open size is what the other numbers need."""
    if not declared.HasField("shape"):
        return data if data.size > 1 else data.reshape(())
    dims = [d.dim_value if d.HasField("dim_value") else -1 for d in declared.shape.dim]
    known = prod(d for d in dims if d != -1)
    length = data.size // known if dims.count(-1) == 1 and known > 0 else 1
    shape = [length if d == -1 else d for d in dims]
    if max(data.itemsize * prod(shape), *shape, 0) > ROOM:  # some other size may be 0
        raise too_large(f"input {name} is {shape}")
    if min(shape, default=1) < 0 or data.size not in (1, prod(shape)):
        sizes = ", ".join("?" if d == -1 else str(d) for d in dims)
        raise CompileError(f"--fix: {name} is [{sizes}]", have=f"{data.size} numbers", need="one, or one per element")
    return np.broadcast_to(data.reshape(shape if data.size > 1 else ()), shape)
