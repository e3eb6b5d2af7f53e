"""A second engine in pure Python: slow and simple, one record at a time.

It has the interface of `sharecore._core.Partition` and other data structures (a dict by offset, a heap of
deadlines), so that the two can be compared. It is used only on request, never as a fallback.
"""

from __future__ import annotations

from sharecore.reference.admitting import AdmittingPartition
from sharecore.reference.keyed import KeyedPartition
from sharecore.reference.managed import ManagedPartition
from sharecore.reference.partition import Partition
from sharecore.reference.record import ACKNOWLEDGED, ACQUIRED, ARCHIVED, ARCHIVING, AVAILABLE, Write, combine

__all__ = [
    "ACKNOWLEDGED",
    "ACQUIRED",
    "ARCHIVED",
    "ARCHIVING",
    "AVAILABLE",
    "AdmittingPartition",
    "KeyedPartition",
    "ManagedPartition",
    "Partition",
    "Write",
    "combine",
]
