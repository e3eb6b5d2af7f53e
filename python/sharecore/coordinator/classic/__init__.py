"""Groups of the classic protocol, in which a member computes the assignment."""

from __future__ import annotations

from sharecore.coordinator.classic.coordinator import (
    ClassicCoordinator,
    ClassicLimits,
    JoinRequest,
    Leaving,
    SyncRequest,
)
from sharecore.coordinator.classic.group import ClassicGroup, ClassicState
from sharecore.coordinator.classic.member import ClassicMember, JoinResult, SyncResult

__all__ = [
    "ClassicCoordinator",
    "ClassicGroup",
    "ClassicLimits",
    "ClassicMember",
    "ClassicState",
    "JoinRequest",
    "JoinResult",
    "Leaving",
    "SyncRequest",
    "SyncResult",
]
