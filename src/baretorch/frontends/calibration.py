"""Reads inputs stored next to a model file: samples for --calibration, and example inputs. Those of `net.onnx` are
`net.calibration.npz` and `net.inputs.npz`, or, for all models of the folder, `calibration.npz` and `inputs.npz`.

An `.npz` has an array for each input, by the input's name. Arrays of other names are used if only one assignment to the
inputs fits their shapes; those that `np.savez` numbers are in the inputs' order. The first dimension counts samples. A
folder of `.npy` files is for models with one input; each file is a sample, or several.
"""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.files.read import need_regular
from baretorch.ir.graph import Array, Graph, Port
from baretorch.ir.io import as_real

CALIBRATION = "calibration.npz"  # used without --calibration
EXAMPLES = "inputs.npz"
NUMBERED = "arr_"  # np.savez gives such names to arrays without one
COUNTED = (NUMBERED, "input_")  # beginnings of names that count the inputs
MOST = 1 << 30  # bytes of all samples of a file or folder, as float32 if that is larger than what is stored
PIECE = 1 << 18  # bytes that are read or numbers that are checked at once
NEED = "an .npz with an array for each input, whose first dimension counts samples, or a folder of .npy files"


@dataclass(frozen=True, eq=False)
class FileSamples:
    """Samples from files: for each input an array as it is stored, whose first dimension counts samples; warnings about
    them, and notes about the names of arrays. Each sample is converted when it is read."""

    parts: tuple[tuple[Array, ...], ...]
    ports: tuple[Port, ...]
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[tuple[Array, ...]]:
        for part in self.parts:
            for rows in zip(*part, strict=True):
                yield tuple(map(_convert, rows, self.ports))


def calibration_of(model: Path, given: Path | None, graph: Graph) -> FileSamples | None:
    """Return the samples in the `given` file or folder, or next to the model; None if there are none."""
    ports = graph.takes()
    if given is None:
        return _read_next_to(model, CALIBRATION, ports)
    path = given
    if path.is_dir():
        files = sorted(path.glob("*.npy"))
        if len(ports) != 1 or not files:
            raise CompileError(
                f"--calibration: {path} has {len(files)} .npy files for a model with {len(ports)} inputs", need=NEED
            )
        loaded, room = list[tuple[Path, Array]](), MOST
        for file in files:
            loaded += [(file, x) for x in _load(file, room).values()]
            room -= sum(_size(x.size, x.dtype) for at, x in loaded if at == file)
        parts = tuple((_samples(x, ports[0], file),) for file, x in loaded)
        file, first = loaded[0]
        return FileSamples(parts, tuple(ports), tuple(_warn_unscaled(first, ports[0], file)))
    return _of_npz(path, ports)


def examples_of(
    model: Path, graph: Graph, notes: list[str], calibration: Path | None = None
) -> tuple[Array, ...] | None:
    """Return the first sample of `example_samples`, in the caller's order, and add its `notes`. Return None if there is
    none."""
    found = example_samples(model, graph, calibration)
    notes += found.notes if found else ()
    return None if found is None else next(iter(found))


def example_samples(model: Path, graph: Graph, calibration: Path | None = None) -> FileSamples | None:
    """Return the samples in `inputs.npz` next to the model. Without such a file, return those for calibration, because
    random numbers may be invalid inputs. Return None if there is neither."""
    found = _read_next_to(model, EXAMPLES, graph.takes())
    if found is None and (found := _fitting_samples(model, calibration, graph)) is not None:
        found = replace(found, notes=())
    return found


def _fitting_samples(model: Path, calibration: Path | None, graph: Graph) -> FileSamples | None:
    """Return samples for calibration, or None if they do not fit this model; quantization reports that error."""
    try:
        return calibration_of(model, calibration, graph)
    except CompileError:
        return None


def _read_next_to(model: Path, kind: str, ports: Sequence[Port]) -> FileSamples | None:
    """Return the samples in the model's own file of this kind, or in the folder's; None if there is neither."""
    own, shared = model.with_name(f"{model.stem}.{kind}"), model.with_name(kind)
    if own.is_file():
        return _of_npz(own, ports)
    if not shared.is_file():
        return None
    try:
        return _of_npz(shared, ports)
    except CompileError as error:
        error.try_ = (f"if it is another model's: call it after that one, as {own.name} would be for this one",)
        raise


def _of_npz(path: Path, ports: Sequence[Port]) -> FileSamples:
    if path.suffix != ".npz":
        raise CompileError(f"{path} holds no samples", need=NEED)
    stored = _load(path, MOST)
    wanted = [p.tensor.name for p in ports]
    names = _assign(path, stored, ports)
    pairs = zip(names, wanted, strict=True)
    other = [f"{have} for {name}" for have, name in pairs if have != name and not have.startswith(NUMBERED)]
    notes = [f"{path.name} has arrays of other names than the inputs; taken is {', '.join(other)}"] if other else []
    warnings = [f"calibration: {note}" for note in notes]
    found = tuple(_samples(stored[name], port, path) for name, port in zip(names, ports, strict=True))
    counts = {len(x) for x in found}
    if len(counts) > 1 or counts == {0}:
        raise CompileError(
            f"{path} has no sample, or not the same number for each input",
            have=", ".join(f"{n}: {len(x)}" for n, x in zip(names, found, strict=True)),
        )
    for name, port in zip(names, ports, strict=True):
        warnings += _warn_unscaled(stored[name], port, path)
    return FileSamples((found,), tuple(ports), tuple(warnings), tuple(notes))


def _assign(path: Path, stored: Mapping[str, Array], ports: Sequence[Port]) -> list[str]:
    """Return the name of each input's array. Where no array is called as an input, only one assignment may fit: then an
    array is the only one that fits an input, or fits only one input, and the same is true of the rest."""
    wanted = [p.tensor.name for p in ports]
    if set(wanted) <= set(stored):
        return wanted
    if len(stored) != len(ports) or set(wanted) & set(stored):
        raise CompileError(
            f"{path} does not have an array for each input",
            have=", ".join(stored) or "no arrays",
            need=", ".join(wanted) or "a model with inputs",
        )
    counted = ([f"{stem}{i}" for i in range(len(ports))] for stem in COUNTED)
    if len(ports) == 1 or list(stored) in counted:
        return list(stored)
    names = dict[str, str]()
    fits = {p.tensor.name: {name for name, x in stored.items() if _fits(x, p, path)} for p in ports}
    while fits:
        only = ((name, have) for name, some in fits.items() for have in some if len(some) == 1 or _in_one(have, fits))
        name, have = next(only, ("", ""))
        if not name:
            raise CompileError(
                f"{path} has arrays of other names than the inputs, and it is not clear which is for which input",
                have=", ".join(f"{name}: {x.dtype.name}{list(x.shape)}" for name, x in stored.items()),
                need=", ".join(f"{p.tensor.name}: {p.dtype.label}{list(p.shape)}" for p in ports),
            )
        names[name] = have
        del fits[name]
        fits = {other: some - {have} for other, some in fits.items()}
    return [names[name] for name in wanted]


def _in_one(have: str, fits: Mapping[str, Collection[str]]) -> bool:
    return sum(have in some for some in fits.values()) == 1


def _fits(x: Array, port: Port, path: Path) -> bool:
    try:
        _samples(x, port, path)
    except CompileError:
        return False
    return True


def _warn_unscaled(x: Array, port: Port, path: Path) -> list[str]:
    """Warn about whole numbers for a float input, which may be unscaled pixels."""
    if x.dtype.kind not in "iu" or port.dtype.numpy.kind != "f" or not x.size or _is_stored(x, port):
        return []
    kind, name = x.dtype.name, port.tensor.name
    return [f"calibration: {path.name} has {kind} from {x.min()} to {x.max()} for {name}, which are taken as they are"]


def _is_stored(x: Array, port: Port) -> bool:
    """Report whether an array holds stored values of a quantized input, not real numbers."""
    return port.tensor.is_quantized and x.dtype == port.tensor.dtype.numpy


def _load(path: Path, room: int) -> dict[str, Array]:
    """Return the arrays of an .npz by name, or the unnamed array of an .npy. Nothing in the file runs, and at most
    `room` bytes are read, whatever size the file states."""
    try:
        need_regular(path)
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):
                file.seek(0)
                return {"": _array(file, room)}
            found = dict[str, Array]()
            with zipfile.ZipFile(file) as parts:
                for name in parts.namelist():
                    with parts.open(name=name, mode="r") as part:
                        x = found[name.removesuffix(".npy")] = _array(part, room)
                    room -= _size(x.size, x.dtype)
            return found
    except Exception as error:  # NumPy, zipfile and zlib raise many kinds
        reason = str(error)[:200] or type(error).__name__
        raise CompileError(f"cannot read {path}", have=reason, need=NEED) from error


def _array(file: IO[bytes], room: int) -> Array:
    """Read one .npy. The header's size is checked before memory is reserved for it."""
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"version {version[0]}.{version[1]} of .npy, which plain numbers do not need")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, columns, dtype = read(file)
    if dtype.hasobject:
        raise ValueError("it has Python objects, not numbers")
    count = prod(shape)
    if _size(count, dtype) > room:
        raise ValueError(f"its samples need more than {MOST:,} bytes of memory; fewer samples will do")
    data = np.empty(count * dtype.itemsize, np.uint8)
    for at in range(0, data.size, PIECE):
        piece = file.read(min(PIECE, data.size - at))
        if len(piece) < min(PIECE, data.size - at):
            raise ValueError(f"it ends after {at + len(piece):,} of {data.size:,} bytes")
        data[at : at + len(piece)] = np.frombuffer(piece, np.uint8)
    file.read(1)  # at its end, a part of an .npz compares its checksum
    x: Array = data.view(dtype)
    return x.reshape(shape[::-1]).T if columns else x.reshape(shape)


def _size(count: int, dtype: np.dtype[Any]) -> int:
    """Return the bytes that numbers need as they are stored or as float32, whichever is larger."""
    return count * max(dtype.itemsize, 4)


def _samples(x: Array, port: Port, path: Path) -> Array:
    """Return the array with a first dimension that counts samples, each of the input's shape. A batch of 1 may be left
    out. The numbers stay as they are stored, and are checked to be numbers of the input's type."""
    shape = port.shape
    if x.shape == shape:
        x = x[None]
    if x.shape[1:] == shape[1:] and shape[:1] == (1,) and x.ndim == len(shape):
        x = x[:, None]
    if x.shape == shape[1:] and shape[:1] == (1,):
        x = x[None, None]
    if x.shape[1:] != shape or x.dtype.kind not in "fiub":
        raise CompileError(
            f"{path} does not fit the input {port.tensor.name}",
            have=f"{x.dtype.name}{list(x.shape)}",
            need=f"{port.dtype.label}[samples, {', '.join(map(str, shape))}]",
        )
    step = PIECE // max(1, prod(shape)) + 1
    for at in range(0, len(x), step) if port.dtype.numpy.kind != "f" else ():
        some = x[at : at + step]
        made = _convert(some, port)
        if not np.array_equal(made, some):
            raise CompileError(
                f"{path} has numbers for the input {port.tensor.name} that {port.dtype.label} does not have",
                have=f"{x.dtype.name} such as {some[made != some][0]}",
                need=port.dtype.label,
            )
    return x


def _convert(x: Array, port: Port) -> Array:
    """Return samples as real numbers, or in the type of an integer input."""
    if _is_stored(x, port):
        return as_real(port.tensor, x)
    with np.errstate(all="ignore"):
        return np.asarray(x).astype(port.dtype.numpy)
