"""Converts a `.pt2` to an ExportedProgram without running anything in the file.

torch.export.load unpickles weights, constants and example inputs, and more (see program.py), so it is left to files
the user trusts. Here the archive is read by ourselves, the program is checked, tensors are taken from their bytes, what
is pickled goes through torch's safe loading, and torch only puts the parts together.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed  # defines operators that quantized programs call
from torch._export.serde import schema
from torch._export.serde.serialize import ExportedProgramDeserializer, _dict_to_dataclass, deserialize_scalar_type

from baretorch.errors import CompileError, InternalError
from baretorch.frontends.aten.program import AtenProgram
from baretorch.frontends.aten.table import TABLE
from baretorch.frontends.pt2.archive import Archive, damaged
from baretorch.frontends.pt2.program import Json, parameter_path, refused, safe_program, tensor_sizes, unsafe
from baretorch.frontends.pt2.shapes import check_shapes
from baretorch.frontends.torch.calls import flat_tensors
from baretorch.frontends.torch.export import read_exported, reason
from baretorch.frontends.torch.notices import quiet
from baretorch.frontends.torch.read import table_name
from baretorch.frontends.untrusted import ROOM, TRY_AGAIN
from baretorch.ir.io import as_array

FORMAT = {"archive_format": b"pt2", "archive_version": b"0", "byteorder": b"little"}
PROGRAM, SAMPLES = "models/model.json", "data/sample_inputs/model.pt"
WEIGHTS, WEIGHTS_LIST = "data/weights/", "data/weights/model_weights_config.json"
CONSTANTS, CONSTANTS_LIST = "data/constants/", "data/constants/model_constants_config.json"
FOLDERS = (WEIGHTS, CONSTANTS, "data/sample_inputs/", "models/", "extra/", ".data/")


def load_program(path: Path, trust: bool = False) -> tuple[Any, Any]:
    """Return an ExportedProgram that torch.export.save wrote, and its example inputs. Content that can run code is read
    only if the user trusts the file."""
    with quiet():
        loaded: tuple[Any, Any] = report_errors(path, lambda: _load_trusted(path) if trust else _load(path))
    return loaded


def read_pt2(exported: Any, path: Path, name: str) -> AtenProgram:
    """Return the ATen program. Inconsistencies are reported as errors of the file."""
    made: AtenProgram = report_errors(path, lambda: read_exported(exported, name))
    return replace(made, file=str(path))


def inputs_in_file(samples: Any, program: AtenProgram) -> tuple[Any, ...] | None:
    """Return the example inputs in the file, or None: tensors that match the program."""
    if not samples:
        return None
    args, named = samples
    return _fitting(
        args, named, program, "the .pt2 file's example inputs are", "export it again with a tuple of example tensors"
    )


def given_inputs(inputs: Sequence[Any], program: AtenProgram) -> tuple[Any, ...]:
    """Return, as tensors, the example inputs of the Python file whose model() returned this file's path."""
    return _fitting(tuple(torch.as_tensor(as_array(x)) for x in inputs), {}, program, "the result of inputs() is", None)


def _fitting(
    args: Sequence[Any], named: Mapping[str, Any], program: AtenProgram, whose: str, instead: str | None
) -> tuple[Any, ...]:
    have = [(tuple(x.shape), str(x.dtype).removeprefix("torch.")) for x in flat_tensors(args)]
    need = [(i.shape, i.dtype.label) for i in program.inputs]
    if named or have != need:
        raise CompileError(
            f"{whose} not what its program accepts",
            have=", ".join([*(f"{dtype}{list(shape)}" for shape, dtype in have), *map(str, named)]) or "none",
            need=", ".join(f"{dtype}{list(shape)}" for shape, dtype in need),
            try_=instead,
        )
    return tuple(args)


def report_errors(path: Path, load: Callable[[], Any]) -> Any:
    """Run torch's reader, and convert its errors to CompileErrors."""
    try:
        return load()
    except CompileError as error:
        error.at = error.at or (str(path),)
        raise
    except InternalError:
        raise
    except Exception as error:
        raise CompileError(f"{path} is not a .pt2 program", have=reason(error), try_=TRY_AGAIN) from error


def _load_trusted(path: Path) -> tuple[Any, Any]:
    exported = torch.export.load(str(path))
    return exported, exported.example_inputs


def _load(path: Path) -> tuple[Any, Any]:
    archive = Archive(path)
    try:
        _check_members(archive)
        program = safe_program(archive.json(PROGRAM), _is_known)
        room = _Room(ROOM + 4 * archive.size)
        weights = _tensors(archive, WEIGHTS, WEIGHTS_LIST, room)
        constants = _tensors(archive, CONSTANTS, CONSTANTS_LIST, room)
        samples = _unpickle(archive.read(SAMPLES), "example inputs", room) if SAMPLES in archive.names else None
    finally:
        archive.close()
    if samples is not None and not _are_inputs(samples):
        raise damaged("its example inputs are not a tuple of arguments and a dict of named ones")
    made = _dict_to_dataclass(schema.ExportedProgram, program)
    exported = ExportedProgramDeserializer().deserialize(made, weights, constants)
    check_shapes(exported)
    return exported, samples


def _check_members(archive: Archive) -> None:
    for name, content in FORMAT.items():
        if name in archive.names and archive.read(name) != content:
            raise damaged(f"{name} is {archive.read(name)[:20]!r}, not {content!r}")
    if "archive_format" not in archive.names:
        raise damaged("it lacks the mark of torch.export.save of torch 2.8 or newer")
    for name in archive.names:
        if name.startswith("data/aotinductor/"):
            raise CompileError(
                "the .pt2 file holds compiled code for this kind of computer (AOTInductor)",
                have=name,
                need="a program that torch.export.save wrote",
            )
        if name not in FORMAT and not name.startswith(FOLDERS):
            raise damaged(f"it has a member {name!r}, which torch.export.save does not write")


class _Room:
    """The number of bytes that tensors may still take in total."""

    def __init__(self, bytes: int) -> None:
        self._left = bytes

    def take(self, bytes: int, what: str) -> None:
        self._left -= bytes
        if self._left < 0:
            raise damaged(f"{what} makes its tensors far larger than itself ({bytes:,} bytes)")


def _tensors(archive: Archive, folder: str, config: str, room: _Room) -> dict[str, Any]:
    """Return the tensors of a list, by name. Those in the same member share memory, as they did in the model."""
    rows = archive.json(config)
    rows = rows.get("config") if isinstance(rows, dict) else None
    if not isinstance(rows, dict):
        raise damaged(f"{config} is not a list of tensors")
    stored: dict[tuple[str, int], Any] = {}
    return {parameter_path(n): _tensor(archive, folder, n, row, stored, room) for n, row in rows.items()}


def _tensor(
    archive: Archive, folder: str, name: str, row: Json, stored: dict[tuple[str, int], Any], room: _Room
) -> Any:
    member = row.get("path_name") if isinstance(row, dict) else None
    if not isinstance(member, str):
        raise damaged(f"{name} has no data")
    if member.startswith(("custom_obj", "opaque_obj")):
        raise unsafe(f"an object of a class of its own for {name}")
    if row.get("use_pickle") is not False:
        return _pickled_tensor(archive.read(folder + member), name, room)
    meta = row.get("tensor_meta")
    sizes, strides, offset = tensor_sizes(meta)
    dtype = deserialize_scalar_type(meta["dtype"])
    room.take(prod(sizes) * dtype.itemsize, name)
    if (member, meta["dtype"]) not in stored:
        raw = bytearray(archive.read(folder + member))
        if len(raw) % dtype.itemsize:
            raise damaged(f"{name} has {len(raw)} bytes, no multiple of {dtype.itemsize}")
        stored[member, meta["dtype"]] = torch.frombuffer(raw, dtype=dtype) if raw else torch.empty(0, dtype=dtype)
    flat = stored[member, meta["dtype"]]
    last = offset + sum((n - 1) * stride for n, stride in zip(sizes, strides, strict=True))
    if prod(sizes) and last >= len(flat):
        raise damaged(f"{name} needs {last + 1} elements, its data ends after {len(flat)}")
    made = torch.as_strided(flat, sizes, strides, offset if prod(sizes) else 0)
    return torch.nn.Parameter(made, requires_grad=False) if row.get("is_param") is True else made


def _pickled_tensor(raw: bytes, name: str, room: _Room) -> Any:
    """Return a tensor that torch pickled because it has a class of its own."""
    made = _unpickle(raw, f"values of {name}", room)
    if type(made) not in (torch.Tensor, torch.nn.Parameter) or made.layout is not torch.strided:
        raise unsafe(f"a tensor of another class than torch.Tensor for {name}")
    return made


def _unpickle(raw: bytes, what: str, room: _Room) -> Any:
    """Unpickle with torch's safe loader, after checking the archive."""
    if not raw:
        return None
    pickle = f"the .pt2 file's {what} are not plain tensors: reading them could run code"
    if raw[:1] == b"\x80":  # a bare pickle, not an archive of torch.save
        raise refused(pickle)
    try:
        Archive(raw).close()
    except CompileError as error:
        raise damaged(f"its {what} cannot be read ({error.what.removeprefix(damaged('').what)})") from None
    try:
        made = torch.load(io.BytesIO(raw), map_location="cpu", weights_only=True)
    except Exception as error:
        if "weights_only" in str(error) or "Weights only" in str(error):
            raise refused(pickle) from error
        raise damaged(f"its {what} cannot be read ({reason(error)})") from error
    for leaf in torch.utils._pytree.tree_leaves(made):
        if isinstance(leaf, torch.Tensor):
            room.take(leaf.numel() * leaf.element_size(), f"its {what}")
    return made


def _are_inputs(samples: Any) -> bool:
    match samples:
        case (tuple(), dict(named)):
            return all(isinstance(n, str) for n in named)
    return False


@cache
def decomposed_operators() -> frozenset[str]:
    """Return the operators that torch itself decomposes."""
    return frozenset(o._schema.name for o in torch.export.default_decompositions() if hasattr(o, "_schema"))


def _is_known(namespace: str, name: str, overload: str) -> bool:
    """Report whether an operator only computes tensors from tensors: operators of our table, those that torch
    decomposes, and core ATen. Others read and write files, or trust the sizes that they are given."""
    if namespace not in ("aten", "quantized_decomposed"):
        return False
    packet = getattr(getattr(torch.ops, namespace), name, None)
    target = getattr(packet, overload, None)
    if not isinstance(target, torch._ops.OpOverload):
        return False
    return table_name(target) in TABLE or target._schema.name in decomposed_operators() or torch.Tag.core in target.tags
