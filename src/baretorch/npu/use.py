"""Whether and how a board's NPU is used: as far as it goes, not at all, or for everything that computes."""

from __future__ import annotations

from baretorch.errors import CompileError
from baretorch.ir import Graph
from baretorch.npu import vela
from baretorch.npu.lower import why_not
from baretorch.npu.partition import Judge, Left, Partition, layer_of, partitioned, trusting
from baretorch.ops.quantize import Dequantize, Quantize
from baretorch.options import Input, Options, UseNpu
from baretorch.targets.types import Board

MISSING = "Vela is not installed"


def delegated(graph: Graph, board: Board, options: Options, judge: Judge = trusting) -> Partition | None:
    """What runs where on a board with an NPU; None if there is none, or it is not to be used. With `require`, all but
    the conversions at the edges runs on the NPU, or there is an error that lists what does not."""
    npu, asked = board.chip.npu, options.npu or UseNpu.AUTO
    if asked is UseNpu.OFF:
        return None
    if npu is None:
        if asked is UseNpu.REQUIRE:
            raise CompileError(
                f"--npu require: {board.name} has no NPU",
                need="a chip whose TOML describes [npu], as that of corstone-300 does",
                try_="leave it out",
            )
        return None
    why = _in_the_way(options)
    if why is None and not vela.installed() and asked is UseNpu.AUTO:
        why = MISSING
    if why is not None:
        taken = [node for node in graph.nodes if why_not(graph, node) is None]
        left = [Left(layer_of(graph[node.outputs[0]]), node.op.name, why) for node in taken if node.op.computes]
        found = Partition(graph, (), tuple(left))
    else:
        found = partitioned(graph, npu, most=asked is UseNpu.REQUIRE, judge=judge)
    if asked is UseNpu.REQUIRE:
        _need_all(found, board)
    return found


def _in_the_way(options: Options) -> str | None:
    if options.input is Input.ROWS:
        return "with --input rows the CPU asks for the rows"
    if options.used_cores > 1:
        return "a second core works on the model"
    return None


EDGES = (Quantize.name, Dequantize.name)


def _need_all(found: Partition, board: Board) -> None:
    behind = [left for left in found.left if left.op not in EDGES]
    if not behind and found.regions:
        return
    have = [f"{left.op} {left.layer}: {left.why}" for left in behind]
    raise CompileError(
        f"--npu require: {len(behind)} operators of the model do not run on the NPU of {board.name}",
        have=have or "no operator computes in int8",
        need="an int8 model of which the NPU takes everything but quantize and dequantize",
        try_="--npu auto: the CPU does the rest" if found.left or found.regions else "--int8",
    )
