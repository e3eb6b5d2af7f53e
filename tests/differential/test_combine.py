"""Share state joined with new share state: both combiners against Apache's."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.differential import oracle

from sharecore.trace.driver import coalesced
from sharecore.trace.engines import EngineName, StateBatch, engine

CASES = 1500


def _batches(random: Random, most: int) -> list[StateBatch]:
    """Batches in order, as a persister keeps them: neighbors may touch, none overlap."""
    offset = random.randint(0, 30)
    batches = []
    for _ in range(random.randint(0, most)):
        last = offset + random.choice([0, 0, 1, 4, 20])
        batches.append((offset, last, random.choice([0, 0, 2, 4]), random.randint(0, 5)))
        offset = last + 1 + random.choice([0, 0, 0, 1, 7])
    return batches


def _cases(seed: int) -> list[dict[str, Any]]:
    random = Random(seed)
    cases = []
    for _ in range(CASES):
        existing, new = _batches(random, 8), _batches(random, 8)
        if random.random() < 0.2:
            new += _batches(random, 4)  # a write may name an offset twice
        random.shuffle(new)
        start_offset = random.choice([-1, -1, 0, random.randint(0, 60)])
        cases.append({"existing": existing, "new": new, "start_offset": start_offset})
    return cases


@pytest.mark.timeout(600)  # the first use fetches Kafka's jars
def test_combiners_agree_with_apache(tmp_path: Path) -> None:
    cases = _cases(4)
    answers = oracle.combine(cases, tmp_path)
    assert len(answers) == CASES
    names: tuple[EngineName, ...] = ("rust", "reference")
    for case, answer in zip(cases, answers, strict=True):
        apache = coalesced(tuple(batch) for batch in answer["combined"])
        for name in names:
            combined = engine(name).combine(case["existing"], case["new"], case["start_offset"])
            assert coalesced(combined) == apache, (name, case)
