"""What calibration data shows of an int8 program: noise in its answer, tensors that saturate, tensors that died."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import GraphModule, Interpreter, Node
from torch.utils._pytree import tree_leaves

from baretorch.frontends.torch.plain import state_kept
from baretorch.frontends.torch.read import origin_of
from baretorch.quantize.accuracy import sqnr_db
from baretorch.quantize.observers import meant
from baretorch.quantize.quantizer import MOVES, scales_of

LEAST_DB = 15.0  # of the answer against float; below, a user should know
SATURATED = 0.05  # of a tensor's values at an end of int8, where float has larger ones
CUT_DB = 20.0  # of a tensor against what is cut off it; above, that is hardly heard
JUDGED = 8  # samples at most, beside the example inputs
NAMED = 3  # layers at most
CLEAN_DB = 60.0  # more than int8 gives; what is as good has no noise


def judged(
    converted: GraphModule,
    plain: GraphModule,
    inputs: Sequence[Any],
    samples: Sequence[Sequence[Any]],
    observers: Mapping[str, Any],
) -> list[str]:
    """Warnings about the converted program, beside the float one that it was made of, on the example inputs and some of
    the samples. The observers that chose scales are known by the names of the nodes they watched."""
    chosen = samples[:: -(-len(samples) // JUDGED)] if samples else ()
    example, all_ = _Sums(), _Sums()
    with torch.no_grad(), state_kept(converted), state_kept(plain):
        for given in (inputs, *chosen):
            wanted = _Keep(plain)
            answers = tree_leaves(wanted.run(*given))
            sums = (example, all_) if given is inputs else (all_,)
            made = tree_leaves(_Watch(converted, wanted.values, observers, sums).run(*given))
            for i, (want, have) in enumerate(zip(answers, made, strict=True)):
                if want.dtype is torch.float32:
                    for some in sums:
                        some.add(_answer(i), want, have)
    return [*_noisy(plain, example, all_), *_clipped(all_)]


@dataclass
class _Tensor:
    """What is seen of a value where it is rounded to int8."""

    count: int = 0
    clipped: int = 0
    power: float = 0.0  # of all its values
    cut: float = 0.0  # of what is cut off
    least: float = float("inf")
    most: float = float("-inf")
    lowest: int = 127
    highest: int = -128


@dataclass
class _Sums:
    """Powers of each value and of its noise, by the node's name; and what is seen where values are rounded."""

    signal: dict[str, float] = field(default_factory=dict)
    error: dict[str, float] = field(default_factory=dict)
    tensors: dict[Node, _Tensor] = field(default_factory=dict)

    def add(self, name: str, wanted: torch.Tensor, have: torch.Tensor) -> None:
        both = torch.isfinite(wanted) & torch.isfinite(have)
        wanted, have = (torch.where(both, x, 0.0).double() for x in (wanted, have))
        self.signal[name] = self.signal.get(name, 0.0) + float((wanted**2).sum())
        self.error[name] = self.error.get(name, 0.0) + float(((have - wanted) ** 2).sum())

    def db(self, name: str) -> float:
        if name not in self.signal or self.signal[name] == 0:
            return CLEAN_DB
        found = sqnr_db(self.signal[name], self.error[name])
        return CLEAN_DB if found is None else min(found, CLEAN_DB)


class _Keep(Interpreter):  # type: ignore[misc]
    """Runs the float program and keeps every value."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.extra_traceback = False
        self.values: dict[str, torch.Tensor] = {}

    def run_node(self, node: Node) -> Any:
        result = super().run_node(node)
        if isinstance(result, torch.Tensor) and result.dtype is torch.float32:
            self.values[node.name] = result
        return result


class _Watch(Interpreter):  # type: ignore[misc]
    """Runs the converted program beside the values of the float one, whose nodes have the same names."""

    def __init__(
        self,
        module: GraphModule,
        wanted: Mapping[str, torch.Tensor],
        observers: Mapping[str, Any],
        sums: Sequence[_Sums],
    ) -> None:
        super().__init__(module)
        self.extra_traceback = False
        self.wanted, self.observers, self.sums = wanted, observers, sums

    def run_node(self, node: Node) -> Any:
        result = super().run_node(node)
        if node.op == "call_function" and isinstance(result, torch.Tensor):
            if result.dtype is torch.float32 and node.name in self.wanted:
                for sums in self.sums:
                    sums.add(node.name, self.wanted[node.name], result)
            elif result.dtype is torch.int8 and "quantize_per_tensor" in str(node.target) and result.numel():
                for sums in self.sums:
                    self._seen(sums.tensors.setdefault(node.args[0], _Tensor()), node, result)
        return result

    def _seen(self, tensor: _Tensor, node: Node, stored: torch.Tensor) -> None:
        scale, zero = (float(a) for a in node.args[1:3])
        value = node.args[0]
        real = meant(self.observers.get(value.name), self.wanted.get(value.name, self.env[value]))
        if not real.numel():  # all of it is masked
            return
        steps = real / scale + zero
        tensor.count += real.numel()
        tensor.clipped += int(((steps > 128) | (steps < -129)).sum())
        tensor.power += float((real.double() ** 2).sum())
        tensor.cut += float(((scale * (steps - steps.clamp(-128, 127))).double() ** 2).sum())
        tensor.least, tensor.most = min(tensor.least, float(real.min())), max(tensor.most, float(real.max()))
        tensor.lowest = min(tensor.lowest, int(stored.min()))
        tensor.highest = max(tensor.highest, int(stored.max()))


def _noisy(plain: GraphModule, example: _Sums, all_: _Sums) -> Iterator[str]:
    """The answer is hardly the model's any more."""
    (output,) = plain.graph.find_nodes(op="output")
    for sums, of in ((example, "example inputs"), (all_, "calibration data")):
        worst = min((sums.db(_answer(i)) for i in range(len(output.args[0]))), default=CLEAN_DB)
        if worst < LEAST_DB:
            layers = ", ".join(_blamed(plain, output.args[0], sums))
            yield (
                f"accuracy: the int8 answer to the {of} has {worst:.1f} dB signal to noise against float; most noise "
                f"comes from {layers}"
            )
            return


def _answer(index: int) -> str:
    """What the sums call an output: the node behind it has a name too, but is not yet rounded."""
    return f"output {index}"


def _blamed(plain: GraphModule, outputs: Sequence[Node], sums: _Sums) -> list[str]:
    """The layers behind which there is more noise than before them, by the power they add to it."""
    added = []
    for i, node in enumerate(outputs):
        if node.op == "call_function" and node.name in sums.signal:
            noise = 10 ** (-sums.db(_answer(i)) / 10) - 10 ** (-sums.db(node.name) / 10)
            added.append((noise, _layer(_maker(node))))
    for node in plain.graph.nodes:
        if node.op == "call_function" and node.name in sums.signal:
            before = min((sums.db(a.name) for a in node.all_input_nodes if a.name in sums.signal), default=CLEAN_DB)
            noise = 10 ** (-sums.db(node.name) / 10) - 10 ** (-before / 10)  # beside a signal of 1
            added.append((noise, _layer(_maker(node))))
    ranked = [name for noise, name in sorted(added, key=lambda pair: -pair[0]) if noise > 0]
    return list(dict.fromkeys(ranked))[:NAMED]


def _maker(node: Node) -> Node:
    """What made the values that a node only moves or picks out."""
    while (node.target is operator.getitem or scales_of(node) in MOVES) and isinstance(node.args[0], Node):
        node = node.args[0]
    return node


def _clipped(sums: _Sums) -> Iterator[str]:
    for node, seen in sums.tensors.items():
        share = seen.clipped / seen.count
        cut_db = sqnr_db(seen.power, seen.cut)
        if share >= SATURATED and cut_db is not None and cut_db < CUT_DB:
            yield f"saturated: {share:.0%} of the values of {_layer(node)} lie beyond what its int8 scale can hold"
        elif seen.lowest == seen.highest and seen.most > seen.least:
            yield (
                f"dead: all values of {_layer(node)} are equal in int8, and from {seen.least:.3g} to {seen.most:.3g} "
                "in float"
            )


def _layer(node: Node) -> str:
    """The user's name for what makes a value."""
    name = origin_of(node).path
    return name if name and node.op != "placeholder" else node.name
