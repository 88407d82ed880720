"""Use a board's NPU as far as possible, not at all, or for everything that computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from baretorch.errors import CompileError
from baretorch.ir.graph import DType, Graph, Node
from baretorch.npu import vela
from baretorch.npu.accelerators import ACCELERATORS_BY_NAME, by_config
from baretorch.npu.partition import DelegatedRegion, Judge, Left, Partition, accept, layer_name_of, make_partition
from baretorch.npu.to_tosa import why_not
from baretorch.ops.delegate import Delegate
from baretorch.ops.int8.quantize import Dequantize, Quantize
from baretorch.ops.move import Cat, Slice
from baretorch.options import Input, Options, UseNpu
from baretorch.targets.parts import Npu
from baretorch.targets.types import Board

MISSING = "Vela is not installed"


def delegate_to_npu(graph: Graph, board: Board, options: Options, judge: Judge = accept) -> Partition | None:
    """Return what runs on the NPU and what on the CPU; None if there is no NPU, or it is not to be used. With
    `require`, everything except the conversions at the edges runs on the NPU, or an error lists what does not."""
    npu, asked = board.chip.npu, options.npu or UseNpu.AUTO
    graph, brought = _place_delegates(graph, board, options)
    if asked is UseNpu.OFF:
        return None
    if npu is None:
        if asked is UseNpu.REQUIRE:
            raise CompileError(
                f"--npu require: {board.name} has no NPU",
                need="a chip whose TOML has [npu], such as corstone-300",
                try_="leave it out",
            )
        return None
    why = _in_the_way(options)
    if why is None and not vela.is_installed() and asked is UseNpu.AUTO:
        why = MISSING
    if why is not None:
        taken = [node for node in graph.nodes if why_not(graph, node) is None]
        left = [Left(layer_name_of(graph[node.outputs[0]]), node.op.name, why) for node in taken if node.op.computes]
        found = Partition(graph, (), tuple(left))
    else:
        found = make_partition(graph, npu, most=asked is UseNpu.REQUIRE, judge=judge)
    own = _rows(graph)
    behind = tuple(each for each in found.left if each.layer not in own)
    found = replace(found, regions=(*brought, *found.regions), left=behind)
    if asked is UseNpu.REQUIRE:
        _need_all(found, board)
    return found


def _place_delegates(graph: Graph, board: Board, options: Options) -> tuple[Graph, tuple[DelegatedRegion, ...]]:
    """Return the graph with delegates that came with its file in the bank that the NPU reaches, and their regions. They
    are commands for one kind of NPU: no other NPU, and no CPU, can run them."""
    regions, nodes = list[DelegatedRegion](), list[Node]()
    for node in graph.nodes:
        if isinstance(node.op, Delegate):
            npu = _need_npu(node.op, board, options)
            regions.append(_make_region(graph, node, node.op))
            node = replace(node, op=replace(node.op, bank=npu.ram))
        nodes.append(node)
    return (replace(graph, nodes=tuple(nodes)) if regions else graph), tuple(regions)


def _rows(graph: Graph) -> set[str]:
    """Return the layers that arrange the inputs and outputs of such delegates in rows."""
    taken = {node.inputs[0] for node in graph.nodes if isinstance(node.op, Delegate)}
    given = {name for node in graph.nodes if isinstance(node.op, Delegate) for name in node.outputs}
    rows = (
        n for n in graph.nodes if isinstance(n.op, (Cat, Slice)) and (n.outputs[0] in taken or n.inputs[0] in given)
    )
    return {layer_name_of(graph[node.outputs[0]]) for node in rows}


def _need_npu(op: Delegate, board: Board, options: Options) -> Npu:
    accelerator, npu = by_config(op.config), board.chip.npu
    wanted = accelerator.name if accelerator else f"an NPU {op.config:#x}"
    if npu is None:
        have = f"{board.name} has no NPU"
    elif ACCELERATORS_BY_NAME[npu.accelerator].config != op.config:
        have = f"{board.name} has {npu.accelerator}"
    elif options.npu is UseNpu.OFF:
        have = "--npu off"
    elif (why := _in_the_way(options)) is not None:
        have = why
    else:
        return npu
    raise CompileError(
        f"the model was compiled for {wanted}, and nothing else can run its commands",
        have=have,
        need=f"a board whose chip has {wanted}",
        try_="--npu auto"
        if have == "--npu off"
        else "for another NPU, recompile: EthosUCompileSpec names it in ExecuTorch, --board in `baretorch export`",
    )


def _make_region(graph: Graph, node: Node, op: Delegate) -> DelegatedRegion:
    x, commands, weights = graph.of(node.inputs)
    (y,) = graph.of(node.outputs)
    return DelegatedRegion(op.layers, y.name, x.bytes, y.bytes, commands.bytes, weights.bytes, op.scratch, None)


def _in_the_way(options: Options) -> str | None:
    if options.input is Input.ROWS:
        return "with --input rows the CPU asks for the rows"
    if options.used_cores > 1:
        return "a second core works on the model"
    return None


EDGES = (Quantize.name, Dequantize.name)


def _float(behind: Sequence[Left]) -> bool:
    return not behind or any(left.why == f"it is {DType.FLOAT32.label}" for left in behind)


def _need_all(found: Partition, board: Board) -> None:
    behind = [left for left in found.left if left.op not in EDGES]
    if not behind and found.regions:
        return
    unquantized = not found.regions and len(behind) == len(found.left)
    have = [f"{left.op} {left.layer}: {left.why}" for left in behind]
    raise CompileError(
        f"--npu require: {len(behind)} operators of the model do not run on the NPU of {board.name}",
        have=have or "no operator computes in int8",
        need="an int8 model of which the NPU takes everything but quantize and dequantize",
        try_="--int8" if unquantized and _float(behind) else "--npu auto: the CPU does the rest",
    )
