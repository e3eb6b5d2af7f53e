"""The workload: producers, members of a share group, plain consumers and administration, all recorded."""

from __future__ import annotations

from sharecore.verify.workload.plan import Plan
from sharecore.verify.workload.run import Workload

__all__ = ["Plan", "Workload"]
