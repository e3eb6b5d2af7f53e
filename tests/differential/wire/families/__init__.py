"""Families of scenarios: each a generator of random steps."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.differential.wire.families import (
    broker,
    classic,
    configs,
    consumers,
    fetches,
    frames,
    groups,
    heartbeats,
    isolation,
    malformed,
    offsets,
    plain,
    producers,
    settings,
    spoilt,
    state,
    topics,
    transactions,
)
from tests.differential.wire.script import Scenario, Stage

FAMILIES: dict[str, Callable[[Random, Stage], Scenario]] = {
    "groups": groups.scenario,
    "configs": configs.scenario,
    "settings": settings.scenario,
    "offsets": offsets.scenario,
    "state": state.scenario,
    "heartbeats": heartbeats.scenario,
    "fetches": fetches.scenario,
    "producers": producers.scenario,
    "transactions": transactions.scenario,
    "isolation": isolation.scenario,
    "topics": topics.scenario,
    "malformed": malformed.scenario,
    "classic": classic.scenario,
    "consumers": consumers.scenario,
    "broker": broker.scenario,
    "plain": plain.scenario,
    "spoilt": spoilt.scenario,
    "frames": frames.scenario,
}
OF_NODES = [
    "configs",
    "offsets",
    "state",
    "heartbeats",
    "fetches",
    "producers",
    "transactions",
    "malformed",
    "classic",
    "settings",
    "spoilt",
]
"""Those in which a node of a tier answers alike. Placement, versions and fetch sessions are its own; its
share groups may have the names of groups of the cluster; records are fetched anew where only committed ones
are wanted.
"""
