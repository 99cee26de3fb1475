"""What a run will need before it is started: memory by part, seconds a step, the best placement.

    plan = make_plan(shape_of("Qwen/Qwen2.5-7B-Instruct"), parse_cluster("8xH200"), Workload())
    plan.best.step.seconds

Everything here is arithmetic over a model's shape, a device's data sheet and a workload. Nothing is
loaded or downloaded, and torch is not needed. The formulae stand beside the functions that compute
them, with their sources; `docs/planning.md` says how far they were checked.
"""

from __future__ import annotations

from memograd.planning.costs import Workload
from memograd.planning.hardware import Cluster, Device, parse_cluster
from memograd.planning.placement import Placement, RankedPlacements, make_plan
from memograd.planning.shapes import ModelShape, shape_of

__all__ = [
    "Cluster",
    "Device",
    "ModelShape",
    "Placement",
    "RankedPlacements",
    "Workload",
    "make_plan",
    "parse_cluster",
    "shape_of",
]
