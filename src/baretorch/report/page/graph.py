"""Draw the graph: data flows down, one box for each operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from baretorch.ir.graph import DType, Graph, Node
from baretorch.measure.layers import LayerRow
from baretorch.measure.numbers import share, shorten_name
from baretorch.report.findings import Report
from baretorch.report.page.html import Html, el, rect, svg, text
from baretorch.report.page.layered import Drawing, Spot, arrange

DRAWN = 250  # boxes at most, so that pages stay small
_WIDTH, _HEIGHT, _GAP, _DOWN = 200, 44, 22, 74
_LETTERS = 29  # of a box's second line


@dataclass(frozen=True)
class _Box:
    """`kind` is the style class: "end", "macs", "float" or "plain"."""

    title: str
    below: str
    kind: str
    tip: str
    part: float = 0.0  # of the run's instructions


def graph_picture(report: Report) -> Html:
    """Draw the first nodes of the graph and the data between them, without constants."""
    graph = report.graph
    nodes = graph.nodes[:DRAWN]
    rows: dict[tuple[str, str], list[LayerRow]] = {}
    for row in report.rows:
        rows.setdefault((row.name, row.op), []).append(row)
    boxes: dict[str, _Box] = {}
    edges: list[tuple[str, str]] = []
    maker: dict[str, str] = {}
    for name in (*graph.inputs, *(s.name for s in graph.state)):
        kind = "input" if name in graph.inputs else "state"
        boxes[f"in {name}"] = _Box(name, graph[name].type, "end", f"{name}\n{kind} {graph[name].type}")
        maker[name] = f"in {name}"
    for i, node in enumerate(nodes):
        boxes[key := f"node {i}"] = _node_box(report, graph, node, rows)
        edges += [(maker[n], key) for n in dict.fromkeys(node.inputs) if n in maker]
        maker |= dict.fromkeys(node.outputs, key)
    for name in dict.fromkeys(graph.outputs):
        if name in maker:
            boxes[f"out {name}"] = _Box(name, graph[name].type, "end", f"{name}\noutput {graph[name].type}")
            edges.append((maker[name], f"out {name}"))
    drawing = arrange(list(boxes), edges, _WIDTH, _GAP)
    return _draw(drawing, boxes)


def hidden_nodes(report: Report) -> int:
    """Return the number of operators that the drawing does not show."""
    return max(0, len(report.graph.nodes) - DRAWN)


def _node_box(report: Report, graph: Graph, node: Node, rows: Mapping[tuple[str, str], list[LayerRow]]) -> _Box:
    y = graph[node.outputs[0]]
    name = y.layer
    same = rows.get((name, node.op.name))  # layers of one name are in the same order
    row = same.pop(0) if same else None
    macs = node.op.macs(graph.of(node.inputs), graph.of(node.outputs))
    floats = report.int8 and y.dtype is DType.FLOAT32 and node.op.computes
    lines = [f"{name}: {node.op.name}", y.type]
    if macs:
        lines.append(f"{macs:,} MACs")
    whole = report.profile.instructions
    if row:
        lines += [f"{row.instructions:,} instructions, {share(row.instructions, whole)}", f"kernel {row.kernel}"]
    kind = "float" if floats else "macs" if macs else "plain"
    shape = "×".join(map(str, y.shape))
    below = f"{name}  {shape}" if len(name) + len(shape) + 2 <= _LETTERS else name
    return _Box(node.op.name, below, kind, "\n".join(lines), row.instructions / whole if row else 0.0)


def _draw(drawing: Drawing, boxes: Mapping[str, _Box]) -> Html:
    width = max((spot.x for spot in drawing.nodes.values()), default=0) + _WIDTH / 2 + 2
    width = max(width, max((s.x + s.width for path in drawing.edges for s in path), default=0))
    lines = [_edge(path) for path in drawing.edges]
    shapes = [_shape(drawing.nodes[key], box) for key, box in boxes.items()]
    height = drawing.rows * _DOWN - (_DOWN - _HEIGHT) + 2
    return svg(width, height, "the graph of the model", *lines, *shapes)


def _edge(path: tuple[Spot, ...]) -> Html:
    """Draw an edge down from box to box, around the boxes in between."""
    x, y = path[0].x, path[0].row * _DOWN + _HEIGHT + 1
    d = f"M{x:.1f} {y}"
    for spot in path[1:]:
        top = spot.row * _DOWN + 1
        middle = (y + top) / 2
        d += f" C{x:.1f} {middle} {spot.x:.1f} {middle} {spot.x:.1f} {top}"
        x, y = spot.x, top
        if spot is not path[-1]:
            y += _HEIGHT
            d += f" V{y}"
    return el("path", d=d, class_="edge")


def _shape(spot: Spot, box: _Box) -> Html:
    x, y = spot.x - _WIDTH / 2 + 1, spot.row * _DOWN + 1
    parts = [
        rect(x, y, _WIDTH - 2, _HEIGHT, class_=f"box {box.kind}", rx=22 if box.kind == "end" else 6),
        text(spot.x, y + 18, box.title, "title middle"),
        text(spot.x, y + 34, shorten_name(box.below, _LETTERS), "middle"),
    ]
    if box.part:
        parts.append(rect(x + 6, y + _HEIGHT - 5, (_WIDTH - 14) * box.part, 3, class_="part", rx=1.5))
    return el("g", *parts, data_tip=box.tip)
