"""A Graph as a torch.nn.Module that rounds as int8 does while it learns.

`RoundingModule` computes a Graph in PyTorch. In each step it rounds weights by the rules of quantize/observers.py and
quantize/simulate.py, and the tensors of each group of quantize/groups.py by one scale. Gradients pass the rounding
unchanged, except where a value is outside its range. `Trainable` is such a module of a whole model; `baretorch.compile`
accepts it.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from baretorch.errors import CompileError
from baretorch.frontends.inputs import flat_like
from baretorch.frontends.source import Source
from baretorch.ir.graph import Array, DType, Graph, Port, Quant, with_data
from baretorch.ir.io import Answer, arrange_inputs
from baretorch.ops.int8.quantize import FINER
from baretorch.quantize.groups import Group
from baretorch.quantize.observers import MASKED_BELOW, Scores, Values, affine_quant, per_channel
from baretorch.quantize.quantize import Preparation
from baretorch.quantize.simulate import round_constant
from baretorch.quantize.torch_operators import apply, passes_gradient

AVERAGING = 0.01  # the share of a batch in the range of a tensor
NO_MASKS: Mapping[str, Array] = {}
# Endings of constants that passes made from others, also before the name of a bias.
SUFFIXES = r"(_permuted|_nhwc|_float|_int4|_scaled|_\d+)+(?=_bias(_\d+)?$|$)"


class RoundingModule(nn.Module):  # type: ignore[misc]
    """A graph that computes in PyTorch and rounds the tensors that have scales. Each group has a range, which its scale
    follows; a batch in training mode moves the range towards its own by the share `averaging`. The constants named in
    `weights` are parameters; None: all that can be. `masks` keep parts of weights at zero."""

    def __init__(
        self,
        graph: Graph,
        groups: Sequence[Group] = (),
        weights: Collection[str] | None = None,
        masks: Mapping[str, Array] = NO_MASKS,
    ) -> None:
        super().__init__()
        self.graph, self.groups, self.averaging = graph, tuple(groups), AVERAGING
        self.group_of = {name: i for i, group in enumerate(groups) for name in group.members}
        self.masks = {name: torch.from_numpy(mask) for name, mask in masks.items()}
        self.batched = _depending_on(graph, {*graph.inputs, *(s.name for s in graph.state)})
        self.register_buffer("ranges", torch.tensor([[torch.inf, -torch.inf]]).repeat(len(groups), 1))
        self.reset()
        self.weights = {n for n in weights_of(graph) if weights is None or n in weights}
        self.places: dict[str, tuple[nn.Module, str]] = {}  # of constants: a module and the name of its attribute
        names = parameter_names(graph, self.weights)
        for i, t in enumerate(graph.constants()):
            data = torch.from_numpy(np.array(t.data))
            learns = t.name in names
            self._place(names.get(t.name, f"constants.{i}"), t.name, nn.Parameter(data) if learns else data)
        _need_gradients(graph, self.weights)

    def _place(self, path: str, name: str, value: torch.Tensor) -> None:
        """Store a constant where the user's module has it: in a submodule for each part of its path."""
        *parents, last = [part for part in path.split(".") if part]
        at: nn.Module = self
        for part in parents:
            while hasattr(at, part) and part not in at._modules:
                part += "_"
            if part not in at._modules:
                at.add_module(part, nn.Module())
            at = at._modules[part]
        while hasattr(at, last):
            last += "_"
        self.places[name] = (at, last)
        if isinstance(value, nn.Parameter):
            at.register_parameter(last, value)
        else:
            at.register_buffer(last, value, persistent=False)

    def reset(self) -> None:
        """Set the state to its initial values, and detach it from earlier calls."""
        self.memory: dict[str, torch.Tensor] = {}
        self.seen: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # ranges of the current batch, by group

    # Scales.

    def _constant(self, name: str) -> torch.Tensor:
        at, last = self.places[name]
        value: torch.Tensor = getattr(at, last)
        return value * self.masks[name].to(value.device) if name in self.masks else value

    def _as_graph_stores(self, name: str) -> torch.Tensor:
        """Return a constant as the image stores it: a weight by its own scales, others by the scale of their group."""
        value, quant = self._constant(name), self.graph[name].quant
        if quant is None or quant.axis is None:
            return self._round(name, value)
        data = _array(value)
        rounded = round_constant(data, per_channel(data, quant.bits, quant.group))
        return value + (torch.from_numpy(rounded).to(value.device) - value.detach())

    def quant_of(self, group: int) -> Quant:
        """Return the scale of a group, from its range and its constants."""
        found = self.groups[group]
        if found.fixed is not None:
            return found.fixed
        lo, hi = self.ranges[group].tolist()
        if lo > hi and group in self.seen:
            lo, hi = (float(x) for x in self.seen[group])
        for name, data in found.constants.items():
            values = _array(self._constant(name)) if name in self.weights else data[np.isfinite(data)]
            lo, hi = float(values.min(initial=lo)), float(values.max(initial=hi))
        return affine_quant(lo, hi) if np.isfinite([lo, hi]).all() else affine_quant(0.0, 0.0)

    def _round(self, name: str, x: torch.Tensor) -> torch.Tensor:
        note, group = self.graph[name].quant, self.group_of.get(name)
        if note is None or group is None:
            return x
        quant = self.quant_of(group)
        (scale,), (zero,) = quant.scale, quant.zero_point
        if note.bits == 16:
            return torch.fake_quantize_per_tensor_affine(x, scale / FINER, 0, -32768, 32767)
        return torch.fake_quantize_per_tensor_affine(x, scale, zero, -128, 127)

    def _watch(self, name: str, x: torch.Tensor) -> None:
        """Note the smallest and the largest value of a tensor that decides about a scale, in training mode."""
        number = self.group_of.get(name)
        if not self.training or number is None or name not in self.groups[number].seen or not x.numel():
            return
        relevant, values = self.groups[number].seen[name], x.detach()
        if type(relevant) is not Values:
            relevant = replace(relevant, axis=relevant.axis + 1) if isinstance(relevant, Scores) else relevant
            values = torch.from_numpy(np.asarray(relevant.select(_array(values))))
            if not values.numel():
                return
        lo, hi = (y.to(self.ranges.device) for y in values.aminmax())
        before = self.seen.get(number, (lo, hi))
        self.seen[number] = (torch.minimum(before[0], lo), torch.maximum(before[1], hi))

    def _move_ranges(self) -> None:
        for number, found in self.seen.items():
            new, known = torch.stack(found), self.ranges[number]
            first = bool(known[0] > known[1])
            self.ranges[number] = new if first else known + self.averaging * (new - known)
        self.seen = {}

    # Calls.

    def forward(self, *inputs: Any) -> Any:
        values = {name: self._as_graph_stores(name) for name in self.places}
        given, stacked, count = _batches(inputs, self.graph.takes())
        for name, x in given.items():
            values[name] = self._observe(name, x)
        for state in self.graph.state:
            initial = torch.from_numpy(np.array(state.initial)).to(self.ranges.device)
            held = self.memory.get(state.name, initial.expand(count, *initial.shape))
            if len(held) != count:
                raise CompileError(f"a batch of {count} after one of {len(held)}", need="reset() before the first call")
            values[state.name] = self._observe(state.name, held)
        for node in self.graph.nodes:
            batched = [name in self.batched for name in node.inputs]
            made = apply(node.op, [values[name] for name in node.inputs], batched)
            for name, y in zip(node.outputs, made, strict=True):
                values[name] = self._observe(name, y)
        self.memory = {s.name: values[s.next] for s in self.graph.state}
        self._move_ranges()
        outputs = tuple(self._output(port, values[port.tensor.name], stacked, count) for port in self.graph.gives())
        return outputs if len(outputs) > 1 else outputs[0]

    def _observe(self, name: str, x: torch.Tensor) -> torch.Tensor:
        self._watch(name, x)
        return self._round(name, x)

    def _output(self, port: Port, y: torch.Tensor, stacked: bool, count: int) -> torch.Tensor:
        if port.tensor.name not in self.batched:
            y = y.expand(count, *y.shape)
        y = y.permute(0, *(1 + int(i) for i in np.argsort(port.order)))
        return y if stacked or y.dim() == 1 else y.flatten(0, 1)

    # After training.

    def to_graph(self) -> Graph:
        """Return the graph with the weights as they are now, and with the scales of weights and groups."""
        tensors = dict(self.graph.tensors)
        for t in self.graph.constants():
            data = _array(self._constant(t.name))
            own = t.quant and (per_channel(data, t.quant.bits, t.quant.group) if t.quant.axis == 0 else t.quant)
            tensors[t.name] = replace(with_data(t, data), quant=own)
        for name, t in tensors.items():
            if t.quant is not None and name in self.group_of:
                tensors[name] = replace(t, quant=replace(self.quant_of(self.group_of[name]), bits=t.quant.bits))
        return replace(self.graph, tensors=tensors)


class Trainable(RoundingModule):
    """A model that learns with the rounding of int8."""

    def __init__(self, source: Source, preparation: Preparation) -> None:
        groups = preparation.groups.activations
        scales = {name: affine_quant(-1.0, 1.0) for group in groups for name in group.members}
        scales |= {t.name: per_channel(_array(t.data)) for t in preparation.graph.of(preparation.groups.weights)}
        graph = preparation.with_scales(scales)
        super().__init__(graph, groups, _learned_in_torch(graph, source.module))
        self.source = source
        for name, own in source.module.named_parameters() if source.module is not None else ():
            if name in dict(self.named_parameters()):
                self.get_parameter(name).requires_grad_(own.requires_grad)

    def forward(self, *inputs: Any, **named: Any) -> Any:
        return super().forward(*flat_like(self.source, inputs, named))

    def as_source(self, methods: Mapping[str, tuple[Any, ...]], name: str, method: str | None = None) -> Source:
        """Return the model as it is now, with its scales, and with its outputs in evaluation mode for example inputs:
        those of the method, if there are some, or those that `trainable` was given."""
        known = self.ranges.isfinite().all(1).tolist()
        if any(not k and g.fixed is None and g.seen for g, k in zip(self.groups, known, strict=True)):
            raise CompileError(
                "the model has no int8 scales: it has seen no data yet, or values that overflow",
                need="at least one batch in training mode, with finite values",
                try_="net.train(), then net(batch) for some batches, or load_state_dict() of one that was trained",
            )
        graph, run, examples = self.to_graph(), EvaluationRunner(self), self.source.examples
        if methods:
            examples = tuple(
                arrange_inputs(graph, flat_like(self.source, methods[method or "forward"], {}), "inputs()")
            )
        real = [port.from_memory(x) for port, x in zip(graph.takes(), examples, strict=True)]
        answers = [run(*real) for _ in range(2)]
        expected, again = (
            tuple(port.to_memory(y) for port, y in zip(graph.gives(), a if isinstance(a, tuple) else (a,), strict=True))
            for a in answers
        )
        return Source(
            name,
            {self.source.method: replace(graph, name=name)},
            examples,
            expected,
            again,
            "PyTorch",
            self.source.method,
            eager=lambda: EvaluationRunner(self),
            warnings=self.source.warnings,
            notes=self.source.notes,
        )


class EvaluationRunner:
    """Runs a module in evaluation mode, with arrays as an image takes them, and with a state of its own."""

    def __init__(self, module: RoundingModule) -> None:
        self._module = copy.copy(module)
        self._module.training = False
        self.reset()

    def __call__(self, *inputs: Any) -> Answer:
        given = [torch.as_tensor(np.array(x)).to(self._module.ranges.device) for x in inputs]
        with torch.no_grad():
            made = self._module(*given)
        return tuple(map(_array, made)) if isinstance(made, tuple) else _array(made)

    def reset(self) -> None:
        """Set the state to its initial values."""
        self._module.reset()


def weights_of(graph: Graph) -> list[str]:
    """Return the constants that training may change: float tensors, but neither single numbers, as in formulas, nor
    masks."""
    floats = [t for t in graph.constants() if t.dtype is DType.FLOAT32 and t.count > 1]
    return [
        t.name for t in floats if t.data is not None and bool((np.isfinite(t.data) & (t.data > MASKED_BELOW)).all())
    ]


def _learned_in_torch(graph: Graph, module: Any) -> list[str] | None:
    """Return the constants that are parameters of a module, or were made from them; None without a module."""
    if module is None:
        return None
    names, buffers = ({name for name, _ in found} for found in (module.named_parameters(), module.named_buffers()))
    owners = {name.rpartition(".")[0] for name, parameter in module.named_parameters() if parameter.requires_grad}
    return [
        t.name
        for t in graph.constants()
        if not {t.name, _original_name(t.name)} & buffers
        and ({t.name, _original_name(t.name)} & names or t.origin.path in owners)
    ]


def parameter_names(graph: Graph, weights: Collection[str]) -> dict[str, str]:
    """Return the name of each weight: the name in the user's model, if only one weight has it."""
    names = {name: _original_name(name) for name in weights}
    names |= {n: f"{p}.bias" for n, p in names.items() if p and p == graph[n].origin.path}
    count = Counter(names.values())
    return {name: names[name] if count[names[name]] == 1 else name for name in weights}


def _original_name(name: str) -> str:
    """Return the name of the constant from which passes made this one."""
    return re.sub(r"weight_bias$", "bias", re.sub(SUFFIXES, "", name)) or name


def _depending_on(graph: Graph, names: Collection[str]) -> set[str]:
    """Return these tensors and all that depend on them."""
    found = set(names)
    for node in graph.nodes:
        if found.intersection(node.inputs):
            found.update(node.outputs)
    return found


def _need_gradients(graph: Graph, weights: Collection[str]) -> None:
    """Raise CompileError if a weight has no gradient because an operator after it has none."""
    learned = _depending_on(graph, weights)
    for node in graph.nodes:
        out = graph[node.outputs[0]]
        values = [n for n in node.inputs if n in learned and graph[n].dtype is DType.FLOAT32]
        if values and out.dtype is DType.FLOAT32 and not passes_gradient(node.op):
            raise CompileError(
                f"{node.op.name} has no gradient, so layers before it cannot be trained",
                at=str(out.origin) or None,
                try_="leave it out of the model that is trained, or train in float only",
            )


def _batches(inputs: Sequence[Any], ports: Sequence[Port]) -> tuple[dict[str, torch.Tensor], bool, int]:
    """Return the inputs in the graph's order of dimensions after that of the batch, whether the caller's inputs have a
    dimension of their own for the batch, and its size."""
    given, sizes, stacked = {}, dict[str, int](), False
    if len(inputs) != len(ports):
        raise CompileError(f"the model takes {len(ports)} input(s), {len(inputs)} were given")
    for value, port in zip(inputs, ports, strict=True):
        x, shape, name = torch.as_tensor(value), port.shape, port.tensor.name
        own = tuple(x.shape[1:]) == shape
        if not own and not (shape and x.shape[1:] == shape[1:] and x.shape[0] % shape[0] == 0 and len(x)):
            raise CompileError(
                f"input {name!r} has the wrong shape",
                have=str(list(x.shape)),
                need=f"{list(shape)}, a multiple of it along the first dimension, or a stack of such inputs",
            )
        x = x if own else x.unflatten(0, (-1, shape[0]))
        stacked = stacked or own
        sizes[name] = len(x)
        given[name] = x.permute(0, *(1 + i for i in port.order))
    count = max(sizes.values(), default=1)
    if not {1, count} >= set(sizes.values()):
        raise CompileError("the inputs are batches of different sizes", have=str(sizes), need="one size, or 1")
    return {n: x.expand(count, *x.shape[1:]) for n, x in given.items()}, stacked, count


def _array(x: Any) -> Array:
    return np.asarray(x.detach().cpu().numpy() if isinstance(x, torch.Tensor) else x)
