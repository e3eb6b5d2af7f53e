"""Fault injection, for processes and connections that this program started itself."""

from __future__ import annotations

from sharecore.verify.nemesis.broker import OWN_BROKER, LocalBroker
from sharecore.verify.nemesis.cluster import LocalCluster
from sharecore.verify.nemesis.run import Nemesis

__all__ = ["OWN_BROKER", "LocalBroker", "LocalCluster", "Nemesis"]
