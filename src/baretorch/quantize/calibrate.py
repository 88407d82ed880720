"""Calibrate a float Graph: run it over samples, and compute scales from the values of its tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.ir.distance import largest
from baretorch.ir.graph import Array, DType, Graph, Port, Quant
from baretorch.ir.io import as_array, index_inputs, need_inside
from baretorch.options import Observer
from baretorch.quantize.groups import Group, Groups
from baretorch.quantize.observers import Histogram, MaskedValues, MinMax, Values, per_channel
from baretorch.quantize.watch import RunGraph

RANDOM_SAMPLES = 16
KEPT_SAMPLES = 16  # the least number to keep, if there are as many: enough to judge layers
TOO_LARGE = 1e30  # no scale is larger
UNLIKELY = 1e6  # no sensor returns larger numbers
UNLIKE = 32.0  # the ratio of two ranges above which only one of them was probably scaled

OBSERVERS: Mapping[Observer, type[MinMax]] = {Observer.HISTOGRAM: Histogram, Observer.MINMAX: MinMax}


@dataclass(frozen=True)
class Calibration:
    """The result of calibration: the scale of each tensor that has one, the number of samples, some of them, evenly
    spread, in the memory order of the C interface, and whether all samples were constant."""

    scales: Mapping[str, Quant]
    count: int
    kept: tuple[tuple[Array, ...], ...]
    constant: bool


def calibrate(graph: Graph, groups: Groups, samples: Iterable[Any], observer: Observer, run: RunGraph) -> Calibration:
    """Show every sample to the observers. `run` returns the values of `seen_names`. State starts with its initial value
    and is carried over from sample to sample."""
    watched = [(g, _observer(g, observer)) for g in groups.activations if g.fixed is None]
    names = seen_names(graph, groups)  # the first that overflows is named
    indices = index_inputs(graph)
    count, kept, stride, constant = 0, list[tuple[Array, ...]](), 1, True
    ports = graph.takes()
    for sample in samples:
        arrays = check_sample(sample, ports, count)
        constant = constant and all(x.size < 2 or bool((x == x.flat[0]).all()) for x in arrays)
        for input_, size, layer in indices:
            need_inside(arrays[input_], range(-size, size), f"calibration: sample {count}", layer)
        values = run(arrays)
        _need_finite(graph, groups, {name: values[name] for name in names})
        for group, watch in watched:
            for name, relevant in group.seen.items():
                watch.watch(relevant.select(values[name]))
        count += 1
        if (count - 1) % stride == 0:
            kept.append(arrays)
        if len(kept) == 2 * KEPT_SAMPLES:
            kept, stride = kept[::2], 2 * stride
    if count == 0:
        raise CompileError("calibration: calibration() returns no samples", need="at least one tuple of inputs")
    scales = {name: g.fixed for g in groups.activations if g.fixed is not None for name in g.members}
    for group, watch in watched:
        for data in group.constants.values():
            watch.watch(data[np.isfinite(data)], count)
        scales |= dict.fromkeys(group.members, watch.quant())
    scales |= {t.name: per_channel(t.data) for t in graph.of(groups.weights) if t.data is not None}
    single = all(port.tensor.count == 1 for port in ports)
    return Calibration(scales, count, tuple(kept), constant and not single)


def seen_names(graph: Graph, groups: Groups) -> list[str]:
    """Return the tensors whose values decide about scales, in the order of the graph."""
    seen = {name for group in groups.activations for name in group.seen}
    return [name for name in graph.tensors if name in seen]


def odd_ranges(graph: Graph, examples: Sequence[Array], samples: Sequence[Sequence[Array]]) -> Iterator[str]:
    """Yield warnings about samples with very large numbers, or with ranges unlike those of the example inputs."""
    for i, port in enumerate(graph.takes()):
        if port.dtype is DType.FLOAT32:
            name, example = port.tensor.name, largest(examples[i])
            most = max((largest(sample[i]) for sample in samples), default=0.0)
            if most > UNLIKELY:
                yield f"calibration: numbers of {name} reach {most:.3g}, and scales are made for that"
            elif example and most and not 1 / UNLIKE <= most / example <= UNLIKE:
                yield (
                    f"calibration: numbers of {name} reach {most:.3g}, but {example:.3g} in the example inputs: are "
                    "both scaled alike?"
                )


def _observer(group: Group, observer: Observer) -> MinMax:
    """Return the observer of a group. Of a mask, which has few different numbers, none may be cut off."""
    mask = any(type(v) is MaskedValues for v in group.seen.values()) or not group.seen
    return MinMax() if mask else OBSERVERS[observer]()


def random_samples(graph: Graph, examples: Sequence[Array]) -> Iterator[tuple[Array, ...]]:
    """Yield seeded samples for a model without data: float inputs are normally distributed, others as in the
    examples."""
    rng = np.random.default_rng(0)
    for _ in range(RANDOM_SAMPLES):
        given = zip(examples, graph.takes(), strict=True)
        yield tuple(
            rng.standard_normal(port.shape).astype(np.float32) if x.dtype == np.float32 else port.from_memory(x)
            for x, port in given
        )


def check_sample(sample: Any, ports: Sequence[Port], number: int) -> tuple[Array, ...]:
    """Return the arrays of a sample in memory order, and raise CompileError if the model does not accept them. A dict
    has them by the names of inputs."""
    if isinstance(sample, Mapping):
        names = [port.tensor.name for port in ports]
        if set(sample) != set(names):
            raise CompileError(
                f"calibration: sample {number} is a dict of others than the model's inputs",
                have=", ".join(map(str, sample)) or "an empty dict",
                need=", ".join(names),
            )
        sample = tuple(sample[name] for name in names)
    arguments = tuple(sample) if isinstance(sample, (tuple, list)) else (sample,)
    arrays = list(_arrays(arguments))
    wanted = [(port.shape, port.dtype.label) for port in ports]
    have = [(x.shape, x.dtype.name) for x in arrays]
    if have != wanted:
        raise CompileError(
            f"calibration: sample {number} differs in shape or type from inputs()",
            have=_types(have) or ", ".join(type(x).__name__ for x in arguments) or "no tensors",
            need=_types(wanted),
            try_=_without_labels(have, wanted) or _one_by_one(have, wanted),
        )
    if any(x.dtype.kind == "f" and bool((np.isnan(x) | (x == np.inf)).any()) for x in arrays):
        raise CompileError(f"calibration: sample {number} has NaN or infinite values", need="finite numbers")
    return tuple(port.to_memory(x) for x, port in zip(arrays, ports, strict=True))


def _without_labels(have: Sequence[Any], wanted: Sequence[Any]) -> str | None:
    """Return a remedy for samples with too many arrays, such as those of a DataLoader with labels."""
    if len(have) <= len(wanted) or have[: len(wanted)] != wanted:
        return None
    names = ", ".join(f"x{i}" for i in range(len(wanted))) if len(wanted) > 1 else "x"
    return f"samples without labels: [({names},) for {names}, *labels in loader]"


def _one_by_one(have: Sequence[Any], wanted: Sequence[Any]) -> str | None:
    """Return a remedy for samples without a batch dimension, such as the rows of one tensor, and for batches."""
    if len(wanted) != 1 or not have or have[0][1] != wanted[0][1]:
        return None
    (shape, _), needed = have[0], wanted[0][0]
    if (1, *shape) == needed:
        return "samples with a batch dimension: [(x.unsqueeze(0),) for x in samples]"
    if needed[:1] == (1,) and shape[1:] == needed[1:]:
        labels = ", *labels" if len(have) > 1 else ""
        return f"samples one by one: [(x.unsqueeze(0),) for batch{labels} in loader for x in batch]"
    return None


def _arrays(value: Any) -> Iterator[Array]:
    """Yield the tensors and arrays among nested arguments in order; other arguments do not vary."""
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from _arrays(part)
    elif isinstance(value, Mapping):
        yield from _arrays(list(value.values()))
    elif hasattr(value, "numpy") or hasattr(value, "__array__"):
        yield as_array(value)


def _types(types: Sequence[tuple[tuple[int, ...], str]]) -> str:
    return ", ".join(f"{dtype}{list(shape)}" for shape, dtype in types)


def _need_finite(graph: Graph, groups: Groups, values: Mapping[str, Array]) -> None:
    """Raise CompileError with the first layer whose values are too large for any scale."""
    relevant = {name: v for group in groups.activations for name, v in group.seen.items()}
    large = None
    for name, value in values.items():
        x = relevant.get(name, Values()).finite(value)
        if graph[name].dtype is DType.FLOAT32 and x.size:
            most = float(np.abs(x).max())  # NaN, if one is
            if not np.isfinite(most):
                raise _overflow(graph, name, "NaN or infinite values", "finite activations")
            if most > TOO_LARGE:
                large = large or name
    if large is not None:
        raise _overflow(graph, large, f"values beyond {TOO_LARGE:g}", "values of ordinary size")


def _overflow(graph: Graph, name: str, values: str, need: str) -> CompileError:
    layer = graph[name].layer
    if name in graph.inputs:
        return CompileError(
            f"calibration: an input has {values}, for which there is no int8 scale",
            at=name,
            need=need,
            try_="scale the data that calibration() returns, and the inputs of the model",
        )
    return CompileError(
        f"calibration: a layer computes {values}, for which there is no int8 scale",
        at=layer,
        have=f"the output of {name}",
        need=need,
        try_=["scale the inputs or the weights of this layer", f"`--keep-float {layer}` leaves it in float"],
    )
