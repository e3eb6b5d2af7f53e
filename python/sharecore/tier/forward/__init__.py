"""Requests that are not about share groups: they go on to the cluster behind the node."""

from __future__ import annotations

from sharecore.tier.forward.forwarder import Own
from sharecore.tier.forward.forwarding import Forwarding
from sharecore.tier.forward.versions import ask_offers

__all__ = ["Forwarding", "Own", "ask_offers"]
