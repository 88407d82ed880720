"""How much each layer of an int8 model loses against the same model in float."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log10
from typing import Any

import numpy as np

from baretorch.emulators.run import stored
from baretorch.ir import Array, DType, Graph, Node, Tensor, interpret
from baretorch.ops.arithmetic import dequantize, quantize
from baretorch.passes.to_int8 import QUIET

_STORED = re.compile(r"_int8(_\d+)?$")  # what to_int8 appends to the name of the tensor that it stores


@dataclass(frozen=True)
class LayerAccuracy:
    """Signal to quantization noise of a layer's output, in dB; None if there is no noise at all. `sqnr_db` is what
    arrives there, with the noise of all layers before it; `alone_db` is what the layer would make of inputs without
    any but their own rounding, so it says which layer to blame."""

    name: str
    op: str
    at: str
    sqnr_db: float | None
    alone_db: float | None

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "op": self.op, "sqnr_db": self.sqnr_db, "alone_db": self.alone_db}


@dataclass
class _Noise:
    """Sums over all samples: the power of the signal, of its error, and of the error that the layer makes alone."""

    node: Node
    signal: float = 0.0
    error: float = 0.0
    alone: float = 0.0


def compare_layers(graph: Graph, twin: Graph, samples: Sequence[Sequence[Array]]) -> tuple[LayerAccuracy, ...]:
    """Interpret both graphs over the samples, which are real numbers; `twin` is `graph` before it was quantized. Layers
    come in the order of execution; those that only move values are left out."""
    noise: dict[str, _Noise] = {}
    memory: dict[str, Array] = {}
    twin_memory: dict[str, Array] = {}
    for sample in samples:
        given = dict(zip(graph.inputs, stored(graph, sample), strict=True))
        state = {s.name: _as_stored(graph[s.name], twin_memory.get(s.name, s.initial)) for s in graph.state}
        right = interpret(twin, sample, keep=True, memory=twin_memory)
        got = interpret(graph, list(given.values()), keep=True, memory=memory)
        for node, t, wanted, alone in _alone(graph, right, given | state):
            sums = noise.setdefault(_twin_name(t), _Noise(node))
            sums.node = node  # of several steps that make one tensor, the last
            sums.signal += _power(wanted)
            sums.error += _power(_as_real(t, got[t.name]) - wanted)
            sums.alone += _power(_as_real(t, alone) - wanted)
    return tuple(_layer(graph, name, sums) for name, sums in noise.items())


def _alone(
    graph: Graph, right: Mapping[str, Array], given: Mapping[str, Array]
) -> Iterator[tuple[Node, Tensor, Array, Array]]:
    """Every layer with inputs that are right: (node, its output, what is right for it, what the layer makes)."""
    values = {n: t.data for n, t in graph.tensors.items() if t.data is not None} | dict(given)
    for node in graph.nodes:
        results = node.op.reference(*(values[n] for n in node.inputs))
        for name, result in zip(node.outputs, results, strict=True):
            t = graph[name]
            values[name] = made = np.asarray(result, dtype=t.dtype.numpy).reshape(t.shape)
            wanted = right.get(_twin_name(t))
            if wanted is None or wanted.size != t.count or wanted.dtype.kind != "f":
                continue
            wanted = wanted.reshape(t.shape)
            values[name] = _as_stored(t, wanted)
            if name == node.outputs[0] and not isinstance(node.op, QUIET):
                yield node, t, wanted, made


def _twin_name(t: Tensor) -> str:
    return _STORED.sub("", t.name)


def worst_layers(layers: Sequence[LayerAccuracy], count: int = 3) -> tuple[LayerAccuracy, ...]:
    """Those with the most noise, the noisiest first."""
    return tuple(sorted(layers, key=lambda layer: inf if layer.sqnr_db is None else layer.sqnr_db)[:count])


def sqnr_db(signal: float, error: float) -> float | None:
    """The ratio of two powers in dB, to a tenth; None without any error."""
    if error == 0:
        return None
    return round(10 * log10(signal / error), 1) if signal > 0 else -999.0


def _layer(graph: Graph, name: str, sums: _Noise) -> LayerAccuracy:
    origin = graph[sums.node.outputs[0]].origin
    return LayerAccuracy(
        origin.path or name,
        sums.node.op.name,
        str(origin),
        sqnr_db(sums.signal, sums.error),
        sqnr_db(sums.signal, sums.alone),
    )


def _as_stored(t: Tensor, real: Array) -> Array:
    if t.dtype is not DType.INT8 or t.quant is None:
        return real.astype(t.dtype.numpy)
    return quantize(real, t.quant.scale[0], t.quant.zero_point[0])


def _as_real(t: Tensor, value: Array) -> Array:
    if t.dtype is not DType.INT8 or t.quant is None:
        return value
    return dequantize(value, t.quant.scale[0], t.quant.zero_point[0])


def _power(x: Array) -> float:
    return float(np.sum(np.square(x, dtype=np.float64)))
