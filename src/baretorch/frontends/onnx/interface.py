"""The interface of a model: its inputs with fixed shapes, its outputs, its state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.onnx.proto import array_of, dtype_of
from baretorch.frontends.untrusted import ROOM, too_large
from baretorch.ir.graph import Array, DType, Shape


@dataclass(frozen=True)
class OnnxInput:
    name: str
    shape: Shape
    dtype: DType


@dataclass(frozen=True, eq=False)
class OnnxState:
    """An input that, from the second run on, has the value of an output of the previous run."""

    input: OnnxInput
    output: str
    initial: Array


@dataclass(frozen=True)
class Interface:
    """The inputs, outputs and state of a model. `outputs` are names of values."""

    inputs: tuple[OnnxInput, ...]
    outputs: tuple[str, ...]
    state: tuple[OnnxState, ...] = ()
    notes: tuple[str, ...] = ()


def interface_of(model: Any, shapes: Mapping[str, Shape], state: Mapping[str, str]) -> Interface:
    """Return the inputs that are not constants, with the user's `shapes`; inputs and outputs that are `state` are
    listed separately."""
    constants = {t.name: t for t in model.graph.initializer}
    given = {i.name: i for i in model.graph.input if i.name not in constants or i.name in state}
    outputs = [o.name for o in model.graph.output]
    _check_names("--shape", shapes, given)
    _check_names("--state", state, given)
    notes: list[str] = []
    inputs = {i.name: i for i in _read_inputs(given.values(), shapes, notes)}
    states = []
    for taken, made in state.items():
        if made not in outputs:
            raise CompileError(f"--state: the model has no output {made!r}", have=", ".join(outputs) or "no outputs")
        i = inputs.pop(taken)
        initial = array_of(constants[taken]) if taken in constants else np.zeros(i.shape, i.dtype.numpy)
        if initial.shape != i.shape:
            raise CompileError(f"--state: {taken!r} begins as {list(initial.shape)}, not {list(i.shape)}")
        states.append(OnnxState(i, made, initial))
    left = tuple(o for o in outputs if o not in state.values())
    return Interface(tuple(inputs.values()), left, tuple(states), tuple(notes))


def _check_names(flag: str, names: Mapping[str, Any], inputs: Mapping[str, Any]) -> None:
    for name in names:
        if name not in inputs:
            raise CompileError(f"{flag}: the model has no input {name!r}", have=", ".join(inputs) or "no inputs")


def _read_inputs(values: Any, shapes: Mapping[str, Shape], notes: list[str]) -> list[OnnxInput]:
    made: list[OnnxInput] = []
    sizes = _symbols(values, shapes)
    open_: dict[str, list[int | str] | None] = {}
    for value in values:
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type":
            raise CompileError(
                f"the input {value.name!r} is a {str(kind or 'value without a type').removesuffix('_type')}",
                need="tensors",
            )
        declared = value.type.tensor_type
        dtype = dtype_of(declared.elem_type, f"the input {value.name!r}")
        dims: list[int | str] | None = None
        if declared.HasField("shape"):
            dims = [size if shapes.get(value.name) else sizes.get(str(size), size) for size in _dims(value)]
        shape = _fix_shape(value.name, dims, shapes.get(value.name), notes)
        if shape is None:
            open_[value.name] = dims
            continue
        if max(prod(shape) * dtype.size, *shape, 0) > ROOM:
            raise too_large(f"input {value.name} has {prod(shape) * dtype.size:,} bytes")
        made.append(OnnxInput(value.name, shape, dtype))
    if open_:
        name, dims = next(iter(open_.items()))
        try_ = (
            [1, 3, 96, 96]
            if dims is None
            else [d if isinstance(d, int) else 96 if i else 1 for i, d in enumerate(dims)]
        )
        given = ",".join(map(str, try_))
        raise CompileError(
            "the model's inputs have no fixed shape",
            have=[f"{name}: {_text(dims)}" for name, dims in open_.items()],
            need="sizes that are known before the image is built",
            try_=f"--shape {name}={given} with the sizes you want; in Python shape={{{name!r}: {tuple(try_)}}}",
        )
    return made


def _dims(value: Any) -> list[int | str]:
    """Return the sizes of an input: numbers, or names of open sizes."""
    return [d.dim_value if d.HasField("dim_value") else d.dim_param or "?" for d in value.type.tensor_type.shape.dim]


def _symbols(values: Any, shapes: Mapping[str, Shape]) -> dict[str, int]:
    """Return the values of named sizes, which inputs may share, from the given shapes."""
    found: dict[str, int] = {}
    for value in values:
        for name, size in zip(_dims(value), shapes.get(value.name, ()), strict=False):
            if isinstance(name, str) and name != "?" and found.setdefault(name, size) != size:
                raise CompileError(f"--shape: {name} of {value.name} is {size}", need=f"{found[name]}, as elsewhere")
    return found


def _text(dims: list[int | str] | None) -> str:
    return "any shape" if dims is None else f"[{', '.join(map(str, dims))}]"


def _fix_shape(name: str, dims: list[int | str] | None, given: Shape | None, notes: list[str]) -> Shape | None:
    """Return the shape of an input; None if it is open. If only the batch is open, it is 1."""
    if given is not None:
        agree = dims is None or (
            len(dims) == len(given) and all(isinstance(d, str) or d == n for d, n in zip(dims, given, strict=True))
        )
        if not agree:
            raise CompileError(f"--shape: {name} is {list(given)}", need=f"a shape like {_text(dims)}")
        return given
    if dims is None:
        return None
    if dims and isinstance(dims[0], str) and not any(isinstance(d, str) for d in dims[1:]):
        notes.append(f"{name}: the batch {dims[0]} is 1; --shape sets another")
        dims = [1, *dims[1:]]
    if any(isinstance(d, str) for d in dims):
        return None
    if any(int(d) < 0 for d in dims):
        raise CompileError(f"the input {name!r} has the shape {_text(dims)}")
    return tuple(int(d) for d in dims)
