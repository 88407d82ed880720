"""Find the stage to run in bands, where the whole tensors are too large."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from baretorch.ir import Graph, Node
from baretorch.ops.move import Copy, Place
from baretorch.plan.bands import HEIGHT, Block, activations, chains, in_bands
from baretorch.plan.types import Patches, Plan

HEIGHTS = (24, 16, 12, 8, 6, 4, 3, 2, 1)  # rows of a band
TRIALS = 150  # plans that are made before giving up


@dataclass(frozen=True)
class _Stage:
    nodes: tuple[Node, ...]
    height: int
    bands: int

    @property
    def cost(self) -> int:
        """Calls of kernels: each has its overhead, and each band copies its halos."""
        return self.bands * len(self.nodes)


def patched(whole: Plan, plan_of: Callable[[Graph], Plan], limit: int, pull: bool) -> Plan:
    """The plan of fewest calls whose arena is at most `limit` bytes, or else the smallest of those tried. `whole` is
    the plan without bands. With `pull` the rows of the model's input come from the caller."""
    best: Plan | None = None
    for stage in _stages(whole, limit, pull)[:TRIALS]:
        plan = plan_of(in_bands(whole.graph, stage.nodes, stage.height, pull))
        plan = replace(plan, patches=_about(stage, plan, whole))
        if best is None or plan.arena < best.arena:
            best = plan
        if plan.arena <= limit:
            return plan
    return best or whole


def _stages(whole: Plan, limit: int, pull: bool) -> list[_Stage]:
    """What might help, the fewest calls first: what remains whole fits."""
    graph = whole.graph
    live = {step.nodes[0].outputs[0]: whole.live_bytes(i) for i, step in enumerate(whole.steps)}
    found = []
    for chain in chains(graph):
        for nodes in _parts(chain, graph, pull):
            inside = {n.outputs[0] for n in nodes}
            last = graph[nodes[-1].outputs[0]]
            ends = last.bytes + (0 if pull else graph[activations(graph, nodes[0])[0]].bytes)
            outside = max((bytes_ for name, bytes_ in live.items() if name not in inside), default=0)
            if max(outside, ends) <= limit:
                rows = last.shape[HEIGHT]
                found += [_Stage(nodes, h, -(-rows // h)) for h in HEIGHTS if h < rows]
    return sorted(found, key=lambda stage: stage.cost)


def _parts(chain: tuple[Block, ...], graph: Graph, pull: bool) -> Iterator[tuple[Node, ...]]:
    """The layers of neighbours in the chain, two or more layers; where the input is pulled, they begin with it."""
    for start in range(len(chain)):
        if pull and not set(chain[start][0].inputs) & set(graph.inputs):
            continue
        for stop in range(start + 1, len(chain) + 1):
            nodes = tuple(node for block in chain[start:stop] for node in block)
            if len(nodes) > 1:
                yield nodes


def _about(stage: _Stage, plan: Plan, whole: Plan) -> Patches:
    return Patches(tuple(n.outputs[0] for n in stage.nodes), stage.bands, _copied(plan) - _copied(whole))


def _copied(plan: Plan) -> int:
    return sum(step.call.x.bytes for step in plan.steps if isinstance(step.call.op, (Copy, Place)))
