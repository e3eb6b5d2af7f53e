"""A bounded part of `python -m tests.differential.run`, with seeds that stay the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.differential.oracle import Oracle
from tests.differential.profiles import PROFILES
from tests.differential.run import Run

SEEDS = range(1, 7)


@pytest.mark.timeout(600)  # the first of them fetches Kafka's jars
@pytest.mark.parametrize("profile", PROFILES)
def test_both_engines_answer_as_apache(profile: str, oracle: Oracle, tmp_path: Path) -> None:
    run = Run(oracle, rust=True, out=tmp_path)
    for seed in SEEDS:
        assert run.trace(profile, seed) is None
    assert run.count.operations > 100 * len(SEEDS)
    assert PROFILES[profile].ours_only or run.count.apache > 100
