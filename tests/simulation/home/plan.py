"""What a seed draws in the world of a home."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tests.simulation.swarm import Plan

HOME_ACTORS = (
    "consumers",
    "workers",
    "members",
    "misfits",
    "idempotent",
    "transactions",
    "twins",
    "offset administrators",
    "topic administrators",
)
HOME_FAULTS = (
    "kills",
    "lost disks",
    "stops",
    "pauses",
    "clock drift",
    "bucket cuts",
    "bucket outages",
    "held answers",
    "lost requests",
    "late requests",
    "slow bucket",
    "absent objects",
    "cuts",
    "silence",
    "slow network",
    "pieces",
    "slow readers",
    "little disk",
)


@dataclass(frozen=True)
class HomePlan(Plan):
    """One simulation of a home."""

    actors: ClassVar[tuple[str, ...]] = HOME_ACTORS
    faults: ClassVar[tuple[str, ...]] = HOME_FAULTS
    queues: ClassVar[tuple[str, ...]] = ()
    world: ClassVar[str] = "home"
