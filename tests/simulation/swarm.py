"""What a seed draws: which actors act, which faults befall them, how the broker is set."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from tests.simulation import letters
from tests.simulation.network import Weather
from tests.simulation.queues import settings as queues

ACTORS = (
    "consumers",
    "workers",
    "members",
    "misfits",
    "idempotent",
    "transactions",
    "twins",
    "offset administrators",
    "topic administrators",
    letters.FEATURE,
)
FAULTS = (
    "kills",
    "power failures",
    "restarts",
    "failing engines",
    "cuts",
    "silence",
    "slow network",
    "slow readers",
    "pieces",
    "slow disk",
    "failing disk",
    "full disk",
    "lying disk",
    "misdirected writes",
    "bit rot",
    "cold cache",
    "clock jumps",
    "standstill",
)


@dataclass(frozen=True)
class Plan:
    """One simulation.

    Args:
        seed: everything that is not code follows from it.
        events: about how many callbacks run before the actors stop.
        features: the actors and faults that are on.
        canary: the bug that is planted; none if empty.
    """

    actors: ClassVar[tuple[str, ...]] = ACTORS
    faults: ClassVar[tuple[str, ...]] = FAULTS
    queues: ClassVar[tuple[str, ...]] = queues.FEATURES
    world: ClassVar[str] = ""

    seed: int
    events: int = 20_000
    features: frozenset[str] = field(default_factory=frozenset)
    canary: str = ""

    @classmethod
    def drawn(cls, seed: int, events: int, faults: str = "", canary: str = "") -> Self:
        """The plan of a seed.

        Args:
            faults: "none", "all", or faults and actors by name, with commas between them; drawn if empty.

        Raises:
            ValueError: there is no such fault or actor.
        """
        chance = random.Random(seed)
        # newer features are drawn last, so that older seeds keep their actors and faults
        known = (*cls.actors, *cls.faults, *cls.queues)
        drawn = {each for each in known if chance.random() < 0.55}
        if faults == "all":
            drawn = set(known)
        elif faults == "none":
            drawn = {*cls.actors, *cls.queues}
        elif faults:
            drawn = {each.strip() for each in faults.split(",")}
            if unknown := drawn - set(known):
                raise ValueError(f"{', '.join(unknown)}: allowed are {', '.join(known)}, all, none")
        return cls(seed, events, frozenset(drawn), canary)

    def without(self, features: Iterable[str]) -> Self:
        """The same with less going on."""
        return replace(self, features=self.features - set(features))

    @property
    def weather(self) -> Weather:
        return Weather(
            delay_s=0.002,
            slow=0.05 if "slow network" in self.features else 0.0,
            pieces=0.3 if "pieces" in self.features else 0.0,
            silent=0.3 if "silence" in self.features else 0.0,
        )

    def command(self) -> str:
        """What shows it again."""
        faults = ",".join(sorted(self.features)) or "none"
        canary = f" CANARY='{self.canary}'" if self.canary else ""
        world = f" WORLD={self.world}" if self.world else ""
        return f"make simulate{world} SEED={self.seed} EVENTS={self.events} FAULTS='{faults}'{canary}"
