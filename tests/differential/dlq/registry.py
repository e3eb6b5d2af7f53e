"""The scenarios by name, and which of them may be played side by side."""

from __future__ import annotations

from collections.abc import Callable

from tests.differential.dlq.world import Seen, World

Scenario = Callable[[World], Seen]
SCENARIOS: dict[str, Scenario] = {}
ALONE: set[str] = set()
"""Those that change what holds for all."""
SLOW: set[str] = set()
"""Those that wait for timeouts or restarts; nothing else is played meanwhile either."""


def scenario(play: Scenario) -> Scenario:
    SCENARIOS[play.__name__] = play
    return play


def alone(play: Scenario) -> Scenario:
    ALONE.add(play.__name__)
    return scenario(play)


def slow(play: Scenario) -> Scenario:
    SLOW.add(play.__name__)
    return scenario(play)
