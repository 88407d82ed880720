"""Reads an `.onnx` file as a ModelProto, without trusting it: nothing in it runs or leads out of its folder, and
everything is checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, checker, defs

from baretorch.errors import CompileError
from baretorch.frontends.lowering import unsupported
from baretorch.frontends.onnx.integer import adopt
from baretorch.frontends.onnx.lowering import opsets_of
from baretorch.frontends.onnx.order import graphs_in, nodes_in, sort_nodes
from baretorch.frontends.onnx.versions import OLDEST
from baretorch.frontends.untrusted import ROOM, damaged_file, too_large

LARGEST = 4 * ROOM  # bytes of a file and its external data
CONSTANTS = 4  # the first version of the format in which constants need not be inputs
damaged = partial(damaged_file, ".onnx")


def read_model(file: Path) -> Any:
    """Return the model in a file, including its external data."""
    size = file.stat().st_size
    if size > LARGEST:
        raise too_large(f"{file.name} has {size:,} bytes")
    return parse(file.read_bytes(), file.parent)


def parse(raw: bytes, folder: Path | None = None) -> Any:
    """Parse and check the model in these bytes. External data is in `folder`."""
    model = onnx.ModelProto()
    try:
        model.ParseFromString(raw)
    except Exception as error:  # DecodeError, or what protobuf's implementations raise instead
        raise damaged("it cannot be parsed") from error
    _check_texts(model)
    adopt(model)
    if not model.graph.node and not model.graph.output:
        raise damaged("it has no graph")
    _check_opsets(model)
    for f in (model.graph, *model.functions):
        sort_nodes(f, _circular)
    _check_graph(model.graph, ())
    _load_external(model.graph.initializer, folder)
    _check_operators(model)
    _check_by_onnx(model)
    return model


def _check_operators(model: Any) -> None:
    """Check that ONNX has the operators of its own domain: old opsets had experimental ones."""
    version, own = opsets_of(model).get("", OLDEST), {f.name for f in model.functions}
    unknown = [
        (node.op_type, f"{node.op_type}: {_name_of(node)}")
        for node in nodes_in(model.graph)
        if node.domain in ("", "ai.onnx") and node.op_type not in own and not defs.has(node.op_type, version, "")
    ]
    if unknown:
        hint = f"a later opset_version in the exporter; opset {version} of ONNX does not have them"
        raise unsupported(sorted({op for op, _ in unknown}), [at for _, at in unknown[:20]], hint)


def _check_by_onnx(model: Any) -> None:
    """Check operators, their attributes and types. ONNX's checker requires a shape for every input and output, and that
    constants of the oldest files are inputs too; runtimes do not."""
    ports = [v.type.tensor_type for v in (*model.graph.input, *model.graph.output) if v.type.HasField("tensor_type")]
    shapeless = [t for t in ports if not t.HasField("shape")]
    for t in shapeless:
        t.shape.SetInParent()
    stated, model.ir_version = model.ir_version, max(model.ir_version, CONSTANTS)
    try:
        checker.check_model(model)
    except Exception as error:  # ValidationError, UnicodeDecodeError …
        raise damaged("ONNX's checker refuses it", str(error).strip().split("\n")[0][:200]) from error
    for t in shapeless:
        t.ClearField("shape")
    model.ir_version = stated


def _check_texts(message: Any) -> None:
    """Check that names are text: protobuf returns bytes for anything that is not UTF-8."""
    for about, value in message.ListFields():
        if about.type not in (about.TYPE_STRING, about.TYPE_MESSAGE):
            continue
        for one in value if about.is_repeated else (value,):
            if about.type == about.TYPE_MESSAGE:
                _check_texts(one)
            elif not isinstance(one, str):
                raise damaged(f"{about.name} is not text", repr(one)[:100])


def _check_opsets(model: Any) -> None:
    default, newest = opsets_of(model).get("", 0), defs.onnx_opset_version()
    functions = {f"function {f.name}": opsets_of(f).get("", default) for f in model.functions}
    others = not default and model.graph.node and all(n.domain not in ("", "ai.onnx") for n in model.graph.node)
    for at, version in {**({} if others else {"": default}), **functions}.items():
        if not OLDEST <= version <= newest:
            raise CompileError(
                f"opset {version} is not supported" if version else "the file does not state its opset",
                at=at or None,
                need=f"opset {OLDEST} to {newest}",
                try_="another opset_version in the exporter, a newer onnx package"
                if version > newest
                else "onnx.version_converter.convert_version(model, 20), or another opset_version in the exporter",
            )


def _circular(nodes: Sequence[Any]) -> CompileError:
    """Return the error for nodes that depend on each other in a circle."""
    shown = [f"{n.op_type} {_name_of(n)!r}" for n in nodes]
    circle = [*shown[:4], *(["…", shown[-1]] if len(shown) > 5 else shown[4:]), shown[0]]
    return damaged(f"{shown[0]} depends on its own result", " reads ".join(circle))


def _name_of(node: Any) -> str:
    return str(node.name or next(filter(None, node.output), ""))


def _check_graph(graph: Any, outer: Iterable[str]) -> None:
    """Check that every name is defined once, before it is read."""
    if graph.sparse_initializer:
        name = graph.sparse_initializer[0].values.name
        raise CompileError("sparse tensors are not supported", at=name or None, need="dense initializers")
    made = set(outer)
    own: set[str] = set()
    for names in ((t.name for t in graph.initializer), (i.name for i in graph.input)):
        once = set()
        for name in names:
            if name in once:
                raise damaged(f"two constants or inputs are called {name!r}")
            once.add(name)
        own |= once
    for node in graph.node:
        called = _name_of(node)
        for name in node.input:
            if name and name not in own and name not in made:
                raise damaged(f"{node.op_type} {called!r} reads {name!r}, which is nowhere made")
        for inside in graphs_in(node):
            _check_graph(inside, made | own)
        for name in node.output:
            if name in own:
                raise damaged(f"{node.op_type} {called!r} makes {name!r} a second time")
            if name:
                own.add(name)
    for o in graph.output:
        if o.name not in own and o.name not in made:
            raise damaged(f"its output {o.name!r} is nowhere made")


def _load_external(tensors: Iterable[Any], folder: Path | None) -> None:
    """Read tensors from other files in the model's folder."""
    room = LARGEST
    for tensor in tensors:
        if tensor.data_location != TensorProto.EXTERNAL:
            continue
        said = {entry.key: entry.value for entry in tensor.external_data}
        file = _inside(folder, said.get("location", ""), tensor.name)
        try:
            offset, length = int(said.get("offset", 0)), int(said.get("length", -1))
        except ValueError as error:
            raise damaged(f"{tensor.name!r} is at an invalid position in {file.name!r}", str(error)) from error
        size = file.stat().st_size
        length = size - offset if length < 0 else length
        if offset < 0 or offset + length > size:
            raise damaged(
                f"{tensor.name!r} is at bytes {offset:,} to {offset + length:,} of {file.name!r}, which has {size:,}"
            )
        room -= length
        if room < 0:
            raise too_large(f"external data has more than {LARGEST:,} bytes")
        with file.open("rb") as data:
            data.seek(offset)
            tensor.raw_data = data.read(length)
        tensor.data_location = TensorProto.DEFAULT
        del tensor.external_data[:]


def _inside(folder: Path | None, location: str, name: str) -> Path:
    """Return the file at a location, which must not lead out of the folder."""
    path = Path(location)
    unsafe = not location or path.is_absolute() or ".." in path.parts or "\\" in location or "\0" in location
    file = None if folder is None or unsafe else folder / path
    if file is None or any(p.is_symlink() for p in (file, *file.parents) if p != folder and folder in p.parents):
        raise CompileError(
            f"the external data of {name!r} is at {location!r}, which is outside the model's folder",
            need="a file in the model's folder or a folder below it, not a link",
        )
    if not file.is_file():
        raise CompileError(
            f"the external data of {name!r} is missing",
            need=str(file),
            try_="copy it next to the model, or save the model with save_as_external_data=False",
        )
    return file
