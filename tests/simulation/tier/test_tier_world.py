"""Nodes of a tier keep their promises for some seeds, and planted bugs are found."""

from __future__ import annotations

import pytest
from tests.simulation import run
from tests.simulation.run import one
from tests.simulation.tier.canaries import TIER_CANARIES
from tests.simulation.tier.plan import TIER_FAULTS, TierPlan
from tests.simulation.tier.world import simulate_tier

QUICK = ["answers before the write", "delivery times that nobody reads", "members without a bound"]


@pytest.mark.parametrize(("seed", "faults"), [(2, "all"), pytest.param(18, "", marks=pytest.mark.long)])
def test_promises_are_kept(seed: int, faults: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert one(TierPlan.drawn(seed, 6_000, faults), print), capsys.readouterr().out


def test_a_seed_is_one_life() -> None:
    first, second = (simulate_tier(TierPlan.drawn(3, 1_500, "all")) for _ in range(2))
    assert first.digest == second.digest
    assert first.digest != simulate_tier(TierPlan.drawn(4, 1_500, "all")).digest


def test_planted_bugs_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    """`make simulate WORLD=tier` plants all of them."""
    assert run.canaries(QUICK, print, "tier"), capsys.readouterr().out
    assert len(TIER_CANARIES) >= 12


def test_each_kind_of_queue_setting_has_planted_bugs() -> None:
    for feature in TierPlan.queues:
        assert sum(feature in canary.features.split(",") for canary in TIER_CANARIES.values()) >= 2


def test_the_command_names_the_world() -> None:
    plan = TierPlan.drawn(7, 100, "node kills,members")
    assert plan.command() == "make simulate WORLD=tier SEED=7 EVENTS=100 FAULTS='members,node kills'"
    assert TierPlan.drawn(1, 100, "all").features >= set(TIER_FAULTS)
