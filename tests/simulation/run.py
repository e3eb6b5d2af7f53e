"""Runs simulations: one again, fresh ones, the canaries; and makes of a failure a story that can be read."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable

from tests.simulation.canaries import CANARIES
from tests.simulation.swarm import Plan
from tests.simulation.world import Outcome, simulate

Say = Callable[[str], object]
_CANARY_EVENTS = 100_000
_SHOWN = 60


def fails_alike(plan: Plan, kind: str) -> Outcome | None:
    """The outcome, when it breaks the same promise."""
    outcome = simulate(plan)
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
    outcome = simulate(plan)
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


def swarm(count: int, seconds: float, events: int, faults: str, say: Say) -> bool:
    """Runs so many fresh seeds, or as many as begin within so many seconds; stops at the first that fails."""
    end = time.monotonic() + seconds
    done = 0
    while time.monotonic() < end if seconds else done < count:
        if not one(Plan.drawn(secrets.randbits(32), events, faults), say):
            return False
        done += 1
    say(f"{done} simulations broke no promise")
    return True


def canaries(names: Iterable[str], say: Say) -> bool:
    """Plants one bug after the other; says whether all were found."""
    missed = []
    for name in names:
        events, seed = 0, 0
        while events < _CANARY_EVENTS:
            seed += 1
            outcome = simulate(Plan.drawn(seed, 8_000, CANARIES[name].features, name))
            events += outcome.events
            if outcome.violations:
                say(f"found after {events:6} events: {name}: {outcome.violations[0].kind}")
                break
        else:
            say(f"NOT FOUND within {_CANARY_EVENTS} events: {name}")
            missed.append(name)
    return not missed
