"""Runs simulations: one again, fresh ones, the canaries; and makes of a failure a story that can be read."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from tests.simulation.canaries import CANARIES, Canary
from tests.simulation.home.canaries import HOME_CANARIES
from tests.simulation.home.plan import HomePlan
from tests.simulation.home.world import simulate_home
from tests.simulation.life import Outcome
from tests.simulation.queues.canaries import QUEUE_CANARIES
from tests.simulation.swarm import Plan
from tests.simulation.tier.canaries import TIER_CANARIES
from tests.simulation.tier.plan import TierPlan
from tests.simulation.tier.world import simulate_tier
from tests.simulation.world import simulate

Say = Callable[[str], object]


class Kind(NamedTuple):
    """A world to simulate."""

    plan: type[Plan]
    simulate: Callable[[Any], Outcome]
    canaries: Mapping[str, Canary]
    canary_events: int


WORLDS = {
    Plan.world: Kind(Plan, simulate, CANARIES | QUEUE_CANARIES, 8_000),
    HomePlan.world: Kind(HomePlan, simulate_home, HOME_CANARIES, 20_000),
    TierPlan.world: Kind(TierPlan, simulate_tier, TIER_CANARIES, 20_000),
}
_CANARY_EVENTS = 1_000_000
_SHOWN = 60


def fails_alike(plan: Plan, kind: str) -> Outcome | None:
    """The outcome, when it breaks the same promise."""
    outcome = WORLDS[plan.world].simulate(plan)
    return outcome if any(each.kind == kind for each in outcome.violations) else None


def shrunk(outcome: Outcome) -> Outcome:
    """The same failure with as few actors and faults as still show it."""
    kind = outcome.violations[0].kind
    for feature in sorted(outcome.plan.features):
        outcome = fails_alike(outcome.plan.without([feature]), kind) or outcome
    return outcome


def story_of(outcome: Outcome) -> str:
    """Who did what and when, up to where a promise was broken, and how to see it again."""
    lines = outcome.lines
    end = next((at for at, line in enumerate(lines) if "AUDITOR" in line), len(lines) - 1)
    broken = [str(each) for each in outcome.violations[:5]]
    return "\n".join(
        [
            *lines[max(0, end - _SHOWN) : end + 1],
            "",
            *(f"BROKEN  {each}" for each in broken),
            f"with    {', '.join(sorted(outcome.plan.features)) or 'no actors'}",
            f"again   {outcome.plan.command()}",
        ]
    )


def one(plan: Plan, say: Say, *, all_lines: bool = False) -> bool:
    """Runs one simulation; says whether it kept every promise."""
    began = time.process_time()
    outcome = WORLDS[plan.world].simulate(plan)
    took = time.process_time() - began
    if outcome.violations:
        say(f"seed {plan.seed} breaks a promise; looking for what it takes ...")
        say(story_of(shrunk(outcome)))
        return False
    if all_lines:
        say("\n".join(outcome.lines))
    say(
        f"seed {plan.seed}: {outcome.events} events in {took:.1f} s ({outcome.events / took:.0f}/s), "
        f"{outcome.virtual_s:.0f} s of virtual time, log {outcome.digest}"
    )
    return True


def swarm(
    count: int, seconds: float, events: int, faults: str, say: Say, world: str = "", drawn_from: str = ""
) -> bool:
    """Runs so many fresh seeds, or as many as begin within so many seconds; stops at the first that fails.

    Args:
        drawn_from: the seeds follow from it, as from the id of a commit; by chance if empty.
    """
    chance = random.Random(drawn_from) if drawn_from else secrets.SystemRandom()
    end = time.monotonic() + seconds
    done = 0
    while time.monotonic() < end if seconds else done < count:
        if not one(WORLDS[world].plan.drawn(chance.getrandbits(32), events, faults), say):
            return False
        done += 1
    say(f"{done} simulations broke no promise")
    return True


def canaries(names: Iterable[str], say: Say, world: str = "") -> bool:
    """Plants one bug after the other; says whether all were found."""
    missed = []
    kind = WORLDS[world]
    for name in names:
        events, seed = 0, 0
        canary = kind.canaries[name]
        while events < _CANARY_EVENTS:
            seed += 1
            plan = kind.plan.drawn(seed, canary.events or kind.canary_events, canary.features, name)
            outcome = kind.simulate(plan)
            events += outcome.events
            if outcome.violations:
                say(f"found after {events:6} events: {name}: {outcome.violations[0].kind}")
                break
        else:
            say(f"NOT FOUND within {_CANARY_EVENTS} events: {name}")
            missed.append(name)
    return not missed
