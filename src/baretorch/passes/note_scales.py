"""Replace each quantize-dequantize pair by a scale that is attached to its tensor.

Until `to_int8` replaces the operators by integer ones, the graph is an ordinary float graph for all other passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from baretorch.ir.graph import Graph, Node, Op, Quant, Tensor
from baretorch.ops import scaling_of
from baretorch.ops.elementwise import Clamp
from baretorch.ops.int8.quantize import Dequantize, Quantize
from baretorch.ops.int8.scaled import Scaled
from baretorch.ops.layout import Permute, Reshape
from baretorch.passes.rewrite import rebuild


def note_scales(graph: Graph) -> Graph:
    producer, uses = graph.producer(), graph.uses()
    noted: dict[str, Tensor] = {}
    rename: dict[str, str] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        if isinstance(node.op, Dequantize):
            before = producer.get(node.inputs[0])
            if before is not None and before.op == Quantize(node.op.scale, node.op.zero):
                x = before.inputs[0]
                while x in rename:
                    x = rename[x]
                known = noted.get(x, graph[x])
                quant = Quant((node.op.scale,), (node.op.zero,), cuts=known.quant is not None and known.quant.cuts)
                if _is_read_whole(graph, producer.get(x), uses.get(x, ()), x, before.op):
                    noted[x] = replace(known, quant=None)
                elif known.quant in (None, quant) and not _narrower(graph, noted, rename, uses, producer.get(x), quant):
                    noted[x] = replace(known, quant=quant)
                    rename[node.outputs[0]] = x
                    continue
        nodes.append(node)
    views = [n for n in nodes if isinstance(n.op, (Permute, Reshape))]
    for node in reversed(views):
        x = rename.get(node.inputs[0], node.inputs[0])
        if len(uses.get(x, ())) > 1 or x in graph.kept:
            continue  # the others may see it in another scale
        _share(graph, noted, noted.get(node.outputs[0], graph[node.outputs[0]]).quant, x)
    for node in views:
        x = rename.get(node.inputs[0], node.inputs[0])
        (signature,) = node.op.infer([noted.get(x, graph[x])])
        _share(graph, noted, signature.quant, node.outputs[0])
    return rebuild(graph, nodes, noted.values(), rename)


def _is_read_whole(graph: Graph, maker: Node | None, readers: Sequence[Node], x: str, op: Op) -> bool:
    """Report whether a reader outside the pair sees values that the pair clips. Only an activation whose zero point is
    at the end of the range has such a pair."""
    assert isinstance(op, Quantize)
    if -128 < op.zero < 127:
        return False
    if maker and (isinstance(maker.op, Clamp) or scaling_of(maker.op) in (Scaled.SOFTMAX, Scaled.UNIT)):
        return False
    return any(reader.op != op for reader in readers) or x in graph.kept


def _narrower(
    graph: Graph,
    noted: Mapping[str, Tensor],
    rename: Mapping[str, str],
    uses: Mapping[str, Sequence[Node]],
    maker: Node | None,
    quant: Quant,
) -> bool:
    """Report whether the scale of a view cannot represent all values of its input, or might not."""
    if maker is None or not isinstance(maker.op, (Permute, Reshape)):
        return False
    x = rename.get(maker.inputs[0], maker.inputs[0])
    have = noted.get(x, graph[x]).quant
    if have is None:
        return quant.cuts and len(uses.get(x, ())) > 1
    if have.axis is not None or have == quant:
        return False
    (lo, hi), (least, most) = quant.range, have.range
    return least < lo - quant.scale[0] or most > hi + quant.scale[0]


def _share(graph: Graph, noted: dict[str, Tensor], quant: Quant | None, to: str) -> None:
    """Give a view the scale of its input, or the input the scale of its view."""
    if quant is not None and graph[to].data is None and noted.get(to, graph[to]).quant is None:
        noted[to] = replace(graph[to], quant=quant)
