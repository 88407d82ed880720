"""Compare each layer of an int8 model with the same layer in float."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log10
from typing import Any

import numpy as np

from baretorch.ir.distance import distance
from baretorch.ir.graph import PERMUTED, Array, DType, Graph, Node, Tensor, interpret
from baretorch.ir.io import as_real, as_stored, store_inputs
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.int8.qconv2d16 import QConv2d16
from baretorch.ops.int8.qconv_transpose2d import QConvTranspose2d
from baretorch.ops.int8.qlinear import QLinear
from baretorch.ops.int8.qrecurrent import QRecurrent
from baretorch.ops.int8.qsoftmax import QSoftmax
from baretorch.ops.int8.quantize import FINER
from baretorch.passes.equivalence import WrongLayer
from baretorch.quantize.observers import MASKED_BELOW

# The largest difference between an int8 layer and its float meaning, in steps. The layers of the zoo and of 150 random
# modules (tests/fuzz) are at most 1 step away, by rounding; a recurrent layer is up to 2 after 200 steps.
LIMIT = 2.5


@dataclass(frozen=True)
class LayerAccuracy:
    """The signal to quantization noise ratio of a layer's output, in dB; None if there is no noise. `sqnr_db` includes
    the noise of all layers before it. `alone_db` is the ratio for exact inputs, which are only rounded, so it shows
    which layer causes the noise."""

    name: str
    op: str
    sqnr_db: float | None
    alone_db: float | None

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "op": self.op, "sqnr_db": self.sqnr_db, "alone_db": self.alone_db}


@dataclass
class _Noise:
    """Sums over all samples: the power of the signal, of its error, and of the error that the layer causes alone."""

    node: Node
    signal: float = 0.0
    error: float = 0.0
    alone: float = 0.0


def compare_layers(graph: Graph, twin: Graph, samples: Sequence[Sequence[Array]]) -> tuple[LayerAccuracy, ...]:
    """Interpret both graphs over the samples, which are real numbers; `twin` is `graph` before it was quantized. Layers
    are in the order of execution; those that only move values are left out."""
    noise: dict[str, _Noise] = {}
    memory: dict[str, Array] = {}
    twin_memory: dict[str, Array] = {}
    names = _twins(graph, twin)
    initial = {s.name: s.initial for s in twin.state}
    for sample in samples:
        given = dict(zip(graph.inputs, store_inputs(graph, sample), strict=True))
        state = {s.name: as_stored(graph[s.name], twin_memory.get(s.name, initial[s.name])) for s in graph.state}
        exact = interpret(twin, sample, keep=True, memory=twin_memory)
        right = {name: exact[n] for name, n in names.items()}
        got = interpret(graph, list(given.values()), keep=True, memory=memory)
        for node, t, wanted, alone in compute_alone(graph, right, given | state):
            if node is None:
                continue
            sums = noise.setdefault(t.holds, _Noise(node))
            finite = np.isfinite(wanted)
            sums.signal += power(wanted[finite])
            sums.error += power(as_real(t, got[t.name])[finite] - wanted[finite])
            sums.alone += power(as_real(t, alone)[finite] - wanted[finite])
    return tuple(_layer(graph, name, sums) for name, sums in noise.items())


def _twins(graph: Graph, twin: Graph) -> dict[str, str]:
    """Return the tensors of `twin` by the values that they hold. If `graph` does not have a value, because BatchNorm
    was folded into the layer before, the tensor is also listed by its own name. Of a layer in pieces, which hold the
    same, the whole result is listed."""
    known = {t.holds for t in graph.tensors.values()}
    layers = {n: n for n, t in twin.tensors.items() if t.holds not in known}
    by_size = sorted(twin.tensors.items(), key=lambda item: item[1].count)
    return layers | {t.holds: n for n, t in by_size}


def compute_alone(
    graph: Graph, right: Mapping[str, Array], given: Mapping[str, Array]
) -> Iterator[tuple[Node | None, Tensor, Array, Array]]:
    """Run every node with exact inputs. For each result whose exact values are known, yield the layer's node, the
    result, the exact values, and the computed values. The node is None for conversions, and for a layer's results after
    the first. If an int8 operator has another order of dimensions, the result is the tensor that has the original order
    again."""
    values = {n: t.data for n, t in graph.tensors.items() if t.data is not None} | dict(given)
    makers: dict[str, Node] = {}  # of tensors whose layer was not yielded yet
    scores = _scores(graph)
    for node in graph.nodes:
        results = node.op.reference(*(values[n] for n in node.inputs))
        maker = makers.get(node.inputs[0]) if not node.op.computes and node.inputs else node
        for name, result in zip(node.outputs, results, strict=True):
            t = graph[name]
            values[name] = made = np.asarray(result, dtype=t.dtype.numpy).reshape(t.shape)
            wanted = right.get(t.holds)
            layer = maker if name == node.outputs[0] else None
            if wanted is None or wanted.shape != t.shape or wanted.dtype.kind != "f":
                makers |= {name: layer} if layer is not None else {}
                continue
            wanted = _reachable(t, wanted, name in scores)
            values[name] = as_stored(t, wanted).astype(t.dtype.numpy)
            yield layer, t, wanted, made


def check_layers(graph: Graph, right: Mapping[str, Array], given: Mapping[str, Array]) -> None:
    """Raise WrongLayer if a layer of an int8 graph alone, or a conversion, is more than LIMIT steps of its scale away
    from the right values: those of the float graph, rounded as the scales say. Layers that compute in float have no
    steps, and one that reads the int8 form of an int16 tensor reads other values than the float graph."""
    makers, seen, other = graph.producer(), set[str](), set[str]()

    def read_by(node: Node) -> Iterator[str]:
        for name in node.inputs:
            yield from (name,) if name in seen or name not in makers else read_by(makers[name])

    for node, t, wanted, made in compute_alone(graph, right, given):
        seen.add(t.name)
        if t.quant is None or (node is not None and not t.is_quantized):
            continue
        known, step = np.isfinite(wanted), t.quant.scale[0] * (FINER if t.dtype is DType.INT16 else 1)
        want = as_real(t, as_stored(t, wanted))
        if (np.abs(want - wanted)[known] > step / 100).any():
            other.add(t.name)
        if node is None or other.isdisjoint(read_by(node)):
            apart = distance(as_real(t, made), want)
            apart = _first_step(node, t, np.where(known, apart, 0.0)) / step
            if (apart > LIMIT + _bias_steps(node)).any():
                raise WrongLayer(t.layer, float(apart.max()))


def _bias_steps(node: Node | None) -> float:
    """Return the error that rounding a layer's bias may cause, in steps of the layer's output. It is large if the sums
    are coarser than the output and are shifted to the left."""
    layers = (QLinear, QConv2d, QConv2d16, QConvTranspose2d)
    return 2.0**node.op.shift / 4 if node is not None and isinstance(node.op, layers) else 0.0


def _first_step(node: Node | None, t: Tensor, apart: Array) -> Array:
    """Return the differences of a recurrent layer's first step, because it feeds its rounding back; else all."""
    if node is None or not isinstance(node.op, QRecurrent):
        return apart
    if t.name != node.outputs[0]:  # in another order of dimensions
        return np.zeros(1)
    steps = apart.swapaxes(0, 1) if node.op.batch_first else apart
    return np.asarray(steps[-1 if node.op.reverse else 0])


def _scores(graph: Graph) -> set[str]:
    """Return the tensors that only a softmax reads."""
    uses, scores = graph.uses(), set[str]()
    for node in reversed(graph.nodes):
        for name in node.outputs:
            readers = uses.get(name, [])
            if readers and all(
                type(r.op) is QSoftmax or (not r.op.computes and scores.issuperset(r.outputs)) for r in readers
            ):
                scores.add(name)
    return scores - set(graph.outputs)


def _reachable(t: Tensor, wanted: Array, scores: bool) -> Array:
    """Return the exact values, limited to those that int8 can represent where nothing is lost by that: scores that are
    too low to count, and minus infinity."""
    if t.dtype is not DType.INT8 or t.quant is None:
        return wanted
    lowest = np.float32(t.quant.scale[0] * (-128 - t.quant.zero_point[0]))
    return np.where(wanted < (lowest if scores else min(lowest, MASKED_BELOW)), lowest, wanted)


def worst_layers(layers: Sequence[LayerAccuracy]) -> tuple[LayerAccuracy, ...]:
    """Return the three layers with the most noise, the noisiest first."""
    return tuple(sorted(layers, key=lambda layer: inf if layer.sqnr_db is None else layer.sqnr_db)[:3])


def sqnr_db(signal: float, error: float) -> float | None:
    """Return the ratio of two powers in dB, rounded to a tenth; None if there is no error."""
    if error == 0:
        return None
    return round(10 * log10(signal / error), 1) if signal > 0 else -999.0


def _layer(graph: Graph, name: str, sums: _Noise) -> LayerAccuracy:
    path = graph[sums.node.outputs[0]].origin.path or name.removesuffix(PERMUTED)
    alone = sqnr_db(sums.signal, sums.alone)
    return LayerAccuracy(path, sums.node.op.name, sqnr_db(sums.signal, sums.error), alone)


def power(x: Array) -> float:
    """Return the sum of squares."""
    return float(np.sum(np.square(x, dtype=np.float64)))
