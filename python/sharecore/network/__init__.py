"""Connections, framing and back-pressure; bytes in, bytes out."""

from __future__ import annotations

from sharecore.network.budget import MemoryBudget
from sharecore.network.connection import Answer, Connection, Disconnect, Pending
from sharecore.network.limits import Limits, ListenerLimits
from sharecore.network.loop import loop_factory
from sharecore.network.server import Server

__all__ = [
    "Answer",
    "Connection",
    "Disconnect",
    "Limits",
    "ListenerLimits",
    "MemoryBudget",
    "Pending",
    "Server",
    "loop_factory",
]
