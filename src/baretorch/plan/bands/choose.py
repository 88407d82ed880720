"""Choose the layers that run in bands, where the whole tensors are too large."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from baretorch.ir.graph import Graph, Node
from baretorch.plan.bands.split import HEIGHT, Segment, chains, entries, in_bands
from baretorch.plan.types import Bands, Plan

HEIGHTS = (24, 16, 12, 8, 6, 4, 3, 2, 1)  # rows of a band
TRIALS = 150  # plans that are made before giving up
HOPELESS = 12  # plans that are made only to tell how near they come


@dataclass(frozen=True)
class _Choice:
    nodes: tuple[Node, ...]
    height: int
    bands: int
    least: int  # bytes that the plan will need, or the limit, if that is more

    @property
    def cost(self) -> int:
        """Calls of kernels: each has its overhead, and each band copies its halos."""
        return self.bands * len(self.nodes)


def choose_bands(
    whole: Plan, plan_of: Callable[[Graph], Plan], limit: int, pull: bool, fits: Callable[[Plan], bool]
) -> Plan:
    """The plan of fewest calls that `fits`, or else the smallest of those tried. `whole` is the plan without bands; so
    many bytes of arena might do. With `pull` the rows of the model's input come from the caller."""
    best: Plan | None = None
    choices = _choices(whole, limit, pull)
    hopeful = sum(choice.least <= limit for choice in choices)
    for choice in choices[: min(TRIALS, max(hopeful, HOPELESS))]:
        plan = plan_of(in_bands(whole.graph, choice.nodes, choice.height, pull))
        plan = replace(plan, bands=_about(choice, plan, whole))
        if best is None or plan.arena < best.arena:
            best = plan
        if fits(plan):
            return plan
    return best or whole


def _choices(whole: Plan, limit: int, pull: bool) -> list[_Choice]:
    """What might help, the fewest calls first: what remains whole fits. Behind these, what comes near."""
    graph = whole.graph
    live: dict[str, int] = {}
    for time, phase in enumerate(whole.phases):
        for step in phase.steps:
            name = step.nodes[0].outputs[0]
            live[name] = max(live.get(name, 0), whole.live_bytes(time))
    found = []
    for chain in chains(graph):
        for nodes in _parts(chain, graph, pull):
            inside = {n.outputs[0] for n in nodes}
            last = graph[nodes[-1].outputs[0]]
            ends = last.bytes + (0 if pull else graph[entries(graph, nodes)[0]].bytes)
            outside = max((bytes_ for name, bytes_ in live.items() if name not in inside), default=0)
            rows = last.shape[HEIGHT]
            least = max(outside, ends, limit)
            found += [_Choice(nodes, h, -(-rows // h), least) for h in HEIGHTS if h < rows]
    return sorted(found, key=lambda choice: (choice.least, choice.cost))


def _parts(chain: tuple[Segment, ...], graph: Graph, pull: bool) -> Iterator[tuple[Node, ...]]:
    """The layers of neighbours in the chain, two or more layers; where the input is pulled, they begin with it, and
    nobody else reads it."""
    for start in range(len(chain)):
        if pull and not _reads_alone(chain[start], graph):
            continue
        for stop in range(start + 1, len(chain) + 1):
            nodes = tuple(node for block in chain[start:stop] for node in block)
            if len(nodes) > 1:
                yield nodes


def _reads_alone(block: Segment, graph: Graph) -> bool:
    """Whether a block is all that reads an input of the model."""
    (name,) = entries(graph, block)
    others = (n for n in graph.nodes if name in n.inputs and not any(n is own for own in block))
    return name in graph.inputs and name not in graph.kept and not any(others)


def _about(choice: _Choice, plan: Plan, whole: Plan) -> Bands:
    return Bands(tuple(n.outputs[0] for n in choice.nodes), choice.bands, _copied(plan) - _copied(whole))


def _copied(plan: Plan) -> int:
    calls = (step.call for step in plan.steps)
    return sum(call.x.bytes for call in calls if call.op.destination(call.inputs, call.y) is not None)
