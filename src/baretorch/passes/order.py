"""List the passes in the order they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from baretorch.ir.graph import Graph
from baretorch.ir.verify import verify
from baretorch.passes.fold import fold_affine, fold_constants, fold_padding
from baretorch.passes.fuse import fuse_clamp, fuse_pool, fuse_power
from baretorch.passes.layout import layout
from baretorch.passes.note_scales import note_scales
from baretorch.passes.rejoin import rejoin
from baretorch.passes.rewrite import dead_code
from baretorch.passes.split import split_depth, split_linear
from baretorch.passes.to_int8 import to_int8
from baretorch.passes.views import drop_expand, sink_views, views

Pass: TypeAlias = Callable[[Graph], Graph]

# These keep the float model's results. Quantization follows them if requested.
FLOAT_PASSES: tuple[Pass, ...] = (
    note_scales,  # first, so that every other pass sees a float graph with scales
    dead_code,
    drop_expand,  # before constants are written out at full size
    fold_constants,  # weights arrive permuted by frontends; layout needs them plain
    fuse_power,
    rejoin,  # before passes that work on whole layers
    split_linear,
    layout,
    sink_views,  # a reshape between a layer and its BatchNorm, ReLU or pool is in the way of the next …
    views,  # … and so is a pair of them that cancels
    fold_affine,  # needs channels last, so that a channel is the last axis
    fold_padding,
    fuse_clamp,  # conv, relu, pool: the relu first …
    fuse_pool,
    fuse_clamp,  # … conv, pool, relu: the relu after
    views,
    fold_constants,
)
FINAL_PASSES: tuple[Pass, ...] = (
    to_int8,  # uses the scales
    split_depth,  # after passes that fuse with a convolution
)
PASSES: tuple[Pass, ...] = (*FLOAT_PASSES, *FINAL_PASSES)


def run_passes(graph: Graph, passes: Sequence[Pass]) -> list[tuple[str, Graph]]:
    """Return the graph before and after each pass, with the pass's name; the first is called frontend."""
    found = [("frontend", verify(graph))]
    for step in passes:
        graph = verify(step(graph))
        found.append((step.__name__, graph))
    return found


def lower_graph(graph: Graph) -> Graph:
    """Return a graph as read after all passes. A model that is quantized goes through `pipeline.lower` instead."""
    return run_passes(graph, PASSES)[-1][1]
