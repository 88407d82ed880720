"""A board has one strategy, and planning for one core reads no module of another strategy."""

from __future__ import annotations

import subprocess
import sys

import pytest

from baretorch.options import Options
from baretorch.plan.planner import choose_strategy
from baretorch.plan.problem import OneCore
from baretorch.plan.shares import TwoCores
from baretorch.targets.boards import load_board

PLANNED = """
import sys
from baretorch import pipeline
from baretorch.ir.graph import Builder, DType
from baretorch.ops.elementwise import Add
from baretorch.plan import make_plan
from baretorch.targets.boards import load_board

b = Builder("sum")
x = b.input("x", (1, 4), DType.FLOAT32)
assert len(make_plan(b.graph([x], [b.add(Add(), x, x)]), load_board(sys.argv[1])).steps) == 1
print(*[name for name in sys.modules if name.startswith("baretorch.plan.cluster")])
"""


@pytest.mark.parametrize(("board", "tiles"), [("mps2-an386", False), ("corstone-300", False), ("cluster8", True)])
def test_only_clusters_read_the_modules_for_tiles(board: str, tiles: bool) -> None:
    command = [sys.executable, "-c", PLANNED, board]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert bool(done.stdout.split()) is tiles


def test_the_cores_decide_on_the_strategy() -> None:
    pico, cluster = load_board("pico"), load_board("cluster8")
    assert isinstance(choose_strategy(pico, Options()), OneCore)
    assert isinstance(choose_strategy(pico, Options(cores=2)), TwoCores)
    assert type(choose_strategy(cluster, Options(cores=1))).__name__ == "ClusterCores"
