"""What stays float around Fourier transforms: the samples on their way in, and powers on their way to a logarithm.

A spectrum's powers differ by more than eight bits can tell; their logarithm is the first value that they can hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch.fx import Node

FORWARD = {"fft_rfft", "fft_rfft2", "fft_rfftn", "fft_fft", "fft_fft2", "_fft_r2c", "stft"}
LOGARITHMS = {"log", "log2", "log10", "log1p"}


def around_spectra(model: Any, is_layer: Callable[[Node], bool]) -> set[Node]:
    """The nodes that are not to be quantized. A layer is an operator with weights: what it makes on the way to a
    transform is a network's, not a front end's."""
    calls = [node for node in model.graph.nodes if node.op == "call_function"]
    transforms = [node for node in calls if name_of(node) in FORWARD]
    if not transforms:
        return set()
    found = {node for node in calls if any(map(_is_complex, (node, *node.all_input_nodes)))}
    for node in transforms:
        found |= set(_walk(node, lambda n: n.all_input_nodes, is_layer))
    after = {n for node in transforms for n in _walk(node, lambda n: n.users, lambda n: name_of(n) in LOGARITHMS)}
    after |= {user for node in after for user in node.users if name_of(user) in LOGARITHMS}
    for node in after:
        if name_of(node) in LOGARITHMS:
            found |= {node, *_walk(node, lambda n: n.all_input_nodes, lambda n: n not in after)}
    return found


def name_of(node: Any) -> str:
    """`conv2d` of aten.conv2d.default, `relu` of aten.relu_.default."""
    packet = getattr(node.target, "overloadpacket", None) if isinstance(node, Node) else None
    return packet.__name__.rstrip("_") if packet is not None else ""


def _walk(start: Node, neighbours: Any, stops: Any) -> Iterator[Node]:
    """All that can be reached, without what stops it."""
    seen = {start}
    waiting = [start]
    while waiting:
        for node in neighbours(waiting.pop()):
            if node not in seen and not stops(node):
                seen.add(node)
                waiting.append(node)
                yield node


def _is_complex(node: Node) -> bool:
    value = node.meta.get("val")
    return bool(getattr(getattr(value, "dtype", None), "is_complex", False))
