"""A float Graph as an nn.Module that can be trained: the train(model) of a model file gets it, with the channels that
are left, and with weights that are rounded as the image will have them. It takes and gives what the original does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from baretorch.ir.graph import Array, Graph, Op, with_data
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.elementwise import Add, Clamp, Mul, Sub
from baretorch.ops.int8.groups_of_inputs import FACTORS
from baretorch.ops.layout import Permute, Reshape
from baretorch.ops.linear import Linear
from baretorch.ops.pool import AdaptiveAvgPool2d, AvgPool2d, MaxPool2d
from baretorch.ops.reduce import Mean
from baretorch.ops.softmax import Softmax
from baretorch.tune.refine import Grid

NOTHING: Mapping[str, Array] = {}
Row: TypeAlias = Callable[..., Any]  # (op, *tensors of torch) -> a tensor of torch


def _linear(op: Linear, *inputs: Any) -> Any:
    from torch.nn import functional as f

    return f.linear(*inputs).clamp(op.lo, op.hi)


def _conv2d(op: Conv2d, x: Any, weight: Any, bias: Any = None) -> Any:
    from torch.nn import functional as f

    top, bottom, left, right = op.padding
    y = f.pad(x.permute(0, 3, 1, 2), (left, right, top, bottom))
    y = f.conv2d(y, weight.permute(0, 3, 1, 2), bias, op.stride, 0, op.dilation, op.groups)
    if op.pool != (1, 1):
        y = f.max_pool2d(y, op.pool)
    return y.clamp(op.lo, op.hi).permute(0, 2, 3, 1)


def _max_pool(op: MaxPool2d, x: Any) -> Any:
    from torch.nn import functional as f

    top, bottom, left, right = op.padding
    y = f.pad(x.permute(0, 3, 1, 2), (left, right, top, bottom), value=float("-inf"))
    return f.max_pool2d(y, op.kernel, op.stride, 0, op.dilation, op.ceil_mode).permute(0, 2, 3, 1)


def _avg_pool(op: AvgPool2d, x: Any) -> Any:
    from torch.nn import functional as f

    top, bottom, left, right = op.padding
    if (top, left) != (bottom, right):
        raise NotImplementedError
    y = x.permute(0, 3, 1, 2)
    y = f.avg_pool2d(y, op.kernel, op.stride, (top, left), op.ceil_mode, op.count_include_pad, op.divisor or None)
    return y.permute(0, 2, 3, 1)


def _reshape(op: Reshape, x: Any) -> Any:
    return x.reshape(x.shape[0], *op.shape[1:])  # a batch may be larger than the example


def _permute(op: Permute, x: Any) -> Any:
    if op.dims[0] != 0:
        raise NotImplementedError
    return x.permute(op.dims)


ROWS: Mapping[type[Op], Row] = {
    Linear: _linear,
    Conv2d: _conv2d,
    MaxPool2d: _max_pool,
    AvgPool2d: _avg_pool,
    AdaptiveAvgPool2d: lambda op, x: x.mean((1, 2), keepdim=True),
    Reshape: _reshape,
    Permute: _permute,
    Mean: lambda op, x: x.mean(op.axes, keepdim=op.keepdim),
    Clamp: lambda op, x: x.clamp(op.lo, op.hi),
    Add: lambda op, a, b: (a + b).clamp(op.lo, op.hi),
    Sub: lambda op, a, b: (a - b).clamp(op.lo, op.hi),
    Mul: lambda op, a, b: (a * b).clamp(op.lo, op.hi),
    Softmax: lambda op, x: x.softmax(op.axis),
}


def why_untrained(graph: Graph) -> str | None:
    """Why a graph cannot be trained, in words: all of its operators must be known here, and a batch go through as one
    input does."""
    strange = sorted({n.op.name for n in graph.nodes if type(n.op) not in ROWS})
    if strange:
        return f"train(model) does not support a model with {', '.join(strange)}"
    if graph.state or len(graph.outputs) != 1:
        return "train(model) does not support a model with state or several outputs"
    first = [graph[n].shape[:1] == (1,) for n in (*graph.inputs, *graph.outputs)]
    pooled = all(graph[n.outputs[0]].shape[1:3] == (1, 1) for n in graph.nodes if isinstance(n.op, AdaptiveAvgPool2d))
    reshaped = all(n.op.shape[:1] == (1,) for n in graph.nodes if isinstance(n.op, Reshape))
    batches = all(first) and pooled and reshaped
    return None if batches else "train(model) does not support a model that mixes the samples of a batch"


def trained(
    graph: Graph, grids: Mapping[str, Grid], train: Callable[[Any], object], thin: Mapping[str, Array] = NOTHING
) -> Graph:
    """The graph after train(model). The weights of layers in `grids`, by their outputs, are rounded in each step; those
    of `thin`, by their names, stay zero where that is."""
    import torch
    from torch import nn

    weights = {
        n.inputs[1]: grids[n.outputs[0]]
        for n in graph.nodes
        if n.outputs[0] in grids and isinstance(n.op, (Linear, Conv2d))
    }

    masks = {name: torch.from_numpy(mask) for name, mask in thin.items()}

    class Trainable(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.constants = nn.ParameterList(
                nn.Parameter(torch.from_numpy(np.array(t.data)), requires_grad=t.data.dtype == np.float32)
                for t in graph.constants()
                if t.data is not None
            )

        def forward(self, *inputs: Any) -> Any:
            names = (t.name for t in graph.constants())
            values = {
                n: _rounded(c, weights[n]) if n in weights else c for n, c in zip(names, self.constants, strict=True)
            }
            for n, mask in masks.items():
                values[n] = values[n] * mask
            for x, port in zip(inputs, graph.takes(), strict=True):
                values[port.tensor.name] = x.permute(port.order)
            for node in graph.nodes:
                values[node.outputs[0]] = ROWS[type(node.op)](node.op, *(values[n] for n in node.inputs))
            (port,) = graph.gives()
            return values[port.tensor.name].permute(tuple(int(i) for i in np.argsort(port.order)))

    module = Trainable()
    train(module)
    tensors = dict(graph.tensors)
    for t, parameter in zip(graph.constants(), module.constants, strict=True):
        learned = parameter.detach().numpy()
        tensors[t.name] = with_data(t, learned * thin[t.name] if t.name in thin else learned)
    return replace(graph, tensors=tensors)


def _rounded(weight: Any, grid: Grid) -> Any:
    """On its grid, and as if it were not for what flows back."""
    most, rows = grid.most, weight.detach().flatten(1)
    scale = rows.abs().amax(1, keepdim=True).clamp_min(1e-12) / most
    if grid.group:
        scale = scale / FACTORS * _factors(rows / (scale / FACTORS), grid)
    step = scale.expand_as(rows).reshape(weight.shape)
    return weight + ((weight / step).round().clamp(-most, most) * step - weight).detach()


def _factors(whole: Any, grid: Grid) -> Any:
    """As ops/packing/int4.py has them, for rows of weights in the finest steps."""
    from torch.nn import functional as f

    count = whole.shape[1]
    groups = f.pad(whole.abs(), (0, -count % grid.group)).unflatten(1, (-1, grid.group))
    factors = (groups.amax(2) / grid.most - 1e-4).ceil().clamp(1, FACTORS)
    return factors.repeat_interleave(grid.group, 1)[:, :count]
