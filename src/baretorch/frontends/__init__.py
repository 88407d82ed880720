"""File or object -> Source: the ATen program, example inputs, and PyTorch's own answers to them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.program import AtenProgram
from baretorch.ir import Array


@dataclass(frozen=True)
class Source:
    """A model as read. `examples` are in the memory order of the C interface, `expected` what PyTorch gives for
    them, and `expected_again` what it gives for them once more, which differs if it remembers; None where there is no
    PyTorch model to ask. `exported` is torch's own program, where there is one."""

    name: str
    program: AtenProgram
    examples: tuple[Array, ...]
    expected: tuple[Array, ...] | None
    expected_again: tuple[Array, ...] | None = None
    module: Any = None
    torch_inputs: tuple[Any, ...] = ()
    exported: Any = None


def load(path: str) -> Source:
    """Read a model file: .py with model() and inputs(), .pt2, or .pte."""
    file = Path(path)
    if not file.is_file():
        raise CompileError(
            f"there is no file {path}",
            need="a Python model file, a .pt2 or a .pte",
            try_="`baretorch new my_model.py` writes a model file to start from",
        )
    name = _name(file)
    if file.suffix == ".py":
        import baretorch.frontends.torch_export  # noqa: F401  (first, as its error says how to get torch)
        from baretorch.frontends.model_file import load_model_file

        module, inputs = load_model_file(file)
        return from_module(module, inputs, name)
    if file.suffix == ".pt2":
        return _from_pt2(file, name)
    if file.suffix == ".pte":
        return _from_pte(file, name)
    raise CompileError(f"{path}: unknown kind of model file {file.suffix!r}", need="a .py, .pt2 or .pte file")


def from_module(module: Any, inputs: Sequence[Any], name: str) -> Source:
    """An nn.Module and its example inputs."""
    from baretorch.frontends import torch_export

    exported = torch_export.export_module(module, inputs)
    program = torch_export.read_exported(exported, name)
    flat = torch_export.flat_inputs(inputs)
    examples = tuple(torch_export.to_numpy(x, i.order) for x, i in zip(flat, program.inputs, strict=True))
    own = deepcopy(module) if program.state else module
    expected, again = (torch_export.run_module(own, inputs, program.output_orders) for _ in range(2))
    return Source(name, program, examples, expected, again, module, tuple(inputs), exported)


def _from_pt2(file: Path, name: str) -> Source:
    from baretorch.frontends import torch_export

    exported = torch_export.load_pt2(file)
    program = torch_export.read_exported(exported, name)
    if not exported.example_inputs:
        return Source(name, program, _random(program), None, exported=exported)
    args = exported.example_inputs[0]
    flat = torch_export.flat_inputs(args)
    examples = tuple(torch_export.to_numpy(x, i.order) for x, i in zip(flat, program.inputs, strict=True))
    own = exported.module()
    expected, again = (torch_export.run_module(own, args, program.output_orders) for _ in range(2))
    return Source(name, program, examples, expected, again, None, tuple(args), exported)


def _from_pte(file: Path, name: str) -> Source:
    from baretorch.frontends.pte import read_pte

    program = replace(read_pte(file.read_bytes(), name), file=str(file))
    return Source(name, program, _random(program), None)


def _random(program: AtenProgram) -> tuple[Array, ...]:
    """Seeded inputs for a program that brings none."""
    rng = np.random.default_rng(0)
    arrays = []
    for i in program.inputs:
        shape = tuple(i.shape[d] for d in i.order)
        if i.dtype.numpy.kind == "f":
            arrays.append(rng.standard_normal(shape).astype(i.dtype.numpy))
        else:
            arrays.append(rng.integers(0, 2, shape).astype(i.dtype.numpy))
    return tuple(arrays)


def _name(file: Path) -> str:
    """The model's name: the file's, or its folder's if the file is just called model.py."""
    stem = file.resolve().parent.name if file.stem in ("model", "main") else file.stem
    name = "".join(c if c.isalnum() and c.isascii() else "_" for c in stem).strip("_").lower()
    return name if name and not name[0].isdigit() else f"model_{name}".rstrip("_")
