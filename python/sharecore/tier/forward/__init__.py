"""Forwards requests that are not about share groups to the upstream cluster."""

from __future__ import annotations

from sharecore.tier.forward.forwarder import Own
from sharecore.tier.forward.forwarding import Forwarding
from sharecore.tier.forward.versions import ask_offers

__all__ = ["Forwarding", "Own", "ask_offers"]
