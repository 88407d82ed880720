"""Plan a Graph for a Board: a kernel and an executor per node, a place for every byte, and a check of the result.

planner.py calls the steps in order. A single-core plan needs problem.py and memory/ only; shares.py and cluster/ plan
for several cores.
"""

from baretorch.plan.planner import make_plan

__all__ = ["make_plan"]
