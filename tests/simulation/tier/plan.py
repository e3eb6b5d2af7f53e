"""What a seed draws in the tier's world."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar, Self

from tests.simulation import letters
from tests.simulation.queues import settings as queues
from tests.simulation.swarm import Plan

TIER_ACTORS = (
    "consumers",
    "members",
    "misfits",
    "transactions",
    "offset administrators",
    "topic administrators",
    letters.FEATURE,
)
TIER_FAULTS = (
    "node kills",
    "node stops",
    "node pauses",
    "slot moves",
    "clock drift",
    "partitions",
    "cuts",
    "silence",
    "slow network",
    "pieces",
    "leader changes",
    "coordinator moves",
    "broker kills",
    "broker pauses",
    "slow brokers",
    "lost answers",
    "late answers",
    "forgotten producers",
    "forgotten sessions",
    "unclean elections",
    "no topic ids",
    "no epoch checks",
    "no record deletion",
    "late requests",
    "strangers",
    "refused members",
    "doubles",
)
_RARE, _SPARED = ("unclean elections",), 0.6
"""What lets the cluster lose what it has answered excuses much, and so is on in few seeds."""


@dataclass(frozen=True)
class TierPlan(Plan):
    """One simulation of a tier."""

    actors: ClassVar[tuple[str, ...]] = TIER_ACTORS
    faults: ClassVar[tuple[str, ...]] = TIER_FAULTS
    queues: ClassVar[tuple[str, ...]] = (queues.ORDER, queues.WAITS, queues.BOUNDS)
    world: ClassVar[str] = "tier"

    @classmethod
    def drawn(cls, seed: int, events: int, faults: str = "", canary: str = "") -> Self:
        plan = super().drawn(seed, events, faults, canary)
        if not faults and random.Random(f"{seed} rare").random() < _SPARED:
            return plan.without(_RARE)
        return plan
