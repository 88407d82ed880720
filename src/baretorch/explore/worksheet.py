"""What a graph takes of a board, measured by building it where everything fits."""

from __future__ import annotations

from baretorch.errors import CompileError
from baretorch.files.write import scratch
from baretorch.firmware.fit import roomy
from baretorch.frontends import Source
from baretorch.ir.graph import Graph
from baretorch.options import Options
from baretorch.pipeline import build_image, compile_graph
from baretorch.report.worksheet import Worksheet, make_worksheet
from baretorch.targets.types import Board


def planning_board(board: Board) -> Board:
    """The board with memories in which everything fits, to find out what a model needs. This computer has room."""
    return board if board.hosted else roomy(board)


def find_worksheet(
    source: Source, graph: Graph, board: Board, options: Options
) -> Worksheet | tuple[Board, CompileError]:
    """The worksheet of the graph on a board, or why there is none: no compiler, no kernel."""
    try:
        compiled = compile_graph(source, graph, planning_board(board), options.for_sizes())
        with scratch() as folder:
            return make_worksheet(board, build_image(compiled, folder))
    except CompileError as error:
        return board, error
