"""Two machines with a home in a bucket keep their promises for some seeds, and planted bugs are found."""

from __future__ import annotations

import pytest
from tests.simulation import run
from tests.simulation.home.canaries import HOME_CANARIES
from tests.simulation.home.plan import HOME_FAULTS, HomePlan
from tests.simulation.home.world import simulate_home
from tests.simulation.run import one

QUICK = ["exists is ours", "takeovers without silence"]


@pytest.mark.parametrize(("seed", "faults"), [(1, "all"), (2, ""), (3, ""), (4, "")])
def test_promises_are_kept(seed: int, faults: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert one(HomePlan.drawn(seed, 6_000, faults), print), capsys.readouterr().out


def test_a_seed_is_one_life() -> None:
    first, second = (simulate_home(HomePlan.drawn(3, 1_500, "all")) for _ in range(2))
    assert first.digest == second.digest
    assert first.digest != simulate_home(HomePlan.drawn(4, 1_500, "all")).digest


def test_planted_bugs_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    """`make simulate WORLD=home` plants all of them."""
    assert run.canaries(QUICK, print, "home"), capsys.readouterr().out
    assert set(QUICK) <= HOME_CANARIES.keys()


def test_the_command_names_the_world() -> None:
    plan = HomePlan.drawn(7, 100, "kills,members")
    assert plan.command() == "make simulate WORLD=home SEED=7 EVENTS=100 FAULTS='kills,members'"
    assert HomePlan.drawn(1, 100, "all").features >= set(HOME_FAULTS)
