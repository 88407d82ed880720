"""Stacked recurrent layers one by one, so that the hidden states in between are measured too."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Graph, Node

aten = torch.ops.aten


def split_layers(module: Any) -> None:
    """Replace each lstm and gru of several layers that begins with zeros by as many of one. Those whose states are
    given stay whole; the scale of what is in between is then that of numbers from -1 to 1."""
    for node in list(module.graph.nodes):
        if node.target in (aten.lstm.input, aten.gru.input) and node.args[4] > 1:
            states = _states(node)
            if all(s.target is aten.zeros.default for s in states):
                _split(module.graph, node, states)
    module.graph.eliminate_dead_code()
    module.recompile()


def _states(node: Node) -> list[Any]:
    """lstm has a list of them, gru has one."""
    return list(node.args[1]) if isinstance(node.args[1], (list, tuple)) else [node.args[1]]


def _split(graph: Graph, node: Node, states: list[Any]) -> None:
    x, begin, weights, has_biases, layers, *rest = node.args
    each = len(weights) // layers
    ends: list[list[Node]] = [[] for _ in states]
    with graph.inserting_before(node):
        for layer in range(layers):
            zeros = [
                graph.call_function(s.target, ([s.args[0][0] // layers, *s.args[0][1:]],), s.kwargs) for s in states
            ]
            own = weights[layer * each : (layer + 1) * each]
            args = (x, zeros if isinstance(begin, (list, tuple)) else zeros[0], own, has_biases, 1, *rest)
            call = graph.call_function(node.target, args)
            call.meta = dict(node.meta)
            x, *some = (_result(graph, call, i) for i in range(1 + len(states)))
            for list_, end in zip(ends, some, strict=True):
                list_.append(end)
        stacked = [graph.call_function(aten.cat.default, (list_, 0)) for list_ in ends]
    for made, value in zip(stacked, node.meta["val"][1:], strict=True):
        made.meta = {**node.meta, "val": value}
    for user in list(node.users):
        user.replace_all_uses_with([x, *stacked][user.args[1]])
        graph.erase_node(user)
    graph.erase_node(node)


def _result(graph: Graph, call: Node, index: int) -> Node:
    made = graph.call_function(operator.getitem, (call, index))
    made.meta = {**call.meta, "val": call.meta["val"][index]}
    return made
