"""Plan a Graph for a Board: a kernel and an executor per node, a place for every byte, and a check of the result."""

from baretorch.plan.planner import make_plan

__all__ = ["make_plan"]
