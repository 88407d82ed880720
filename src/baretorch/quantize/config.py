"""Read and write configurations of int8 models: small TOML files with layers of another precision than int8, removed
channels, the name of a file with other weights, and the choices of a model file that offers widths and sizes. People
write the first; `baretorch tune` writes all of them:

width = 0.5
weights = "tuned.npz"
[layers]
"net.0" = "int4"
"net.2" = "float"
[removed]
"net.0" = "3, 8-11"
"""

from __future__ import annotations

import difflib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from baretorch.errors import CompileError
from baretorch.escape import quote, short
from baretorch.files.read import need_regular, read_toml
from baretorch.frontends.choices import LISTS, Arguments, is_number
from baretorch.ir.graph import Array, DType, Graph, Quant, Tensor, with_data
from baretorch.passes.prune import drop_channels
from baretorch.quantize.observers import SMALLEST
from baretorch.quantize.precisions import Precision

LARGEST = 1 << 20  # bytes of a TOML file
SCALE = "scale of "  # and the name of a tensor: the name of its scale and zero point in an .npz
COARSEST = 1e30  # the largest scale that calibration finds
HEADER = 1024  # the largest number of bytes of an array's description and name in an .npz


@dataclass(frozen=True)
class Config:
    """A configuration. `removed` are numbers of channels by the layer that computes them. `weights` is an .npz of
    constants by name, without these channels, and of scales, so that nothing depends on how a computer rounds in
    calibration and training. `arguments` are those of model()."""

    layers: Mapping[str, Precision] = field(default_factory=dict)
    removed: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    weights: Path | None = None
    arguments: Arguments = field(default_factory=dict)

    def to_toml(self) -> str:
        lines = [f"{name} = {value}" for name, value in self.arguments.items()]
        lines += [f"weights = {_quote_toml(self.weights.name)}"] if self.weights else []
        lines += ["[layers]", *(f"{_quote_toml(n)} = {_quote_toml(p.value)}" for n, p in self.layers.items())]
        if self.removed:
            lines += ["[removed]", *(f"{_quote_toml(n)} = {_quote_toml(_ranges(c))}" for n, c in self.removed.items())]
        return "\n".join(lines) + "\n"


def read_config(path: str | None) -> Config:
    """Read a configuration, and raise CompileError if it is not valid. Without a path it is empty."""
    if not path:
        return Config()
    file = Path(path)
    try:
        if file.stat().st_size > LARGEST:
            raise CompileError(f"--config {file.name}: it is too large", need=f"at most {LARGEST:,} bytes")
        told = read_toml(file)
    except OSError as error:
        raise CompileError(f"--config: cannot read {path}", have=error.strerror or str(error)) from error
    except ValueError as error:
        raise CompileError(f"--config {file.name} is not TOML", have=str(error), need=NEED) from None
    arguments = {name: _argument(file.name, name, told.pop(name)) for name in LISTS if name in told}
    layers, removed, weights = told.pop("layers", None), told.pop("removed", {}), told.pop("weights", None)
    if told or not isinstance(layers, dict) or not isinstance(removed, dict):
        have = short(", ".join(told)) or None
        raise CompileError(f"--config {file.name}: it has no list of layers", have=have, need=NEED)
    return Config(
        {name: _precision(file.name, name, value) for name, value in layers.items()},
        _channels(file.name, removed),
        None if weights is None else _weights_path(file, weights),
        arguments,
    )


NEED = '[layers] and lines like "net.0" = "int4"'


def _argument(file: str, name: str, value: object) -> int | float:
    if not is_number(value):
        raise CompileError(
            f"--config {file}: {name} = {quote(value)}", need="a number above 0 that the model file offers"
        )
    return value  # type: ignore[return-value]


def _precision(file: str, layer: str, value: object) -> Precision:
    if isinstance(value, str) and value in {*Precision}:
        return Precision(value)
    near = difflib.get_close_matches(short(value) if isinstance(value, str) else "", [p.value for p in Precision], n=1)
    raise CompileError(
        f"--config {file}: {quote(layer)} = {quote(value)}: no such precision",
        need=", ".join(Precision),
        try_=f"did you mean {near[0]!r}?" if near else None,
    )


def _channels(file: str, told: Mapping[str, object]) -> dict[str, tuple[int, ...]]:
    """Return the channels by layer. A short text can name a huge range, so the total number is limited."""
    found: dict[str, tuple[int, ...]] = {}
    left = LARGEST
    for layer, value in told.items():
        found[layer] = _numbers(file, layer, value, left)
        left -= len(found[layer])
    return found


def _numbers(file: str, layer: str, value: object, most: int) -> tuple[int, ...]:
    """Return the numbers of channels in a text such as 3, 8-11."""
    found: list[int] = []
    for part in value.split(",") if isinstance(value, str) else [""]:
        first, dash, last = (word.strip() for word in part.partition("-"))
        words = (first, last) if dash else (first, first)
        low, high = (int(w) if w.isdecimal() and len(w) < 8 else -1 for w in words)
        if low < 0 or high < low or high - low >= most - len(found):
            raise CompileError(
                f"--config {file}: {quote(layer)} = {quote(value)}: these are not valid channels",
                need='numbers, as in "3, 8-11"',
            )
        found += range(low, high + 1)
    return tuple(found)


def _ranges(numbers: Sequence[int]) -> str:
    """Return numbers of channels as a text such as 3, 8-11."""
    ordered = sorted(numbers)
    gaps = [i for i, (a, b) in enumerate(pairwise(ordered), 1) if b != a + 1]
    runs = [ordered[a:b] for a, b in pairwise([0, *gaps, len(ordered)])]
    return ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)


def _quote_toml(text: str) -> str:
    """Return a TOML string."""
    return '"' + "".join(c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in text) + '"'


def _weights_path(file: Path, name: object) -> Path:
    if not isinstance(name, str) or Path(name).name != name or not name.endswith(".npz"):
        raise CompileError(
            f"--config {file.name}: weights = {quote(name)}", need="the name of an .npz file in the folder of the TOML"
        )
    return file.with_name(name)


def apply_config(graph: Graph, config: Config) -> Graph:
    """Return the float graph without the removed channels, and with the weights of the file."""
    try:
        small = drop_channels(graph, config.removed)
    except CompileError as error:
        error.what = f"--config: {error.what}"
        raise
    if config.weights is None:
        return small
    tensors = dict(small.tensors)
    for name, data in _read_weights(config.weights, small).items():
        if not name.startswith(SCALE):
            tensors[name] = with_data(tensors[name], data)
    return replace(small, tensors=tensors)


def read_scales(graph: Graph, config: Config) -> dict[str, Quant]:
    """Return the scales of tensors in the file."""
    found = {} if config.weights is None else _read_weights(config.weights, graph)
    told = {name.removeprefix(SCALE): data for name, data in found.items() if name.startswith(SCALE)}
    return {name: Quant((float(data[0]),), (int(data[1]),)) for name, data in told.items()}


def scale_arrays(scales: Mapping[str, Quant]) -> dict[str, Array]:
    """Return scales as arrays for the file, without those of weights, which follow from the weights."""
    whole = {name: q for name, q in scales.items() if q.axis is None}
    return {f"{SCALE}{name}": np.array([q.scale[0], q.zero_point[0]], np.float64) for name, q in whole.items()}


def _is_scale(name: str, data: Array, graph: Graph) -> bool:
    if name.removeprefix(SCALE) not in graph.tensors or data.shape != (2,) or data.dtype != np.float64:
        return False
    scale, zero = data
    return bool(SMALLEST <= scale <= COARSEST and -128 <= zero <= 127 and zero == int(zero))


def _read_weights(path: Path, graph: Graph) -> dict[str, Array]:
    """Read the constants and scales in a file, and raise CompileError if they do not fit the graph."""
    known = {t.name: t for t in graph.constants() if t.dtype is DType.FLOAT32}  # as tune writes them
    most = sum(t.bytes + HEADER for t in known.values()) + HEADER * len(graph.tensors)
    try:
        need_regular(path)
        with zipfile.ZipFile(path) as parts:
            if sum(part.file_size for part in parts.infolist()) > most:
                raise ValueError("it is larger than the model")
        with np.load(path, allow_pickle=False) as file:
            found = {name: file[name] for name in file.files}
        if not all(isinstance(data, np.ndarray) for data in found.values()):
            raise ValueError("it has other files than arrays in it")
    except Exception as error:  # whatever NumPy and zipfile stumble over
        raise CompileError(f"--config: cannot read the weights {path.name}", have=str(error)[:200]) from error
    for name, data in found.items():
        if name.startswith(SCALE) and _is_scale(name, data, graph):
            continue
        t = known.get(name)
        if t is None or data.shape != t.shape or data.dtype != t.dtype.numpy or not np.isfinite(data).all():
            raise CompileError(
                f"--config: the weights {path.name} are not this model's",
                have=f"{quote(name)}: {data.dtype.name}{list(data.shape)}",
                need=_describe_need(name, t),
                try_="`baretorch tune` again: the model has changed since",
            )
    return found


def _describe_need(name: str, t: Tensor | None) -> str:
    if name.startswith(SCALE):
        return "a scale of ordinary size above 0 and a zero point within -128..127, of a tensor of the model"
    return "finite numbers, as many as in the model" if t is None else f"finite numbers, {t.type}"
