"""What a small TOML says of an int8 model: layers with another precision than int8, channels that are left out, and a
file with other weights; of a model file that offers widths and sizes, which one. People write the first; `baretorch
tune` writes all of it:

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
from enum import StrEnum
from itertools import pairwise
from math import inf
from pathlib import Path

import numpy as np

from baretorch.errors import CompileError
from baretorch.escape import quote, short
from baretorch.files.read import need_regular, read_toml
from baretorch.frontends.choices import LISTS, Arguments, is_number
from baretorch.ir.graph import Array, DType, Graph, Node, Quant, Tensor, fresh, with_data
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.elementwise import Add, Sub
from baretorch.ops.int8.groups_of_inputs import GROUP
from baretorch.ops.int8.qmove import MOVES_16_BITS
from baretorch.ops.layout import Permute, Reshape
from baretorch.ops.linear import Linear
from baretorch.ops.pool import AvgPool2d, MaxPool2d
from baretorch.ops.recurrent import Recurrent
from baretorch.ops.reduce import Mean
from baretorch.ops.softmax import Softmax
from baretorch.passes.prune import without
from baretorch.quantize.float16 import has_float_weights, in_float16
from baretorch.quantize.observers import SMALLEST, per_channel

LARGEST = 1 << 20  # bytes of a file that people write
SCALE = "scale of "  # and a tensor: its scale and zero point in an .npz
COARSEST = 1e30  # scale: calibration finds none that is coarser
HEADER = 1024  # bytes that an array's description and name take in an .npz, at most


class Precision(StrEnum):
    INT8 = "int8"  # as all others
    INT4 = "int4"  # weights of 4 bits
    INT4G32 = "int4g32"  # the same with a factor for each 32 inputs
    INT16 = "int16"  # weights of 8 bits, inputs and outputs of 16
    FLOAT = "float"  # as --keep-float leaves it
    FLOAT16 = "float16"  # the same with weights of 16 bits


IN_FLOAT = (Precision.FLOAT, Precision.FLOAT16)


@dataclass(frozen=True)
class Config:
    """`removed` are the numbers of channels by the layer that makes them; `weights` is an .npz of constants by name, as
    they are without those channels, and of scales, so that nothing depends on how a computer rounds what calibration
    and training give. `arguments` are what model() is called with."""

    layers: Mapping[str, Precision] = field(default_factory=dict)
    removed: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    weights: Path | None = None
    arguments: Arguments = field(default_factory=dict)

    def to_toml(self) -> str:
        lines = [f"{name} = {value}" for name, value in self.arguments.items()]
        lines += [f"weights = {_quoted(self.weights.name)}"] if self.weights else []
        lines += ["[layers]", *(f"{_quoted(n)} = {_quoted(p.value)}" for n, p in self.layers.items())]
        if self.removed:
            lines += ["[removed]", *(f"{_quoted(n)} = {_quoted(_ranges(c))}" for n, c in self.removed.items())]
        return "\n".join(lines) + "\n"


def read_config(path: str) -> Config:
    """What a file says; CompileError if that is not what it may."""
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
        _removed(file.name, removed),
        None if weights is None else _beside(file, weights),
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


def _removed(file: str, told: Mapping[str, object]) -> dict[str, tuple[int, ...]]:
    """All of them together are no more than a file may have bytes: ranges are short to write."""
    found: dict[str, tuple[int, ...]] = {}
    left = LARGEST
    for layer, value in told.items():
        found[layer] = _numbers(file, layer, value, left)
        left -= len(found[layer])
    return found


def _numbers(file: str, layer: str, value: object, most: int) -> tuple[int, ...]:
    """3, 8-11 -> the numbers of channels."""
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
    """The numbers of channels -> 3, 8-11."""
    ordered = sorted(numbers)
    gaps = [i for i, (a, b) in enumerate(pairwise(ordered), 1) if b != a + 1]
    runs = [ordered[a:b] for a, b in pairwise([0, *gaps, len(ordered)])]
    return ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)


def _quoted(text: str) -> str:
    """A TOML string."""
    return '"' + "".join(c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in text) + '"'


def _beside(file: Path, name: object) -> Path:
    if not isinstance(name, str) or Path(name).name != name or not name.endswith(".npz"):
        raise CompileError(
            f"--config {file.name}: weights = {quote(name)}", need="the name of an .npz file in the folder of the TOML"
        )
    return file.with_name(name)


def changed(graph: Graph, config: Config) -> Graph:
    """The float graph without the channels that are removed, and with the weights of the file."""
    try:
        small = without(graph, config.removed)
    except CompileError as error:
        error.what = f"--config: {error.what}"
        raise
    if config.weights is None:
        return small
    tensors = dict(small.tensors)
    for name, data in _stored(config.weights, small).items():
        if not name.startswith(SCALE):
            tensors[name] = with_data(tensors[name], data)
    return replace(small, tensors=tensors)


def scales_of(graph: Graph, config: Config) -> dict[str, Quant]:
    """The scales of tensors that the file has."""
    found = {} if config.weights is None else _stored(config.weights, graph)
    told = {name.removeprefix(SCALE): data for name, data in found.items() if name.startswith(SCALE)}
    return {name: Quant((float(data[0]),), (int(data[1]),)) for name, data in told.items()}


def as_stored(scales: Mapping[str, Quant]) -> dict[str, Array]:
    """The same, for the file. Those of weights follow from these."""
    whole = {name: q for name, q in scales.items() if q.axis is None}
    return {f"{SCALE}{name}": np.array([q.scale[0], q.zero_point[0]], np.float64) for name, q in whole.items()}


def _is_scale(name: str, data: Array, graph: Graph) -> bool:
    if name.removeprefix(SCALE) not in graph.tensors or data.shape != (2,) or data.dtype != np.float64:
        return False
    scale, zero = data
    return bool(SMALLEST <= scale <= COARSEST and -128 <= zero <= 127 and zero == int(zero))


def _stored(path: Path, graph: Graph) -> dict[str, Array]:
    """The constants in a file, each as large as the graph has it."""
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
                need=_needed(name, t),
                try_="`baretorch tune` again: the model has changed since",
            )
    return found


def _needed(name: str, t: Tensor | None) -> str:
    if name.startswith(SCALE):
        return "a scale of ordinary size above 0 and a zero point within -128..127, of a tensor of the model"
    return "finite numbers, as many as in the model" if t is None else f"finite numbers, {t.type}"


def with_precisions(graph: Graph, layers: Mapping[str, tuple[Precision, set[str]]]) -> Graph:
    """The notes of a quantized graph, in the precisions of its layers. Of each layer, what it makes is given."""
    tensors = dict(graph.tensors)
    nodes = list(graph.nodes)
    made_by = graph.producer()
    chosen: dict[int, tuple[str, Precision]] = {}
    halves: dict[int, list[Node]] = {}
    for layer, (precision, made) in layers.items():
        if precision not in FITS:
            continue
        fits = FITS[precision]
        found = [i for i, n in enumerate(graph.nodes) if made.intersection(n.outputs) and fits(graph, n)]
        if not found:
            ops = sorted({n.op.name for n in nodes if made.intersection(n.outputs)})
            lacks, need = LACKS[precision]
            raise CompileError(
                f"--config: {layer!r} = {precision.value!r}: {lacks}", have=", ".join(ops) or None, need=need
            )
        for i in found:
            if i in chosen:
                _need_same(*chosen[i], layer, precision)
                continue
            chosen[i] = (layer, precision)
            if precision is Precision.FLOAT16:
                halves[i] = in_float16(graph, nodes[i], tensors)
                continue
            if precision in (Precision.INT4, Precision.INT4G32):
                x, weight, *rest = nodes[i].inputs
                own = _in_int4(graph[weight], fresh(graph, tensors, f"{weight}_int4"), precision)
                tensors[own.name] = own
                nodes[i] = replace(nodes[i], inputs=(x, own.name, *rest))
                continue
            weighted = isinstance(nodes[i].op, (Linear, Conv2d, Recurrent))
            values = nodes[i].inputs[:1] if weighted else nodes[i].inputs
            given = {_moved_from(made_by, n) for n in values}
            for name in (*nodes[i].outputs, *given.intersection(graph.inputs)):
                quant = tensors[name].quant
                if quant is not None:
                    tensors[name] = replace(tensors[name], quant=replace(quant, bits=16))
    nodes = [made for i, node in enumerate(nodes) for made in halves.get(i, [node])]
    for node in nodes:  # what only moves values of 16 bits has as many
        quants = [tensors[n].quant for n in (*node.inputs, *node.outputs)]
        wide = all(q is not None and q.bits == 16 and q == quants[-1] for q in quants[:-1])
        if isinstance(node.op, MOVES_16_BITS) and wide:
            tensors[node.outputs[0]] = replace(tensors[node.outputs[0]], quant=quants[0])
    return replace(graph, tensors=tensors, nodes=tuple(nodes))


def _need_same(first: str, one: Precision, layer: str, precision: Precision) -> None:
    """CompileError if a layer has two names, and each says something else."""
    if one is not precision:
        raise CompileError(
            f"--config: {first!r} = {one.value!r} and {layer!r} = {precision.value!r} are the same layer",
            need="one precision for it",
        )


def _moved_from(made: Mapping[str, Node], name: str) -> str:
    """What a tensor is made of, if it is just that in another order or shape."""
    while name in made and isinstance(made[name].op, (Permute, Reshape)):
        name = made[name].inputs[0]
    return name


LACKS = {
    Precision.INT4: ("it has no weights in int8", "a linear layer or a convolution that is quantized"),
    Precision.INT4G32: (
        "it has no weights in int8 for groups of 32 inputs",
        "a linear layer or a convolution of 1x1 that is quantized",
    ),
    Precision.INT16: (
        "it has no int16 form",
        "a linear layer, a convolution, an LSTM, GRU or RNN, a sum of two tensors, a pool, a mean or a softmax that is "
        "quantized",
    ),
    Precision.FLOAT16: ("it has no weights in float", "a linear layer or a convolution"),
}


def _in_int16(graph: Graph, node: Node) -> bool:
    """It may take and give 16 bits."""
    values = graph.of(node.inputs)
    if isinstance(node.op, (Add, Sub)) and any(t.data is not None for t in values):
        return False
    if isinstance(node.op, (Add, Sub, MaxPool2d, AvgPool2d, Mean)) or type(node.op) is Softmax:
        return all(t.quant is not None for t in (*values, graph[node.outputs[0]]))
    if isinstance(node.op, Recurrent):
        noted = [graph[n].quant is not None for n in node.outputs[:2]]  # the hidden state at all times, or at the end
        return graph[node.inputs[0]].quant is not None and any(noted)
    return _has_weights(graph, node)


def _has_weights(graph: Graph, node: Node) -> bool:
    return (
        isinstance(node.op, (Linear, Conv2d))
        and graph[node.inputs[1]].quant is not None
        and graph[node.outputs[0]].quant is not None
    )


def _of_pixels(graph: Graph, node: Node) -> bool:
    """A linear layer, or a convolution that is one for each pixel."""
    op = node.op
    plain = isinstance(op, Conv2d) and replace(op, lo=-inf, hi=inf, pool=(1, 1)) == Conv2d()
    pointwise = plain and graph[node.inputs[1]].shape[1:3] == (1, 1)
    return _has_weights(graph, node) and (isinstance(op, Linear) or pointwise)


FITS = {
    Precision.INT4: _has_weights,
    Precision.INT4G32: _of_pixels,
    Precision.INT16: _in_int16,
    Precision.FLOAT16: has_float_weights,
}


def _in_int4(weight: Tensor, name: str, precision: Precision) -> Tensor:
    """A weight of its own, as others may have the same in int8."""
    assert weight.data is not None
    group = GROUP if precision is Precision.INT4G32 else 0
    return replace(weight, name=name, quant=per_channel(weight.data, 4, group))
