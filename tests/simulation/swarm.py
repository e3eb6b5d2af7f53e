"""What a seed draws: which actors act, which faults befall them, how the broker is set."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.simulation.network import Weather

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
    "late timers",
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

    seed: int
    events: int = 20_000
    features: frozenset[str] = field(default_factory=frozenset)
    canary: str = ""

    @classmethod
    def drawn(cls, seed: int, events: int, faults: str = "", canary: str = "") -> Plan:
        """The plan of a seed.

        Args:
            faults: "none", "all", or faults and actors by name, with commas between them; drawn if empty.

        Raises:
            ValueError: there is no such fault or actor.
        """
        chance = random.Random(seed)
        drawn = {each for each in (*ACTORS, *FAULTS) if chance.random() < 0.55}
        if faults == "all":
            drawn = {*ACTORS, *FAULTS}
        elif faults == "none":
            drawn = set(ACTORS)
        elif faults:
            drawn = {each.strip() for each in faults.split(",")}
            if unknown := drawn - {*ACTORS, *FAULTS}:
                raise ValueError(
                    f"{', '.join(unknown)}: allowed are {', '.join((*ACTORS, *FAULTS))}, all, none"
                )
        return cls(seed, events, frozenset(drawn), canary)

    def without(self, features: Iterable[str]) -> Plan:
        """The same with less going on."""
        return Plan(self.seed, self.events, self.features - set(features), self.canary)

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
        return f"make simulate SEED={self.seed} EVENTS={self.events} FAULTS='{faults}'{canary}"
