"""Find the values around Fourier transforms, which stay float. Powers of a spectrum differ by more than 8 bits can
represent; their logarithm is the first value that fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from baretorch.ir.graph import Graph, Node
from baretorch.ops import scaling_of
from baretorch.ops.fft import Fft, Irfft, Magnitude, Rfft
from baretorch.ops.functions import Log, Log1p, Log2, Log10
from baretorch.ops.int8.scaled import Scaled

TRANSFORMS = (Fft, Rfft)
LOGARITHMS = (Log, Log1p, Log2, Log10)
REAL = (Magnitude, Irfft)  # operators that return real numbers for complex ones


def around_spectra(graph: Graph) -> set[str]:
    """Return the tensors around Fourier transforms that stay float: samples before them, and powers up to a logarithm.
    A layer with weights ends the search, since its output belongs to a network and not to a front end."""
    transforms = [node for node in graph.nodes if isinstance(node.op, TRANSFORMS)]
    if not transforms:
        return set()
    makers, uses = graph.producer(), graph.uses()

    def before(node: Node) -> Iterable[Node]:
        return (makers[name] for name in node.inputs if name in makers)

    def following(node: Node) -> Iterable[Node]:
        return (user for name in node.outputs for user in uses.get(name, ()))

    found: set[str] = set()
    after: dict[str, Node] = {}
    for node in transforms:
        for other in _walk(node, before, _is_layer):
            found.update(other.outputs)
        found.update(node.outputs)
        for other in _walk(node, following, lambda n: isinstance(n.op, REAL) or _is_layer(n)):
            found.update(other.outputs)  # complex numbers
        after |= {n.outputs[0]: n for n in _walk(node, following, lambda n: isinstance(n.op, LOGARITHMS))}
    reached = set(after) | {name for node in transforms for name in node.outputs}
    for node in graph.nodes:
        if isinstance(node.op, LOGARITHMS) and reached.intersection(node.inputs):
            found.update(node.outputs)
            for other in _walk(node, before, lambda n: reached.isdisjoint(n.outputs)):
                found.update(other.outputs)
    return found


def _is_layer(node: Node) -> bool:
    return scaling_of(node.op) in (Scaled.LAYER, Scaled.RECURRENT)


def _walk(start: Node, neighbours: Callable[[Node], Iterable[Node]], stops: Callable[[Node], bool]) -> Iterator[Node]:
    """Yield all nodes that can be reached from `start` without passing a node that stops the walk."""
    seen = {start.outputs}
    waiting = [start]
    while waiting:
        for node in neighbours(waiting.pop()):
            if node.outputs not in seen and not stops(node):
                seen.add(node.outputs)
                waiting.append(node)
                yield node
