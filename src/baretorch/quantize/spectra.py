"""What stays float around Fourier transforms: the samples on their way in, and powers on their way to a logarithm.

A spectrum's powers differ by more than eight bits can tell; their logarithm is the first value that they can hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from baretorch.ir.graph import Graph, Node
from baretorch.ops import scaled
from baretorch.ops.fft import Irfft, Magnitude
from baretorch.ops.int8.scaled import Scaled
from baretorch.passes.to_int8 import LOGARITHMS, TRANSFORMS

REAL = (Magnitude, Irfft)  # what makes real numbers of complex ones


def around_spectra(graph: Graph) -> set[str]:
    """What the nodes make that are not to be quantized. A layer is an operator with weights: what it makes on the way
    to a transform is a network's, not a front end's."""
    transforms = [node for node in graph.nodes if isinstance(node.op, TRANSFORMS)]
    if not transforms:
        return set()
    makers, uses = graph.producer(), graph.uses()

    def before(node: Node) -> Iterable[Node]:
        return (makers[name] for name in node.inputs if name in makers)

    def behind(node: Node) -> Iterable[Node]:
        return (user for name in node.outputs for user in uses.get(name, ()))

    found: set[str] = set()
    after: dict[str, Node] = {}
    for node in transforms:
        for other in _walk(node, before, _is_layer):
            found.update(other.outputs)
        found.update(node.outputs)
        for other in _walk(node, behind, lambda n: isinstance(n.op, REAL) or _is_layer(n)):
            found.update(other.outputs)  # complex numbers
        after |= {n.outputs[0]: n for n in _walk(node, behind, lambda n: isinstance(n.op, LOGARITHMS))}
    reached = set(after) | {name for node in transforms for name in node.outputs}
    for node in graph.nodes:
        if isinstance(node.op, LOGARITHMS) and reached.intersection(node.inputs):
            found.update(node.outputs)
            for other in _walk(node, before, lambda n: reached.isdisjoint(n.outputs)):
                found.update(other.outputs)
    return found


def _is_layer(node: Node) -> bool:
    return scaled(node.op) in (Scaled.LAYER, Scaled.RECURRENT)


def _walk(start: Node, neighbours: Callable[[Node], Iterable[Node]], stops: Callable[[Node], bool]) -> Iterator[Node]:
    """All that can be reached, without what stops it."""
    seen = {start.outputs}
    waiting = [start]
    while waiting:
        for node in neighbours(waiting.pop()):
            if node.outputs not in seen and not stops(node):
                seen.add(node.outputs)
                waiting.append(node)
                yield node
