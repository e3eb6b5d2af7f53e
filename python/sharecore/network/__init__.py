"""Connections, framing and back-pressure."""

from __future__ import annotations

from sharecore._core import AnswerBudget, MemoryBudget, Pending
from sharecore.network.connection import Answer, Connection
from sharecore.network.disconnect import Disconnect
from sharecore.network.held import HeldSockets
from sharecore.network.limits import Limits, ListenerLimits
from sharecore.network.peer import Peer
from sharecore.network.server import Server, loop_factory

__all__ = [
    "Answer",
    "AnswerBudget",
    "Connection",
    "Disconnect",
    "HeldSockets",
    "Limits",
    "ListenerLimits",
    "MemoryBudget",
    "Peer",
    "Pending",
    "Server",
    "loop_factory",
]
